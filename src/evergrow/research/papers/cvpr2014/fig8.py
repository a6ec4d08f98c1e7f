"""Fig. 8: RUST over random orders of the same classes."""

from __future__ import annotations

from functools import partial

from evergrow.research import experiments as ex
from evergrow.research.papers.cvpr2014 import plots, protocol
from evergrow.research.streams import ClassStream

KEYS = ("data", "strategy", "initial", "seed", "n_classes")
INITIALS = (3, 5, 10, 20)
EVERY = 10
END, QUICK_END = 50, 25
N_ORDERS, N_ORDERS_QUICK = 10, 3
# The paper's bound: standard deviation over the orders, relative to the mean.
LIMITED = 0.1
# Fewer orders say nothing about a deviation.
FEWEST_ORDERS = 3
# What is judged; seconds are shown only, since their deviation is partly that of the machine.
JUDGED = {"relative": "accuracy", "comparisons": "test time", "n_distances": "training distances"}
MEASURED = {**JUDGED, "seconds": "training seconds"}
STYLE = plots.Style("RUST", ex.BLUE, "^")


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    """One run per data set, order and number of initial classes, and one of retraining."""
    found: list[ex.Run] = []
    for name in protocol.data_names(context, "features"):
        end = protocol.last_class(context, name, context.scaled(END, QUICK_END))
        begun = protocol.initials(context, name, INITIALS, end)
        for seed in context.seeds(N_ORDERS, N_ORDERS_QUICK):
            found.append(protocol.baseline_run(name, seed, [end]))
            for initial in begun:
                at = protocol.points(initial, end, EVERY)
                found.append({**protocol.baseline_run(name, seed, at), "strategy": "rust"})
    return found


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    """Learn with RUST in one order, or train from scratch on all classes."""
    data, end = context.dataset(run["data"]), run["end"]
    # All orders have the same classes, so that only the order differs.
    shared = data.of_classes(ClassStream(end).ordered(data.classes)[:end])
    return protocol.measure_in_sweep(context, run, KEYS, data=shared)


def draw(figure: ex.Figure, table: ex.Table) -> None:
    """Accuracy and test time over the initial classes, training time over all."""
    ((accuracy, comparisons, seconds),) = plots.panels(figure, 1, 3)
    grown = table.where(strategy="rust")
    last = grown.where(n_classes=max(grown.values("n_classes")))
    columns = ("relative", "comparisons")
    plots.plot_columns((accuracy, comparisons), last, "initial", columns, STYLE)
    plots.plot_curve(seconds, grown.where(initial=INITIALS[0]).curve("n_classes", "seconds"), STYLE)
    n_orders = len(table.values("seed"))
    figure.suptitle(f"RUST: mean and standard deviation over {n_orders} orders", fontsize=9)
    accuracy.set(xlabel="initial classes", ylabel=plots.RELATIVE)
    comparisons.set(xlabel="initial classes", ylabel=plots.DISTANCES)
    for axes in (accuracy, comparisons):
        axes.set_xticks(last.values("initial"))
    # From zero, so that the deviations are seen relative to the means.
    accuracy.set_ylim(0, 105)
    comparisons.set_ylim(0, 1.1 * last.column("comparisons").max())
    seconds.set(xlabel=f"classes, {INITIALS[0]} initial", ylabel="training so far, CPU s")


def _spreads_little(last: ex.Table, where: str) -> ex.Finding:
    """The standard deviation over the orders, relative to the mean."""
    grown = last.where(strategy="rust")
    n_orders = len(grown.values("seed"))
    spreads = {
        name: max(
            grown.deviation(column, initial=n) / grown.mean(column, initial=n)
            for n in grown.values("initial")
        )
        for column, name in MEASURED.items()
    }
    widest = max(JUDGED.values(), key=lambda name: spreads[name])
    shown = ", ".join(f"{name} {100 * spread:.1f} %" for name, spread in spreads.items())
    return ex.Finding(
        "In the paper the deviation over ten orders of the classes never exceeds a tenth "
        "of the mean.",
        f"{where}, {n_orders} orders, the largest over the numbers of initial classes are: "
        f"{shown}.",
        _within(spreads[widest], n_orders, widest),
        printed="at most 10 %",
    )


def _within(spread: float, n_orders: int, name: str) -> ex.Verdict:
    """Whether a relative deviation is below the bound, by its 95 % interval of chi-square."""
    if n_orders < FEWEST_ORDERS:
        return ex.Verdict(None)
    from scipy.stats import chi2

    freedom = n_orders - 1
    low, high = (spread * (freedom / chi2.ppf(p, freedom)) ** 0.5 for p in (0.975, 0.025))
    agrees = True if high < LIMITED else False if low > LIMITED else None
    return ex.Verdict(
        agrees,
        f"deviation of the {name}: {100 * spread:.1f} % ({100 * low:.1f} to {100 * high:.1f}, "
        f"{n_orders} orders); the claim needs less than {100 * LIMITED:.0f} %",
    )


EXPERIMENT = protocol.make_relative_experiment(
    name="cvpr2014-fig8",
    title="Fig. 8 of Ristin et al. 2014: orders of the classes",
    shows="Accuracy, test time and training time of RUST over random orders of the same classes.",
    runs=runs,
    measure=measure,
    draw=draw,
    judge=partial(protocol.judge_last_rows, judges=[_spreads_little]),
    keys=KEYS,
    size=(9.5, 3.0),
    notes=(
        protocol.NOTES[0],
        "On features only: visual words take nearly four times as long. Each order also has its "
        "own seed of the forest.",
        "Times are processor seconds of all threads. They are shown, but the distances of training "
        "are judged: seconds also vary with the load of the machine.",
    ),
)
