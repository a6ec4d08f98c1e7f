"""Figure 2: example images, and the test patches of one leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow import ERCForest
from evergrow.research import experiments as ex
from evergrow.research.papers.nips2006 import embedded_images, histograms, photographs, sweeps
from evergrow.research.papers.nips2006.photographs import Mask, Photographs
from evergrow.vision.words.plots import leaf_patches

_N_OBJECTS = 2
_N_EXAMPLES = 4
# Rows and columns of the patches shown for a leaf.
_SHEET = (6, 5)
# All leaves with training patches of the object only, and two rules to choose a single leaf.
ALL_UNMIXED, UNMIXED, SURPLUS = "all unmixed", "largest unmixed", "largest surplus"
# The same as the first, of trees that learnt patches on the object alone.
MASKED = "all unmixed, by masks"
# Percentage above which most patches are meant.
_MOST = 50.0
# A patch of another class counts as much as this many of the class.
_ALMOST = 10
# Added to the seed to draw other patches than those that forests are grown on.
_FURTHER = 500

Counts = npt.NDArray[Any]

_EXAMPLE_SIZE, _PATCH_SIDE = (96, 72), 28


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return [
        {"data": name, "seed": seed, "number": number}
        for name in photographs.names_with_outlines(context)
        for seed in context.seeds()
        for number in range(len(photographs.load(context, name, _N_OBJECTS).objects))
    ]


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    size, seed = sweeps.sizes(context), int(run["seed"])
    data = photographs.load(context, run["data"], _N_OBJECTS)
    name = data.objects[run["number"]]
    task = data.against_background(name)
    given, further = (
        sweeps.descriptors(context, task, s, size.n_training) for s in (seed, seed + _FURTHER)
    )
    forest = sweeps.forest(size.n_words, seed, context).fit(given.rows, given.classes)
    # Leaves are purer in the patches that the tree was grown on than in others.
    leaves = {
        UNMIXED: best_leaf(forest.transform(given.rows), given.classes == name, _unmixed),
        SURPLUS: best_leaf(forest.transform(further.rows), further.classes == name, _surplus),
    }
    tests = task.where(~task.trains)
    local = histograms.local_features(sweeps.DESCRIPTOR, size.n_windows, seed)
    outlines = photographs.outlines_of(context, run["data"], tests, name)
    patches = _patches(tests, forest, local, leaves, outlines, name)
    where = {"data": data.name, "object": name, "seed": seed}
    rows: list[ex.Row] = []
    if patches.on_object is not None:
        masks = photographs.outlines_of(context, run["data"], task, name)
        given = sweeps.descriptors(context, task, seed, size.n_training, masks)
        forest_of_object = sweeps.forest(size.n_words, seed, context)
        forest_of_object.fit(given.rows, given.classes)
        by_masks = _patches(tests, forest_of_object, local, {}, outlines, name)
        found = _found(by_masks, ALL_UNMIXED, tests.classes == name)
        rows.append({**where, "leaf": MASKED, **found})
    for rule in (ALL_UNMIXED, *leaves):
        leaf = leaves.get(rule, (None, None))
        pictures = {}
        if seed == 0 and rule == UNMIXED and run["data"] == sweeps.shown_source(context):
            pictures = _pictures(data, tests, forest, local, leaves[rule])
        found = _found(patches, rule, tests.classes == name)
        rows.append({**where, "leaf": rule, "tree": leaf[0], "word": leaf[1], **found, **pictures})
    return rows


def _unmixed(own: Counts, others: Counts) -> Counts:
    """Number of patches in leaves of the class only; a penalty for patches of other classes."""
    return np.where(others == 0, own, own - _ALMOST * others)


def _surplus(own: Counts, others: Counts) -> Counts:
    """Excess of patches of the class over the others, relative to its standard deviation."""
    return np.asarray((own - others) / np.sqrt(np.maximum(own + others, 1)))


def best_leaf(
    words: npt.NDArray[np.int32],
    mine: npt.NDArray[np.bool_],
    score: Callable[[Counts, Counts], Counts],
) -> tuple[int, int]:
    """Tree and word of the leaf with the highest score for a class.

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
        scores = score(own, others)
        word = int(np.argmax(scores))
        if scores[word] > best:
            best, found = float(scores[word]), (tree, word)
    return found


@dataclass(frozen=True, eq=False)
class _Patches:
    """Test patches: their image, and whether they are plain, on the object, and in a leaf."""

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
        plain.append(histograms.is_plain(image, boxes))
        nowhere = np.zeros(len(boxes), dtype=np.bool_)
        on.append(nowhere if outline is None else histograms.centres_on(boxes, outline))
    coded = np.concatenate(words)
    return _Patches(
        np.repeat(np.arange(len(words)), [len(one) for one in words]),
        np.concatenate(plain),
        None if all(outline is None for outline in outlines) else np.concatenate(on),
        {
            ALL_UNMIXED: np.any(histograms.in_unmixed(forest, coded, name), axis=1),
            **{rule: coded[:, tree] == word for rule, (tree, word) in leaves.items()},
        },
    )


