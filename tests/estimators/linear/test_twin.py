"""RLSClassifier agrees with the formulas of the paper, however examples are split into calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evergrow import RLSClassifier
from evergrow.estimators import RFF, HoldOut, LeaveOneOut, ReLU
from tests.budget import budget
from tests.reference import least_squares as twin

Array = np.ndarray[Any, Any]


def examples(n: int = 120, d: int = 9, n_classes: int = 5, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    return rng.normal(size=(n, d)) + codes[:, None] * rng.normal(size=d), codes


def with_constant(X: Array) -> Array:
    return np.column_stack([X, np.ones(len(X))])


def all_weights(model: Any) -> Array:
    """Weights as the paper has them, features by classes, the constant one last."""
    return np.vstack([model.coef_.T, model.intercept_])


def difference(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_the_weights_are_those_of_the_closed_form() -> None:
    X, y = examples()
    model = RLSClassifier(regularization=0.7, recoding=0.4, scoring="regression").fit(X, y)
    expected = twin.weights(with_constant(X), y, 5, 0.7)
    expected = expected @ twin.recoding_matrix(np.bincount(y), 0.4)
    assert difference(all_weights(model), expected) < 1e-11


def test_one_example_at_a_time_is_algorithm_1() -> None:
    X, y = examples(40)
    model = RLSClassifier(regularization=0.5, recoding=0.6, scoring="regression")
    paper = twin.IncrementalRLS(X.shape[1] + 1, 0.5, 0.6)
    for i in range(len(X)):
        # Class k comes first in example k.
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        paper.learn(np.append(X[i], 1.0), int(y[i]))
        assert difference(all_weights(model), paper.W) < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"standardize": True},
        {"standardize": True, "fit_intercept": False},
        {"features": ReLU(30)},
        {"features": RFF(31, gamma=0.1)},
        {"keep_class_statistics": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["shuffled", "by class"])
def test_any_split_of_the_data_into_calls_gives_the_batch_solution(
    options: dict[str, Any], order: str
) -> None:
    rng = np.random.default_rng(3)
    X, y = examples(400, 12)
    weights = rng.random(400) + 0.5
    at_once = RLSClassifier(regularization=0.3, recoding=0.5, random_state=0, **options)
    at_once.fit(X, y, sample_weight=weights)
    way = np.argsort(y, kind="stable") if order == "by class" else rng.permutation(400)
    split = RLSClassifier(regularization=0.3, recoding=0.5, random_state=0, **options)
    first = 0
    while first < 400:
        part = way[first : first + int(rng.choice([1, 1, 1, 2, 5, 9, 40]))]
        split.partial_fit(X[part], y[part], sample_weight=weights[part])
        if rng.random() < 0.7:
            split.predict(X[:1])
        first += len(part)
    columns = np.argsort(split.classes_)
    assert difference(split.coef_[columns], at_once.coef_) < 1e-9
    np.testing.assert_allclose(split.intercept_[columns], at_once.intercept_, rtol=1e-8, atol=1e-9)


def test_standardised_features_give_what_a_scaler_before_it_gives() -> None:
    X, y = examples()
    X = X * np.arange(1, 10) + 100
    X[:, 4] = 7.0
    model = RLSClassifier(
        regularization=2.0, recoding=0.0, scoring="regression", standardize=True
    ).fit(X, y)
    deviation = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    scaled = (X - X.mean(axis=0)) / deviation
    W = twin.weights(with_constant(scaled), y, 5, 2.0)
    np.testing.assert_allclose(
        model.decision_function(X), with_constant(scaled) @ W, rtol=1e-7, atol=1e-9
    )


def test_weights_that_rebalance_the_loss_give_equation_22() -> None:
    X, y = examples()
    X, y = X[(y != 2) | (np.arange(len(y)) < 20)], y[(y != 2) | (np.arange(len(y)) < 20)]
    model = RLSClassifier(regularization=0.9, recoding=0.0, scoring="regression")
    model.fit(X, y, sample_weight=len(y) / np.bincount(y)[y])
    expected = twin.rebalanced_weights(with_constant(X), y, 5, 0.9)
    assert difference(all_weights(model), expected) < 1e-11


def test_random_features_are_those_of_the_twin() -> None:
    X, y = examples()
    model = RLSClassifier(
        regularization=1.0,
        recoding=0.0,
        scoring="regression",
        features=ReLU(16),
        random_state=4,
    ).fit(X, y)
    seed = model._fitted.features.seed
    mapped = twin.relu_features(X, twin.random_projection(seed, 16, 9))
    assert difference(all_weights(model), twin.weights(with_constant(mapped), y, 5, 1.0)) < 1e-10
    model.set_params(features=RFF(16, gamma=0.02)).fit(X, y)
    mapped = twin.fourier_features(X, twin.random_projection(seed, 8, 9), 0.02)
    assert difference(all_weights(model), twin.weights(with_constant(mapped), y, 5, 1.0)) < 1e-10


@pytest.mark.parametrize("intercept", [True, False])
def test_cosines_are_those_of_the_twin(intercept: bool) -> None:
    X, y = unbalanced(0)
    model = RLSClassifier(regularization=2.0, recoding=0.3, fit_intercept=intercept).fit(X, y)
    for i in range(12):
        model.partial_fit(X[i : i + 1], y[i : i + 1]).predict(X[:1])
    X, y = np.concatenate([X, X[:12]]), np.concatenate([y, y[:12]])
    expected = twin.cosine_scores(X, y, 4, 2.0, 0.3, intercept=intercept)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-8)


def unbalanced(seed: int) -> tuple[Array, Array]:
    """Noisy examples of three frequent classes and a rare one."""
    X, y = examples(400, 6, 4, seed)
    X += 2.0 * np.random.default_rng(seed).normal(size=X.shape)
    rare = (y == 3) & (np.arange(400) > 60)
    return X[~rare], y[~rare]


@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_recoding_is_the_one_of_the_twin(seed: int) -> None:
    X, y = unbalanced(seed)
    model = RLSClassifier(regularization=3.0, scoring="regression", random_state=0).fit(X, y)
    assert model.recoding_ == twin.choose_recoding(with_constant(X), y, 4, 3.0, 30)


@pytest.mark.parametrize("seed", range(3))
def test_the_rule_of_the_paper_is_the_one_of_the_twin(seed: int) -> None:
    X, y = unbalanced(seed)
    options: dict[str, Any] = {"selection": HoldOut(), "scoring": "regression", "random_state": 0}
    given = RLSClassifier(regularization=3.0, **options).fit(X, y)
    expected = twin.choose_as_paper(with_constant(X), y, 4, [3.0], 6, 30)
    assert (given.regularization_, given.recoding_) == expected
    assert given.n_stored_.sum() == twin.held_out(y, 6).sum()


class Lives(RuleBasedStateMachine):
    """A model through random calls, with the list of the examples it should know."""

    @initialize(seed=st.integers(0, 10**6), statistics=st.booleans(), intercept=st.booleans())
    def begin(self, seed: int, statistics: bool, intercept: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.intercept = intercept
        self.model = RLSClassifier(
            regularization=1.0,
            recoding=0.5,
            scoring="regression",
            fit_intercept=intercept,
            keep_class_statistics=statistics,
            selection=LeaveOneOut(60),
            random_state=0,
        )
        self.known: list[tuple[Array, str, float]] = []
        self.learn(3, False)

    def draw(self, n: int) -> list[tuple[Array, str, float]]:
        names = self.rng.choice(list("abcdef"), n).tolist()
        return [
            (self.rng.integers(-4, 5, 5) / 2, name, float(self.rng.integers(1, 4)))
            for name in names
        ]

    def arrays(self, drawn: list[tuple[Array, str, float]]) -> tuple[Array, list[str], Array]:
        rows, names, weights = zip(*drawn, strict=True)
        return np.array(rows), list(names), np.array(weights)

    @rule(n=st.sampled_from([1, 1, 2, 9, 40, 300]), look=st.booleans())
    def learn(self, n: int, look: bool) -> None:
        drawn = self.draw(n)
        X, y, weights = self.arrays(drawn)
        self.model.partial_fit(X, y, sample_weight=weights)
        self.known += drawn
        if look:
            self.model.predict(X[:1])

    @precondition(lambda self: len(self.known) > 5)
    @rule(n=st.sampled_from([1, 1, 3]))
    def forget(self, n: int) -> None:
        places = self.rng.choice(len(self.known), n, replace=False).tolist()
        X, y, weights = self.arrays([self.known[i] for i in places])
        self.model.forget(X, y, sample_weight=weights)
        self.known = [one for i, one in enumerate(self.known) if i not in places]

    @precondition(lambda self: len({name for _, name, _ in self.known}) > 2)
    @rule()
    def forget_a_class(self) -> None:
        name = self.known[-1][1]
        mine = [one for one in self.known if one[1] == name]
        if not self.model.keep_class_statistics:
            X, y, weights = self.arrays(mine)
            self.model.forget(X, y, sample_weight=weights)
        self.model.forget(classes=[name])
        self.known = [one for one in self.known if one[1] != name]

    @rule(n=st.sampled_from([1, 4, 50]))
    def merge(self, n: int) -> None:
        drawn = self.draw(n)
        X, y, weights = self.arrays(drawn)
        other = RLSClassifier(**self.model.get_params(deep=False)).fit(X, y, sample_weight=weights)
        self.model.merge(other)
        self.known += drawn

    @rule(first=st.sampled_from("abcdef"), second=st.sampled_from("abcdef"))
    def join_classes(self, first: str, second: str) -> None:
        if first in self.model.classes_.tolist():
            self.model.rename_classes({first: second})
            self.known = [(x, second if c == first else c, w) for x, c, w in self.known]

    @rule(
        penalty=st.sampled_from([0.1, 1.0, 10.0, "auto"]),
        recoding=st.sampled_from([0.0, 0.5, 1.0, "auto"]),
    )
    def ask_for_other_weights(self, penalty: Any, recoding: Any) -> None:
        self.model.set_params(regularization=penalty, recoding=recoding)

    @invariant()
    def weights_are_those_of_all_examples_at_once(self) -> None:
        classes = self.model.classes_.tolist()
        X, y, weights = self.arrays(self.known)
        X = with_constant(X) if self.intercept else X
        codes = np.array([classes.index(name) for name in y])
        counts = np.bincount(codes, weights, minlength=len(classes))
        W = twin.weights(
            X,
            codes,
            len(classes),
            self.model.regularization_,
            weights,
            intercept=self.intercept,
        )
        with np.errstate(divide="ignore"):
            recoded = W * np.where(counts > 0, (counts.sum() / counts) ** self.model.recoding_, 0)
        found = all_weights(self.model) if self.intercept else self.model.coef_.T
        assert difference(found, recoded) < 1e-9
        expected = np.bincount(codes, minlength=len(classes))
        assert self.model.class_counts_.tolist() == expected.tolist()
        probabilities = self.model.predict_proba(self.arrays(self.known)[0][:3])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=budget(150),
    stateful_step_count=25,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
