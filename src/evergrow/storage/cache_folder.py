"""Where things that can be computed again are kept."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path

from evergrow.foundation.errors import CacheWarning

_told: set[str] = set()
_told_lock = threading.Lock()


def cache_folder() -> Path:
    """The user's folder for caches of Evergrow; it need not exist.

    ``EVERGROW_CACHE`` names it; without, it lies where the system keeps caches.
    """
    chosen = os.environ.get("EVERGROW_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA")
        return (Path(place) if place else Path.home() / "AppData" / "Local") / "evergrow" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "evergrow"
    place = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification has relative paths ignored.
    usable = place is not None and os.path.isabs(place)
    return (Path(place) if place and usable else Path.home() / ".cache") / "evergrow"


def warn_once(place: Path, trouble: str) -> None:
    """Warn of trouble with a cache, once per place: work goes on."""
    with _told_lock:
        if str(place) in _told:
            return
        _told.add(str(place))
    warnings.warn(f"the cache {str(place)!r}: {trouble}", CacheWarning, stacklevel=3)
