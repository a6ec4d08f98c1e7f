"""Photographs, drawn scenes, their words, and what patches show."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import nips2006
from evergrow_papers.frame import Context, Source
from evergrow_papers.scenes import BACKGROUND, draw_scene, draw_scenes
from evergrow_papers.table import Table
from scipy import sparse

from evergrow import ERCForest
from evergrow.compare import Dataset
from evergrow.vision import KMeansCodebook, equal_error_rate

RUN = {"data": "scenes", "seed": 0}


def scenes(n_each=4):
    """A context of drawn scenes, and the task of bicycles."""
    context = Context({"scenes": Source(None, lambda: draw_scenes(n_each))}, quick=True, n_jobs=1)
    return context, nips2006.load_task(context, RUN)


def of_names(*names, n_train=3, n_test=3):
    """A context whose images are of one colour per class."""

    def part(n_each):
        codes = np.repeat(np.arange(len(names), dtype=np.uint8), n_each)
        return np.tile(codes[:, None, None, None], (1, 20, 20, 3)), np.array(names)[codes]

    return Context({"made": Source(None, lambda: Dataset("made", *part(n_train), *part(n_test)))})


def folder_of(path, *names):
    files = [path / name / f"{number}.jpg" for name in names for number in range(12)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(str(file.relative_to(path)).encode())
    X, y = np.array([*map(str, files)]), np.array([file.parent.name for file in files])
    return Dataset("photos", X[::3], y[::3], np.delete(X, np.s_[::3]), np.delete(y, np.s_[::3]))


def test_even_files_train_and_odd_ones_test(tmp_path):
    found = nips2006.split_even_odd(folder_of(tmp_path / "a", "bikes", "cars"))
    assert [Path(p).stem for p in found.X_test] == ["1", "3", "5", "7", "9", "11"] * 2
    assert found.y_train.tolist() == ["bikes"] * 6 + ["cars"] * 6
    train, test = (folder_of(tmp_path / part, "bikes") for part in ("train", "test"))
    divided = replace(train, X_test=test.X_test, y_test=test.y_test)
    assert nips2006.split_even_odd(divided) is divided
    rows, labels = np.zeros((4, 7), dtype=np.float32), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"folder of images per class.*shape \(4, 7\)"):
        nips2006.split_even_odd(Dataset("features", rows, labels, rows, labels))


def test_the_hash_is_that_of_the_classes_that_are_used(tmp_path):
    used = ("motorbikes", "car_side", "watch", BACKGROUND)
    alone = nips2006.keep_used(folder_of(tmp_path / "a", *used))
    among = nips2006.keep_used(folder_of(tmp_path / "b", "airplanes", *used))
    assert sorted(among.classes) == sorted(used)
    assert alone.sha256 == among.sha256
    (tmp_path / "a" / "watch" / "0.jpg").write_bytes(b"another")
    assert nips2006.keep_used(alone).sha256 != alone.sha256
    others = folder_of(tmp_path / "c", "cats", "dogs")
    assert sorted(nips2006.keep_used(others).classes) == ["cats", "dogs"]


def test_objects_and_background():
    context = of_names("apple", BACKGROUND, "motorbikes")
    assert nips2006.objects_of(context.dataset("made")) == ["motorbikes", "apple"]
    task = nips2006.load_task(context, {"data": "made", "number": 1})
    assert [int(image[0, 0, 0]) for image in task.images] == [0, 0, 0, 1, 1, 1] * 2
    assert task.object == "apple"
    assert task.positive.tolist() == [True, True, True, False, False, False] * 2
    assert task.trains.tolist() == [True] * 6 + [False] * 6
    # Without a class of that name all other classes together are background.
    found = nips2006.load_task(of_names("apple", "pear", "plum"), {"data": "made"})
    assert {int(image[0, 0, 0]) for image in found.images[3:9]} == {1, 2}
    with pytest.raises(ValueError, match="no images of 'apple' for testing"):
        nips2006.load_task(of_names("apple", BACKGROUND, n_test=0), {"data": "made"})


def test_outlines_are_those_of_the_drawn_scenes():
    _, task = scenes()
    for trains, numbers in ((True, (0, 2)), (False, (1, 3))):
        mine = np.flatnonzero(task.positive & (task.trains == trains))
        for i, number in zip(mine, numbers, strict=True):
            pixels, outline = draw_scene("bicycle", number)
            assert np.array_equal(task.images[i], pixels)
            assert np.array_equal(task.outlines[i], outline)
    assert [each is not None for each in task.outlines] == task.positive.tolist()
    assert not draw_scene(BACKGROUND, 0)[1].any()


def test_drawn_scenes_are_measured_once():
    context = Context(nips2006.SOURCES_WITH_OUTLINES, quick=True)
    assert nips2006.names_with_outlines(context) == ["photographs"]


@pytest.mark.parametrize("make", [ERCForest, KMeansCodebook])
def test_counts_are_those_of_the_codebook(make):
    context, task = scenes()
    rows, classes = nips2006.describe_training(context, task, 0, 200)
    codebook = make(2, random_state=0).fit(rows, classes)
    counts = nips2006.count_words(context, task, {"a": codebook}, 5, windows=(10, 30))
    described = [nips2006.local_features(5, 30).describe(image)[0] for image in task.images]
    # Fewer windows are the first of them.
    for n in (10, 30):
        expected = codebook.encode([rows[:n] for rows in described])
        assert np.array_equal(counts["a", n].toarray(), expected.toarray())


def test_rankings_by_words_and_by_votes():
    context, task = scenes()
    told = sparse.csr_array(task.positive.astype(np.int32)[:, None])
    assert nips2006.rank_images(task, told, None).equal_error_rate == 1.0
    same = sparse.csr_array(np.ones_like(told.toarray()))
    assert nips2006.rank_images(task, same, None).equal_error_rate == 0.5
    forest = ERCForest(2, n_words=8, random_state=0)
    forest.fit(*nips2006.describe_training(context, task, 0, 200))
    (counts,) = nips2006.count_words(context, task, {"": forest}, 5, windows=(30,)).values()
    local, tests = nips2006.local_features(5, 30), np.flatnonzero(~task.trains)
    votes = [forest.predict_proba(local.describe(task.images[i])[0])[:, 1] for i in tests]
    scores = np.mean(votes, axis=1)
    found = nips2006.rank_images(task, counts, forest, nips2006.VOTES)
    assert found.equal_error_rate == equal_error_rate(scores, task.positive[tests])
    assert found.thresholds[1:] == pytest.approx(-np.unique(-scores))


def test_shares_of_counts_are_as_long_as_binary_codes():
    counts, trains = sparse.csr_array(np.array([[3, 1, 0], [0, 2, 2]])), np.array([True, True])
    shares, binary = (nips2006.pool(counts, n, trains, trains) for n in ("sum", "binary"))
    assert shares.power(2).sum() == pytest.approx(binary.power(2).sum())
    assert shares.toarray()[0, 0] == pytest.approx(3 * shares.toarray()[0, 1])


def test_descriptors_and_windows_of_training_images_lie_on_the_object():
    context, task = scenes()
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[:, 40:] = np.random.default_rng(0).integers(0, 256, (60, 40, 3))
    mask = np.arange(80)[None] < np.full((60, 1), 20)
    n = len(task.images)
    flat = replace(task, images=[pixels] * n, outlines=[mask] * n)
    options = {"n": 80, "descriptor": "hsl"}
    rows, positive = nips2006.describe_training(context, flat, 0, **options)
    assert np.ptp(rows, axis=0).max() > 0
    assert positive.tolist() == [True] * 40 + [False] * 40
    codebook = KMeansCodebook(4, random_state=0).fit(rows)
    rows, _ = nips2006.describe_training(context, flat, 0, on_object=True, **options)
    assert np.ptp(rows, axis=0).max() == 0
    coded = {"windows": (50,), "descriptor": "hsl", "on_object": True}
    (counts,) = nips2006.count_words(context, flat, {"": codebook}, 0, **coded).values()
    assert ((counts.toarray() > 0).sum(axis=1) == 1).tolist() == flat.trains.tolist()


def test_unmixed_leaves_and_the_best_leaf():
    forest = ERCForest(1, random_state=0).fit([[0], [0], [8], [9]], [False, True, True, True])
    assert nips2006.in_unmixed(forest, forest.transform([[0], [9]])).tolist() == [[False], [True]]
    # The unmixed leaf is the largest of one class, that of the largest surplus may be mixed.
    rows, mine = [[0.0]] * 12 + [[9.0]], np.array([True] * 10 + [False] * 2 + [True])
    words = forest.transform(rows)[[0, -1], 0].tolist()
    found = [
        nips2006.best_leaf(forest, (rows, mine), score)
        for score in (lambda own, others: own - 10 * others, lambda own, others: own - others)
    ]
    assert found == [(0, words[1]), (0, words[0])]


def test_shares_of_the_patches_in_a_leaf():
    context, task = scenes(8)
    forest = ERCForest(2, n_words=4, random_state=0)
    forest.fit(*nips2006.describe_training(context, task, 0, 400))
    (found,) = nips2006.measure_leaves(task, forest, 0, {"one": (1, 2)})
    tests, seen = np.flatnonzero(~task.trains), []
    for k, i in enumerate(tests):
        image, outline = task.images[i], task.outlines[i]
        rows, boxes = nips2006.local_features(0).describe(image)
        inside, plain = forest.transform(rows)[:, 1] == 2, nips2006.is_plain(image, boxes)
        x, y, side = boxes.T
        centres = (y + side / 2).astype(int), (x + side / 2).astype(int)
        on = np.zeros(len(rows)) if outline is None else outline[centres]
        seen.append(np.stack([np.full(len(rows), k), inside, plain, on]))
    number, inside, plain, on = np.concatenate(seen, axis=1)
    own = task.positive[tests]
    mine = own[number.astype(int)]
    both, inside = (inside == 1) & mine, inside == 1
    hit = [each for k, each in enumerate(own) if inside[number == k].any()]
    assert (found["tree"], found["word"], found["test_patches"]) == (1, 2, inside.sum())
    shares = {
        "on_object_images": mine[inside],
        "plain": plain[both],
        "all_plain": plain[mine],
        "background_plain": plain[~mine],
        "on_object": on[both],
        "all_on_object": on[mine],
    }
    for name, expected in shares.items():
        assert found[name] == pytest.approx(100 * np.mean(expected)), name
    assert found["images_with_it"] == 100 * hit.count(True) / 4
    assert found["background_with_it"] == 100 * hit.count(False) / 4


def test_posteriors_on_an_object_and_beside_it():
    context, task = scenes()
    experiment = nips2006.FIG3
    # Another seed than that whose pictures are drawn.
    rows = experiment.measure(context, {**RUN, "seed": 1})
    forest = nips2006.forest(context, 1).fit(*nips2006.describe_training(context, task, 1))
    for row, i in zip(rows, np.flatnonzero(~task.trains), strict=True):
        image, outline = task.images[i], task.outlines[i]
        patches, (x, y, side) = (each.T for each in nips2006.local_features(1).describe(image))
        posterior = forest.predict_proba(patches.T)[:, 1]
        assert row["posterior"] == pytest.approx(posterior.mean())
        assert row["class"] == (BACKGROUND if outline is None else "bicycle")
        if outline is None:
            assert "on_object" not in row
            continue
        on = outline[(y + side / 2).astype(int), (x + side / 2).astype(int)]
        means = (row["on_object"], row["beside_object"])
        assert means == pytest.approx((posterior[on].mean(), posterior[~on].mean()))


def test_a_forest_chosen_on_another_category():
    rows = [
        {"object": o, "seed": s, "codebook": c, "pooling": "binary", "rate": rate + s / 10}
        for s in range(3)
        for o, c, rate in (
            ("bikes", "5 trees", 80.0),
            ("bikes", "20 trees of a quarter", 80.0),
            ("bikes", "20 trees", 99.0),
            ("bikes", "k-means", 70.0),
            ("cars", "5 trees", 70.0),
            ("cars", "20 trees of a quarter", 90.0),
            ("cars", "k-means", 80.0),
        )
    ]
    # Of equal rates on bikes the forest of fewer trees is chosen, and larger ones are left out.
    (on_cars,), (on_bikes,) = (nips2006._chosen_elsewhere(Table(rows), n) for n in (1, 0))
    assert (on_cars.agrees, on_bikes.agrees) == (False, True)
    assert on_cars.text.startswith("5 trees against k-means: 70.1 % against 80.1 %")
    assert nips2006._chosen_elsewhere(Table(rows).where(object="cars"), 0) == []
