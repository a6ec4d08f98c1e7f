"""The data sets of an experiment."""

import pytest

from evergrow import InvalidInputError
from evergrow.research import ExperimentContext, Source, mixture
from tests.research.papers.checks import save_features


@pytest.fixture
def sources():
    return {"features": Source("features.npz", mixture), "other": Source("other.npz", mixture)}


@pytest.fixture
def folder(tmp_path):
    save_features(tmp_path / "features.npz", mixture(4, 3))
    return tmp_path


def test_without_a_data_folder_the_built_in_data_are_taken(sources, monkeypatch):
    monkeypatch.delenv("EVERGROW_DATA", raising=False)
    assert ExperimentContext(sources).dataset("features").name == "mixture"


def test_files_of_the_data_folder_come_first(sources, folder, monkeypatch):
    monkeypatch.setenv("EVERGROW_DATA", str(folder))
    assert ExperimentContext(sources).dataset("features").X_train.shape[1] == 3


def test_a_missing_file_is_replaced_by_built_in_data(sources, folder, monkeypatch):
    monkeypatch.setenv("EVERGROW_DATA", str(folder))
    assert ExperimentContext(sources).dataset("other").name == "mixture"


def test_quick_runs_take_built_in_data(sources, folder, monkeypatch):
    monkeypatch.setenv("EVERGROW_DATA", str(folder))
    assert ExperimentContext(sources, quick=True).is_built_in("features")


def test_the_users_own_data_replace_all_others(sources, folder):
    context = ExperimentContext(sources, quick=True, data=folder / "features.npz")
    assert context.names == ("features",)
    assert context.dataset("features").X_train.shape[1] == 3


def test_data_of_one_class_are_refused(sources, tmp_path):
    save_features(tmp_path / "one.npz", mixture(1, 3))
    context = ExperimentContext(sources, data=tmp_path / "one.npz")
    with pytest.raises(InvalidInputError, match="has 1 class; at least 2 are needed"):
        context.dataset("features")


def test_a_data_folder_that_does_not_exist_is_named(sources, tmp_path, monkeypatch):
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path / "typo"))
    with pytest.raises(FileNotFoundError, match="EVERGROW_DATA names"):
        ExperimentContext(sources).dataset("features")


def test_a_full_run_lists_the_files_that_built_in_data_replace(sources, folder, monkeypatch):
    monkeypatch.setenv("EVERGROW_DATA", str(folder))
    assert ExperimentContext(sources).missing_files == ("other.npz",)
    assert ExperimentContext(sources, quick=True).missing_files == ()


def test_an_experiment_without_sources_takes_no_data():
    with pytest.raises(ValueError, match="generates its own data"):
        ExperimentContext({}, data="features.npz")


def test_data_are_read_once(sources):
    context = ExperimentContext(sources, quick=True)
    assert context.dataset("features") is context.dataset("features")


def test_data_from_a_file_are_prepared(folder):
    def doubled(data):
        return data.of_classes([0])

    context = ExperimentContext(
        {"one": Source(None, mixture, prepare=doubled)}, data=folder / "features.npz"
    )
    assert context.dataset("one").classes.tolist() == [0]
