"""Errors of workers, as the driver raises them."""

from __future__ import annotations

from evergrow.foundation.errors import ClusterError


def can_retry(error: BaseException) -> bool:
    """Whether a result was computed but lost on its way, beyond what Ray recovers itself."""
    from ray import exceptions

    return isinstance(error, exceptions.ObjectLostError | exceptions.ObjectFetchTimedOutError)


def local_error(error: BaseException, description: str, retries: int) -> BaseException:
    """Return the exception to raise here for an error that Ray reported.

    An error raised by the task is raised again, with the traceback of the worker as a note. The
    loss of a worker becomes a ``ClusterError``.
    """
    from ray import exceptions

    cause = getattr(error, "cause", None)
    if isinstance(error, exceptions.RayTaskError) and isinstance(cause, Exception):
        # Ray's wrapper would hide the error behind a page of its own frames.
        cause.__cause__, cause.__suppress_context__ = None, True
        if not getattr(cause, "__notes__", None):
            cause.add_note(f"Raised on a worker of the cluster:\n{error}")
        return cause
    if isinstance(error, exceptions.RayTaskError):
        return ClusterError(f"{description} failed on a worker: {error}")
    if isinstance(error, exceptions.RayError):
        tries = "once" if retries == 0 else f"{retries + 1} times"
        return ClusterError(
            f"{description} failed: the workers of one of its parts were lost {tries}; if memory "
            f"ran out, use fewer workers on each node ({type(error).__name__}: {error})"
        )
    return error
