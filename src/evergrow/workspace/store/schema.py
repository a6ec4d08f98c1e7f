"""The tables of a workspace's database.

Everything that ever happened to an example is a row of ``move``: the class it left and the class it
went to, with NULL for "none". The current state follows from the moves. It is also stored in
``example`` and counted in ``class``, so that no query has to add up moves; ``evergrow check``
verifies both. An undo writes the reversed moves.

A class exists as long as it has examples. Ids are never reused: a class that was forgotten and is
taught again gets a new id. The ``parent`` of a coarse class is 0. Example n has row n - 1 of the
embeddings.

Each event has a random ``nonce``. Two databases with the same nonce at an event share their history
up to it, so a snapshot of the model can be told from one of a diverged copy. ``assessment`` holds
only the newest assessment in full: it is large with many classes, and a replay needs only the
hyperparameters of the earlier ones.

``writer`` holds the random token of the process that opened the database for writing last. Each
transaction compares it with its own, so that of two processes that both believe to be the writer
only the last one writes, even where the file system has no locks.
"""

from __future__ import annotations

import sqlite3

SCHEMA = """
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    actor TEXT NOT NULL,
    body TEXT NOT NULL,
    undoes INTEGER REFERENCES event (seq),
    undone_by INTEGER REFERENCES event (seq),
    nonce TEXT NOT NULL
) STRICT;
CREATE INDEX event_standing ON event (seq) WHERE undone_by IS NULL;
CREATE INDEX event_model ON event (seq)
    WHERE kind IN ('split', 'unsplit', 'undo', 'choose', 'forest', 'embed');
CREATE INDEX event_erasure ON event (seq) WHERE kind IN ('forget', 'embed');

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

CREATE TABLE writer (
    token TEXT NOT NULL
) STRICT;
"""


def clear_answers(connection: sqlite3.Connection) -> None:
    """Clear the stored answers about erased examples: they hold hashes of what was erased.

    The key stays, so that a repeated request does not teach again what was erased. The digest of
    the request goes too: it is a hash of the picture.
    """
    connection.execute(
        "UPDATE request_key SET digest = '', answer = '' WHERE answer LIKE '[\"taught\"%'"
        " AND EXISTS (SELECT 1 FROM example WHERE id = json_extract(answer, '$[1].example.id')"
        " AND (erased = 1 OR (image IS NULL"
        " AND json_extract(answer, '$[1].example.image') IS NOT NULL)))"
    )
