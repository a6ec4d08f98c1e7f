"""Fig. 2 of the report: decision maps of spirals for each kind of split."""

from __future__ import annotations

from typing import Any

import numpy as np

from evergrow.foundation.arrays import Array
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset, spirals
from evergrow.research.papers.report import decision_maps, protocol

KEYS = ("data", "split", "n_train", "seed")
SPLITS = ("axis", "SVM", "NCM")
TRUE = "true arms"
TITLES = {"axis": "thresholds", "SVM": "linear SVMs", "NCM": "class means"}
# Few enough that the colours, and mixtures of two of them, can be told apart.
CLASS_COLOURS = (ex.BLUE, ex.ORANGE, ex.GREEN, ex.PINK, ex.SKY, ex.RED)
N_CLASSES = len(CLASS_COLOURS)
N_PIXELS = 180
N_DRAWN = 300
# Training samples per class, and others that show what the accuracy depends on.
N_TRAIN, OTHERS = 70, (20, 200, 500)
# Share of the excess length of the borders that counts as much smoother.
MUCH = 2 / 3


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    place = {"data": context.names[0], "n_trees": context.scaled(50, 20)}
    own = context.data is not None
    found: list[ex.Run] = []
    for seed in context.seeds(10):
        of_seed = {**place, "seed": seed, "n_train": N_TRAIN, "n_test": 300}
        found += [{**of_seed, "split": s} for s in (SPLITS if own else (*SPLITS, TRUE))]
        # Samples of the user's own data are those of the file.
        others = () if own else context.scaled(OTHERS, OTHERS[:1])
        found += [{**of_seed, "n_train": n, "split": s} for n in others for s in SPLITS]
    return found


def _data(context: ex.ExperimentContext, run: ex.Run) -> Dataset:
    if context.is_built_in(run["data"]):
        return spirals(N_CLASSES, run["n_train"], run["n_test"], random_state=run["seed"])
    data = context.dataset(run["data"])
    return decision_maps.project(data.of_classes(data.classes[:N_CLASSES]))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data = _data(context, run)
    plane = decision_maps.Plane.around(data.X_train, N_PIXELS)
    model: Any = _true_arms
    if run["split"] != TRUE:
        forest = protocol.make_forest(run["split"], run["n_trees"], context, run["seed"])
        model = forest.fit(data.X_train, data.y_train).predict_proba
    right = data.classes[model(data.X_test).argmax(axis=1)] == data.y_test
    row: dict[str, Any] = {key: run[key] for key in KEYS}
    row["accuracy"] = float(right.mean())
    if run["n_train"] != N_TRAIN:
        return [row]
    places = model(plane.places())
    answers = places.argmax(axis=1).reshape(N_PIXELS, N_PIXELS)
    row["boundary"] = decision_maps.boundary_length(answers, plane.near(data.X_train))
    if run["seed"] == 0 and run["split"] != TRUE:
        row |= {"map": decision_maps.pack(_mixed(places)), "extent": plane.extent}
        rows = np.random.default_rng(0).permutation(len(data.X_train))[:N_DRAWN]
        codes = np.searchsorted(data.classes, data.y_train[rows])
        row["points"] = np.column_stack([data.X_train[rows], codes]).astype(float).tolist()
    return [row]


def _true_arms(X: Array) -> Array:
    """The arm with the nearest angle, from which spirals are generated."""
    radius, angle = np.hypot(X[:, 0], X[:, 1]), np.arctan2(X[:, 1], X[:, 0])
    turn = (angle - 0.5 * radius) / (2 * np.pi) * N_CLASSES
    return np.asarray(np.eye(N_CLASSES)[np.rint(turn).astype(int) % N_CLASSES])


def _mixed(probabilities: Array) -> Array:
    """Colours of the classes, mixed by their probabilities."""
    colours = np.array(
        [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in CLASS_COLOURS]
    )
    # Lighter than the points, so that these stand out. Few levels make small files.
    mixed = 255 - 0.6 * (255 - probabilities @ colours[: probabilities.shape[1]])
    return np.asarray(np.rint(mixed / 8) * 8 - (mixed > 252))


