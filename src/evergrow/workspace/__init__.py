"""Durable examples and a model that follows them, in one folder."""

from evergrow.workspace.inspecting import check_workspace
from evergrow.workspace.layout import is_workspace
from evergrow.workspace.problems import (
    ConflictError,
    KeyReusedError,
    NewerWorkspaceError,
    NoSuchClassError,
    NoSuchExampleError,
    WorkspaceFullError,
    WorkspaceLockedError,
)
from evergrow.workspace.records import (
    Answer,
    Change,
    ClassEntry,
    Confused,
    Event,
    Example,
    Finding,
    Lesson,
    Page,
    Picture,
    Request,
    Review,
    Status,
    Taught,
)
from evergrow.workspace.workspace import Workspace

__all__ = [
    "Answer",
    "Change",
    "ClassEntry",
    "ConflictError",
    "Confused",
    "Event",
    "Example",
    "Finding",
    "KeyReusedError",
    "Lesson",
    "NewerWorkspaceError",
    "NoSuchClassError",
    "NoSuchExampleError",
    "Page",
    "Picture",
    "Request",
    "Review",
    "Status",
    "Taught",
    "Workspace",
    "WorkspaceFullError",
    "WorkspaceLockedError",
    "check_workspace",
    "is_workspace",
]
