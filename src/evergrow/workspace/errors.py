"""What a workspace refuses, by kind: each has one meaning for commands and for the service."""

from __future__ import annotations

from evergrow.foundation.errors import WorkspaceError

__all__ = [
    "ConflictError",
    "KeyReusedError",
    "NewerWorkspaceError",
    "NoSuchClassError",
    "NoSuchExampleError",
    "WorkspaceFullError",
    "WorkspaceLockedError",
]


class WorkspaceFullError(WorkspaceError):
    """The disk has no room; nothing was changed, and teaching goes on when there is room again."""


class WorkspaceLockedError(WorkspaceError):
    """Another process has the workspace open for writing."""


class NewerWorkspaceError(WorkspaceError):
    """The folder was written by a newer version of Evergrow."""


class NoSuchClassError(WorkspaceError):
    """No class of this name is known."""


class NoSuchExampleError(WorkspaceError):
    """No example of this number is there any more."""


class ConflictError(WorkspaceError):
    """What is asked for does not fit what is there now, such as a name that is taken."""


class KeyReusedError(WorkspaceError):
    """A key that stands for one request came with another."""