def draw(figure: ex.Figure, table: ex.Table) -> None:
    panels = figure.subplots(1, len(SPLITS))
    for axes, split in zip(panels, SPLITS, strict=True):
        chosen = table.where(split=split, n_train=N_TRAIN)
        first = next(row for row in chosen if "map" in row)
        pixels = decision_maps.unpack(first["map"], (N_PIXELS, N_PIXELS, 3))
        axes.imshow(pixels, origin="lower", extent=first["extent"], interpolation="none")
        points = np.array(first["points"])
        for code in np.unique(points[:, 2]).astype(int):
            x, y, _ = points[points[:, 2] == code].T
            look = {"markersize": 2.6, "markeredgecolor": "white", "markeredgewidth": 0.3}
            colour = CLASS_COLOURS[code]
            axes.plot(x, y, "o", color=colour, linestyle="none", label=f"class {code}", **look)
        axes.set_xlim(first["extent"][:2])
        axes.set_ylim(first["extent"][2:])
        axes.grid(visible=False)
        axes.set_xlabel("first feature")
        axes.set_title(
            f"{TITLES[split]}\naccuracy {100 * chosen.mean('accuracy'):.1f} %, "
            f"borders {chosen.mean('boundary'):.1f} widths"
        )
    panels[0].set_ylabel("second feature")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=N_CLASSES, markerscale=2)


def judge(table: ex.Table) -> list[ex.Finding]:
    usual = table.where(n_train=N_TRAIN)
    return [_smoother(usual, kind) for kind in ("SVM", "NCM")] + [
        _more_accurate(table, kind) for kind in ("SVM", "NCM")
    ]


def _smoother(table: ex.Table, kind: str) -> ex.Finding:
    ours, axis = table.where(split=kind), table.where(split="axis")
    true = table.mean("boundary", split=TRUE)
    # The user's own data have no true borders: then the whole length counts.
    known = np.isfinite(true)

    def excess(rows: ex.Table, split: str) -> float:
        ideal = rows.mean("boundary", split=TRUE) if known else 0.0
        return max(rows.mean("boundary", split=split) - ideal, 1e-9)

    shorter = ex.compare_each_seed(
        table,
        lambda rows: float(np.log(excess(rows, kind) / excess(rows, "axis"))),
        unit="times",
        name=f"excess length, {TITLES[kind]} against thresholds",
    ).below(np.log(MUCH))
    ideal = f", true borders {true:.1f}" if known else ""
    return ex.Finding(
        f"The report finds borders of {TITLES[kind]} much smoother than those of thresholds (at "
        "most two thirds of the length by which they exceed the true borders).",
        f"Here the borders are {ours.mean('boundary'):.1f} map widths long with {TITLES[kind]} and "
        f"{axis.mean('boundary'):.1f} with thresholds{ideal} (shorter is smoother).",
        shorter,
    )


def _more_accurate(table: ex.Table, kind: str) -> ex.Finding:
    usual = table.where(n_train=N_TRAIN)
    ours, axis = usual.where(split=kind), usual.where(split="axis")
    higher = ex.compare_values(usual, "accuracy", "split", "axis", kind).verdict
    return ex.Finding(
        f"The report finds {TITLES[kind]} better than thresholds.",
        f"Here test accuracy is {100 * ours.mean('accuracy'):.1f} % with {TITLES[kind]} and "
        f"{100 * axis.mean('accuracy'):.1f} % with thresholds.",
        higher,
        reason=_explain(table, kind),
    )


def _explain(table: ex.Table, kind: str) -> str:
    """The lead over thresholds by the number of training samples."""
    leads = {
        n: ex.compare_values(table.where(n_train=n), "accuracy", "split", "axis", kind)
        for n in sorted(table.values("n_train"))
    }
    if len(leads) < 2:
        return ""
    found = ", ".join(f"{ex.say_signed(100 * lead.mean)} with {n}" for n, lead in leads.items())
    return (
        "It depends on the number of training samples, which the report does not give: "
        f"compared with thresholds, {TITLES[kind]} have these points: {found} samples per class."
    )


EXPERIMENT = ex.Experiment(
    name="report-fig2",
    title="Report, fig. 2: decision maps for each kind of split",
    shows="what forests of thresholds, SVMs and class means answer at every place of the plane",
    sources=protocol.SPIRALS,
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=KEYS,
    exact=("accuracy", "boundary"),
    drawn=("map", "extent", "points"),
    size=(9.6, 3.9),
    notes=(
        "The spiral has six arms, so that their colours can be distinguished, with 70 training "
        "and 300 test samples each. The report trains on 70 % of its samples but does not say "
        "how many there are. More test samples reduce the noise.",
        "Each pixel mixes the classes' colours as the forest mixes their probabilities; the map is "
        "that of the first seed.",
        "Smoothness is measured as the length of all borders between answers near samples, in "
        "widths of the map. Data with more than two features are shown along their first two "
        "principal directions.",
    ),
)
