"""What went wrong on a worker, in the words of whoever raised it."""

from __future__ import annotations

from evergrow.foundation.errors import ClusterError

__all__ = ["is_worth_another_try", "raised_elsewhere"]


def is_worth_another_try(error: BaseException) -> bool:
    """Whether a result was made but got lost on its way, beyond what Ray makes again itself."""
    from ray import exceptions

    return isinstance(error, exceptions.ObjectLostError | exceptions.ObjectFetchTimedOutError)


def raised_elsewhere(error: BaseException, what: str, retries: int) -> BaseException:
    """What to raise here for an error that Ray gave.

    An error raised by the work is the same error here, with the traceback of the worker as a note;
    anything that befell the worker is a ``ClusterError``.
    """
    from ray import exceptions

    cause = getattr(error, "cause", None)
    if isinstance(error, exceptions.RayTaskError) and isinstance(cause, Exception):
        # Ray's own wrapping would hide what was raised behind a page of its frames.
        cause.__cause__, cause.__suppress_context__ = None, True
        if not getattr(cause, "__notes__", None):
            cause.add_note(f"Raised on a worker of the cluster:\n{error}")
        return cause
    if isinstance(error, exceptions.RayTaskError):
        return ClusterError(f"{what} failed on a worker: {error}")
    if isinstance(error, exceptions.RayError):
        tries = "once" if retries == 0 else f"{retries + 1} times"
        return ClusterError(
            f"{what} was given up: the workers that did one of its parts were lost {tries}; if "
            f"memory ran out, use fewer workers on each node ({type(error).__name__}: {error})"
        )
    return error
