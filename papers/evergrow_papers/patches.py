"""What patches show: whether they are plain, on an object, and in leaves of one class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evergrow import ERCForest
from evergrow.vision.words.codebooks.counts import word_offsets
from evergrow_papers.data import Array
from evergrow_papers.photographs import Photographs, local_features
from evergrow_papers.table import Row

# Largest standard deviation of the grey values, up to 255, of a plain patch.
PLAIN = 8.0
# Columns of means over some patches and over the others.
SIDES = (("on_plain", "on_structure"), ("on_object", "beside_object"))


def in_unmixed(codebook: Any, words: Array, name: str) -> Array:
    """Whether the leaf of each patch and tree has training patches of this class only."""
    column = codebook.classes_.tolist().index(name)
    shares = codebook.word_shares_[codebook.word_columns_, column]
    return np.asarray(shares[words + word_offsets(codebook.words_per_tree_)[:-1]] == 1.0)


def centres_on(boxes: Array, outline: Array) -> Array:
    """Whether the centre of each patch is on the object."""
    x, y = (boxes[:, :2] + boxes[:, 2:] / 2).astype(np.int64).T
    return np.asarray(outline[y, x])


def is_plain(image: Array, boxes: Array) -> Array:
    """Whether each patch is plain: it shows no part of an object.

    >>> image = np.zeros((20, 40, 3), dtype=np.uint8)
    >>> image[5:15, 25:35] = 255
    >>> is_plain(image, np.array([[0, 0, 20], [20, 0, 20]], dtype=np.float32))
    array([ True, False])
    """
    grey = image.mean(axis=2)
    tables = [np.pad(v.cumsum(0).cumsum(1), ((1, 0), (1, 0))) for v in (grey, grey**2)]
    left, top, side = np.rint(boxes).astype(np.int64).T
    right, bottom = np.minimum(left + side, grey.shape[1]), np.minimum(top + side, grey.shape[0])
    area = (right - left) * (bottom - top)
    mean, of_squares = (
        (t[bottom, right] - t[top, right] - t[bottom, left] + t[top, left]) / area for t in tables
    )
    return np.asarray(of_squares - mean**2 < PLAIN**2)


def unmixed(own: Array, others: Array) -> Array:
    """Number of patches of leaves; a patch of another class counts as -10 of the class."""
    return np.where(others == 0, own, own - 10 * others)


def surplus(own: Array, others: Array) -> Array:
    """Excess of patches of the class over the others, relative to its standard deviation."""
    return np.asarray((own - others) / np.sqrt(np.maximum(own + others, 1)))


def best_leaf(words: Array, mine: Array, score: Callable[[Array, Array], Array]) -> tuple[int, int]:
    """Tree and word of the leaf with the highest score for a class.

    >>> words = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    >>> best_leaf(words, np.array([True, True, False, False]), unmixed)
    (0, 0)
    """
    scores = [
        score(*(np.bincount(column[part], minlength=column.max() + 1) for part in (mine, ~mine)))
        for column in words.T
    ]
    tree = int(np.argmax([found.max() for found in scores]))
    return tree, int(np.argmax(scores[tree]))


def _percent(part: Any, among: Any) -> float:
    whole = among.sum()
    return 100 * float((part & among).sum()) / float(whole) if whole else float("nan")


def measure_leaves(
    tests: Photographs,
    codebook: ERCForest,
    seed: int,
    outlines: Sequence[Array | None],
    leaves: Mapping[str, tuple[int, int] | None],
) -> list[Row]:
    """Percentages of the test patches in leaves, and of all test patches.

    ``leaves`` are tree and word by a rule; None takes all unmixed leaves.
    """
    local, own, parts = local_features(seed), tests.classes == tests.object, []
    for k, (image, outline) in enumerate(zip(tests.images, outlines, strict=True)):
        rows, boxes = local.describe(image)
        on = np.zeros(len(rows), np.bool_) if outline is None else centres_on(boxes, outline)
        parts.append((codebook.transform(rows), is_plain(image, boxes), on, [k] * len(rows)))
    words, plain, on, images = (np.concatenate(each) for each in zip(*parts, strict=True))
    known, mine = any(outline is not None for outline in outlines), own[images]
    found: list[Row] = []
    for rule, leaf in leaves.items():
        if leaf is None:
            inside = in_unmixed(codebook, words, tests.object).any(axis=1)
        else:
            inside = words[:, leaf[0]] == leaf[1]
        hit = np.bincount(images[inside], minlength=len(own)) > 0
        tree, word = leaf or (None, None)
        row = {
            "leaf": rule,
            "tree": tree,
            "word": word,
            "test_patches": int(inside.sum()),
            "images_with_it": _percent(hit, own),
            "background_with_it": _percent(hit, ~own),
            "background_plain": _percent(plain, ~mine),
        }
        for of, among in (("", inside), ("all_", np.ones_like(mine))):
            row[f"{of}on_object_images"] = _percent(mine, among)
            row[f"{of}plain"] = _percent(plain, among & mine)
            row[f"{of}on_object"] = _percent(on, among & mine) if known else None
        found.append(row)
    return found


def measure_posterior(
    codebook: ERCForest, local: Any, name: str, image: Array, outline: Array | None
) -> Row:
    """The mean posterior of the object in the patches of an image, by where they lie."""
    rows, boxes = local.describe(image)
    posterior = codebook.predict_proba(rows)[:, codebook.classes_.tolist().index(name)]
    plain = is_plain(image, boxes)
    on = None if outline is None else centres_on(boxes, outline)
    found: dict[str, Any] = {
        "posterior": float(posterior.mean()),
        "unmixed": 100 * float(in_unmixed(codebook, codebook.transform(rows), name).mean()),
        "plain": 100 * float(plain.mean()),
    }
    for part, names in zip((plain, on), SIDES, strict=True):
        # If there are both.
        if part is not None and part.any() and not part.all():
            found[names[0]] = float(posterior[part].mean())
            found[names[1]] = float(posterior[~part].mean())
    return found
