"""ICRA 2017: tasks with a new class, exact boundaries, and claims that are no comparison."""

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import icra2017
from evergrow_papers.claims import deciding
from evergrow_papers.data import digits, mixture
from evergrow_papers.frame import Context, run
from evergrow_papers.table import Table

from evergrow import RLSClassifier

SMALL = icra2017.Setup(10, 60, 20, 0.7, 8)


def test_digits_become_grey_values_but_features_stay():
    X = icra2017.scale_pixels(digits()).X_train
    assert (X.min(), X.max()) == (-1, 1)
    data = mixture(3, 4, 5)
    assert icra2017.scale_pixels(data) is data


def test_the_new_class_comes_only_as_the_new_one():
    task = icra2017.draw_task(digits(), SMALL, 8, seed=0)
    assert 8 not in task.known[1]
    assert set(task.new[1].tolist()) == {8}
    assert np.bincount(task.test[1]).tolist() == [20] * 10
    only_new = RLSClassifier().fit(np.eye(64)[:2], [8, 0])
    only_new.predict = lambda X: np.full(len(X), 8)
    assert task.accuracies(only_new) == {"new_class": 1.0, "others": 0.0, "total": 0.1}


def test_changing_the_recoding_of_one_model_is_as_training_with_it():
    task = icra2017.draw_task(digits(), SMALL, 8, seed=0)
    ((_, model),) = icra2017.learn_new_class(icra2017.least_squares(0), task, (5, 500))
    model.set_params(recoding=0.7, regularization=model.regularization_)
    other = RLSClassifier(regularization=model.regularization_, recoding=0.7, scoring="regression")
    other.fit(
        *(np.concatenate([known, new[:5]]) for known, new in zip(task.known, task.new, strict=True))
    )
    # Held-out examples are learnt in the end, so both have seen the same.
    assert np.mean(model.predict(task.test[0]) == other.predict(task.test[0])) > 0.99


def test_every_example_of_the_new_class_is_learnt_once():
    task = icra2017.draw_task(digits(), SMALL, 8, seed=0)
    taught = icra2017.learn_new_class(icra2017.least_squares(0), task, (1, 5, 20, 500))
    numbers = [(n, int(model.class_counts_[model.classes_ == 8][0])) for n, model in taught]
    assert numbers == [(1, 1), (5, 5), (20, 20)]


def test_a_penalty_selected_once_stays():
    task = icra2017.draw_task(digits(), SMALL, 8, seed=0)
    for select_once in (True, False):
        model = icra2017.least_squares(0)
        taught = icra2017.learn_new_class(model, task, (1, 5, 20), select_once=select_once)
        penalties = {model.regularization_ for _, model in taught}
        assert (len(penalties) == 1) is select_once


@pytest.mark.parametrize("gamma", icra2017.GAMMAS)
def test_on_the_exact_boundary_both_classes_are_equally_likely(gamma):
    radius = icra2017.boundary((1 - gamma) / gamma)
    places = icra2017.around(np.full(7, radius))

    def density(mean, deviation):
        return np.exp(-((places - mean) ** 2).sum(axis=1) / (2 * deviation**2)) / deviation**2

    ratio = gamma * density(*icra2017.COMMON) / ((1 - gamma) * density(*icra2017.RARE))
    assert ratio == pytest.approx(1)


def test_principal_components_keep_the_most():
    data = mixture(5, 6, 30, 10, distance=2.0)
    fewer = icra2017.principal_components(data, 2)
    assert (fewer.X_train.shape, fewer.X_test.shape) == ((150, 2), (50, 2))
    deviations = fewer.X_train.std(axis=0)
    assert deviations[0] >= deviations[1] >= data.X_train.std(axis=0).min()
    assert fewer.X_train.mean(axis=0) == pytest.approx(0, abs=1e-6)


def rows(naive, recoded):
    return [
        {"n_new": n, "method": method, "seed": seed, "new_class": found[n], "total": found[n]}
        for method, found in (("naive", naive), ("recoded", recoded))
        for n in found
        for seed in (0, 1, 2)
    ]


def test_a_class_as_large_as_the_others_is_not_judged():
    helps = icra2017.TABLE1.claims["helps"].parts
    level = Table(rows({1: 0.0, 5: 0.1, 500: 0.9}, {1: 0.3, 5: 0.4, 500: 0.9}))
    assert icra2017.while_rare(level).values("n_new") == [1, 5]
    assert deciding(helps(level)).agrees is True
    behind = Table(rows({1: 0.0, 500: 0.9}, {1: 0.0, 500: 0.95}))
    assert icra2017.while_rare(behind).values("n_new") == [1, 500]
    assert deciding(helps(behind)).agrees is False


@pytest.mark.parametrize(
    ("new", "others", "grows", "best"),
    [
        (lambda r: r, lambda r: 0.8 - 0.01 * r, True, "recoding 0.4 against 0"),
        (lambda r: 0.1, lambda r: 0.8 - 0.2 * r, False, "recoding 0.1 against 0"),
        (lambda r: 0.5 - r / 10, lambda r: 0.8, False, "recoding 0.1 against 0"),
    ],
    ids=["a trade-off", "nothing to gain", "the new class loses"],
)
def test_the_best_recoding_is_the_largest_that_helps(new, others, grows, best):
    table = Table(
        {"recoding": r, "seed": seed, "new_class": new(r), "others": others(r)}
        for r in icra2017.RECODINGS
        for seed in (0, 1, 2)
    )
    claims = icra2017.FIG2.claims
    assert deciding(claims["new class"].parts(table)).agrees is grows
    judged = claims["best"].parts(table)
    assert deciding(judged).agrees is grows
    assert best in judged[0].text


@pytest.mark.parametrize(("radius", "agrees"), [(1.05, True), (1.2, False), (0.85, False)])
def test_a_learnt_boundary_is_within_a_tenth_of_the_exact_one(radius, agrees):
    table = Table(
        {"method": method, "radius": found, "seed": seed}
        for method, found in (("Bayes, rebalanced", 1.0), ("recoded", radius))
        for seed in (0, 1, 2)
    )
    assert deciding(icra2017.FIG1.claims["recoded"].parts(table)).agrees is agrees


def test_your_own_data_stand_neither_for_digits_nor_for_objects(tmp_path):
    data = mixture(5, 6, 30, 10, distance=2.0)
    arrays = {name: getattr(data, name) for name in ("X_train", "y_train", "X_test", "y_test")}
    np.savez(tmp_path / "mnist.npz", **arrays)
    experiment = icra2017.TABLE1
    context = Context(experiment.sources, quick=True, data=tmp_path / "mnist.npz", n_seeds=1)
    outcome = run(experiment, tmp_path / "results", context)
    assert outcome.table.values("data") == ["mnist, own data"]
    assert {found.key for found in outcome.findings} == {"ignored", "helps", "total"}


def test_the_numbers_of_table_1_are_those_of_the_paper():
    printed = Table(icra2017.TABLE1.published)
    assert len(printed) == 51
    at_ten = printed.where(n_new=10, data="mnist")
    assert at_ten.mean("new_class", method="recoded") == pytest.approx(0.251)
    assert at_ten.mean("total", method="rebalanced") == pytest.approx(0.836)
