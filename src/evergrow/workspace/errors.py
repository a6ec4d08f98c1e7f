"""What a workspace refuses, by kind; the service has one HTTP status for each."""

from __future__ import annotations

from evergrow.foundation.errors import WorkspaceError


class WorkspaceFullError(WorkspaceError):
    """The disk is full; nothing was changed, and the change can be repeated once there is space."""


class WorkspaceLockedError(WorkspaceError):
    """Another process has the workspace open for writing."""


class NewerWorkspaceError(WorkspaceError):
    """The folder was written by a newer version of Evergrow."""


class NoSuchClassError(WorkspaceError):
    """There is no class of this name."""


class NoSuchExampleError(WorkspaceError):
    """There is no example of this id, or it was removed."""


class ConflictError(WorkspaceError):
    """The request conflicts with the current state, such as a name that is taken."""


class KeyReusedError(WorkspaceError):
    """An idempotency key was used before, for a different request."""
