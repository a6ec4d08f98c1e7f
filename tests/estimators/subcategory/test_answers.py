"""Predictions of forests of coarse and fine classes, through the public interface."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import evergrow
from evergrow import SubcategoryForestClassifier
from evergrow.estimators import (
    ClassMeans,
    FineOnly,
    Hierarchical,
    Joint,
    NearestGuesser,
    Stacked,
    Storage,
)
from tests.estimators.subcategory.levels import (
    Array,
    coarse_only,
    every_method,
    hidden,
    samples,
    small,
)

DRAWN_BY_WEIGHT = {"check_sample_weight_equivalence_on_dense_data": "trees draw samples by weight"}


# Flat labels are coarse classes only, which not every method can do with.
@parametrize_with_checks(
    [SubcategoryForestClassifier(5, method=name) for name in ("hierarchical", "joint")],
    expected_failed_checks=lambda _: DRAWN_BY_WEIGHT,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def fitted() -> SubcategoryForestClassifier:
    X, Y = samples(300)
    return small(n_estimators=10).fit(X, hidden(Y))


@pytest.fixture(scope="module")
def tested() -> tuple[Array, Array]:
    return samples(100, seed=5)


def test_coarse_probabilities_are_sums_of_fine_ones(fitted: Any, tested: Any) -> None:
    fine = fitted.predict_proba(tested[0])
    coarse = fitted.predict_proba(tested[0], level="coarse")
    for k, name in enumerate(fitted.coarse_classes_):
        mine = [fitted.hierarchy_[f] == name for f in fitted.classes_]
        np.testing.assert_allclose(coarse[:, k], fine[:, mine].sum(axis=1))
    assert (fitted.predict_coarse(tested[0]) == fitted.coarse_classes_[coarse.argmax(1)]).all()


def test_the_answer_backs_off_to_the_coarse_class_where_the_fine_one_is_unsure() -> None:
    X, Y = samples(300)
    X_test, _ = samples(200, seed=5)
    X_test += 3 * np.random.default_rng(0).normal(size=X_test.shape)
    names = [[f"c{c}", f"f{f}"] for c, f in Y.tolist()]
    forest = small().fit(X, names)
    best = forest.predict_proba(X_test).max(axis=1)
    answers = forest.predict(X_test, back_off=0.6)
    assert {name[0] for name in answers[best >= 0.6]} == {"f"}
    assert {name[0] for name in answers[best < 0.6]} == {"c"}
    sure = forest.predict(X_test, back_off=0.0)
    np.testing.assert_array_equal(sure, forest.predict(X_test))


def test_answers_at_both_levels_agree_where_the_fine_one_is_sure(fitted: Any, tested: Any) -> None:
    coarse, fine, is_fine = fitted.predict_levels(tested[0], back_off=0.7)
    np.testing.assert_array_equal(fine, fitted.predict(tested[0]))
    np.testing.assert_array_equal(is_fine, fitted.predict_proba(tested[0]).max(axis=1) >= 0.7)
    owners = np.array([fitted.hierarchy_[f] for f in fine])
    assert (coarse == owners)[is_fine].all()
    np.testing.assert_array_equal(coarse[~is_fine], fitted.predict_coarse(tested[0])[~is_fine])


def test_the_coarse_answer_follows_the_fine_one_where_their_sums_say_otherwise(fitted: Any) -> None:
    X = 10 * np.random.default_rng(0).normal(size=(300, 5))
    coarse, fine, _ = fitted.predict_levels(X)
    assert coarse.tolist() == [fitted.hierarchy_[f] for f in fine]
    assert (coarse != fitted.predict_coarse(X)).any()


def test_comparisons_of_stacked_forests_are_those_of_both() -> None:
    X, Y = samples(200)
    forest = small("stacked").fit(X, hidden(Y))
    fitted = forest._fitted
    first = fitted.stack.first.comparisons(X, 1)
    second = fitted.forest.comparisons(fitted.stack.rows(X, 1), 1)
    assert first > 0
    assert forest.comparisons(X) == (first + second) / (5 * 200)


def test_ambiguous_names_are_refused_in_one_prediction(fitted: Any, tested: Any) -> None:
    with pytest.raises(ValueError, match=r"0, 1, 2, 3 are names of fine and .* use predict_levels"):
        fitted.predict(tested[0], back_off=0.5)


def test_a_class_that_is_its_own_only_subcategory_is_clear() -> None:
    X, Y = samples(100, [0, 3, 4])
    names = {0: ["ant", "ant"], 3: ["bee", "wild"], 4: ["bee", "tame"]}
    forest = small().fit(X, [names[f] for f in Y[:, 1].tolist()])
    assert set(forest.predict(X, back_off=1.0)) <= {"ant", "bee", "wild", "tame"}


def test_strings_and_numbers_in_one_answer_are_objects() -> None:
    X, Y = samples(200)
    forest = small().fit(X, [[f"c{c}", f] for c, f in Y.tolist()])
    answers = forest.predict(X, back_off=0.9)
    assert answers.dtype == object
    assert {type(name) for name in answers} == {int, str}
    assert forest.predict(X).dtype == np.int64


@every_method
def test_blocks_of_rows_make_no_difference(method: str) -> None:
    X, Y = samples(200)
    forest = small(method).fit(X, hidden(Y))
    whole = forest.predict_proba(X)
    parts = np.concatenate([forest.predict_proba(X[k : k + 1]) for k in range(200)])
    np.testing.assert_array_equal(whole, parts)
    assert forest.apply(X).shape == (200, 5)
    assert forest.comparisons(X) > 2
    assert forest.nbytes > 0


def test_only_finest_classes_are_probable(fitted: Any) -> None:
    X, Y = samples(200)
    Y = np.column_stack([Y[:, 0] + 100, Y[:, 1]])
    forest = small("hierarchical").fit(X, coarse_only(Y))
    forest.partial_fit(X[:40], Y[:40])
    probabilities = forest.predict_proba(X)
    divided = np.isin(forest.classes_, list(forest.hierarchy_.values()))
    assert divided.sum() == 4
    assert not probabilities[:, divided].any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_smoothing_may_be_changed_at_any_time(tested: Any) -> None:
    X, Y = samples(300)
    forest = small().fit(X, hidden(Y))
    before = forest.predict_proba(tested[0])
    after = forest.set_params(method=Hierarchical(smoothing=100.0)).predict_proba(tested[0])
    assert np.abs(before - after).max() > 0.01
    coarse = forest.predict_proba(tested[0], level="coarse")
    forest.set_params(method__smoothing=3.0)
    np.testing.assert_allclose(coarse, forest.predict_proba(tested[0], level="coarse"))
    with pytest.raises(ValueError, match="method must be one of"):
        forest.set_params(method="best").predict(tested[0])


def test_the_score_counts_samples_whose_finest_class_is_known(fitted: Any, tested: Any) -> None:
    X, Y = tested
    right = fitted.predict(X) == Y[:, 1]
    assert fitted.score(X, Y) == right.mean()
    assert fitted.score(X, Y[:, 1]) == right.mean()
    given = hidden(Y, share=0.5)
    assert fitted.score(X, given) == right[given[:, 1] >= 0].mean()
    weights = np.arange(len(X), dtype=float)
    assert fitted.score(X, Y, weights) == pytest.approx(np.average(right, weights=weights))
    assert fitted.score(X, pd.DataFrame(Y, columns=["coarse", "fine"])) == right.mean()
    assert fitted.score(X, np.full(len(X), 99)) == 0.0
    with pytest.raises(ValueError, match="score needs samples whose finest class is known"):
        fitted.score(X, coarse_only(Y))


def test_the_score_counts_coarse_classes_that_are_their_own_finest() -> None:
    X, Y = samples(200)
    forest = small("hierarchical").fit(X, coarse_only(Y))
    expected = (forest.predict(X) == Y[:, 0]).mean()
    assert forest.score(X, Y[:, :1]) == forest.score(X, coarse_only(Y)) == expected


@pytest.mark.parametrize(
    ("call", "options", "message"),
    [
        (
            "predict_levels",
            {"back_off": 1.5},
            r"back_off must be None or a float in \[0, 1\], got 1",
        ),
        ("predict_levels", {"back_off": "much"}, "back_off must be None or a float"),
        (
            "predict_proba",
            {"level": "top"},
            r"level must be one of \['coarse', 'fine'\] or an integer .*, got 'top'",
        ),
        ("predict", {"level": 2}, "level must be below 2, the number of levels"),
    ],
)
def test_wrong_options_of_predictions_are_refused(
    fitted: Any, tested: Any, call: str, options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(fitted, call)(tested[0], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "method must be one of .*'ridge-h'.* got 'best'"),
        ({"method": NearestGuesser()}, "a value of Hierarchical or Joint or Stacked or FineOnly"),
        ({"splits": ClassMeans()}, "splits must be 'auto' or a value of Regularised, got Class"),
        ({"storage": Storage(per_class=1)}, "Storage.per_class must be at least min_samples_leaf"),
        ({"update": "none"}, "update must be None or one of"),
    ],
)
def test_wrong_parameters_are_refused_by_name(options: Any, message: str) -> None:
    X, Y = samples(50)
    with pytest.raises(ValueError, match=message):
        small(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hierarchical(guess="dice"), "Hierarchical.guess must be None or one of .* 'dice'"),
        (lambda: FineOnly(guess=1), "FineOnly.guess must be None or one of"),
        (lambda: Joint(coarse_weight=-1.0), "Joint.coarse_weight must be a float"),
        (lambda: Joint(class_means="coarse"), r"class_means must be one of \['both', 'fine'\]"),
        (lambda: Hierarchical(smoothing="much"), "Hierarchical.smoothing must be a float"),
        (lambda: Stacked(-1.0), "Stacked.scale must be a float"),
        (lambda: small().set_params(method__smoothing=1.0), "method__smoothing needs a value in"),
        (lambda: small(max_samples=0.5).set_params(max_samples__share=0.2), "needs a value in"),
        (lambda: small(Joint()).set_params(method__guess=None), "Joint has no field 'guess'"),
    ],
)
def test_wrong_options_of_methods_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_samples_and_labels_of_different_number_are_refused() -> None:
    X, Y = samples(50)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small().fit(X, Y[1:])
    with pytest.raises(ValueError, match="requires y to be passed"):
        small().fit(X, None)


def test_names_of_features_are_kept_and_checked() -> None:
    X, Y = samples(50)
    frame = pd.DataFrame(X, columns=list("abcde"))
    forest = small().fit(frame, hidden(Y))
    assert forest.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        forest.partial_fit(frame[list("edcba")], Y)


@pytest.mark.parametrize("how", ["pickle", "deepcopy"])
@pytest.mark.parametrize("method", ["ridge-h", "stacked"])
def test_copies_answer_the_same(how: str, method: str) -> None:
    X, Y = samples(100)
    forest = small(method).fit(X, hidden(Y))
    copied = pickle.loads(pickle.dumps(forest)) if how == "pickle" else copy.deepcopy(forest)
    np.testing.assert_array_equal(copied.predict_proba(X), forest.predict_proba(X))
    if method == "ridge-h":
        for model in (copied, forest):
            model.partial_fit(X, hidden(Y, seed=3))
        np.testing.assert_array_equal(copied.predict_proba(X), forest.predict_proba(X))


def test_a_clone_is_unfitted(fitted: Any, tested: Any) -> None:
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    for call in (
        lambda: copied.predict(tested[0]),
        lambda: copied.predict_levels(tested[0]),
        copied.guesses,
        lambda: copied.hierarchy_,
        lambda: copied.refine([0], [0]),
        lambda: copied.forget(samples=[0]),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_it_works_inside_scikit_learns_tools() -> None:
    X, Y = samples(150)
    assert cross_val_score(small(n_estimators=2), X, hidden(Y, share=0.3), cv=2).mean() > 0.7
    search = GridSearchCV(small(Joint(), n_estimators=2), {"method__coarse_weight": [0.1, 9]}, cv=2)
    assert search.fit(X, hidden(Y, share=0.3)).best_estimator_.method in (Joint(0.1), Joint(9))


def test_labels_with_none_are_cross_validated_without_strata() -> None:
    X, Y = samples(150)
    labels = np.array([[c, None if f < 0 else f] for c, f in hidden(Y, share=0.3).tolist()])
    folds = KFold(2, shuffle=True, random_state=0)
    assert cross_val_score(small(n_estimators=2), X, labels, cv=folds).mean() > 0.7


@pytest.mark.parametrize(
    "wrapper", [evergrow.RejectingClassifier(small()), evergrow.ImageClassifier(learner=small())]
)
def test_wrappers_of_one_label_per_sample_refuse_it_by_name(wrapper: Any) -> None:
    X, Y = samples(60)
    with pytest.raises(ValueError, match=r"(one|single) label .*SubcategoryForestClassifier"):
        wrapper.fit(X, Y[:, 1])


def test_the_report_of_guesses_names_coarse_classes() -> None:
    X, Y = samples(200)
    forest = small().fit(X, [[f"kind {c}", None if f < 0 else f] for c, f in hidden(Y).tolist()])
    assert "kind 2" in str(forest.guess_report_)
    assert forest.guess_report_.n_guessed == len(forest.guesses()[0])
    assert forest.guess_report_.rate > 0.8
    assert forest.guess_report_.table(["a", "b", "c", "d"]) == str(forest.guess_report_)
    assert "lions" in forest.guess_report_.table({"kind 2": "lions"})


def test_flat_labels_that_fit_takes_are_scored_like_two_columns() -> None:
    X, Y = samples(200)
    given = hidden(Y)
    both = [[f"c{c}", None if f < 0 else f"f{f}"] for c, f in given.tolist()]
    flat = [f"c{c}" if f < 0 else f"f{f}" for c, f in given.tolist()]
    forest = small().fit(X, both)
    assert forest.score(X, flat) == forest.score(X, both) > 0.8


@pytest.mark.parametrize("labels", [[0, 1], [[0, 1], [1, 2]], [[0], [1]]])
def test_scoring_by_numbers_where_classes_are_strings_is_an_error(labels: Any) -> None:
    X, Y = samples(100)
    forest = small().fit(X, [[f"c{c}", f"f{f}"] for c, f in Y.tolist()])
    with pytest.raises(TypeError, match="labels must be strings like the known classes"):
        forest.score(X[:2], labels)


@pytest.mark.parametrize("weights", [[np.nan, 1], [-1, 1], [0, 0], [[1, 1], [1, 1]]])
def test_weights_of_a_score_that_make_no_sense_are_an_error(weights: Any) -> None:
    X, Y = samples(100)
    forest = small().fit(X, Y)
    with pytest.raises(ValueError, match=r"[Ss]ample_?.?weight"):
        forest.score(X[:2], Y[:2], weights)


def test_verbose_shows_progress(capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = samples(100)
    forest = small(verbose=1).fit(X, hidden(Y))
    assert "Growing trees" in capsys.readouterr().err
    forest.refine([0], [1])
    assert "Refining trees" in capsys.readouterr().err
