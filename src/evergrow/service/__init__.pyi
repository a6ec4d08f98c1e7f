from .client import (
    Accuracy,
    Candidate,
    Change,
    ClassEntry,
    Client,
    Example,
    FineEntry,
    Prediction,
    Review,
    Status,
    Taught,
    TaughtClass,
)
from .http.app import create_app
from .http.serving import serve
from .http.settings import Settings
from .http.state import Service

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
    "Service",
    "Settings",
    "Status",
    "Taught",
    "TaughtClass",
    "create_app",
    "serve",
]
