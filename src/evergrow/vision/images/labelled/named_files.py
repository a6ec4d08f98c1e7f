"""Image files that a table or annotations name, kept in the folder that they are relative to."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from evergrow.foundation.errors import InvalidInputError

# No file system takes longer paths.
_LONGEST_PATH = 4096
_MISSING = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "there is no such file",
    errno.ELOOP: "a link that leads in circles",
    errno.ENAMETOOLONG: "its path is too long",
}


@dataclass(frozen=True)
class NamedFiles:
    """Finds files by their names in a file from outside.

    Parameters
    ----------
    folder : Path
        What relative names are relative to.
    outside : bool
        Whether names may be absolute or leave the folder.
    follow_links : bool
        Whether links (symlinks) are followed.

    Examples
    --------
    >>> NamedFiles(Path("/photos"), outside=False, follow_links=True).find("../secret.jpg")
    Traceback (most recent call last):
    ...
    evergrow.foundation.errors.InvalidInputError: '../secret.jpg' leaves the folder of the file
    """

    folder: Path
    outside: bool
    follow_links: bool

    def find(self, name: str) -> Path:
        """The path of a file that is there; an ``InvalidInputError`` says why it is refused."""
        if not name or len(name) > _LONGEST_PATH:
            raise InvalidInputError("it has no path" if not name else "its path is too long")
        if "\0" in name:
            raise InvalidInputError("its path has a zero byte")
        if not self.outside:
            self._require_inside(name)
        path = os.path.join(self.folder, name)
        mode = self._mode(path)
        if mode is None and "\\" in name:
            # Written on Windows.
            path = os.path.join(self.folder, name.replace("\\", "/"))
            mode = self._mode(path)
        if mode is None:
            raise InvalidInputError(f"{name!r}: there is no such file")
        if not stat.S_ISREG(mode):
            raise InvalidInputError(f"{name!r} is not a regular file")
        if not self.follow_links and self._has_link(path):
            raise InvalidInputError(f"{name!r}: a link is not followed")
        return Path(path)

    def _require_inside(self, name: str) -> None:
        portable = name.replace("\\", "/")
        # A drive of Windows is absolute on every system.
        is_absolute = portable.startswith("/") or portable[1:2] == ":"
        if is_absolute:
            raise InvalidInputError(f"{name!r} is an absolute path")
        if ".." in portable.split("/"):
            raise InvalidInputError(f"{name!r} leaves the folder of the file")

    def _mode(self, path: str) -> int | None:
        try:
            return os.stat(path).st_mode
        except OSError as error:
            reason = _MISSING.get(error.errno or 0, (error.strerror or str(error)).lower())
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise InvalidInputError(f"{path!r}: {reason}") from error
        except ValueError as error:
            # Characters that no file name has.
            raise InvalidInputError("its path is not valid") from error

    def _has_link(self, path: str) -> bool:
        inside = os.path.relpath(path, self.folder)
        expected = os.path.join(os.path.realpath(self.folder), inside)
        return os.path.realpath(path) != os.path.normpath(expected)
