"""From images to classes in one estimator."""

from evergrow.imaging.answers import Answers
from evergrow.imaging.classifier import ImageClassifier
from evergrow.imaging.confusion import draw_confusion
from evergrow.imaging.report import ImageReport

__all__ = ["Answers", "ImageClassifier", "ImageReport", "draw_confusion"]
