"""Analytic heads of the field: exact against naive versions of their papers' equations."""

import pickle

import numpy as np
import pytest
from sklearn.covariance import OAS
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers.data import mixture
from evergrow_papers.peers import (
    FlyCLClassifier,
    KLDAClassifier,
    RanPACClassifier,
    StreamingLDAClassifier,
)

PEERS = [RanPACClassifier(60), FlyCLClassifier(60), KLDAClassifier(60), StreamingLDAClassifier()]


@pytest.fixture(scope="module")
def data():
    return mixture(6, 8, n_train=30, n_test=20, distance=1.5)


def each_peer(test):
    return pytest.mark.parametrize("model", PEERS, ids=lambda model: type(model).__name__)(test)


@parametrize_with_checks(PEERS)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@each_peer
def test_classes_come_one_at_a_time_or_by_name(model, data):
    model.fit(data.X_train[data.y_train == 3], data.y_train[data.y_train == 3])
    for label in (5, 0, 1, 4, 2):
        rows = data.y_train == label
        model.partial_fit(data.X_train[rows], data.y_train[rows])
    assert model.classes_.tolist() == [3, 5, 0, 1, 4, 2]
    assert model.score(data.X_test, data.y_test) > 0.6
    model.partial_fit(data.X_train[:5], data.y_train[:5], classes=[-7, 9])
    assert len(model.classes_) == 8
    assert set(model.predict(data.X_test)) <= set(range(6))


@each_peer
def test_bad_input_leaves_the_model_as_it_was(model, data):
    model.fit(data.X_train, data.y_train)
    before = model.predict(data.X_test)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit([[np.nan] * 8], [6])
    with pytest.raises(TypeError, match="labels must be numbers"):
        model.partial_fit(data.X_train[:1], ["six"])
    assert np.array_equal(model.predict(data.X_test), before)


@each_peer
def test_a_copy_on_disk_continues_like_the_original(model, data):
    model.fit(data.X_train[:90], data.y_train[:90])
    copy = pickle.loads(pickle.dumps(model))
    predicted = [
        each.partial_fit(data.X_train[90:], data.y_train[90:]).predict(data.X_test)
        for each in (model, copy)
    ]
    assert np.array_equal(*predicted)


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@each_peer
def test_one_example_of_each_class_is_enough_to_begin(model, data):
    rows = [np.flatnonzero(data.y_train == label)[0] for label in range(6)]
    model.fit(data.X_train[rows], data.y_train[rows])
    # The held-out fifth of RanPAC then has no known class, and its penalty is far too high.
    assert model.score(data.X_train[rows], data.y_train[rows]) > 0.8


@pytest.mark.parametrize("model", PEERS[:2], ids=["RanPAC", "Fly-CL"])
def test_ridge_solves_the_normal_equations_of_all_batches(model, data):
    model.fit(data.X_train[:70], data.y_train[:70])
    model.partial_fit(data.X_train[70:], data.y_train[70:])
    features = model._features(data.X_train.astype(float))
    gram = features.T @ features + model.penalty_ * np.eye(60)
    weights = np.linalg.solve(gram, features.T @ np.eye(6)[data.y_train])
    expected = (model._features(data.X_test.astype(float)) @ weights).argmax(axis=1)
    assert np.array_equal(model.predict(data.X_test), expected)


# Fewer and more rows than features take two ways to the same numbers.
@pytest.mark.parametrize("n_features", [20, 400])
def test_ranpac_takes_the_penalty_with_the_least_held_out_error(n_features, data):
    model = RanPACClassifier(n_features, random_state=3).fit(data.X_train, data.y_train)
    rng = np.random.default_rng(3)
    projection = rng.standard_normal((8, n_features))
    order = rng.permutation(180)
    H = np.maximum(data.X_train.astype(float) @ projection, 0)
    Y = np.eye(6)[data.y_train]
    (H_fit, Y_fit), (H_held, Y_held) = ((H[r], Y[r]) for r in (order[:144], order[144:]))
    errors = {}
    for power in range(-3, 9):
        ridge = 10.0**power * np.eye(n_features)
        weights = np.linalg.solve(H_fit.T @ H_fit + ridge, H_fit.T @ Y_fit)
        errors[10.0**power] = ((Y_held - H_held @ weights) ** 2).sum()
    assert model.penalty_ == min(errors, key=errors.get)


