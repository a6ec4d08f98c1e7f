"""The part of a workspace that checks it and mends what is broken."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergrow.foundation.locks import is_held
from evergrow.vision.embedding import Embedder
from evergrow.workspace.changes.writer import ChangeableWorkspace
from evergrow.workspace.check.database import Problem, check_database, settle
from evergrow.workspace.check.files import FileCheck
from evergrow.workspace.model.snapshot_files import unusable
from evergrow.workspace.records import Finding

__all__ = ["MendableWorkspace"]


class MendableWorkspace(ChangeableWorkspace):
    """A workspace that can be checked; made as what it is a kind of."""

    def check(self, *, mend: bool = False) -> list[Finding]:
        """Verify every hash and count.

        Parameters
        ----------
        mend : bool, default=False
            Also mend what can be, and remove what was left over.

        Returns
        -------
        findings : list of Finding
            What is not as it should be; empty if all is well.
        """
        with self._writing:
            embedder = self.embedder if mend else None
            problems = itertools.chain(
                check_database(self._store, mendable=mend),
                FileCheck(
                    self._layout,
                    self._store,
                    self._manifest,
                    self._shards,
                    make_row=None if embedder is None else partial(_row_of, embedder),
                    forget=self._forget_lost if mend else None,
                    is_busy=self._is_written_elsewhere,
                ).problems(),
                self._snapshot_problems(mendable=mend),
            )
            findings = settle(problems, mend=mend)
            if any(finding.mended and finding.severity == "damage" for finding in findings):
                self._begin_anew()
            return findings

    def _snapshot_problems(self, *, mendable: bool) -> Iterator[Problem]:
        """Snapshots that cannot be used; without them the model is learnt from the examples."""
        found = self._unusable_snapshots()
        # Those that are written or removed right now are in order when looked at again.
        again = self._unusable_snapshots() if found else {}
        for path, why in again.items():
            if path not in found:
                continue
            yield Problem(
                "harmless",
                f"the snapshot {path.name} of the model cannot be used: {why}",
                "nothing needs to be done: the model is learnt again from the examples; "
                "'evergrow check --mend' removes it",
                partial(shutil.rmtree, path) if mendable else None,
            )

    def _unusable_snapshots(self) -> dict[Path, str]:
        return unusable(
            self._layout.models,
            self._history.nonce,
            seed=self._manifest.seed,
            first=self._history.usable_from,
            is_busy=self._is_written_elsewhere,
        )

    def _is_written_elsewhere(self) -> bool:
        return self._store.read_only and is_held(self._layout.lock)

    def _forget_lost(self, numbers: list[int]) -> None:
        """Take examples out whose embeddings are lost; nothing can bring them back."""
        with self._store.transaction() as connection:
            self._editor(connection, "check").forget_lost(numbers)

    def _begin_anew(self) -> None:
        """Have the follower learn all of it again: what it knew may be of damaged rows."""
        for snapshot in self._layout.models.glob("*"):
            shutil.rmtree(snapshot)
        self._open_follower()


def _row_of(embedder: Embedder, content: bytes) -> npt.NDArray[np.float32]:
    rows: npt.NDArray[np.float32] = embedder.transform([content])
    return rows.reshape(-1)
