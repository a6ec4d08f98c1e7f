"""When a request is sent again, and how long to wait before."""

from __future__ import annotations

import http.client
import random
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from evergrow.foundation.errors import ServiceError
from evergrow.service.client.connecting import StaleConnectionError

__all__ = ["BusyError", "LocalError", "Retries", "pause", "seconds_of"]

Result = TypeVar("Result")

# By a name of this module, so that tests need not wait.
pause = time.sleep

_FIRST_SECONDS = 0.1
_MOST_SECONDS = 10.0
# A service that asks for more patience than this is better asked again by a person.
_MOST_ASKED_SECONDS = 60.0
# What OpenSSL calls certificates whose signer it does not know.
_UNKNOWN_SIGNER = (18, 19, 20)


class BusyError(Exception):
    """The service asks to come again: too many requests, or not ready."""

    def __init__(self, error: ServiceError, after: float | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after


class LocalError(Exception):
    """Something on this side went wrong, whose ``reason`` is to be raised as it is."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Retries:
    """Sends a request again while there is hope.

    Only requests that do no harm when they arrive twice may be given to it.

    Attributes
    ----------
    most : int
        How often a request is sent again.
    place : str
        What to call the service in messages.
    """

    most: int
    place: str

    def run(self, send: Callable[[], Result]) -> Result:
        """Send, wait, send again; raise a :class:`ServiceError` when it is enough."""
        for attempt in range(self.most + 1):
            last = attempt == self.most
            try:
                return self._fresh(send)
            except BusyError as busy:
                if last or (busy.after or 0) > _MOST_ASKED_SECONDS:
                    raise busy.error from None
                pause(busy.after if busy.after is not None else _seconds_before(attempt))
            except LocalError as local:
                raise local.reason from None
            except ssl.SSLCertVerificationError as error:
                raise ServiceError(0, self._not_trusted(error)) from error
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise ServiceError(0, self._not_reached(error, attempt)) from error
                pause(_seconds_before(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _fresh(self, send: Callable[[], Result]) -> Result:
        # Services close connections that were idle: that says nothing about the next one. Several
        # may have been kept.
        while True:
            try:
                return send()
            except StaleConnectionError:
                continue

    def _not_reached(self, error: Exception, attempt: int) -> str:
        tried = "" if attempt == 0 else f" after {attempt + 1} attempts"
        reason = str(error) or type(error).__name__
        return f"{self.place} gives no answer{tried}: {reason}"

    def _not_trusted(self, error: ssl.SSLCertVerificationError) -> str:
        own = error.verify_code in _UNKNOWN_SIGNER
        hint = "; give ca_file=… for one that was signed by its owner" if own else ""
        reason = error.verify_message.rstrip(".")
        return f"the certificate of {self.place} is not trusted: {reason}{hint}"


def _seconds_before(attempt: int) -> float:
    # Clients that lost one service together must not come back together.
    longest = min(_MOST_SECONDS, _FIRST_SECONDS * 2.0**attempt)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311


def seconds_of(header: str | None) -> float | None:
    """What Retry-After says, as seconds from now; None if it says nothing.

    Examples
    --------
    >>> from evergrow.service.client.retrying import seconds_of
    >>> seconds_of("2"), seconds_of("Mon, 01 Jan 2001 00:00:00 GMT"), seconds_of("soon")
    (2.0, 0.0, None)
    """
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None
