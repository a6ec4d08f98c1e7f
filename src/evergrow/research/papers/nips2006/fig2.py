"""Figure 2: example images, and test patches that fell into one leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evergrow import ERCForest
from evergrow.research.experiments.contrasts import combined, contrast_of
from evergrow.research.experiments.experiment import Experiment, Finding, Run
from evergrow.research.experiments.lab import Lab
from evergrow.research.experiments.table import Row, Table
from evergrow.research.papers.nips2006 import rasters, sweeps
from evergrow.research.papers.nips2006.coding import (
    centres_on,
    in_unmixed,
    is_plain,
    local_features,
    training_descriptors,
)
from evergrow.research.papers.nips2006.photographs import (
    BACKGROUND,
    SOURCES_WITH_OUTLINES,
    Mask,
    Photographs,
    names_with_outlines,
    outlines_of,
    photographs,
)
from evergrow.vision.words import leaf_patches

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

__all__ = ["EXPERIMENT"]

_N_OBJECTS = 2
_N_EXAMPLES = 4
# Patches that are shown of a leaf: rows and columns.
_SHEET = (6, 5)
# All leaves of the object alone, and two rules to choose one leaf by.
ALL_UNMIXED, UNMIXED, SURPLUS = "all unmixed", "largest unmixed", "largest surplus"
# Percent of the patches that are most of them.
_MOST = 50.0
# A patch of another class weighs as many of the own one.
_ALMOST = 10
# Added to the seed of the patches that forests grow on, for further ones.
_FURTHER = 500
# Percentage points that one seed may be wrong by, since patches of one image resemble each other.
_ONE_SEED = 10.0

Counts = npt.NDArray[Any]

_EXAMPLE_SIZE, _PATCH_SIDE = (96, 72), 28


def _runs(lab: Lab) -> list[Run]:
    return [
        {"data": name, "seed": seed, "number": number}
        for name in names_with_outlines(lab)
        for seed in lab.seeds()
        for number in range(len(photographs(lab, name, _N_OBJECTS).objects))
    ]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    size, seed = sweeps.sizes(lab), int(run["seed"])
    data = photographs(lab, run["data"], _N_OBJECTS)
    name = data.objects[run["number"]]
    task = data.against_background(name)
    given, further = (
        training_descriptors(task, sweeps.DESCRIPTOR, s, size.n_training, n_jobs=lab.n_jobs)
        for s in (seed, seed + _FURTHER)
    )
    forest = sweeps.forest(size.n_words, seed, lab).fit(given.rows, given.classes)
    # Patches that a tree grew on are purer in its leaves than others are.
    leaves = {
        UNMIXED: best_leaf(forest.transform(given.rows), given.classes == name, _unmixed),
        SURPLUS: best_leaf(forest.transform(further.rows), further.classes == name, _surplus),
    }
    tests = task.where(~task.trains)
    local = local_features(sweeps.DESCRIPTOR, size.n_windows, seed)
    outlines = outlines_of(lab, run["data"], tests.classes, name)
    patches = _patches(tests, forest, local, leaves, outlines, name)
    rows: list[Row] = []
    for rule in (ALL_UNMIXED, *leaves):
        leaf = leaves.get(rule, (None, None))
        where = {"data": data.name, "object": name, "seed": seed, "leaf": rule}
        pictures = {}
        if seed == 0 and rule == UNMIXED:
            pictures = _pictures(data, tests, forest, local, leaves[rule])
        found = _found(patches, rule, tests.classes == name)
        rows.append({**where, "tree": leaf[0], "word": leaf[1], **found, **pictures})
    return rows


def _unmixed(own: Counts, others: Counts) -> Counts:
    """Patches of the class in leaves of that class alone; where there is none, nearly so."""
    return np.where(others == 0, own, own - _ALMOST * others)


def _surplus(own: Counts, others: Counts) -> Counts:
    """Patches of the class beyond those of others, relative to what chance makes of as many."""
    surplus: Counts = (own - others) / np.sqrt(np.maximum(own + others, 1))
    return surplus


def best_leaf(
    words: npt.NDArray[np.int32],
    mine: npt.NDArray[np.bool_],
    worth: Callable[[Counts, Counts], Counts],
) -> tuple[int, int]:
    """Tree and word of the leaf that is worth most to a class, by its patches and all others.

    Examples
    --------
    >>> import numpy as np
    >>> words = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    >>> best_leaf(words, np.array([True, True, False, False]), _unmixed)
    (0, 0)
    """
    best, found = -np.inf, (0, 0)
    for tree, column in enumerate(words.T):
        n_words = int(column.max()) + 1
        own, others = (np.bincount(column[part], minlength=n_words) for part in (mine, ~mine))
        worths = worth(own, others)
        word = int(np.argmax(worths))
        if worths[word] > best:
            best, found = float(worths[word]), (tree, word)
    return found


@dataclass(frozen=True, eq=False)
class _Patches:
    """Test patches: the image of each, whether it is bare, on the object, and in which leaf."""

    images: npt.NDArray[np.int64]
    plain: Mask
    on_object: Mask | None
    in_leaf: Mapping[str, Mask]


def _patches(
    tests: Photographs,
    forest: ERCForest,
    local: Any,
    leaves: Mapping[str, tuple[int, int]],
    outlines: Sequence[Mask | None],
    name: str,
) -> _Patches:
    words, plain, on = [], [], []
    for image, outline in zip(tests.images, outlines, strict=True):
        rows, boxes = local.describe(image)
        words.append(forest.transform(rows))
        plain.append(is_plain(image, boxes))
        nowhere = np.zeros(len(boxes), dtype=np.bool_)
        on.append(nowhere if outline is None else centres_on(boxes, outline))
    coded = np.concatenate(words)
    return _Patches(
        np.repeat(np.arange(len(words)), [len(one) for one in words]),
        np.concatenate(plain),
        None if all(outline is None for outline in outlines) else np.concatenate(on),
        {
            ALL_UNMIXED: np.any(in_unmixed(forest, coded, name), axis=1),
            **{rule: coded[:, tree] == word for rule, (tree, word) in leaves.items()},
        },
    )


def _found(patches: _Patches, rule: str, mine: Mask) -> dict[str, Any]:
    """What is in a leaf, beside what is in all test patches, in percent."""
    inside, of_object = patches.in_leaf[rule], mine[patches.images]
    both = inside & of_object
    hit = np.bincount(patches.images[inside], minlength=len(mine)) > 0
    found: dict[str, Any] = {
        "test_patches": int(inside.sum()),
        "on_object_images": _percent(both.sum(), inside.sum()),
        "all_on_object_images": _percent(of_object.sum(), len(inside)),
        "images_with_it": _percent(hit[mine].sum(), mine.sum()),
        "background_with_it": _percent(hit[~mine].sum(), (~mine).sum()),
    }
    for name, which in (("plain", patches.plain), ("on_object", patches.on_object)):
        for label, among in ((name, both), (f"all_{name}", of_object)):
            found[label] = None if which is None else _percent((which & among).sum(), among.sum())
    return found


def _percent(part: float, whole: float) -> float:
    return 100 * float(part) / float(whole) if whole else float("nan")


def _pictures(
    data: Photographs, tests: Photographs, forest: ERCForest, local: Any, leaf: tuple[int, int]
) -> dict[str, Any]:
    """Examples of every class, and test patches of the leaf, as text."""
    rows, columns = _SHEET
    # Turn about, so that the leaf may show what it holds of either class.
    order = np.argsort(np.arange(len(tests.images)) % (len(tests.images) // 2), kind="stable")
    images = [tests.images[i] for i in order]
    found, _ = leaf_patches(images, forest, local, *leaf, n=rows * columns, n_per_image=1)
    patches = [rasters.smaller(patch, _PATCH_SIDE, _PATCH_SIDE) for patch in found]
    return {
        "examples": {
            name: [
                rasters.as_text(rasters.smaller(data.images[i], *_EXAMPLE_SIZE))
                for i in np.flatnonzero((data.classes == name) & data.trains)[:_N_EXAMPLES]
            ]
            for name in (*data.objects, BACKGROUND)
        },
        "patches": [rasters.as_text(patch) for patch in patches],
    }


def _draw(figure: Figure, table: Table) -> None:
    shown = [row for row in table.where(data=table.values("data")[0]) if row.get("patches")]
    left, right = figure.subfigures(1, 2, width_ratios=(1.1, 1), squeeze=False)[0]
    _draw_examples(left, shown[0]["examples"])
    parts = right.subfigures(1, len(shown), squeeze=False)
    for part, row in zip(parts.ravel(), shown, strict=True):
        _draw_leaf(part, row)


def _draw_examples(figure: SubFigure, examples: dict[str, list[str]]) -> None:
    figure.suptitle("images", fontsize=9)
    places = figure.subplots(len(examples), _N_EXAMPLES, squeeze=False)
    for line, (name, texts) in zip(places, examples.items(), strict=True):
        for axes in line:
            axes.set_axis_off()
        for axes, text in zip(line, texts, strict=False):
            axes.set_axis_on()
            rasters.show(axes, rasters.from_text(text))
        line[0].set_ylabel(name)


def _draw_leaf(figure: SubFigure, row: Row) -> None:
    rows, columns = _SHEET
    figure.suptitle(f"test patches of one “{row['object']}” leaf", fontsize=9)
    # One picture, with a grey frame around each patch: many are white.
    side = _PATCH_SIDE + 2
    sheet = np.full((rows * side, columns * side, 3), 150, dtype=np.uint8)
    for k, text in enumerate(row["patches"]):
        top, start = k // columns * side, k % columns * side
        patch = rasters.from_text(text)
        sheet[top : top + len(patch), start : start + patch.shape[1]] = patch
    axes = figure.add_subplot()
    rasters.show(axes, sheet)
    axes.set_xlabel(f"{row['on_object_images']:.0f} % are of images with {row['object']}")


def _judge(table: Table) -> list[Finding]:
    return [
        _parts_of_it(table.where(data=data, object=name), f"{name} of {data}")
        for data in table.values("data")
        for name in table.where(data=data).values("object")
    ]


def _parts_of_it(table: Table, name: str) -> Finding:
    mine = table.where(leaf=ALL_UNMIXED)
    here = (
        f"Here {mine.mean('on_object_images'):.0f} % of the test patches in unmixed leaves for "
        f"{name} come from images of it, {mine.mean('all_on_object_images'):.0f} % of all patches "
        "do."
    )
    known = len(mine.column("on_object")) > 0
    place, agrees = _on_object(mine) if known else _bare(mine)
    column, what = ("on_object", "on the object") if known else ("plain", "bare")
    single = ", ".join(
        f"{table.mean('on_object_images', leaf=rule):.0f} % and "
        f"{table.mean(column, leaf=rule):.0f} % {what} ({rule})"
        for rule in (UNMIXED, SURPLUS)
    )
    claim = (
        "The paper shows leaves whose test patches are parts of one object (here more than half of "
        "them)."
    )
    return Finding(claim, f"{here} {place} For single leaves it is {single}.", agrees)


def _on_object(table: Table) -> tuple[str, bool | None]:
    """Where outlines are known they decide: most patches of the leaves must lie on the object."""
    parts, of_all = (
        table.column(f"{where}on_object_images") * table.column(f"{where}on_object") / 100
        for where in ("", "all_")
    )
    more, most = (
        contrast_of([*differences], few_seeds_noise=_ONE_SEED)
        for differences in (parts - of_all, parts - _MOST)
    )
    return (
        f"{table.mean('on_object'):.0f} % of these lie on the object, so that {parts.mean():.0f} % "
        f"of the patches in the leaves are parts of it (noise {most.noise:.0f} points), "
        f"{of_all.mean():.0f} % of all patches are."
    ), combined([more.verdict, most.verdict])


def _bare(table: Table) -> tuple[str, bool | None]:
    """Without outlines one thing can be told: bare patches are no part of the object."""
    apart = contrast_of(
        [*(table.column("plain") - table.column("all_plain"))], few_seeds_noise=_ONE_SEED
    )
    return (
        f"Outlines are not known, but {table.mean('plain'):.0f} % of these are bare and no part "
        f"of anything, {table.mean('all_plain'):.0f} % of all patches of these images are (noise "
        f"{apart.noise:.0f} points)."
    ), False if apart.verdict else None


EXPERIMENT = Experiment(
    name="nips2006-fig2",
    title="Figure 2 of Moosmann et al.: images, and patches of one leaf",
    shows="example images, and test patches that a tree put into one leaf of an object",
    sources=SOURCES_WITH_OUTLINES,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
    keys=("data", "object", "seed", "leaf"),
    exact=(
        "tree",
        "word",
        "test_patches",
        "on_object_images",
        "all_on_object_images",
        "images_with_it",
        "background_with_it",
        "plain",
        "all_plain",
        "on_object",
        "all_on_object",
    ),
    size=(10.5, 3.9),
    notes=(
        *sweeps.NOTES[:2],
        "A share counts as another when it lies outside the 95 % interval over the seeds, or is "
        "10 points away where there are fewer than three.",
        "That patches of a leaf come from images of the object does not make them parts of it: "
        "where outlines are known, as on drawn scenes, it is measured; on photographs bare patches "
        "tell at least what is no part of anything.",
        "The paper chose its two leaves to be shown. Here the verdict is on all leaves together "
        "whose training patches are of the object alone, so that nothing depends on a choice; "
        "shown is the one of them with most training patches. Single leaves vary: one that few "
        "images fill may hold their surroundings. The table also has the leaf with the largest "
        "surplus of the object, relative to chance, among further patches of the training images.",
        "Shown is the first patch of each test image that reaches the leaf, images of the object "
        "and of background turn about.",
    ),
    extras=("vision",),
)
