"""The tables of a workspace's database, in the newest format.

Everything that ever happened to an example is one row of ``move``: where it was and where it went,
nothing standing for "not there". What is true now is the sum of the moves; it is kept in
``example`` and counted in ``class`` so that nothing needs to add them up, and ``evergrow check``
verifies both. Undoing is the same move backwards.

A class is there as long as it has examples. Ids only grow: a class that went and is taught again
is a new one. Of a coarse class ``parent`` is 0. Example n has row n - 1 of the embeddings.

Each event has a random ``nonce``. Two databases that have the same one at an event have the same
history up to it: what was saved of a model is told by it from what a copy that went another way
would have saved. ``assessment`` holds all that the last assessment found out, and nothing of the
earlier ones: with many classes it is large, and only its choices are needed to replay.
"""

from __future__ import annotations

__all__ = ["SCHEMA"]

SCHEMA = """
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    body TEXT NOT NULL,
    undoes INTEGER REFERENCES event (seq),
    undone_by INTEGER REFERENCES event (seq),
    nonce TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX event_standing ON event (seq) WHERE undone_by IS NULL;
CREATE INDEX event_model ON event (seq)
    WHERE kind IN ('split', 'unsplit', 'undo', 'choose', 'forest');
CREATE INDEX event_forget ON event (seq) WHERE kind = 'forget';

CREATE TABLE assessment (
    event INTEGER PRIMARY KEY REFERENCES event (seq),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE class (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    parent INTEGER NOT NULL,
    split INTEGER NOT NULL DEFAULT 0,
    n_examples INTEGER NOT NULL DEFAULT 0,
    n_pictures INTEGER NOT NULL DEFAULT 0,
    n_guessed INTEGER NOT NULL DEFAULT 0,
    changed_by INTEGER NOT NULL DEFAULT 0,
    guessed_by INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX class_name ON class (parent, name) WHERE n_examples > 0;
CREATE INDEX class_there ON class (parent, id) WHERE n_examples > 0;

CREATE TABLE picture (
    sha256 TEXT PRIMARY KEY,
    media_type TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    n_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE example (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event INTEGER NOT NULL REFERENCES event (seq),
    row_sha256 TEXT NOT NULL,
    image TEXT REFERENCES picture (sha256),
    class_id INTEGER REFERENCES class (id),
    fine_id INTEGER REFERENCES class (id),
    guess_id INTEGER REFERENCES class (id),
    guess_probability REAL,
    erased INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX example_class ON example (class_id, id) WHERE class_id IS NOT NULL;
CREATE INDEX example_fine ON example (fine_id, id) WHERE fine_id IS NOT NULL;
CREATE INDEX example_guess ON example (guess_id, id) WHERE guess_id IS NOT NULL;
CREATE INDEX example_unsure ON example (guess_probability, id) WHERE guess_id IS NOT NULL;
CREATE INDEX example_image ON example (image) WHERE image IS NOT NULL;
CREATE INDEX example_erased ON example (id) WHERE erased = 1;

CREATE TABLE move (
    event INTEGER NOT NULL REFERENCES event (seq),
    example INTEGER NOT NULL REFERENCES example (id),
    from_class INTEGER REFERENCES class (id),
    from_fine INTEGER REFERENCES class (id),
    to_class INTEGER REFERENCES class (id),
    to_fine INTEGER REFERENCES class (id),
    PRIMARY KEY (event, example)
) STRICT, WITHOUT ROWID;
CREATE INDEX move_out ON move (from_class) WHERE to_class IS NULL;

CREATE TABLE request_key (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    UNIQUE (actor, key)
) STRICT;
"""
