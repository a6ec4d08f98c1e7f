BEGIN TRANSACTION;
CREATE TABLE assessment (
    event INTEGER PRIMARY KEY REFERENCES event (seq),
    body TEXT NOT NULL
) STRICT;
INSERT INTO "assessment" VALUES(18,'{"seen": 17, "penalty": null, "recoding": 0.5, "temperature": 1.0872216308126845, "used_blocks": [0], "by_means": true, "novelty_penalty": null, "limits": null, "measured_false_alarms": null, "class_counts": [[1, 6], [5, 1]], "recognised": [[1, 6, 5, 5, 1]], "mistakes": [[1, 5, 1]], "doubts": []}');
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
INSERT INTO "class" VALUES(1,'cup',0,1,6,2,0,12,17);
INSERT INTO "class" VALUES(2,'red',1,0,3,2,1,12,0);
INSERT INTO "class" VALUES(3,'blue',1,0,2,0,0,4,0);
INSERT INTO "class" VALUES(4,'mug',0,0,0,0,0,10,0);
INSERT INTO "class" VALUES(5,'pencil',0,0,1,0,0,14,0);
INSERT INTO "class" VALUES(6,'secret',0,0,0,0,0,9,0);
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
INSERT INTO "event" VALUES(1,'teach','2026-11-18T00:23:24.200Z','command line','{"example": 1, "class": 1, "label": "cup", "fine": "red"}',NULL,NULL,'093E55B499572705');
INSERT INTO "event" VALUES(2,'teach','2026-11-18T00:23:24.200Z','command line','{"example": 2, "class": 1, "label": "cup", "fine": "red"}',NULL,NULL,'1C41CC7628D1776E');
INSERT INTO "event" VALUES(3,'teach','2026-11-18T00:23:24.314Z','command line','{"example": 3, "class": 1, "label": "cup", "fine": "blue"}',NULL,NULL,'A6BC29F37B265FEE');
INSERT INTO "event" VALUES(4,'teach','2026-11-18T00:23:24.314Z','command line','{"example": 4, "class": 1, "label": "cup", "fine": "blue"}',NULL,NULL,'C1C02AF5094AD6A5');
INSERT INTO "event" VALUES(5,'teach','2026-11-18T00:23:24.438Z','robot','{"example": 5, "class": 1, "label": "cup", "fine": null}',NULL,NULL,'125D4327498A4B73');
INSERT INTO "event" VALUES(6,'teach','2026-11-18T00:23:24.450Z','command line','{"example": 6, "class": 4, "label": "mug", "fine": null}',NULL,NULL,'8E244B3425EB04DA');
INSERT INTO "event" VALUES(7,'teach','2026-11-18T00:23:24.450Z','command line','{"example": 7, "class": 5, "label": "pen", "fine": null}',NULL,NULL,'EA39CFB48DF2B523');
INSERT INTO "event" VALUES(8,'teach','2026-11-18T00:23:24.450Z','command line','{"example": 8, "class": 6, "label": "secret", "fine": null}',NULL,NULL,'2BF9CD120632A647');
INSERT INTO "event" VALUES(9,'forget','2026-11-18T00:23:24.481Z','command line','{"class": 6, "label": "secret", "erase": true}',NULL,NULL,'3997D8609A221115');
INSERT INTO "event" VALUES(10,'merge','2026-11-18T00:23:24.542Z','command line','{"class": 4, "label": "mug", "into": 5, "into_label": "pen"}',NULL,NULL,'F1C2A256A452C6DF');
INSERT INTO "event" VALUES(11,'rename','2026-11-18T00:23:24.558Z','command line','{"class": 5, "from": "pen", "to": "pencil"}',NULL,NULL,'280194A8E156557F');
INSERT INTO "event" VALUES(12,'relabel','2026-11-18T00:23:24.565Z','command line','{"example": 6, "from": {"class": 5, "label": "pencil", "fine": null}, "to": {"class": 1, "label": "cup", "fine": 2}}',NULL,NULL,'51734211ED784B70');
INSERT INTO "event" VALUES(13,'remove','2026-11-18T00:23:24.575Z','command line','{"example": 7, "label": "pencil"}',NULL,14,'0EBDF9B5B9326A52');
INSERT INTO "event" VALUES(14,'undo','2026-11-18T00:23:24.581Z','command line','{"event": 13, "kind": "remove"}',13,NULL,'336416D51773CEA8');
INSERT INTO "event" VALUES(15,'split','2026-11-18T00:23:24.591Z','command line','{"class": 1, "label": "cup", "split": true}',NULL,NULL,'2368C121851CA800');
INSERT INTO "event" VALUES(16,'guess','2026-11-18T00:23:24.612Z','model','{"class": 1, "n_examples": 1}',NULL,NULL,'F611FE94F216584F');
INSERT INTO "event" VALUES(17,'guess','2026-11-18T00:23:24.626Z','model','{"class": 1, "n_examples": 1}',NULL,NULL,'B55CA3B52185E81A');
INSERT INTO "event" VALUES(18,'choose','2026-11-18T00:23:24.758Z','model','{"seen": 17, "penalty": null, "recoding": 0.5, "temperature": 1.0872216308126845, "used_blocks": [0], "by_means": true, "novelty_penalty": null, "measured_false_alarms": null, "n_examples": 7, "n_classes": 2}',NULL,NULL,'87D05615637AB37F');
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
INSERT INTO "example" VALUES(1,1,'141c12c76a19c10ef07b59600e0c826e93284e1d25e75ef18fabb8305ae6e927','b6864edf273b0d661bfc9b47fff2a0f5e2e9e6d7bb76c8e0fa871eb76b14b23d',1,2,NULL,NULL,0);
INSERT INTO "example" VALUES(2,2,'21c51f525560d78abca7654ade6733ca4b2b9cbf833aab51c57fbc7745c67fb9','2dabd364013897cccceb7b1526cffb689610f8202cff6b4a8c387525982ad437',1,2,NULL,NULL,0);
INSERT INTO "example" VALUES(3,3,'3c5cd853a108c67eb1fa34a8663d17d9633939804da4ed85583a619a6d3929cf',NULL,1,3,NULL,NULL,0);
INSERT INTO "example" VALUES(4,4,'59428ae1d86643ac14be807d020ce47ed139aeb2b8a0e8c88c79641875f5be62',NULL,1,3,NULL,NULL,0);
INSERT INTO "example" VALUES(5,5,'a256bdac9d8e5d414e180dd42f66d99d3fa5844dce3bf27e36024b428fad3815',NULL,1,NULL,2,0.75,0);
INSERT INTO "example" VALUES(6,6,'b13950d6134d289ac10a7f529349649f074570c4f0f5f86b54d927129b9c4c71',NULL,1,2,NULL,NULL,0);
INSERT INTO "example" VALUES(7,7,'665404a9abbc43110a9a9c4c707fb780de78211e2928bb5f99b93ae17c51c366',NULL,5,NULL,NULL,NULL,0);
INSERT INTO "example" VALUES(8,8,'',NULL,NULL,NULL,NULL,NULL,1);
CREATE TABLE move (
    event INTEGER NOT NULL REFERENCES event (seq),
    example INTEGER NOT NULL REFERENCES example (id),
    from_class INTEGER REFERENCES class (id),
    from_fine INTEGER REFERENCES class (id),
    to_class INTEGER REFERENCES class (id),
    to_fine INTEGER REFERENCES class (id),
    PRIMARY KEY (event, example)
) STRICT, WITHOUT ROWID;
INSERT INTO "move" VALUES(1,1,NULL,NULL,1,2);
INSERT INTO "move" VALUES(2,2,NULL,NULL,1,2);
INSERT INTO "move" VALUES(3,3,NULL,NULL,1,3);
INSERT INTO "move" VALUES(4,4,NULL,NULL,1,3);
INSERT INTO "move" VALUES(5,5,NULL,NULL,1,NULL);
INSERT INTO "move" VALUES(6,6,NULL,NULL,4,NULL);
INSERT INTO "move" VALUES(7,7,NULL,NULL,5,NULL);
INSERT INTO "move" VALUES(8,8,NULL,NULL,6,NULL);
INSERT INTO "move" VALUES(9,8,6,NULL,NULL,NULL);
INSERT INTO "move" VALUES(10,6,4,NULL,5,NULL);
INSERT INTO "move" VALUES(12,6,5,NULL,1,2);
INSERT INTO "move" VALUES(13,7,5,NULL,NULL,NULL);
INSERT INTO "move" VALUES(14,7,NULL,NULL,5,NULL);
CREATE TABLE picture (
    sha256 TEXT PRIMARY KEY,
    media_type TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    n_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "picture" VALUES('2dabd364013897cccceb7b1526cffb689610f8202cff6b4a8c387525982ad437','image/png',4,3,9);
INSERT INTO "picture" VALUES('b6864edf273b0d661bfc9b47fff2a0f5e2e9e6d7bb76c8e0fa871eb76b14b23d','image/png',4,3,9);
CREATE TABLE request_key (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    UNIQUE (actor, key)
) STRICT;
INSERT INTO "request_key" VALUES(1,'robot','key','b3787723f003f11201da7be232c214acf0666ea531ec1ee06b49cf7f038bce71','["taught", {"example": {"id": 5, "event": 5, "label": "cup", "fine": null, "fine_kind": null, "fine_probability": null, "image": null, "media_type": null, "width": null, "height": null, "at": "2026-11-18T00:23:24.438Z", "actor": "robot"}, "event": 5, "duplicate": false, "new_class": false, "n_examples": 5, "known_fine": null, "replayed": false}]');
CREATE TABLE writer (
    token TEXT NOT NULL
) STRICT;
INSERT INTO "writer" VALUES('f07a7cdcb924d16a5c609dc13c1f9150');
CREATE INDEX event_standing ON event (seq) WHERE undone_by IS NULL;
CREATE INDEX event_model ON event (seq)
    WHERE kind IN ('split', 'unsplit', 'undo', 'choose', 'forest', 'embed');
CREATE INDEX event_erasure ON event (seq) WHERE kind IN ('forget', 'embed');
CREATE UNIQUE INDEX class_name ON class (parent, name) WHERE n_examples > 0;
CREATE INDEX class_there ON class (parent, id) WHERE n_examples > 0;
CREATE INDEX example_class ON example (class_id, id) WHERE class_id IS NOT NULL;
CREATE INDEX example_fine ON example (fine_id, id) WHERE fine_id IS NOT NULL;
CREATE INDEX example_guess ON example (guess_id, id) WHERE guess_id IS NOT NULL;
CREATE INDEX example_unsure ON example (guess_probability, id) WHERE guess_id IS NOT NULL;
CREATE INDEX example_image ON example (image) WHERE image IS NOT NULL;
CREATE INDEX example_erased ON example (id) WHERE erased = 1;
CREATE INDEX move_out ON move (from_class) WHERE to_class IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',18);
INSERT INTO "sqlite_sequence" VALUES('class',6);
INSERT INTO "sqlite_sequence" VALUES('example',8);
INSERT INTO "sqlite_sequence" VALUES('request_key',1);
COMMIT;
PRAGMA user_version = 5;
