"""Figure 3: where in an image the words indicate an object."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from evergrow import ERCForest
from evergrow.research import experiments as ex
from evergrow.research.papers.nips2006 import embedded_images, histograms, photographs, sweeps
from evergrow.research.papers.nips2006.sweeps import PICTURES
from evergrow.vision.words.plots import word_map

_N_SHOWN = 4
_MAP_SIZE = (150, 110)
# Percentage of images above which most are meant.
_MOST = 50.0


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    return context.grid(data=photographs.names_with_outlines(context), seed=context.seeds())


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    size, seed = sweeps.sizes(context), int(run["seed"])
    data = photographs.load(context, run["data"])
    name = data.objects[0]
    task = data.against_background(name)
    given = sweeps.descriptors(context, task, seed, size.n_training)
    forest = sweeps.forest(size.n_words, seed, context).fit(given.rows, given.classes)
    tests = task.where(~task.trains)
    outlines = photographs.outlines_of(context, run["data"], tests, name)
    local = histograms.local_features(sweeps.DESCRIPTOR, size.n_windows, seed)
    said = Parallel(context.n_jobs, prefer="threads")(
        delayed(_posterior_statistics)(forest, local, name, image, outline)
        for image, outline in zip(tests.images, outlines, strict=True)
    )
    pictured = seed == 0 and run["data"] == sweeps.shown_source(context)
    shown = _shown(tests.classes == name) if pictured else []
    return [
        {
            "data": data.name,
            "object": name,
            "seed": seed,
            "image": i,
            "class": str(tests.classes[i]),
            **said[i],
            **(_pictures(tests.images[i], forest, local, name) if i in shown else {}),
        }
        for i in range(len(said))
    ]


def _shown(mine: npt.NDArray[np.bool_]) -> list[int]:
    """Images of the object, at even distances."""
    found = np.flatnonzero(mine)
    return [int(found[k * len(found) // _N_SHOWN]) for k in range(min(_N_SHOWN, len(found)))]


def _posterior_statistics(
    forest: ERCForest, local: Any, name: str, image: Any, outline: Any
) -> dict[str, Any]:
    """The posterior of the object in the patches of an image, on the object and off it."""
    rows, boxes = local.describe(image)
    posterior = forest.predict_proba(rows)[:, forest.classes_.tolist().index(name)]
    unmixed = histograms.in_unmixed(forest, forest.transform(rows), name)
    plain = histograms.is_plain(image, boxes)
    on = None if outline is None else histograms.centres_on(boxes, outline)
    return {
        "posterior": float(posterior.mean()),
        "unmixed": 100 * float(unmixed.mean()),
        "plain": 100 * float(plain.mean()),
        **_apart(posterior, plain, ("on_plain", "on_structure")),
        **_apart(posterior, on, ("on_object", "beside_object")),
    }


def _apart(
    posterior: npt.NDArray[np.float64], part: Any, names: tuple[str, str]
) -> dict[str, float | None]:
    """Means over some patches and over the others; None unless there are both."""
    if part is None or part.all() or not part.any():
        return dict.fromkeys(names)
    means = (float(posterior[part].mean()), float(posterior[~part].mean()))
    return dict(zip(names, means, strict=True))


def _pictures(image: Any, forest: ERCForest, local: Any, name: str) -> dict[str, str]:
    seen = word_map(image, forest, local, name)
    # A corner may have no patch; it gets the mean, so that it does not stand out.
    grey = np.rint(255 * np.where(np.isnan(seen), np.nanmean(seen), seen)).astype(np.uint8)
    return {
        "picture": embedded_images.encode(embedded_images.shrink(image, *_MAP_SIZE)),
        "map": embedded_images.encode(embedded_images.shrink(grey, *_MAP_SIZE)),
    }


def draw(figure: ex.Figure, table: ex.Table) -> None:
    shown = [row for row in table if row.get("picture")]
    maps = [embedded_images.decode(row["map"]) / 255 for row in shown]
    places = figure.subplots(2, len(shown), squeeze=False)
    low, high = min(m.min() for m in maps), max(m.max() for m in maps)
    for (above, below), row, found in zip(places.T, shown, maps, strict=True):
        embedded_images.show(above, embedded_images.decode(row["picture"]))
        drawn = embedded_images.show(below, found, cmap="viridis", vmin=low, vmax=high)
    places[0, 0].set_ylabel("image")
    places[1, 0].set_ylabel("its words")
    figure.colorbar(drawn, ax=[*places[1]], label=f"posterior of\n“{shown[0]['object']}”")


def judge(table: ex.Table) -> list[ex.Finding]:
    return [_where_it_speaks(table.where(data=name), name) for name in table.values("data")]


def _where_it_speaks(table: ex.Table, data: str) -> ex.Finding:
    thing = table.values("object")[0]
    on, off = (table.where(**{"class": label}) for label in (thing, photographs.BACKGROUND))
    more = 100 * _share_of_pairs(on.column("unmixed"), off.column("unmixed"))
    here = (
        "A leaf is unmixed if all its training patches come from images of one class. On "
        f"{data}, {on.mean('unmixed'):.1f} % of the test patches in images of {thing} reach "
        f"unmixed leaves of this class, and {off.mean('unmixed'):.1f} % in other images. If one "
        f"image of each kind is drawn, the one of {thing} has more of them in {more:.0f} % of all "
        "pairs."
    )
    known = len(on.column("on_object")) > 0
    place, decision = _on_object(on) if known else _on_structure(on)
    reading = (
        "on it in most images" if known else "on patches with structure, outlines are not known"
    )
    return sweeps.judge_bound(
        "The paper finds words that lie on the object, though they were learnt from whole images "
        f"(here: the posterior is higher {reading}).",
        f"{here} {place}",
        decision,
        reason=_reason(on, off, thing),
    )


def _reason(on: ex.Table, off: ex.Table, thing: str) -> str:
    """How far bare ground tells images of the object apart."""
    bare, others = (part.mean("plain") for part in (on, off))
    rest = ""
    if len(on.column("on_plain")) and len(off.column("on_plain")):
        rest = (
            f" The posterior of bare patches is {on.mean('on_plain'):.2f} there and "
            f"{off.mean('on_plain'):.2f} in other images."
        )
    return (
        f"Of the patches, {bare:.0f} % are bare in images of {thing} and {others:.0f} % in others."
        f"{rest}"
    )


def _on_object(table: ex.Table) -> tuple[str, ex.Verdict]:
    """With known outlines."""
    found = _most(table, "on_object", "beside_object")
    return (
        f"The mean posterior is {table.mean('on_object'):.2f} on the object and "
        f"{table.mean('beside_object'):.2f} around it. It is higher on the object in "
        f"{found.mean + _MOST:.0f} % of the images."
    ), found.verdict


def _on_structure(table: ex.Table) -> tuple[str, ex.Verdict]:
    """Without outlines, one thing is known: plain patches are not part of the object."""
    found = _most(table, "on_structure", "on_plain")
    return (
        f"The outlines of objects are not known here, but {table.mean('plain'):.0f} % of the "
        "patches are plain, so they show no object. Their mean posterior is "
        f"{table.mean('on_plain'):.2f}, and that of the other patches "
        f"{table.mean('on_structure'):.2f}. It is higher on the others in "
        f"{found.mean + _MOST:.0f} % of the images that have both."
    ), found.verdict


def _most(table: ex.Table, first: str, second: str) -> ex.Difference:
    """Percentage of images in which the first is higher, above one half, over the seeds."""
    return ex.compare_each_seed(
        table,
        lambda rows: 100 * _share_of_rows(rows, first, second) - _MOST,
        unit="percent",
        name=f"images with a higher posterior {first.replace('_', ' ')}, above {_MOST:.0f} %",
    )


def _share_of_rows(table: ex.Table, first: str, second: str) -> float:
    both = [row for row in table if row.get(first) is not None and row.get(second) is not None]
    return float(np.mean([row[first] > row[second] for row in both])) if both else 0.5


def _share_of_pairs(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Share of pairs in which the first is larger; ties count one half."""
    larger = np.mean(first[:, None] > second) + np.mean(first[:, None] == second) / 2
    return float(larger)


EXPERIMENT = ex.Experiment(
    name="nips2006-fig3",
    title="Figure 3 of Moosmann et al.: where words indicate an object",
    shows="the posterior probability of the object, patch by patch, in four test images",
    sources=photographs.SOURCES_WITH_OUTLINES,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("data", "object", "seed", "image", "class"),
    exact=(
        "posterior",
        "unmixed",
        "plain",
        "on_plain",
        "on_structure",
        "on_object",
        "beside_object",
    ),
    drawn=("picture", "map"),
    size=(9.5, 3.6),
    notes=(
        *sweeps.NOTES[:2],
        "The images were not picked by hand: they are spread evenly over all test images of the "
        "object. The brightness of a pixel is the mean posterior of the patches that cover it. "
        "The paper instead marks the centres of patches that reach leaves of the object alone.",
        "The maps are of one seed; the verdict is on all test images of all seeds.",
        "The photographs have no outlines of objects, so we measure on drawn scenes whether "
        "words lie on the object. On photographs we can only compare plain patches with others.",
        PICTURES,
    ),
    extras=("vision",),
)
