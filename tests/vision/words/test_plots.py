"""Plots of words and of ROC curves, and the rate at equal error."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_curve

from evergrow.vision import (
    BagOfWords,
    DensePatches,
    ERCForest,
    LocalFeatures,
    RandomKDTrees,
    dense_sift_words,
    equal_error_rate,
    leaf_patches,
    roc,
    word_map,
)
from evergrow.vision.words.plots import _mean_over_boxes
from tests.vision.words.cases import features, striped

PICTURES, KINDS, MASKS = striped()


@pytest.fixture(scope="module")
def bag() -> BagOfWords:
    return BagOfWords(ERCForest(n_words=40), features=features(), random_state=0).fit(
        PICTURES, KINDS
    )


def test_a_map_is_bright_where_the_class_is(bag: BagOfWords) -> None:
    posterior = word_map(PICTURES[1], bag, None, "striped")
    assert posterior.shape == (40, 50)
    assert np.nanmean(posterior[:, 25:]) > np.nanmean(posterior[:, :15]) + 0.2


def test_maps_of_all_classes_add_up_to_one(bag: BagOfWords) -> None:
    maps = [word_map(PICTURES[0], bag.codebook_, features(), name) for name in ("plain", "striped")]
    total = sum(maps)
    np.testing.assert_allclose(total[~np.isnan(total)], 1.0)


def test_a_pixel_has_the_mean_of_the_patches_that_cover_it() -> None:
    boxes = np.array([[0, 0, 2], [1, 1, 2], [3, 0, 9]])
    found = _mean_over_boxes(np.array([0.2, 0.6, 1.0]), boxes, (3, 5))
    nan = np.nan
    expected = [[0.2, 0.2, nan, 1, 1], [0.2, 0.4, 0.6, 1, 1], [nan, 0.6, 0.6, 1, 1]]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_map_can_be_written(bag: BagOfWords, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"map.{suffix}"
    word_map(PICTURES[1], bag, None, "striped", path)
    assert path.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_patches_of_a_word_are_cut_out_of_their_images(bag: BagOfWords) -> None:
    words = bag.codebook_.transform(features().describe(PICTURES[3])[0])[:, 1]
    word = int(np.bincount(words).argmax())
    patches, places = leaf_patches(PICTURES, bag, None, 1, word, n=7, n_per_image=2)
    assert patches.shape == (len(places), 48, 48, 3)
    assert patches.dtype == np.uint8
    assert np.bincount(places).max() <= 2
    for patch, place in zip(patches, places, strict=True):
        described, boxes = features().describe(PICTURES[place])
        mine = bag.codebook_.transform(described)[:, 1] == word
        cuts = [
            np.asarray(
                Image.fromarray(PICTURES[place][y : y + side, x : x + side]).resize(
                    (48, 48), Image.Resampling.BICUBIC
                ),
                dtype=float,
            )
            for x, y, side in boxes[mine].astype(int)
        ]
        # Pixels next to the patch may shine in at its edge.
        assert min(np.abs(cut - patch)[12:-12, 12:-12].max() for cut in cuts) <= 1


def test_a_sheet_of_patches_can_be_written(tmp_path: Path) -> None:
    bag = BagOfWords(RandomKDTrees(1, n_words=4), features=features(), random_state=0).fit(PICTURES)
    leaf_patches(PICTURES, bag, None, 0, 0, tmp_path / "sheet.png", n=10)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert min(sheet.size) > 100


def test_a_word_that_does_not_occur_has_an_empty_sheet(tmp_path: Path) -> None:
    bag = BagOfWords(RandomKDTrees(1, n_words=40), features=features(), random_state=0)
    bag.fit(PICTURES)
    image = np.zeros((30, 30, 3), np.uint8)
    missing = int(np.flatnonzero(bag.transform([image]).toarray()[0] == 0)[0])
    patches, places = leaf_patches([image], bag, None, 0, missing, tmp_path / "sheet.svg")
    assert patches.shape == (0, 48, 48, 3)
    assert places.shape == (0,)


def test_pyplot_is_left_alone(bag: BagOfWords, tmp_path: Path) -> None:
    from matplotlib import pyplot

    word_map(PICTURES[0], bag, None, "plain", tmp_path / "map.png")
    assert pyplot.get_fignums() == []


def test_a_picture_that_fails_leaves_the_old_one(
    bag: BagOfWords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "map.png"
    path.write_text("old")

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        word_map(PICTURES[0], bag, None, "plain", path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_missing_matplotlib_is_named(
    bag: BagOfWords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return plain(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "matplotlib>='):
        word_map(PICTURES[0], bag, None, "plain", tmp_path / "map.png")


def test_wrong_arguments_are_named(bag: BagOfWords, tmp_path: Path) -> None:
    unaware = RandomKDTrees(1, n_words=3).fit(features().transform(PICTURES))
    with pytest.raises(ValueError, match="unknown class 'dog'"):
        word_map(PICTURES[0], bag, None, "dog")
    with pytest.raises(TypeError, match="RandomKDTrees has no classes"):
        word_map(PICTURES[0], unaware, features(), "dog")
    with pytest.raises(ValueError, match="features must be given"):
        word_map(PICTURES[0], bag.codebook_, None, "plain")
    with pytest.raises(ValueError, match="must end in one of"):
        word_map(PICTURES[0], bag, None, "plain", tmp_path / "map.bmp")
    with pytest.raises(ValueError, match="tree must be an integer from 0 to 4"):
        leaf_patches(PICTURES, bag, None, 5, 0)
    with pytest.raises(ValueError, match="word must be an integer from 0"):
        leaf_patches(PICTURES, bag, None, 0, 40)
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        leaf_patches(PICTURES, bag, None, 0, 0, n=0)
    with pytest.raises(TypeError, match="list of sources"):
        leaf_patches("picture.jpg", bag, None, 0, 0)


def test_what_is_given_in_place_of_features_and_codebooks_is_named(bag: BagOfWords) -> None:
    with pytest.raises(ValueError, match=r"features must be LocalFeatures\(...\), got 'haar'"):
        word_map(PICTURES[0], bag, "haar", "plain")
    with pytest.raises(TypeError, match="codebook must be a codebook"):
        word_map(PICTURES[0], "ERC", features(), "plain")


@pytest.mark.parametrize("unfitted", [ERCForest(), BagOfWords(), RandomKDTrees()], ids=repr)
def test_pictures_of_what_has_learnt_nothing_ask_to_fit_it(unfitted: Any) -> None:
    with pytest.raises(NotFittedError):
        word_map(PICTURES[0], unfitted, features(), "plain")
    with pytest.raises(NotFittedError):
        leaf_patches(PICTURES, unfitted, None, 0, 0)


def test_dense_sift_words_are_those_of_the_papers() -> None:
    bag = dense_sift_words(7, random_state=0)
    assert bag.features.patches == DensePatches(step=10, size=20)
    assert (bag.features.descriptor, bag.features.max_side) == ("sift", 300)
    vectors = bag.fit_transform(PICTURES)
    assert vectors.shape == (12, 7)
    np.testing.assert_allclose(vectors.sum(axis=1), 1.0, rtol=1e-6)
    # Three by four places in an image of 40 x 50 pixels.
    described = LocalFeatures("sift", patches=DensePatches(step=10, size=20), max_side=300)
    assert described.transform(PICTURES).lengths.tolist() == [12] * 12


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40))
def test_the_curve_is_that_of_scikit_learn(samples: list[tuple[int, bool]]) -> None:
    scores, positives = (np.array(column) for column in zip(*samples, strict=True))
    if positives.all() or not positives.any():
        return
    curve = roc(scores, positives)
    false, true, thresholds = roc_curve(positives, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_positive_rate, false)
    np.testing.assert_allclose(curve.true_positive_rate, true)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    # On the curve and on the diagonal of equal errors.
    rate = equal_error_rate(scores, positives)
    surplus = curve.true_positive_rate + curve.false_positive_rate - 1
    assert rate == pytest.approx(np.interp(0.0, surplus, curve.true_positive_rate))


@pytest.mark.parametrize(
    ("scores", "positives", "rate"),
    [
        ([4, 3, 2, 1], [1, 1, 0, 0], 1.0),
        ([4, 3, 2, 1], [0, 0, 1, 1], 0.0),
        ([4, 3, 2, 1], [1, 0, 1, 0], 0.5),
        ([1, 1, 1, 1], [1, 0, 1, 0], 0.5),
        ([9, 8, 7, 6, 5, 4], [1, 1, 0, 1, 0, 0], 2 / 3),
        # Between (0, 1/2) and (1/2, 1) the errors are equal at 1/4.
        ([3, 2, 2, 1], [1, 1, 0, 0], 0.75),
        ([2, 1], [True, False], 1.0),
    ],
)
def test_the_rate_at_equal_error_of_hand_made_cases(scores: Any, positives: Any, rate: Any) -> None:
    assert equal_error_rate(scores, positives) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("scores", "positives", "message"),
    [
        ([1, 2], [1, 1], "one positive and one negative"),
        ([1, 2], [0, 0], "one positive and one negative"),
        ([], [], "one positive and one negative"),
        ([1, 2], [1], r"shapes \(2,\) and \(1,\)"),
        ([[1, 2]], [[0, 1]], "must be one-dimensional"),
        ([1, np.nan], [0, 1], "finite"),
        ([1, 2], [0, 2], "True or False"),
        ([1, 2], ["cat", "dog"], "True or False"),
    ],
)
def test_wrong_scores_are_named(scores: Any, positives: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        roc(scores, positives)
