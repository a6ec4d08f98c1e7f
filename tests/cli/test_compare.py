"""compare: a table and a page from somebody's own features, and bad input in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow.research import mixture
from evergrow.research.comparison import comparison
from tests.cli.conftest import Run

FEW = ["--only", "lda", "--only", "ridge"]


def saved(path: Path, **changes: Any) -> Path:
    data = mixture(6, 8, n_train=15, n_test=10, distance=1.0)
    arrays = {name: getattr(data, name) for name in ("X_train", "y_train", "X_test", "y_test")}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_it_writes_a_table_a_recommendation_and_a_page(run: Run, tmp_path: Path) -> None:
    result = run("compare", saved(tmp_path / "f.npz"), *FEW)
    assert result.exit_code == 0, result.output
    assert "streaming LDA" in result.stdout
    assert "In general: streaming LDA, NCMClassifier(metric='mahalanobis')" in result.stdout
    assert result.stderr == "comparison/comparison.html\n"
    assert (tmp_path / "comparison" / "comparison.html").exists()


def test_built_in_data_need_no_file(run: Run) -> None:
    result = run("compare", "digits", "--quick", "--only", "class-means", "--out", "here")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("digits: 200 samples, 10 classes")


def test_quiet_leaves_out_where_the_page_is(run: Run, tmp_path: Path) -> None:
    assert run("compare", saved(tmp_path / "f.npz"), *FEW, "-q").stderr == ""


def test_the_learners_are_listed_without_data(run: Run) -> None:
    result = run("compare", "--list")
    assert result.exit_code == 0
    assert "random-forest" in result.stdout


def nan_in_row_3() -> Any:
    X = mixture(6, 8, n_train=15, n_test=10).X_train.copy()
    X[3, 0] = np.nan
    return X


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"X_train": nan_in_row_3()}, "3"),
        ({"y_train": None}, "y_train"),
        ({"X_train": np.array([{}] * 90, dtype=object)}, "object"),
        ({"y_train": np.zeros(7, dtype=int)}, "7"),
    ],
    ids=["not finite", "no labels", "objects", "few labels"],
)
def test_bad_features_end_in_one_sentence(
    run: Run, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    result = run("compare", saved(tmp_path / "f.npz", **changes), *FEW)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_that_is_no_npz_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "f.npz").write_text("no arrays")
    result = run("compare", "f.npz")
    assert result.exit_code == 1
    assert "f.npz" in result.stderr


def test_a_class_with_one_sample_is_remarked(run: Run, tmp_path: Path) -> None:
    y = np.repeat(np.arange(6), 15)
    keep = (y != 2) | (np.cumsum(y == 2) == 1)
    data = mixture(6, 8, n_train=15, n_test=10, distance=1.0)
    path = saved(tmp_path / "f.npz", X_train=data.X_train[keep], y_train=y[keep])
    result = run("compare", path, *FEW)
    assert result.exit_code == 0, result.output
    assert "Note: 1 of 6 classes has a single training example." in result.stdout


def test_fewer_classes_than_initial_ones_is_an_error(run: Run, tmp_path: Path) -> None:
    result = run("compare", saved(tmp_path / "f.npz"), *FEW, "--initial", "7")
    assert result.exit_code == 1
    assert "begins with 7 classes, but there are only 6" in result.stderr


def test_an_output_that_cannot_be_written_is_refused_before_reading(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "taken").touch()
    result = run("compare", "nowhere.npz", "--out", "taken")
    assert result.exit_code == 1
    assert "cannot write to the folder 'taken'" in result.stderr


def test_a_wrong_learner_is_answered_with_the_near_one(run: Run) -> None:
    result = run("compare", "digits", "--only", "ldaa")
    assert result.exit_code == 1
    assert "did you mean lda" in result.stderr


def test_labels_may_lie_in_a_file_of_their_own(run: Run, tmp_path: Path) -> None:
    data = mixture(6, 8, n_train=15, n_test=10, distance=1.0)
    np.save(tmp_path / "X.npy", data.X_train)
    np.save(tmp_path / "y.npy", data.y_train)
    result = run("compare", "X.npy", "--labels", "y.npy", "--only", "class-means")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("X: 66 samples, 6 classes")


@pytest.mark.parametrize(("source", "option"), [("mnist", "--path"), ("X.npy", "--labels")])
def test_what_is_missing_is_an_option_of_the_command(
    run: Run, tmp_path: Path, source: str, option: str
) -> None:
    np.save(tmp_path / "X.npy", np.eye(4))
    result = run("compare", source)
    assert result.exit_code == 1
    assert f": {option.removeprefix('--')} must " in result.stderr
    assert "=" not in result.stderr
    assert option in run("compare", "--help").stdout


def test_it_fails_if_every_learner_does(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no luck")

    monkeypatch.setattr(comparison, "measure", fail)
    result = run("compare", saved(tmp_path / "f.npz"), *FEW)
    assert result.exit_code == 1
    assert "streaming LDA: " in result.stdout
    assert "failed: RuntimeError: no luck" in result.stdout
    assert result.stderr.endswith("Error: no learner could be measured; see the notes above\n")


def test_single_samples_that_come_first_leave_no_learner_behind(run: Run, tmp_path: Path) -> None:
    data = mixture(6, 8, n_train=15, n_test=10, distance=1.0)
    # Four of six classes have one sample, so that two of them come first in some order.
    single = np.isin(data.y_train, [0, 1, 2, 3])
    rows = [*np.flatnonzero(~single), *(int(np.argmax(data.y_train == k)) for k in range(4))]
    np.savez(tmp_path / "f.npz", X=data.X_train[rows], y=data.y_train[rows])
    for seed in range(3):
        result = run("compare", "f.npz", *FEW, "--seed", seed)
        assert result.exit_code == 0, result.output
        assert "failed" not in result.stdout


def test_river_alone_gets_no_recommendation(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("river")
    result = run("compare", saved(tmp_path / "f.npz"), "--only", "softmax")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("a subsample: ")
    assert "nothing is recommended" in result.stdout


def test_two_classes_are_compared_with_an_update(run: Run, tmp_path: Path) -> None:
    data = mixture(2, 8, n_train=15, n_test=10, distance=1.0)
    np.savez(tmp_path / "f.npz", X=data.X_train, y=data.y_train)
    result = run("compare", "f.npz", *FEW)
    assert result.exit_code == 0, result.output
    assert "In general: " in result.stdout
    assert "No learner updates" not in result.stdout


def test_an_interrupted_comparison_goes_on_with_the_next_learner(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path / "f.npz")
    real = comparison.measure

    def interrupt(learner: Any, *arguments: Any, **options: Any) -> Any:
        if learner.name == "ridge":
            raise KeyboardInterrupt
        return real(learner, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(comparison, "measure", interrupt)
        assert run("compare", path, *FEW).exit_code == 130
    seen = []
    monkeypatch.setattr(
        comparison, "measure", lambda each, *a, **o: seen.append(each.name) or real(each, *a, **o)
    )
    assert run("compare", path, *FEW).exit_code == 0
    assert seen == ["ridge"]
