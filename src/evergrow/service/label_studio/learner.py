"""What the back end needs of the service that it is part of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import EvergrowError
from evergrow.workspace.records import Change, NewExample, Picture, TeachResult
from evergrow.workspace.workspace import Workspace

Row = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddedImage:
    """An image that was decoded, and its embedding."""

    row: Row
    picture: Picture


class LearnerBusyError(EvergrowError):
    """The service cannot do it now: it is stopping, or too much is queued."""


class Learner(Protocol):
    """A workspace that is served; the methods wait for their results."""

    @property
    def workspace(self) -> Workspace:
        """The workspace, to read from."""

    def embed(self, images: Sequence[bytes]) -> list[EmbeddedImage | Exception]:
        """Decode images in the sandbox and embed them; each gives a result or its own error."""

    def teach(self, example: NewExample) -> TeachResult:
        """Teach an example; it is on disk when this returns."""

    def change(self, make: Callable[[], Change]) -> Change:
        """Make another change in the thread that makes all of them."""
