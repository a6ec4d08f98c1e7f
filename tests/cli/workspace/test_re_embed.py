"""re-embed: the pictures of a workspace get other features, from the command line."""

import json

import numpy as np
import pytest

from evergrow.workspace import NewExample, Workspace
from tests.cli.workspace.conftest import N_PICTURES, counts
from tests.vision.embedding.models import staged_model


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


def test_a_workspace_in_use_is_refused(run, things, staged_network):
    with Workspace.open(things):
        run.fails("re-embed", things, "--features", staged_network, says="is in use")
    assert blocks(things) == {"head": 5}


def test_a_workspace_of_another_format_is_refused(run, things, staged_network):
    manifest = json.loads((things / "workspace.json").read_text())
    (things / "workspace.json").write_text(json.dumps({**manifest, "format": 99}))
    result = run.fails("re-embed", things, "--features", staged_network, says="has format 99, and")
    assert len(result.stderr.strip().splitlines()) == 1


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
