"""Photographs, drawn scenes, their words, and what patches show."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("evergrow_papers", reason="evergrow-papers is not installed")

from evergrow_papers import nips2006, patches, photographs
from evergrow_papers.data import Dataset
from evergrow_papers.frame import Context, Source
from evergrow_papers.scenes import BACKGROUND, draw_scene, draw_scenes
from evergrow_papers.table import Table
from scipy import sparse

from evergrow import ERCForest
from evergrow.vision import KMeansCodebook, equal_error_rate

RUN = {"data": "scenes", "seed": 0}


def scenes(n_each=4):
    """A context of drawn scenes, and the task of bicycles."""
    context = Context({"scenes": Source(None, lambda: draw_scenes(n_each))}, quick=True, n_jobs=1)
    return context, photographs.load_task(context, RUN)


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
    found = photographs.split_even_odd(folder_of(tmp_path / "a", "bikes", "cars"))
    assert [Path(p).stem for p in found.X_test] == ["1", "3", "5", "7", "9", "11"] * 2
    assert found.y_train.tolist() == ["bikes"] * 6 + ["cars"] * 6
    train, test = (folder_of(tmp_path / part, "bikes") for part in ("train", "test"))
    divided = replace(train, X_test=test.X_test, y_test=test.y_test)
    assert photographs.split_even_odd(divided) is divided
    rows, labels = np.zeros((4, 7), dtype=np.float32), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"folder of images per class.*shape \(4, 7\)"):
        photographs.split_even_odd(Dataset("features", rows, labels, rows, labels))


def test_the_hash_is_that_of_the_classes_that_are_used(tmp_path):
    used = ("motorbikes", "car_side", "watch", BACKGROUND)
    alone = photographs.keep_used(folder_of(tmp_path / "a", *used))
    among = photographs.keep_used(folder_of(tmp_path / "b", "airplanes", *used))
    assert sorted(among.classes) == sorted(used)
    assert alone.sha256 == among.sha256
    (tmp_path / "a" / "watch" / "0.jpg").write_bytes(b"another")
    assert photographs.keep_used(alone).sha256 != alone.sha256
    others = folder_of(tmp_path / "c", "cats", "dogs")
    assert photographs.keep_used(others) is others


def test_objects_and_background():
    found = photographs.load(of_names("apple", BACKGROUND, "motorbikes"), "made", 2)
    assert found.objects == ["motorbikes", "apple"]
    task = found.against_background("apple")
    assert set(task.classes) == {"apple", BACKGROUND}
    assert task.trains.tolist() == [True] * 6 + [False] * 6
    # Without a class of that name all other classes together are background.
    found = photographs.load(of_names("apple", "pear", "plum"), "made", n_each=2)
    assert found.classes.tolist() == (["apple"] * 2 + [BACKGROUND] * 2) * 2
    assert {int(image[0, 0, 0]) for image in found.images[2:4]} == {1, 2}
    assert photographs.load(of_names("apple", "pear"), "made", 2).objects == ["apple"]
    with pytest.raises(ValueError, match="no images of 'apple' for testing"):
        photographs.load(of_names("apple", BACKGROUND, n_test=0), "made")


def test_outlines_are_those_of_the_drawn_scenes():
    context, task = scenes()
    found = photographs.outlines_of(context, "scenes", task)
    for trains, numbers in ((True, (0, 2)), (False, (1, 3))):
        mine = np.flatnonzero((task.classes == "bicycle") & (task.trains == trains))
        for i, number in zip(mine, numbers, strict=True):
            pixels, outline = draw_scene("bicycle", number)
            assert np.array_equal(task.images[i], pixels)
            assert np.array_equal(found[i], outline)
    assert [each is None for each in found] == (task.classes == BACKGROUND).tolist()
    assert not draw_scene(BACKGROUND, 0)[1].any()


def test_drawn_scenes_are_measured_once():
    context = Context(nips2006.SOURCES_WITH_OUTLINES, quick=True)
    assert photographs.names_with_outlines(context) == ["photographs"]


@pytest.mark.parametrize("make", [ERCForest, KMeansCodebook])
def test_counts_are_those_of_the_codebook(make):
    context, task = scenes()
    rows, classes = photographs.describe_training(context, task, 0, 200)
    codebook = make(2, random_state=0).fit(rows, classes)
    counts = photographs.count_words(context, task, {"a": codebook}, 5, windows=(10, 30))
    described = [photographs.local_features(5, 30).describe(image)[0] for image in task.images]
    # Fewer windows are the first of them.
    for n in (10, 30):
        expected = codebook.encode([rows[:n] for rows in described])
        assert np.array_equal(counts["a", n].toarray(), expected.toarray())


def test_rankings_by_words_and_by_votes():
    context, task = scenes()
    told = sparse.csr_array((task.classes == "bicycle").astype(np.int32)[:, None])
    assert photographs.svm_rate(task, told) == 100.0
    assert photographs.svm_rate(task, sparse.csr_array(np.ones_like(told.toarray()))) == 50.0
    forest = ERCForest(2, n_words=8, random_state=0)
    forest.fit(*photographs.describe_training(context, task, 0, 200))
    (counts,) = photographs.count_words(context, task, {"": forest}, 5, windows=(30,)).values()
    local, tests = photographs.local_features(5, 30), task.where(~task.trains)
    column = forest.classes_.tolist().index("bicycle")
    votes = [forest.predict_proba(local.describe(image)[0])[:, column] for image in tests.images]
    scores = np.mean(votes, axis=1)
    found = photographs.rank_by_votes(task, counts, forest)
    assert found.equal_error_rate == equal_error_rate(scores, tests.classes == "bicycle")
    assert found.thresholds[1:] == pytest.approx(-np.unique(-scores))


def test_shares_of_counts_are_as_long_as_binary_codes():
    counts, trains = sparse.csr_array(np.array([[3, 1, 0], [0, 2, 2]])), np.array([True, True])
    shares, binary = (photographs.pool(counts, n, trains, trains) for n in ("sum", "binary"))
    assert shares.power(2).sum() == pytest.approx(binary.power(2).sum())
    assert shares.toarray()[0, 0] == pytest.approx(3 * shares.toarray()[0, 1])


def test_descriptors_of_training_images_lie_on_masks():
    context, task = scenes()
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[:, 40:] = np.random.default_rng(0).integers(0, 256, (60, 40, 3))
    mask = np.arange(80)[None] < np.full((60, 1), 20)
    flat = replace(task, images=[pixels] * len(task.images))
    options = {"n": 80, "descriptor": "hsl"}
    rows, classes = photographs.describe_training(context, flat, 0, **options)
    assert np.ptp(rows, axis=0).max() > 0
    assert classes.tolist() == ["bicycle"] * 40 + [BACKGROUND] * 40
    masks = [mask] * len(task.images)
    rows, _ = photographs.describe_training(context, flat, 0, masks=masks, **options)
    assert np.ptp(rows, axis=0).max() == 0


def test_patches_and_leaves():
    outline = np.arange(20)[None] >= np.full((10, 1), 10)
    boxes = np.array([[0, 0, 10], [8, 0, 8]], dtype=np.float32)
    assert patches.centres_on(boxes, outline).tolist() == [False, True]
    forest = ERCForest(1, random_state=0).fit([[0], [0], [8], [9]], ["a", "b", "b", "b"])
    assert patches.in_unmixed(forest, forest.transform([[0], [9]]), "b").tolist() == [
        [False],
        [True],
    ]
    # The unmixed leaf is the largest of one class, that of the largest surplus may be mixed.
    words, mine = np.array([[0]] * 12 + [[1]]), np.array([True] * 10 + [False] * 2 + [True])
    assert patches.best_leaf(words, mine, patches.unmixed) == (0, 1)
    assert patches.best_leaf(words, mine, patches.surplus) == (0, 0)


def test_shares_of_the_patches_in_a_leaf():
    context, task = scenes(8)
    forest = ERCForest(2, n_words=4, random_state=0)
    forest.fit(*photographs.describe_training(context, task, 0, 400))
    tests = task.where(~task.trains)
    outlines = photographs.outlines_of(context, "scenes", tests)
    (found,) = patches.measure_leaves(tests, forest, 0, outlines, {"one": (1, 2)})
    seen = []
    for k, image in enumerate(tests.images):
        rows, boxes = photographs.local_features(0).describe(image)
        outline = np.zeros(image.shape[:2], bool) if outlines[k] is None else outlines[k]
        inside, plain = forest.transform(rows)[:, 1] == 2, patches.is_plain(image, boxes)
        on = patches.centres_on(boxes, outline)
        seen.append(np.stack([np.full(len(rows), k), inside, plain, on]))
    number, inside, plain, on = np.concatenate(seen, axis=1)
    mine = tests.classes[number] == "bicycle"
    both, inside = (inside == 1) & mine, inside == 1
    hit = [name for k, name in enumerate(tests.classes) if inside[number == k].any()]
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
    assert found["images_with_it"] == 100 * hit.count("bicycle") / 4
    assert found["background_with_it"] == 100 * hit.count(BACKGROUND) / 4


def test_posteriors_on_an_object_and_beside_it():
    context, task = scenes()
    forest = ERCForest(2, n_words=8, random_state=0)
    forest.fit(*photographs.describe_training(context, task, 0, 200))
    local, image = photographs.local_features(0, 50), task.images[0]
    rows, boxes = local.describe(image)
    outline = np.arange(160)[None] < np.full((120, 1), 60)
    found = patches.measure_posterior(forest, local, "bicycle", image, outline)
    on = patches.centres_on(boxes, outline)
    posterior = forest.predict_proba(rows)[:, forest.classes_.tolist().index("bicycle")]
    expected = (posterior.mean(), posterior[on].mean(), posterior[~on].mean())
    names = ("posterior", "on_object", "beside_object")
    assert [found[name] for name in names] == pytest.approx(expected)
    alone = patches.measure_posterior(forest, local, "bicycle", image, None)
    assert {*alone}.isdisjoint(names[1:])


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
