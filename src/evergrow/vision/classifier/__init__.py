"""From images to classes in one estimator."""

from evergrow.vision.classifier.answers import Answers
from evergrow.vision.classifier.confusion import draw_confusion
from evergrow.vision.classifier.image_classifier import ImageClassifier
from evergrow.vision.classifier.report import ImageReport

__all__ = ["Answers", "ImageClassifier", "ImageReport", "draw_confusion"]
