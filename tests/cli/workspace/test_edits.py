"""rename, merge, split, forget, undo, export, check, backup: one command, one change, one word."""

import json

import numpy as np
import pytest

from evergrow.workspace import NewExample, Workspace
from tests.cli.workspace.conftest import N_PICTURES, counts
from tests.vision.classifier.pictures import folder_of
from tests.vision.embedding.models import staged_model

pytestmark = pytest.mark.slow


def test_a_class_gets_another_name(run, things):
    result = run.ok(f"rename {things} red rot --json")
    assert counts(things) == {"green": N_PICTURES, "rot": N_PICTURES}
    assert json.loads(result.stdout)["kind"] == "rename"
    assert result.stderr.splitlines()[-1] == f"{things}: 2 classes, {2 * N_PICTURES} examples."


def test_a_name_that_is_taken_points_to_merge(run, things):
    run.fails(f"rename {things} red green", says="merge")
    run.ok(f"merge {things} red green")
    assert counts(things) == {"green": 2 * N_PICTURES}


def test_changes_are_taken_back_one_by_one(run, things):
    run(f"rename {things} red rot")
    run(f"merge {things} rot green")
    run.ok(f"undo {things}")
    assert counts(things) == {"green": N_PICTURES, "rot": N_PICTURES}
    run.ok(f"undo {things}")
    assert counts(things) == {"green": N_PICTURES, "red": N_PICTURES}


def test_an_undo_of_something_older_is_refused(run, things):
    run(f"rename {things} red rot")
    run.fails(f"undo {things} --event 1")
    assert counts(things) == {"green": N_PICTURES, "rot": N_PICTURES}


def test_forgotten_classes_come_back_unless_they_are_erased(run, things):
    run.ok(f"forget {things} red")
    assert counts(things) == {"green": N_PICTURES}
    run(f"undo {things}")
    assert counts(things) == {"green": N_PICTURES, "red": N_PICTURES}
    n_before = sum(path.is_file() for path in (things / "images").rglob("*"))
    run.ok(f"forget {things} red --erase")
    assert sum(path.is_file() for path in (things / "images").rglob("*")) == n_before - N_PICTURES
    run.ok(f"check {things}")


def test_classes_that_were_forgotten_before_can_be_erased(run, things):
    run.ok(f"forget {things} red green")
    result = run.ok(f"forget {things} red green --erase")
    assert (
        f"'red' was forgotten before; {2 * N_PICTURES} removed examples erased now" in result.stderr
    )
    assert not any(path.is_file() for path in (things / "images").rglob("*"))


@pytest.mark.parametrize(
    "arguments", [["things", "red", "-o", "x"], ["m.evergrow", "a", "--erase"]]
)
def test_options_of_the_other_kind_are_refused(run, things, arguments):
    run.fails("forget", *arguments, code=2)


def test_a_class_is_split_and_joined(run, things, tmp_path):
    folder_of(tmp_path / "photos" / "colour", "blue", "grey", n=6)
    (tmp_path / "photos" / "colour" / "blue" / "0.png").rename(
        tmp_path / "photos" / "colour" / "0.png"
    )
    run(f"learn {things} photos --fine")
    run.ok(f"split {things} colour")
    listed = run(f"classes {things}").stdout.splitlines()
    assert "\tblue\t5\t1" in listed
    asked = run(f"predict {things} photos/colour/grey/1.png").stdout.rstrip("\n").split("\t")
    assert asked[1] == "colour"
    assert asked[3:] in ([], ["grey"])
    run.ok(f"unsplit {things} colour")


def test_a_class_without_finer_names_cannot_be_split(run, things):
    result = run.fails(f"split {things} red")
    assert "finer" in result.stderr or "fine" in result.stderr


