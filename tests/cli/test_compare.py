"""compare: a table and a page from a user's own features, and bad input in one line."""

import re

import numpy as np
import pytest

from evergrow.cli.compare import _LEARNERS_OF_FIT
from evergrow.compare import comparison
from evergrow.compare.learners import LEARNERS
from evergrow.vision.classifier.components import LEARNERS as LEARNERS_OF_IMAGES
from evergrow.workspace.store.layout import Layout
from tests.cli.conftest import terminal
from tests.compare.made import mixture
from tests.vision.classifier.pictures import folder_of

pytestmark = pytest.mark.slow

FEW = ["--only", "lda", "--only", "ridge"]


def saved(path, **changes):
    data = mixture(6, 8, n_train=15, n_test=10, distance=1.0)
    arrays = {name: getattr(data, name) for name in ("X_train", "y_train", "X_test", "y_test")}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_it_writes_a_table_a_recommendation_and_a_page(run, tmp_path):
    result = run.ok("compare", saved(tmp_path / "f.npz"), *FEW)
    assert "streaming LDA" in result.stdout
    assert "Recommended: streaming LDA, NCMClassifier(metric='mahalanobis')\n" in result.stdout
    assert "  For photographs: evergrow fit FOLDER -o FILE --learner lda\n" in result.stdout
    assert re.search(r"  In general: [\d.]+% mean class accuracy at the end", result.stdout)
    assert result.stderr == "All numbers and plots: comparison/comparison.html\n"
    assert (tmp_path / "comparison" / "comparison.html").exists()


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_the_terminal(run, tmp_path, monkeypatch, columns):
    terminal(monkeypatch, columns)
    learners = ("lda", "ridge", "ncm-forest", "least-squares-random")
    chosen = [each for name in learners for each in ("--only", name)]
    lines = run.ok("compare", saved(tmp_path / "f.npz"), *chosen).stdout.splitlines()
    headings = ["learner", "mean", "class", "accuracy", "newest", "update", "stored"]
    assert lines[1].split() == headings
    assert max(map(len, lines)) <= columns
    # No name is broken into two lines.
    start = "least squares, 4000 random features  "
    assert any(line.startswith(start) for line in lines)
    assert any(line.startswith("Ridge *  ") for line in lines)


def test_the_learners_of_fit_are_among_those_compared():
    assert _LEARNERS_OF_FIT.keys() <= {learner.name for learner in LEARNERS}
    assert set(_LEARNERS_OF_FIT.values()) == set(LEARNERS_OF_IMAGES)


def test_built_in_data_need_no_file(run):
    result = run.ok("compare digits --quick --only class-means --out here")
    assert result.stdout.startswith("digits: 200 samples, 10 classes")


def test_the_learners_are_listed_without_data(run):
    result = run.ok("compare --list")
    assert "random-forest" in result.stdout


def nan_in_row_3():
    X = mixture(6, 8, n_train=15, n_test=10).X_train.copy()
    X[3, 0] = np.nan
    return X


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X_train": nan_in_row_3()}, "3"),
        ({"y_train": None}, "y_train"),
        ({"X_train": np.array([{}] * 90, dtype=object)}, "object"),
        ({"y_train": np.zeros(7, dtype=int)}, "7"),
    ],
    ids=["not finite", "no labels", "objects", "few labels"],
)
def test_bad_features_are_reported_in_one_line(run, tmp_path, changes, message):
    result = run.fails("compare", saved(tmp_path / "f.npz", **changes), *FEW)
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_fewer_classes_than_initial_ones_is_an_error(run, tmp_path):
    run.fails(
        "compare",
        saved(tmp_path / "f.npz"),
        *FEW,
        "--initial",
        "7",
        says="begins with 7 classes, but there are only 6",
    )


def test_an_output_that_cannot_be_written_is_refused_first(run, tmp_path):
    (tmp_path / "taken").touch()
    run.fails("compare nowhere.npz --out taken", says="cannot write to the folder 'taken'")


def test_a_wrong_learner_is_answered_with_the_near_one(run):
    run.fails("compare digits --only ldaa", says="did you mean lda")


def test_it_fails_if_every_learner_does(run, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("no luck")

    monkeypatch.setattr(comparison, "measure", fail)
    result = run.fails("compare", saved(tmp_path / "f.npz"), *FEW)
    assert "streaming LDA: " in result.stdout
    assert "failed: RuntimeError: no luck" in result.stdout
    assert result.stderr.endswith("Error: no learner could be measured; see the notes above\n")


def test_river_alone_gets_no_recommendation(run, tmp_path):
    pytest.importorskip("river")
    result = run.ok("compare", saved(tmp_path / "f.npz"), "--only", "softmax")
    assert result.stdout.startswith("A subsample: ")
    assert "nothing is recommended" in result.stdout


def test_a_folder_of_photographs_is_embedded_and_compared(run, tmp_path):
    folder_of(tmp_path / "photos", "red", "green", "blue", n=8)
    result = run.ok("compare photos --only class-means")
    assert result.stdout.startswith("photos: 18 samples, 3 classes")


def test_a_photograph_that_cannot_be_read_is_named_or_skipped(run, tmp_path):
    folder_of(tmp_path / "photos", "red", "green", n=8)
    (tmp_path / "photos" / "red" / "broken.png").write_bytes(b"no picture")
    run.fails("compare photos --only class-means", says="broken.png")
    run.ok("compare photos --only class-means --on-error skip")


@pytest.mark.parametrize("protocol", ["single", "blurry"])
def test_other_protocols_are_followed_and_named(run, tmp_path, protocol):
    path = saved(tmp_path / "f.npz")
    run.ok("compare", path, *FEW, "--protocol", protocol)
    page = (tmp_path / "comparison" / "comparison.html").read_text()
    expected = {"single": "got 1 more at a time", "blurry": "of every other class 30% of the"}
    assert expected[protocol] in page


def test_a_workspace_is_refused(run, tmp_path):
    (tmp_path / "space").mkdir()
    Layout(tmp_path / "space").manifest.write_text("{}")
    run.fails("compare space", says="is a workspace: compare takes features, shards or a folder")


def test_labels_of_another_file_than_npy_are_refused(run, tmp_path):
    path = saved(tmp_path / "f.npz")
    run.fails("compare", path, "--labels", "y.npy", code=2, says="labels go with an .npy file")