@pytest.mark.parametrize("n_features", [20, 400])
def test_fly_cl_takes_the_penalty_of_cross_validation(n_features, data):
    model = FlyCLClassifier(n_features).fit(data.X_train, data.y_train)
    H = model._features(data.X_train.astype(float))
    Y = np.eye(6)[data.y_train]
    scores = {}
    for power in np.arange(-1, 9.5, 0.5):
        hat = H @ np.linalg.solve(H.T @ H + 10.0**power * np.eye(n_features), H.T)
        rest = ((Y - hat @ Y) ** 2).sum() / len(Y)
        scores[power] = rest / (1 - np.trace(hat) / len(Y)) ** 2
    assert np.log10(model.penalty_) == pytest.approx(min(scores, key=scores.get))


def test_fly_cl_keeps_the_largest_features_of_each_sample(data):
    model = FlyCLClassifier(50)
    model.active, model.connected = 0.2, 0.25
    model.fit(data.X_train, data.y_train)
    features = model._features(data.X_test.astype(float))
    raw = data.X_test @ model._projection
    assert (np.count_nonzero(features, axis=1) == 10).all()
    assert (np.sort(raw, axis=1)[:, -10] == np.where(features, features, np.inf).min(axis=1)).all()
    assert (np.count_nonzero(model._projection, axis=0) == 2).all()


def test_streaming_lda_follows_the_recurrence_of_the_paper(data):
    first, later = slice(0, 60), slice(60, 180)
    order = np.random.default_rng(0).permutation(180)
    X, y = data.X_train[order].astype(float), data.y_train[order]
    model = StreamingLDAClassifier().fit(X[first], y[first])
    counts = np.bincount(y[first], minlength=6)
    means = np.array([X[first][y[first] == k].mean(axis=0) for k in range(6)])
    covariance = OAS(assume_centered=True).fit(X[first] - means[y[first]]).covariance_
    for t, (x, label) in enumerate(zip(X[later], y[later], strict=True), 60):
        deviation = x - means[label]
        covariance = (t * covariance + t / (t + 1) * np.outer(deviation, deviation)) / (t + 1)
        means[label] += deviation / (counts[label] + 1)
        counts[label] += 1
    model.partial_fit(X[later][:50], y[later][:50]).partial_fit(X[later][50:], y[later][50:])
    assert np.allclose(model._covariance, covariance)
    assert np.allclose(model._means, means)
    inverse = np.linalg.inv((1 - 1e-4) * covariance + 1e-4 * np.eye(8))
    scores = data.X_test @ inverse @ means.T - 0.5 * np.sum(means @ inverse * means, axis=1)
    assert np.array_equal(model.predict(data.X_test), scores.argmax(axis=1))


def test_klda_takes_the_nearest_mean_in_its_metric(data):
    model = KLDAClassifier(40).fit(data.X_train[:80], data.y_train[:80])
    model.partial_fit(data.X_train[80:], data.y_train[80:])
    Z, Z_test = (model._features(X.astype(float)) for X in (data.X_train, data.X_test))
    means = np.array([Z[data.y_train == k].mean(axis=0) for k in range(6)])
    within = np.cov(Z - means[data.y_train], rowvar=False, bias=True)
    inverse = np.linalg.inv(within + np.trace(within) / 40 * np.eye(40))
    apart = Z_test[:, None] - means
    distances = np.einsum("ncd,de,nce->nc", apart, inverse, apart)
    assert np.array_equal(model.predict(data.X_test), distances.argmin(axis=1))


def test_klda_approximates_its_kernel():
    X = np.random.default_rng(0).standard_normal((20, 5))
    model = KLDAClassifier(20_000)
    model.width = 0.1 * X.shape[1] * X.var()
    model._begin(X)
    Z = model._features(X)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    assert np.allclose(Z @ Z.T, np.exp(-0.1 * squares), atol=0.05)
