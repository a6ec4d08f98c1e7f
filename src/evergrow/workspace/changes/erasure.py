"""Erasing for good: files follow what was erased in the database."""

from __future__ import annotations

import numpy as np

from evergrow.workspace.store.database import Store
from evergrow.workspace.store.disk_errors import telling_problems
from evergrow.workspace.store.images import Images
from evergrow.workspace.store.layout import Layout
from evergrow.workspace.store.vectors import Shards

__all__ = ["finish_erasing"]


def finish_erasing(layout: Layout, store: Store, shards: Shards) -> None:
    """Do to files what was erased in the database, and note it there.

    An example is erased in the database first: whatever happens then, it never counts again. What
    has a hash there although it was erased is still to be done, perhaps since a crash.

    Parameters
    ----------
    layout : Layout
        Where everything lies.
    store : Store
        The database, open for writing.
    shards : Shards
        The embeddings.
    """
    writer, images = store.writer, Images(layout.folder)
    found = writer.execute(
        "SELECT id, image FROM example WHERE erased = 1 AND row_sha256 != ''"
    ).fetchall()
    if not found:
        return
    with telling_problems(layout.folder):
        shards.erase(np.array([number - 1 for number, _ in found], dtype=np.int64))
        unused = [
            (image,)
            for image in sorted({image for _, image in found if image is not None})
            if not writer.execute(
                "SELECT 1 FROM example WHERE image = ? AND class_id IS NOT NULL", (image,)
            ).fetchone()
        ]
        for (image,) in unused:
            images.drop(image)
        with store.transaction() as connection:
            connection.execute(
                "UPDATE example SET row_sha256 = '', image = NULL"
                " WHERE erased = 1 AND row_sha256 != ''"
            )
            # Whoever else names them is in no class, and cannot come back any more.
            connection.executemany("UPDATE example SET image = NULL WHERE image = ?", unused)
            connection.executemany("DELETE FROM picture WHERE sha256 = ?", unused)
