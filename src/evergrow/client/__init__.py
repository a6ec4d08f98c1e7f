"""Talking to a service over HTTP, with nothing but the standard library."""

from evergrow.client.client import Client
from evergrow.client.results import (
    Accuracy,
    Change,
    ClassEntry,
    Example,
    FineEntry,
    Prediction,
    Review,
    Status,
    Taught,
)

__all__ = [
    "Accuracy",
    "Change",
    "ClassEntry",
    "Client",
    "Example",
    "FineEntry",
    "Prediction",
    "Review",
    "Status",
    "Taught",
]
