"""Image classification in one estimator: features, and a learner that takes new classes.

Start with ``image_classifier`` (prediction and model files) and ``learner`` (training). ``fitted``
is what was learnt, ``components`` the features and learners by name, and ``extraction`` the path
from images to a matrix.
"""

from evergrow.vision.classifier.confusion import draw_confusion
from evergrow.vision.classifier.fitted import Answers, ImageReport
from evergrow.vision.classifier.image_classifier import ImageClassifier

__all__ = ["Answers", "ImageClassifier", "ImageReport", "draw_confusion"]