def test_a_sound_workspace_is_called_so(run, things):
    result = run(f"check {things}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{things}: no damage found.\n"


def test_damage_is_named_with_what_mends_it(run, things):
    image = next(path for path in (things / "images").rglob("*") if path.is_file())
    image.unlink()
    result = run.fails(f"check {things}")
    state, what, mend = result.stdout.splitlines()[0].split("\t")
    assert state == "damage"
    assert image.name[:8] in what
    assert mend
    assert json.loads(run(f"check {things} --json").stdout.splitlines()[0])["what"] == what


def test_a_workspace_that_cannot_be_opened_can_be_checked(run, things):
    (things / "examples.sqlite").write_bytes(b"not a database" * 1000)
    result = run.fails(f"check {things}")
    assert result.stdout.startswith("damage\t")


def test_leftovers_are_harmless_and_removed_on_request(run, things):
    (things / "images" / "ab").mkdir(exist_ok=True)
    (things / "images" / "ab" / ("ab" * 32)).write_bytes(b"left over by a crash")
    result = run.ok(f"check {things}")
    assert result.stdout.startswith("harmless\t")
    assert run(f"check {things} --mend").stdout.startswith("mended\t")
    assert run(f"check {things}").stdout == ""


def test_a_backup_names_what_was_missing(run, things):
    image = next(path for path in (things / "images").rglob("*") if path.is_file())
    image.unlink()
    run.fails(f"backup {things} copy", says=image.name)


def test_a_backup_is_a_workspace(run, things):
    run.ok(f"backup {things} copy")
    assert counts("copy") == counts(things)
    run.ok("check copy")
    run.fails(f"backup {things} copy", says="copy")


def test_several_changes_are_taken_back_in_one_go(run, things):
    run(f"rename {things} red rouge")
    run(f"rename {things} rouge rot")
    result = run(f"undo {things} --count 2")
    assert "Undone: 'rot' is 'red' again" in result.stderr
    assert "red" in run(f"classes {things}").stdout
    run.fails(
        f"undo {things} --count 2 --since 3",
        code=2,
        says="use only one of --event, --since and --count",
    )


def test_a_misspelt_class_is_answered_with_a_similar_one(run, things):
    run.fails(f"rename {things} gren olive", says="'gren' does not exist; did you mean 'green'?")
    run.fails(f"forget {things} rde", says="did you mean 'red'?")
    run.fails(
        f"merge {things} red zebra",
        says="the classes are 'green', 'red'",
    )


def test_a_model_file_is_no_workspace(run, things, tmp_path):
    run.ok(f"export {things} -o exported.evergrow")
    photos = folder_of(tmp_path / "photos", "blue", n=2)
    run.fails(
        f"learn exported.evergrow {photos}", says="not a workspace but a file; 'evergrow add'"
    )
    run.fails("status exported.evergrow", says="not a workspace but a file")


@pytest.fixture(scope="session")
def staged_network(tmp_path_factory):
    """A network with a stage, as a file."""
    path = tmp_path_factory.mktemp("network") / "staged.onnx"
    path.write_bytes(staged_model().SerializeToString())
    return path


def blocks(folder):
    with Workspace.open(folder, read_only=True) as workspace:
        return dict(workspace.manifest.blocks)


def test_pictures_get_the_features_of_another_network(run, things, staged_network):
    before = counts(things)
    result = run.ok("re-embed", things, "--features", staged_network, "--stages", "2")
    assert f"Embedded {2 * N_PICTURES} examples again." in result.stderr
    assert "Features of staged.onnx: head 5, stage2 3." in result.stderr
    assert counts(things) == before
    with Workspace.open(things, read_only=True) as workspace:
        status = workspace.status()
        assert status.assessed_event is not None
        # It was saved for the next opening.
        assert status.snapshot_event == workspace.version
    run.ok("check", things)


def test_status_says_which_blocks_are_used(run, things, staged_network):
    run.ok("re-embed", things, "--features", staged_network, "--stages", "2", "-q")
    lines = dict(line.split("\t", 1) for line in run.ok("status", things).stdout.splitlines())
    head, stage = lines["blocks"].split("\t")
    assert head == "head 5 used"
    assert stage in ("stage2 3 used", "stage2 3 not used")
    found = json.loads(run.ok("status", things, "--json").stdout)
    assert [block["name"] for block in found["blocks"]] == ["head", "stage2"]
    assert found["n_features"] == 8


def test_info_says_which_blocks_an_exported_model_uses(run, things, staged_network):
    run.ok("re-embed", things, "--features", staged_network, "--stages", "2", "-q")
    run.ok("export", things, "-o", "model.evergrow", "-q")
    found = json.loads(run.ok("info model.evergrow --json").stdout)
    status = json.loads(run.ok("status", things, "--json").stdout)
    assert found["blocks"] == status["blocks"]
    assert "\nblocks\thead 5 used\tstage2 3 " in run.ok("info model.evergrow").stdout


def test_examples_without_a_picture_are_named_before_anything_is_done(run, things, staged_network):
    with Workspace.open(things) as workspace:
        workspace.teach([NewExample(np.ones(5, dtype=np.float32), "red")])
    arguments = [things, "--features", staged_network, "--stages", "2"]
    says = "cannot be embedded again: 1 taught as embeddings, without a picture"
    result = run.fails("re-embed", *arguments, says=says)
    assert len(result.stderr.strip().splitlines()) == 1
    assert blocks(things) == {"head": 5}
    result = run.ok("re-embed", *arguments, "--erase-lost")
    assert "Erased 1 example." in result.stderr
    assert counts(things) == {"red": N_PICTURES, "green": N_PICTURES}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--features", "nowhere.onnx"], "nowhere.onnx"),
        (["--stages", "5,9"], "stage"),
        (["--features", "STAGED", "--stages", "3"], "stage3"),
    ],
)
def test_networks_that_cannot_be_used_are_an_error_of_one_line(
    run, things, staged_network, options, says
):
    options = [staged_network if option == "STAGED" else option for option in options]
    result = run.fails("re-embed", things, *options, says=says)
    assert len(result.stderr.strip().splitlines()) == 1
    assert blocks(things) == {"head": 5}
    run.fails("init new", *options, says=says)
    assert not (things.parent / "new" / "workspace.json").exists()


@pytest.mark.parametrize(
    "options",
    [["--features", "none"], ["--features", "pixels"], ["--stages", "five"], ["--stages", "5,,6"]],
)
def test_options_that_make_no_sense_are_refused(run, things, options):
    run.fails("re-embed", things, *options, code=2)
    assert blocks(things) == {"head": 5}


def test_init_takes_stages(run, staged_network):
    run.ok("init things --stages 2 --features", staged_network)
    assert blocks("things") == {"head": 5, "stage2": 3}
    run.ok("init plain --stages none --features", staged_network)
    assert blocks("plain") == {"head": 5}
    run.fails("init more --features none --stages 7", code=2, says="--stages needs a network")


def test_init_takes_the_features_of_new_classifiers(run):
    run.ok("init things")
    assert blocks("things") == {"head": 1280, "stage5": 112, "stage6": 192, "stage7": 320}
    run.ok("init plain --features efficientnet-lite0")
    assert blocks("plain") == {"head": 1280}
    run.ok("init one --stages 7")
    assert blocks("one") == {"head": 1280, "stage7": 320}
