"""Talking to a service over HTTP, with nothing but the standard library."""

from evergrow.service.client.client import Client
from evergrow.service.client.results import (
    Accuracy,
    Candidate,
    Change,
    ClassEntry,
    Example,
    FineEntry,
    Prediction,
    Review,
    Status,
    Taught,
    TaughtClass,
)

__all__ = [
    "Accuracy",
    "Candidate",
    "Change",
    "ClassEntry",
    "Client",
    "Example",
    "FineEntry",
    "Prediction",
    "Review",
    "Status",
    "Taught",
    "TaughtClass",
]