def _found(patches: _Patches, rule: str, mine: Mask) -> dict[str, Any]:
    """Percentages of the patches in a leaf, and of all test patches."""
    inside, of_object = patches.in_leaf[rule], mine[patches.images]
    both = inside & of_object
    hit = np.bincount(patches.images[inside], minlength=len(mine)) > 0
    found: dict[str, Any] = {
        "test_patches": int(inside.sum()),
        "on_object_images": _percent(both.sum(), inside.sum()),
        "all_on_object_images": _percent(of_object.sum(), len(inside)),
        "images_with_it": _percent(hit[mine].sum(), mine.sum()),
        "background_with_it": _percent(hit[~mine].sum(), (~mine).sum()),
        "background_plain": _percent(patches.plain[~of_object].sum(), (~of_object).sum()),
    }
    for name, which in (("plain", patches.plain), ("on_object", patches.on_object)):
        for label, among in ((name, both), (f"all_{name}", of_object)):
            found[label] = None if which is None else _percent((which & among).sum(), among.sum())
    return found


def _percent(part: float, whole: float) -> float:
    return 100 * float(part) / float(whole) if whole else float("nan")


def _pictures(
    data: Photographs,
    tests: Photographs,
    forest: ERCForest,
    local: Any,
    leaf: tuple[int, int],
) -> dict[str, Any]:
    """Examples of every class, and test patches of the leaf, as text."""
    rows, columns = _SHEET
    # Alternately, so that patches of both classes are shown.
    order = np.argsort(np.arange(len(tests.images)) % (len(tests.images) // 2), kind="stable")
    images = [tests.images[i] for i in order]
    found, _ = leaf_patches(images, forest, local, *leaf, n=rows * columns, n_per_image=1)
    patches = [embedded_images.shrink(patch, _PATCH_SIDE, _PATCH_SIDE) for patch in found]
    return {
        "examples": {
            name: [
                embedded_images.encode(embedded_images.shrink(data.images[i], *_EXAMPLE_SIZE))
                for i in np.flatnonzero((data.classes == name) & data.trains)[:_N_EXAMPLES]
            ]
            for name in (*data.objects, photographs.BACKGROUND)
        },
        "patches": [embedded_images.encode(patch) for patch in patches],
    }


def draw(figure: ex.Figure, table: ex.Table) -> None:
    shown = [row for row in table if row.get("patches")]
    left, right = figure.subfigures(1, 2, width_ratios=(1.1, 1), squeeze=False)[0]
    _draw_examples(left, shown[0]["examples"])
    parts = right.subfigures(1, len(shown), squeeze=False)
    for part, row in zip(parts.ravel(), shown, strict=True):
        _draw_leaf(part, row)


def _draw_examples(figure: Any, examples: dict[str, list[str]]) -> None:
    figure.suptitle("images", fontsize=9)
    places = figure.subplots(len(examples), _N_EXAMPLES, squeeze=False)
    for line, (name, texts) in zip(places, examples.items(), strict=True):
        for axes in line:
            axes.set_axis_off()
        for axes, text in zip(line, texts, strict=False):
            axes.set_axis_on()
            embedded_images.show(axes, embedded_images.decode(text))
        line[0].set_ylabel(name)


def _draw_leaf(figure: Any, row: ex.Row) -> None:
    rows, columns = _SHEET
    figure.suptitle(f"test patches of one “{row['object']}” leaf", fontsize=9)
    # One image with a grey frame around each patch, since many patches are white.
    side = _PATCH_SIDE + 2
    sheet = np.full((rows * side, columns * side, 3), 150, dtype=np.uint8)
    for k, text in enumerate(row["patches"]):
        top, start = k // columns * side, k % columns * side
        patch = embedded_images.decode(text)
        sheet[top : top + len(patch), start : start + patch.shape[1]] = patch
    axes = figure.add_subplot()
    embedded_images.show(axes, sheet)
    axes.set_xlabel(f"{row['on_object_images']:.0f} % are of images with {row['object']}")


def judge(table: ex.Table) -> list[ex.Finding]:
    named = {
        f"{name} of {data}": table.where(data=data, object=name)
        for data in table.values("data")
        for name in table.where(data=data).values("object")
    }
    return ex.name_repeated((name, _parts_of_it(rows, name)) for name, rows in named.items())


def _parts_of_it(table: ex.Table, name: str) -> ex.Finding:
    mine = table.where(leaf=ALL_UNMIXED)
    here = (
        f"A leaf is unmixed if all its training patches come from images of one class. Of the "
        f"test patches in unmixed leaves for {name}, {mine.mean('on_object_images'):.0f} % come "
        f"from images of it; of all patches, {mine.mean('all_on_object_images'):.0f} % do."
    )
    known = len(mine.column("on_object")) > 0
    place, decision = _on_object(mine) if known else _bare(mine)
    column, what = ("on_object", "on the object") if known else ("plain", "plain")
    single = ", ".join(
        f"{table.mean('on_object_images', leaf=rule):.0f} % and "
        f"{table.mean(column, leaf=rule):.0f} % {what} ({rule})"
        for rule in (UNMIXED, SURPLUS)
    )
    reading = "more than half of them" if known else "plain less often than other patches"
    return sweeps.judge_bound(
        "The paper shows leaves whose test patches are parts of one object (here, for all unmixed "
        f"leaves: {reading}).",
        f"{here} {place} In single leaves, these shares are {single}.",
        decision,
        reason=_why_not_parts(table) if known else _why_bare(table),
    )


def _parts(table: ex.Table, of: str = "") -> npt.NDArray[np.float64]:
    """Percentage of patches that are parts of the object, seed by seed."""
    images, on = (table.column(f"{of}{name}") for name in ("on_object_images", "on_object"))
    return np.asarray(images * on / 100)


def _on_object(table: ex.Table) -> tuple[str, ex.Verdict]:
    """With known outlines: most patches of the leaves must be on the object."""
    parts, of_all = _parts(table), _parts(table, "all_")
    more, most = (
        ex.compare_seeds([*differences], unit="percent", name=name)
        for differences, name in (
            (parts - of_all, "parts of the object in the leaves against all patches"),
            (parts - _MOST, f"parts of the object in the leaves, above {_MOST:.0f} %"),
        )
    )
    return (
        f"Of these, {table.mean('on_object'):.0f} % lie on the object. So {parts.mean():.0f} % "
        f"of the patches in the leaves are parts of the object (± {most.noise:.0f} points), and "
        f"{of_all.mean():.0f} % of all patches are."
    ), ex.combine_verdicts([more.verdict, most.verdict])


def _why_not_parts(table: ex.Table) -> str:
    mine, masked = table.where(leaf=ALL_UNMIXED), table.where(leaf=MASKED)
    by_masks = (
        f" Trees that learnt patches on the object alone give {_parts(masked).mean():.0f} %."
        if len(masked)
        else ""
    )
    times = _parts(mine).mean() / _parts(mine, "all_").mean()
    return (
        f"Trees learn from whole images, in which {mine.mean('all_on_object'):.0f} % of the "
        f"patches lie on the object and the others have the same label. Unmixed leaves hold "
        f"{times:.1f} times as many parts of the object as all patches do."
        f"{by_masks} It depends on the leaf: parts are "
        f"{_parts(table.where(leaf=UNMIXED)).mean():.0f} % of the largest unmixed leaf and "
        f"{_parts(table.where(leaf=SURPLUS)).mean():.0f} % of the leaf with the largest surplus."
    )


def _bare(table: ex.Table) -> tuple[str, ex.Verdict]:
    """Without outlines, one thing is known: bare patches are not part of the object."""
    apart = ex.compare_seeds(
        [*(table.column("plain") - table.column("all_plain"))],
        unit="percent",
        name="plain patches in the leaves against all patches of these images",
    )
    return (
        f"The outlines of objects are not known here, but plain patches show no object. Of these "
        f"patches, {table.mean('plain'):.0f} % are plain; of all patches in these images, "
        f"{table.mean('all_plain'):.0f} % (± {apart.noise:.0f} points)."
    ), apart.below(0)


def _why_bare(table: ex.Table) -> str:
    bare = {rule: table.mean("plain", leaf=rule) for rule in (UNMIXED, SURPLUS)}
    return (
        f"It depends on the leaf: {bare[UNMIXED]:.0f} % are plain in the largest unmixed leaf and "
        f"{bare[SURPLUS]:.0f} % in the leaf with the largest surplus. Plain are "
        f"{table.mean('background_plain'):.0f} % of the patches of background."
    )


EXPERIMENT = ex.Experiment(
    name="nips2006-fig2",
    title="Figure 2 of Moosmann et al.: images, and patches of one leaf",
    shows="example images, and test patches that a tree put into one leaf of an object",
    sources=photographs.SOURCES_WITH_OUTLINES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "object", "seed", "leaf"),
    exact=(
        "tree",
        "word",
        "test_patches",
        "on_object_images",
        "all_on_object_images",
        "images_with_it",
        "background_with_it",
        "background_plain",
        "plain",
        "all_plain",
        "on_object",
        "all_on_object",
    ),
    drawn=("examples", "patches"),
    size=(10.5, 3.9),
    notes=(
        *sweeps.NOTES[:2],
        "A patch from an image of the object need not be a part of the object. On drawn scenes, "
        "whose outlines are known, we measure this. On photographs, plain patches at least show "
        "what is not a part.",
        "The paper chose its two leaves to be shown. Here the verdict is on all leaves together "
        "whose training patches are of the object alone, so that nothing depends on a choice; "
        "shown is the one of them with most training patches. Single leaves vary: one that few "
        "images fill may hold their surroundings. The table also has the leaf with the largest "
        "surplus of the object, relative to chance, among further patches of the training images.",
        "The figure shows the first patch of each test image that reaches the leaf, alternating "
        "between images of the object and of background.",
        sweeps.PICTURES,
    ),
    extras=("vision",),
)
