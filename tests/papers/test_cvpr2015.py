"""Coarse and fine classes: which samples are used, how they are labelled, and odd judges."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import cvpr2015
from evergrow_papers.cvpr2015 import Draw, TwoLevels, draw
from evergrow_papers.data import digits, mixture
from evergrow_papers.frame import Context
from evergrow_papers.table import Table

from evergrow.compare import Dataset

PLAIN = mixture(6, 24, 40, 10, distance=0.75, n_groups=3)


@pytest.fixture(scope="module")
def data():
    return TwoLevels.of(PLAIN)


def rows_of(X):
    return {row.tobytes() for row in X}


def test_classes_of_any_name_are_numbered():
    plain = mixture(4, 3, 5, 2, n_groups=2)
    names = np.array(["d", "c", "b", "a"])
    parents = {"a": "x", "b": "x", "c": "y", "d": "y"}
    named = replace(
        plain, y_train=names[plain.y_train], y_test=names[plain.y_test], parents=parents
    )
    levels = TwoLevels.of(named)
    assert levels.parents.tolist() == [4, 4, 5, 5]
    assert levels.fine_test.tolist() == [3, 3, 2, 2, 1, 1, 0, 0]


def test_test_samples_of_unknown_classes_are_left_out():
    plain = mixture(4, 3, 5, 2, n_groups=2)
    levels = TwoLevels.of(replace(plain, y_test=np.where(plain.y_test == 3, 9, plain.y_test)))
    assert levels.fine_test.tolist() == [0, 0, 1, 1, 2, 2]


def test_near_classes_are_grouped_where_data_name_no_coarse_ones():
    centres = np.array([[0.0, 0], [9, 9], [0, 1], [9, 8]])
    X, y = np.repeat(centres, 3, axis=0), np.repeat(np.arange(4), 3)
    parents = TwoLevels.of(Dataset("plain", X, y, X, y)).parents
    assert parents[0] == parents[2] != parents[1] == parents[3]


def test_every_class_has_the_same_share_of_fine_labels(data):
    drawn = draw(data, 0, 0.1, 0.5)
    assert np.bincount(drawn.fine[drawn.known]).tolist() == [4] * 6
    assert np.bincount(drawn.fine[~drawn.known]).tolist() == [20] * 6
    assert (drawn.labels[~drawn.known, 1] == cvpr2015.MISSING).all()
    assert (drawn.labels[:, 0] == data.parents[drawn.fine]).all()
    fewest = draw(data, 0, 0.001, 0.5)
    assert np.bincount(fewest.fine[fewest.known]).tolist() == [1] * 6


def test_draws_of_a_seed_are_nested_and_shuffled(data):
    few, many = (draw(data, 3, share, 0.5) for share in (0.1, 0.5))
    assert rows_of(few.X[few.known]) < rows_of(many.X[many.known])
    assert rows_of(few.X[~few.known]) == rows_of(many.X[~many.known])
    assert len(rows_of(many.X)) == len(many.X) == len(data.X)
    # Known samples keep their order whatever the share of coarse labels.
    fewer = draw(data, 3, 0.5, 0.1)
    assert np.array_equal(fewer.X[fewer.known], many.X[many.known])
    assert (np.diff(many.fine) != 0).mean() > 0.5
    assert rows_of(few.X[few.known]) != rows_of(draw(data, 4, 0.1, 0.5).X[:24])


def test_patches_of_one_value_are_left_out():
    image = np.zeros((28, 28), dtype=np.float32)
    image[3, 3] = 1.0
    (rows,) = cvpr2015.patches(image.reshape(1, -1))
    # Patches that start at 0 or 2 in either direction show the dot.
    assert rows.shape == (4, 64)
    assert (rows.sum(axis=1) == 1.0).all()


def test_fisher_vectors_tell_classes_apart_and_learn_no_test_image():
    images = digits().per_class(40, 20)
    found = cvpr2015.fisher_vectors(images)
    assert found.sha256 == images.sha256
    means = np.array([found.X_train[found.y_train == c].mean(axis=0) for c in found.classes])
    distances = ((found.X_test[:, None] - means) ** 2).sum(axis=2)
    assert (found.classes[distances.argmin(axis=1)] == found.y_test).mean() > 0.6
    other = replace(images, X_test=images.X_test[::-1].copy())
    assert np.array_equal(cvpr2015.fisher_vectors(other).X_train, found.X_train)


def test_characters_belong_to_their_alphabet():
    X, y = np.zeros((2, 4)), np.array([0, 1])
    names = {0: "Greek/character01", 1: "Latin/character01"}
    drawn = Dataset("drawn", X, y, X, y, class_names=names)
    assert cvpr2015.group_by_alphabet(drawn).parents == {0: "Greek", 1: "Latin"}


@pytest.mark.parametrize("name", cvpr2015.LEARNERS)
def test_every_learner_learns_more_than_chance(data, name):
    run, context = {"trees": 3, "seed": 0}, Context({}, n_jobs=1)
    values = cvpr2015.evaluate(context, run, name, draw(data, 0, 0.5, 0.5), data)
    assert values["coarse_accuracy"] > 0.5
    assert values.get("accuracy", 1.0) > 0.3
    assert ("accuracy" in values) == (name != "coarse")


@pytest.mark.parametrize("part", ["coarse", "fine"])
def test_a_metric_is_learnt_on_its_part_of_the_draw(data, part):
    drawn = draw(data, 0, 0.5, 0.5)
    told, test = cvpr2015.apply_metric(part, drawn, data, 0, rank=3)
    assert told.X.shape[1] == test.X_test.shape[1] == 3
    # The projection is linear: it is known from the training samples.
    projection = np.linalg.lstsq(drawn.X, told.X, rcond=None)[0]
    assert np.allclose(test.X_test, data.X_test @ projection, atol=1e-3)
    mine = drawn.known if part == "fine" else ~drawn.known
    X = np.where(mine[:, None], drawn.X, 7.0)
    changed, _ = cvpr2015.apply_metric(part, replace(drawn, X=X), data, 0, rank=3)
    assert np.array_equal(changed.X[mine], told.X[mine])


def test_learners_keep_the_scale_that_a_metric_gives(monkeypatch, data):
    given = []

    def evaluate(context, run, name, train, data, **parameters):
        given.append((train.X.shape[1], parameters))
        return {"accuracy": 0.5}

    monkeypatch.setattr(cvpr2015, "evaluate", evaluate)
    monkeypatch.setattr(cvpr2015, "samples", lambda *_: data)
    run, options = {"seed": 0}, {"usual": cvpr2015.entries(["full"]), "metric": "fine"}
    low, none = (
        {check: cvpr2015.entries(["full"], check)} for check in (cvpr2015.LOW, cvpr2015.PLAIN)
    )
    monkeypatch.setattr(cvpr2015, "LOW_RANK", 3)
    cvpr2015.measure(Context({}), run, **options)
    (row,) = cvpr2015.measure(Context({}), {**run, "check": cvpr2015.LOW}, **options, checks=low)
    cvpr2015.measure(Context({}), {**run, "check": cvpr2015.PLAIN}, **options, checks=none)
    assert row["method"] == "full, low rank"
    assert given == [(24, {"standardize": False}), (3, {"standardize": False}), (24, {})]


def test_quick_runs_measure_built_in_data_under_one_name():
    def names(*names):
        context = Context({name: cvpr2015.SOURCES[name] for name in names}, quick=True, n_seeds=2)
        return [run["data"] for run in cvpr2015.seeded_runs(context)]

    assert names("features", "words", "birds") == ["features", "features"]
    assert names("birds", "features", "characters") == ["birds", "characters"] * 2


def test_only_full_runs_on_our_files_are_cut_and_get_further_seeds(tmp_path, monkeypatch):
    (tmp_path / "cifar100_words1000.npz").touch()
    monkeypatch.setenv("EVERGROW_DATA", str(tmp_path))
    sources = {name: cvpr2015.SOURCES[name] for name in ("features", "words")}

    def further(**options):
        found = cvpr2015.further_runs(Context(sources, **options), 7, sources)
        return [(run["data"], run["seed"], run["n_train"]) for run in found]

    assert further() == [("words", 5, 150), ("words", 6, 150)]
    assert further(quick=True) == further(n_seeds=3) == further(data="mine.npz") == []
    (own,) = cvpr2015.seeded_runs(Context(sources, n_seeds=1, data="mine.npz"))
    assert (own["n_train"], own["n_test"]) == (None, None)


def test_relative_rows_have_the_baseline_of_their_own_place():
    rows = [
        {"method": method, "fine": fine, "seed": seed, "accuracy": accuracy}
        for seed, fine, method, accuracy in [
            (0, 0.1, "fine-only", 0.2),
            (0, 0.1, "nn", 0.3),
            (1, 0.1, "fine-only", 0.4),
            (1, 0.1, "nn", 0.2),
        ]
    ]
    found = cvpr2015.relative_to(rows, cvpr2015.FINE_ONLY)
    assert [row["relative"] for row in found] == pytest.approx([1.0, 1.5, 1.0, 0.5])
    printed = Table(cvpr2015.TABLE3.published).where(method="nn-h", fine=0.1)
    # As the paper prints it in brackets.
    assert printed.mean("relative") == pytest.approx(1.22, abs=0.005)


def metric_rows(gains):
    return Table(
        {"method": method, "metric": metric, "seed": seed, "accuracy": accuracy}
        for seed in range(3)
        for method, gain in gains.items()
        for metric, accuracy in (("none", 0.4), ("all", 0.4 + gain + seed / 1e4))
    )


@pytest.mark.parametrize(
    ("means", "plain", "expected"), [(0.2, 0.1, True), (0.1, 0.2, False), (0.2, -0.1, False)]
)
def test_the_metric_must_help_means_most_and_forests_too(means, plain, expected):
    gains = {"class means": means, "svm": 0.05, "plain": plain, "regularised": 0.05}
    verdicts = cvpr2015._metric_gains(metric_rows(gains))
    assert all(each.agrees for each in verdicts if "not measured" not in each.text) is expected


def test_best_weights_are_those_of_seeds_with_all_weights():
    def row(method, weight, seed, accuracy, further=None):
        place = {"method": method, "means": "fine", "weight": weight, "seed": seed}
        return {**place, "further": further, "accuracy": accuracy}

    rows = [
        row(method, weight, seed, accuracy)
        for seed in range(3)
        for method, weight, accuracy in [
            ("joint", 0.1, 0.5),
            ("hierarchical", 1.0, 0.6),
            ("hierarchical", 0.1, 0.55),
        ]
    ]
    rows.append(row("hierarchical", 0.1, 3, 0.9, further=True))
    (found,) = cvpr2015._at_best(Table(rows))
    assert found.agrees
    assert "H, weight 1 against J, weight 0.1" in found.text


def test_equal_subsets_do_not_decide_whether_ten_roots_are_enough():
    def rows(most):
        return Table(
            {"scale": scale, "seed": seed, "accuracy": 0.6, "comparisons": n + seed / 10}
            for seed in range(3)
            for scale, n in ((10.0, 100), (20.0, most))
        )

    assert cvpr2015._enough(rows(100)) == []
    assert [each.agrees for each in cvpr2015._enough(rows(200))] == [True, True]


def test_guesses_that_contradict_the_coarse_class_may_be_left_out(monkeypatch, data):
    told = {}

    def evaluate(context, run, name, train, data):
        told[len(told)] = train
        return {"accuracy": 0.5}

    monkeypatch.setattr(cvpr2015, "evaluate", evaluate)
    monkeypatch.setattr(cvpr2015, "samples", lambda *_: data)
    run = {"part": "guess", "seed": 0, "trees": 3}
    rows = cvpr2015._guesses_measure(Context({}, n_jobs=1), run)
    found = {row["guess"]: (row, told[place]) for place, row in enumerate(rows)}
    discarded, within = found["nn-discard"], found["nn"]
    assert discarded[0]["guessed"] < within[0]["guessed"] == 1.0
    assert len(discarded[1].X) < len(within[1].X) == len(data.X)
    for row, train in (discarded, within):
        assert isinstance(train, Draw)
        assert (data.parents[train.fine] == train.coarse).all()
        assert 0.3 < row["right"] <= 1.0


def test_too_few_classes_for_groups_are_refused():
    X, y = np.eye(3)[[0, 1, 2, 0, 1, 2]], np.tile(np.arange(3), 2)
    with pytest.raises(ValueError, match=r"3 classes make no groups; .* need at least 4"):
        cvpr2015.near_groups(X, y)
