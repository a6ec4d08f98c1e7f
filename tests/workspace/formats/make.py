"""Write the workspace of the newest format that the tests keep.

    python -m tests.workspace.formats.make

Those of earlier formats are never written again, least of all to fix a failing test.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from evergrow.workspace.store.layout import FORMAT
from tests.workspace.builders import (
    counts,
    labels,
    new_example,
    new_workspace,
    picture,
    request_with_key,
)

HERE = Path(__file__).parent
DATABASE = "examples.sqlite"
EXPECTED = "expected.json"


def live(workspace):
    """A life in which everything happens once."""
    workspace.teach([new_example("cup", n, fine="red", picture=picture(n)) for n in range(2)])
    workspace.teach([new_example("cup", n, fine="blue") for n in range(2, 4)])
    workspace.teach([new_example("cup", 4, request=request_with_key("key"))])
    workspace.teach(
        [new_example("mug", 5), new_example("pen", 6), new_example("secret", 7, picture=picture(7))]
    )
    workspace.forget("secret", erase=True)
    workspace.merge("mug", "pen")
    workspace.rename("pen", "pencil")
    workspace.relabel(6, label="cup", fine="red")
    workspace.remove(7)
    workspace.undo()
    cup = workspace.class_named("cup")
    workspace.split("cup")
    workspace._writer.record_guesses(cup.id, [(5, cup.fine[0].id, 0.75)])
    workspace.assess(force=True)


def guessed(workspace):
    """Examples with a guessed fine class, the least certain first."""
    return [one.example for one in workspace.review() if one.reason == "guess"]


def expected(workspace):
    """What must be found in the workspace again."""
    return {
        "labels": {str(number): list(place) for number, place in labels(workspace).items()},
        "counts": counts(workspace),
        "pictures": {one.name: one.n_pictures for one in workspace.classes().items},
        "guesses": [[one.id, one.fine, one.fine_probability] for one in guessed(workspace)],
        "version": workspace.version,
        "split": [one.name for one in workspace.classes().items if one.split],
    }


def keep(folder, target):
    """Keep a workspace with its database as text, and without what can be made again."""
    shutil.copytree(
        folder,
        target,
        ignore=shutil.ignore_patterns(f"{DATABASE}*", "lock", "models", "thumbnails"),
    )
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        lines = [*connection.iterdump(), f"PRAGMA user_version = {version};"]
    (target / f"{DATABASE}.sql").write_text("\n".join(lines) + "\n")


def restore(source, folder):
    """Create the folder again that was stored."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.sql", EXPECTED))
    for name in ("models", "thumbnails", "images", "embeddings"):
        (folder / name).mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript((source / f"{DATABASE}.sql").read_text())


def main():
    target = HERE / f"format{FORMAT}"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        with new_workspace(Path(folder), rows_per_shard=16) as workspace:
            live(workspace)
            found = expected(workspace)
        keep(Path(folder) / "workspace", target)
    (target / EXPECTED).write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
