from .client.client import Client
from .http.app import create_app
from .http.server import serve
from .http.service import Service
from .http.settings import Settings
from .wire import (
    Accuracy,
    Block,
    Candidate,
    Change,
    ClassEntry,
    Example,
    FineEntry,
    LabelStudioSync,
    Prediction,
    Review,
    Status,
    TaughtClass,
    TeachResult,
)

__all__ = [
    "Accuracy",
    "Block",
    "Candidate",
    "Change",
    "ClassEntry",
    "Client",
    "Example",
    "FineEntry",
    "LabelStudioSync",
    "Prediction",
    "Review",
    "Service",
    "Settings",
    "Status",
    "TaughtClass",
    "TeachResult",
    "create_app",
    "serve",
]
