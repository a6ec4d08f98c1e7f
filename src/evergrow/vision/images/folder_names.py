"""Names of folders for classes: accepted by every system, and distinct where case is ignored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# File systems allow 255 bytes, and Windows 260 characters for a path with all folders above.
_MAX_BYTES = 100
# What Windows refuses in names; Unix refuses the slash.
_REFUSED = re.compile(r'[<>:"/\\|?*]')
# Devices of Windows, which it finds in any folder and with any extension.
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE
)


class FolderNames:
    """Finds a folder name for each class.

    Parameters
    ----------
    taken : iterable of str
        Names in the same folder that no class may have.

    Examples
    --------
    >>> names = FolderNames(["labels.csv"])
    >>> [names.find(name) for name in ("cup", "Cup", "left/right", "NUL", "...", "labels.csv")]
    ['cup', 'Cup (2)', 'left_right', '_NUL', '_._', 'labels.csv (2)']
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {_fold(name) for name in taken}

    def find(self, class_name: str, suffix: str = "") -> str:
        """A new folder name for a class, like its own name as far as possible.

        With a suffix, the name of a file in a folder.
        """
        plain = _portable(class_name)
        name, number = plain + suffix, 1
        while _fold(name) in self._taken:
            number += 1
            name = f"{plain} ({number}){suffix}"
        self._taken.add(_fold(name))
        return name


def _portable(name: str) -> str:
    found = _REFUSED.sub("_", name)
    found = "".join(one if one.isprintable() else "_" for one in found)
    # Cut where a character ends; a mark that belongs to the character before may be lost.
    found = found.encode()[:_MAX_BYTES].decode(errors="ignore").rstrip()
    # A dot hides a folder at the beginning, and Windows drops it at the end.
    if found.startswith("."):
        found = f"_{found[1:]}"
    if found.endswith("."):
        found = f"{found[:-1]}_"
    return f"_{found}" if _DEVICE.fullmatch(found) else found


def _fold(name: str) -> str:
    """The same for names that some file system takes for the same; also for some others."""
    return unicodedata.normalize("NFKC", name.upper().casefold())
