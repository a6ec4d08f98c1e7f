"""ERC forests as estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

import evergrow
from evergrow import ERCForest, RaggedArray
from tests.estimators import model_files

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
# The training digits below 8, and those that come later.
OLD, NEW = ((X[TRAIN][rows], Y[TRAIN][rows]) for rows in (Y[TRAIN] < 8, Y[TRAIN] >= 8))


def fitted(**parameters):
    return ERCForest(**{"random_state": 0, "n_words": 60, **parameters}).fit(X[TRAIN], Y[TRAIN])


@parametrize_with_checks(
    [ERCForest(3, n_words=20), ERCForest(3, n_words=None, supervised=False, max_trials="auto")]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_trees_are_pruned_to_the_wanted_number_of_words():
    forest = fitted()
    assert forest.words_per_tree_.tolist() == [60] * 5
    assert forest.n_words_ == 300
    assert forest.transform(X).max() == 59


def test_without_a_number_of_words_supervised_leaves_are_pure():
    shares = fitted(n_words=None).word_shares_
    assert set(np.unique(shares)) == {0.0, 1.0}


def test_class_shares_are_those_of_the_training_descriptors():
    forest = fitted(n_estimators=1, n_words=5)
    words = forest.transform(X[TRAIN])[:, 0]
    for word in range(5):
        shares = np.bincount(Y[TRAIN][words == word], minlength=10) / (words == word).sum()
        np.testing.assert_allclose(forest.word_shares_[word], shares)


def test_votes_separate_digits():
    assert fitted(n_estimators=20, n_words=None).score(X[TEST], Y[TEST]) > 0.9


def test_supervision_gives_words_that_say_more_about_the_class():
    def purity(forest):
        return forest.word_shares_.max(axis=1).mean()

    blind = ERCForest(n_words=60, supervised=False, random_state=0).fit(X[TRAIN], Y[TRAIN])
    assert purity(fitted()) > purity(blind) + 0.1


def test_without_labels_there_are_no_classes():
    blind = ERCForest(supervised=False, n_words=5).fit(X[TRAIN])
    assert not hasattr(blind, "classes_")
    with pytest.raises(ValueError, match="fitted without labels"):
        blind.predict(X)
    with pytest.raises(ValueError, match="fitted without labels"):
        blind.partial_fit(X, Y)


def test_a_gain_threshold_prunes_and_stopping_early_grows_no_more():
    pruned = fitted(n_words=None, min_gain=0.01)
    stopped = fitted(n_words=None, min_gain=0.01, stop_early=True)
    everything = fitted(n_words=None)
    assert (pruned.words_per_tree_ < everything.words_per_tree_).all()
    # A weak test that leads to strong ones is kept by pruning only.
    assert (stopped.words_per_tree_ <= pruned.words_per_tree_).all()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_do_not_change_the_forest(n_jobs):
    assert np.array_equal(fitted().transform(X), fitted(n_jobs=n_jobs).transform(X))


def test_images_and_rows_with_the_images_labels_give_the_same_forest():
    images = RaggedArray(X, [0, 900, 900, 1797])
    by_image = ERCForest(n_words=30, random_state=0).fit(images, ["a", "b", "c"])
    per_row = images.per_row(["a", "b", "c"])
    by_row = ERCForest(n_words=30, random_state=0).fit(X, per_row)
    assert np.array_equal(by_image.transform(images), by_row.transform(X))


def test_an_images_vote_is_the_mean_of_its_descriptors():
    forest = fitted()
    images = RaggedArray(X[:10], [0, 4, 4, 10])
    votes = forest.predict_proba(images)
    np.testing.assert_allclose(votes[0], forest.predict_proba(X[:4]).mean(axis=0))
    np.testing.assert_allclose(votes[1], 0.1)
    np.testing.assert_allclose(votes[2], forest.predict_proba(X[4:10]).mean(axis=0))
    assert len(forest.predict(images)) == 3


def test_histograms_count_the_words_of_each_tree():
    forest = fitted()
    counts = forest.encode([X[:7], X[7:10]]).toarray()
    assert counts.shape == (2, 300)
    assert counts.sum(axis=1).tolist() == [35, 15]
    words = forest.transform(X[:7])
    assert counts[0, 60:120].tolist() == np.bincount(words[:, 1], minlength=60).tolist()


def test_new_classes_get_words_in_proportion_and_old_words_stay():
    forest = ERCForest(n_words=40, random_state=0).fit(*OLD)
    before = forest.transform(OLD[0])
    forest.partial_fit(*NEW)
    assert forest.words_per_tree_.tolist() == [50] * 5
    after = forest.transform(OLD[0])
    assert (before == after).mean() > 0.7
    assert forest.classes_.tolist() == list(range(10))


def test_new_classes_are_recognised_by_the_vote():
    forest = ERCForest(15, n_words=200, random_state=0).fit(*OLD)
    forest.partial_fit(*NEW)
    new = Y[TEST] >= 8
    assert forest.score(X[TEST][new], Y[TEST][new]) > 0.75
    assert forest.score(X[TEST], Y[TEST]) > 0.85


def test_a_column_of_histograms_means_one_word_for_life():
    forest = ERCForest(n_words=40, random_state=0).fit(*OLD)
    before, words = forest.encode([X[:300]]).toarray()[0], forest.transform(X[:300])
    forest.partial_fit(*NEW)
    after = forest.encode([X[:300]]).toarray()[0]
    assert len(after) == 250
    same = forest.transform(X[:300]) == words
    # What left its word is counted among the new ones.
    moved = np.array(
        [np.bincount(w[~s], minlength=40) for w, s in zip(words.T, same.T, strict=True)]
    )
    assert after[:200].tolist() == (before - moved.ravel()).tolist()
    assert after[200:].sum() == moved.sum() > 0


def test_a_reader_sees_one_forest_while_another_thread_teaches_it():
    forest = fitted(n_words=20)

    def images():
        for part in range(40):
            if part == 20:
                forest.partial_fit(X[:5], np.arange(5) + 90)
            yield np.tile(X[:50], (400, 1))

    counts = forest.encode(images())
    assert counts.shape == (40, 100)
    assert np.array_equal(counts[[0]].toarray(), counts[[39]].toarray())


def test_announced_classes_get_words_when_they_come():
    forest = ERCForest(n_words=40, random_state=0)
    forest.partial_fit(*OLD, classes=np.arange(10))
    forest.partial_fit(*OLD, classes=[10])
    assert forest.words_per_tree_.tolist() == [40] * 5
    forest.partial_fit(*NEW)
    assert forest.words_per_tree_.tolist() == [50] * 5


def test_a_changed_number_of_trees_is_refused():
    forest = fitted().set_params(n_estimators=7)
    with pytest.raises(ValueError, match="changed to 7, but the forest has 5"):
        forest.partial_fit(X, Y)


def test_known_classes_change_shares_but_no_words():
    forest = fitted()
    words, shares = forest.transform(X), forest.word_shares_
    forest.partial_fit(X[TEST], Y[TEST])
    assert np.array_equal(forest.transform(X), words)
    assert not np.array_equal(forest.word_shares_, shares)
    again = fitted(keep_descriptors=False).partial_fit(X[TEST], Y[TEST])
    assert np.array_equal(forest.word_shares_, again.word_shares_)


def test_new_classes_need_the_descriptors_of_the_old_ones():
    forest = ERCForest(n_words=20, keep_descriptors=False, random_state=0)
    forest.fit(X[Y < 8], Y[Y < 8])
    before = pickle.dumps(forest)
    with pytest.raises(ValueError, match="keep_descriptors=True"):
        forest.partial_fit(X[Y >= 8], Y[Y >= 8])
    assert pickle.dumps(forest) == before


def test_the_number_of_trials_is_chosen_by_votes_on_held_out_images():
    # One useful feature among many: few trials hardly ever find it.
    random = np.random.default_rng(0)
    noise = random.normal(size=(600, 60))
    y = np.repeat(np.arange(30) % 2, 20)
    noise[:, 3] += 6 * y
    images = RaggedArray(noise, np.arange(0, 601, 20))
    forest = ERCForest(n_words=10, max_trials="auto", random_state=0).fit(images, y[::20])
    assert forest.max_trials_ > 8


def test_saved_loaded_and_updated_is_updated(tmp_path):
    forest = ERCForest(n_words=30, random_state=0).fit(X[Y < 8], Y[Y < 8])
    again = model_files.reload(forest, tmp_path)
    for one in (forest, again):
        one.partial_fit(X[Y >= 8], Y[Y >= 8])
    assert np.array_equal(forest.transform(X), again.transform(X))
    assert np.array_equal(forest.predict_proba(X), again.predict_proba(X))


def test_saved_for_inference_it_is_small_and_finds_no_words_for_new_classes(tmp_path):
    forest = fitted()
    forest.save(tmp_path / "all.evergrow")
    forest.save(tmp_path / "small.evergrow", inference_only=True)
    sizes = [(tmp_path / f"{name}.evergrow").stat().st_size for name in ("all", "small")]
    assert sizes[0] - sizes[1] > X[TRAIN].size * 4
    again = evergrow.load(tmp_path / "small.evergrow")
    assert np.array_equal(again.predict_proba(X), forest.predict_proba(X))
    with pytest.raises(ValueError, match="keep_descriptors=True"):
        again.partial_fit(X[:2], [77, 78])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "good.evergrow"
    fitted(n_estimators=2).save(path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        model_files.forge("trees.n_nodes", lambda n: n + np.array([2, 0])),
        model_files.forge("trees.n_nodes", model_files.at(0, 2**62)),
        model_files.forge("fitted/trees/n_features", 3),
        model_files.forge("fitted/trees/n_features", 0),
        model_files.forge("fitted/n_first_classes", 11),
        model_files.forge("fitted/n_first_classes", 0),
        model_files.forge("fitted/seed", -1),
        model_files.forge("fitted/max_trials", 0),
        model_files.forge("fitted/max_trials", 2**40),
        model_files.forge("fitted/seed", 2**70),
        model_files.forge("fitted/n_updates", 2**64),
        model_files.forge("parameters/n_estimators", 3),
        model_files.forge("counts", lambda counts: np.full_like(counts, 2**62)),
        model_files.forge("counts", np.zeros_like),
        model_files.forge("columns", model_files.at(0, 1)),
        model_files.forge("fitted/trees", None),
        model_files.forge("parameters/n_words", 0),
        model_files.forge("counts", model_files.at(0, -1)),
        model_files.forge("trees.child", model_files.at(0, 10**6)),
        model_files.forge("trees.feature", model_files.at(0, 64)),
        model_files.forge("descriptors.codes", model_files.at(0, 10)),
        model_files.forge("descriptors.rows", lambda rows: rows[:-1]),
    ],
)
def test_damaged_files_are_refused(saved, change):
    model_files.check_refused(saved, change)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer"),
        (
            {"n_words": 0},
            "n_words must be an integer of at least 1|n_words must be an integer from",
        ),
        ({"min_score": 1.5}, "min_score must be a float"),
        ({"max_trials": "log"}, "max_trials must be"),
        ({"supervised": 1}, "supervised must be True or False"),
        ({"min_gain": -0.1}, "min_gain must be"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ERCForest(**parameters).fit(X, Y)


def test_a_failed_update_leaves_the_forest_as_it_was():
    forest = fitted()
    before = pickle.dumps(forest)
    for D, y in [(X[:, :5], Y), (X, Y[:-1]), (X, [None] * len(X)), (X * np.nan, Y)]:
        with pytest.raises((ValueError, TypeError)):
            forest.partial_fit(D, y)
    assert pickle.dumps(forest) == before


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({}, ([[1e300], [0.0]], [0, 1]), "single precision"),
        ({}, ([X[:3], X[3:5]], [0, 1, 1]), "2 images, got 3"),
        ({"supervised": False, "max_trials": "auto"}, (X,), "needs labels"),
    ],
)
def test_wrong_training_data_are_refused(parameters, data, message):
    with pytest.raises(ValueError, match=message):
        ERCForest(**parameters).fit(*data)
