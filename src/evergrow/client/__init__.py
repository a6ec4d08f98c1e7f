"""Talking to a service over HTTP, with nothing but the standard library."""

from evergrow.client.client import Client
from evergrow.client.results import (
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
