"""The review list: uncertain guesses that differ from each other, then doubtful labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evergrow.workspace import NewExample
from tests.workspace.builders import new_workspace


def test_guesses_to_review_differ_from_each_other(tmp_path: Path) -> None:
    # Twelve copies of one picture, hardly less certain than four others.
    copies = np.tile([[1.0, 0.0, 0.0]], (12, 1))
    others = np.array([[0.0, 1, 0], [0, 0, 1], [0, -1, 0], [0, 0, -1]])
    rows = np.concatenate([copies, others]).astype(np.float32)
    with new_workspace(tmp_path) as workspace:
        for fine in ("red", "blue"):
            workspace.teach([NewExample(one, "cup", fine=fine) for one in rows[:2]])
        workspace.teach([NewExample(one, "cup") for one in rows])
        ids = [*range(5, 21)]
        cup = workspace.class_named("cup")
        workspace.split("cup")
        shares = [0.30] * 12 + [0.31] * 4
        guesses = [(id_, cup.fine[0].id, p) for id_, p in zip(ids, shares, strict=True)]
        workspace._writer.record_guesses(cup.id, guesses)
        listed = [one for one in workspace.review(limit=4) if one.reason == "guess"]
        assert len({one.example.id for one in listed} & set(ids[12:])) >= 3
        chances = [one.probability for one in listed]
        assert chances == sorted(chances)
        assert len(workspace.review(limit=100)) >= 16
