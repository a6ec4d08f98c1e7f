"""Figure 3: where in images the words speak for an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from evergrow import ERCForest
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
    names_with_outlines,
    outlines_of,
    photographs,
)
from evergrow.vision.words import word_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT"]

_N_SHOWN = 4
_MAP_SIZE = (150, 110)
# Percent of images beyond one half: 60 images let it err by half as much.
_CLEARLY = 12.5


def _runs(lab: Lab) -> list[Run]:
    return [{"data": n, "seed": seed} for n in names_with_outlines(lab) for seed in lab.seeds()]


def _measure(lab: Lab, run: Run) -> Sequence[Row]:
    size, seed = sweeps.sizes(lab), int(run["seed"])
    data = photographs(lab, run["data"])
    name = data.objects[0]
    task = data.against_background(name)
    given = training_descriptors(task, sweeps.DESCRIPTOR, seed, size.n_training, n_jobs=lab.n_jobs)
    forest = sweeps.forest(size.n_words, seed, lab).fit(given.rows, given.classes)
    tests = task.where(~task.trains)
    outlines = outlines_of(lab, run["data"], tests.classes, name)
    local = local_features(sweeps.DESCRIPTOR, size.n_windows, seed)
    said = Parallel(lab.n_jobs, prefer="threads")(
        delayed(_said)(forest, local, name, image, outline)
        for image, outline in zip(tests.images, outlines, strict=True)
    )
    shown = _shown(tests.classes == name) if seed == 0 else []
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
    """Images of the object, evenly over all of them."""
    found = np.flatnonzero(mine)
    return [int(found[k * len(found) // _N_SHOWN]) for k in range(min(_N_SHOWN, len(found)))]


def _said(forest: ERCForest, local: Any, name: str, image: Any, outline: Any) -> dict[str, Any]:
    """What the patches of an image say of the object, on it and beside it."""
    rows, boxes = local.describe(image)
    posterior = forest.predict_proba(rows)[:, forest.classes_.tolist().index(name)]
    unmixed = in_unmixed(forest, forest.transform(rows), name)
    plain = is_plain(image, boxes)
    on = None if outline is None else centres_on(boxes, outline)
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
    """Means over some patches and over the others, where there are both."""
    if part is None or part.all() or not part.any():
        return dict.fromkeys(names)
    means = (float(posterior[part].mean()), float(posterior[~part].mean()))
    return dict(zip(names, means, strict=True))


def _pictures(image: Any, forest: ERCForest, local: Any, name: str) -> dict[str, str]:
    seen = word_map(image, forest, local, name)
    # A corner may have no patch: it shall not stand out.
    grey = np.rint(255 * np.where(np.isnan(seen), np.nanmean(seen), seen)).astype(np.uint8)
    return {
        "picture": rasters.as_text(rasters.smaller(image, *_MAP_SIZE)),
        "map": rasters.as_text(rasters.smaller(grey, *_MAP_SIZE)),
    }


def _draw(figure: Figure, table: Table) -> None:
    shown = [row for row in table.where(data=table.values("data")[0]) if row.get("picture")]
    maps = [rasters.from_text(row["map"]) / 255 for row in shown]
    places = figure.subplots(2, len(shown), squeeze=False)
    low, high = min(m.min() for m in maps), max(m.max() for m in maps)
    for (above, below), row, found in zip(places.T, shown, maps, strict=True):
        rasters.show(above, rasters.from_text(row["picture"]))
        drawn = rasters.show(below, found, cmap="viridis", vmin=low, vmax=high)
    places[0, 0].set_ylabel("image")
    places[1, 0].set_ylabel("its words")
    figure.colorbar(drawn, ax=[*places[1]], label=f"posterior of\n“{shown[0]['object']}”")


def _judge(table: Table) -> list[Finding]:
    return [_where_it_speaks(table.where(data=name), name) for name in table.values("data")]


def _where_it_speaks(table: Table, data: str) -> Finding:
    thing = table.values("object")[0]
    on, off = (table.where(**{"class": label}) for label in (thing, BACKGROUND))
    more = 100 * _share_of_pairs(on.column("unmixed"), off.column("unmixed"))
    here = (
        f"Here, on {data}, {on.mean('unmixed'):.1f} % of the leaves that test patches reach are "
        f"unmixed ones of {thing} in images of it and {off.mean('unmixed'):.1f} % in others; of "
        f"two such images the former has more in {more:.0f} % of all pairs."
    )
    place, agrees = _on_object(on) if len(on.column("on_object")) else _on_structure(on)
    claim = (
        "The paper finds words that lie on the object, though they were learnt from whole images."
    )
    return Finding(claim, f"{here} {place}", agrees)


def _on_object(table: Table) -> tuple[str, bool | None]:
    """Where outlines are known they decide."""
    higher = 100 * _share_of_rows(table, "on_object", "beside_object")
    return (
        f"The mean posterior is {table.mean('on_object'):.2f} on the object and "
        f"{table.mean('beside_object'):.2f} beside it, higher on it in {higher:.0f} % of the "
        "images."
    ), _decided(higher)


def _on_structure(table: Table) -> tuple[str, bool | None]:
    """Without outlines one thing can be told: bare patches are no part of the object."""
    lower = 100 * _share_of_rows(table, "on_structure", "on_plain")
    said = (
        f"Outlines are not known, but {table.mean('plain'):.0f} % of the patches are bare and no "
        f"part of anything: their mean posterior is {table.mean('on_plain'):.2f} and that of the "
        f"others {table.mean('on_structure'):.2f}, higher on the others in {lower:.0f} % of the "
        "images that have both."
    )
    # Words that avoid bare patches may still lie beside the object.
    return said, False if _decided(lower) is False else None


def _decided(percent: float) -> bool | None:
    clear = abs(percent - 50.0) > _CLEARLY
    return percent > 50.0 if clear else None


def _share_of_rows(table: Table, first: str, second: str) -> float:
    both = [row for row in table if row.get(first) is not None and row.get(second) is not None]
    return float(np.mean([row[first] > row[second] for row in both])) if both else 0.5


def _share_of_pairs(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """How often the one of the first is larger; of equals, half."""
    larger = np.mean(first[:, None] > second) + np.mean(first[:, None] == second) / 2
    return float(larger)


EXPERIMENT = Experiment(
    name="nips2006-fig3",
    title="Figure 3 of Moosmann et al.: where words speak for an object",
    shows="patch-wise posterior of the object over four test images",
    sources=SOURCES_WITH_OUTLINES,
    runs=_runs,
    measure=_measure,
    draw=_draw,
    judge=_judge,
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
    size=(9.5, 3.6),
    notes=(
        *sweeps.NOTES[:2],
        "The images are not chosen by eye, they lie evenly over all test images of the object. "
        "Brightness is the mean posterior of the patches over a pixel; the paper marks the centres "
        "of patches that reach leaves of the object alone.",
        "The maps are of one run; the verdict is on all test images of three.",
        "Photographs come without outlines; whether words lie on the object is measured on drawn "
        "scenes, where they are known.",
    ),
    extras=("vision",),
)
