"""Photographs in folders: earlier stages of the network next to its output, and without them."""

from __future__ import annotations

from collections.abc import Iterable

from evergrow import Embedder, RLSClassifier
from evergrow.foundation.arrays import Array
from evergrow.research import experiments as ex
from evergrow.research.datasets import Dataset
from evergrow.research.papers.guide.heads import draw_heads, format_table
from evergrow.research.papers.guide.images_per_class import few_of_each
from evergrow.research.papers.nips2006.photographs import PHOTOGRAPHS
from evergrow.vision.classifier import ImageClassifier
from evergrow.vision.classifier.components import DEFAULT_STAGES

AUTO, OUTPUT = "with earlier stages (auto)", "output alone (embed)"
# The blocks of the default are scaled to length one, which has an effect of its own.
SCALED = "output alone, scaled to length one"
NAMES = (AUTO, SCALED, OUTPUT)
FEATURES = {AUTO: "auto", OUTPUT: "embed"}
# How far the default may lie below the output alone.
NOT_BELOW = 0.003


def runs(context: ex.ExperimentContext) -> list[ex.Run]:
    images = context.scaled((1, 3, 5, 10, 20), (5,))
    return context.grid(images=images, learner=NAMES, seed=context.seeds(5))


def measure(context: ex.ExperimentContext, run: ex.Run) -> list[ex.Row]:
    data: Dataset = few_of_each(context.dataset("photographs"), run["images"], run["seed"])
    train, test = _as_images(data.X_train), _as_images(data.X_test)
    if run["learner"] == SCALED:
        predicted, used = _predict_scaled(train, data.y_train, test, run["seed"]), 1
    else:
        model = ImageClassifier(
            FEATURES[run["learner"]], random_state=run["seed"], n_jobs=context.n_jobs
        )
        predicted = model.fit(train, data.y_train).predict(test)
        used = len(model.learner_.used_blocks_) or 1
    accuracy = float((predicted == data.y_test).mean())
    return [{**run, "accuracy": accuracy, "blocks": used}]


def _predict_scaled(train: list[object], y: Array, test: list[object], seed: int) -> Array:
    """Predict by the first block of the default features, which is the output."""
    embedder = Embedder(stages=DEFAULT_STAGES).fit(train)
    width = next(iter(embedder.blocks_.values()))
    model = RLSClassifier(random_state=seed).fit(embedder.transform(train)[:, :width], y)
    predicted: Array = model.predict(embedder.transform(test)[:, :width])
    return predicted


def _as_images(images: Iterable[object]) -> list[object]:
    """Paths as text, or pixels."""
    return [str(image) if isinstance(image, str) else image for image in images]


def draw(figure: ex.Figure, table: ex.Table) -> None:
    axes = figure.subplots()
    draw_heads(axes, table, "images", NAMES)
    axes.set_xlabel("photographs per class")
    axes.set_ylabel("accuracy, %")
    ex.set_log_ticks(axes, table.values("images"))
    ex.add_legend(figure, axes, place="right center")


def judge(table: ex.Table) -> list[ex.Finding]:
    findings = []
    for images in table.values("images"):
        few = table.where(images=images)
        gap, by_stages = (
            ex.compare_means(few, "accuracy", {"learner": AUTO}, {"learner": other})
            for other in (OUTPUT, SCALED)
        )
        findings.append(
            ex.Finding(
                f"With {images} {'photograph' if images == 1 else 'photographs'} per class, "
                '`features="auto"` (used by default) is at most '
                f'{100 * NOT_BELOW:.1f} points below `features="embed"`.',
                f"The difference is {100 * gap.mean:+.2f} points, of which "
                f"{100 * by_stages.mean:.2f} come from the earlier stages and "
                f"{100 * (gap.mean - by_stages.mean):.2f} from scaling the output to length one.",
                gap.above(-NOT_BELOW),
            )
        )
    return findings


EXPERIMENT = ex.Experiment(
    name="guide-photographs",
    title="Photographs in folders",
    shows="Does `ImageClassifier()` gain from the earlier stages of its network, with 1 to 20 "
    'photographs per class? The default, `features="auto"`, against `features="embed"`.',
    sources={"photographs": PHOTOGRAPHS},
    runs=runs,
    measure=measure,
    draw=draw,
    judge=judge,
    keys=("learner", "images", "seed"),
    exact=("accuracy", "blocks"),
    timed=(),
    size=(6.0, 3.2),
    notes=(
        "Half of the photographs of every class are for testing. From the other half, every seed "
        "draws 1 to 20 training photographs per class.",
        "A full run uses 1972 photographs of nine classes: folders of Caltech-101, one of which "
        "is its background. Quick runs use drawn scenes.",
        "The column `blocks` of the CSV file counts what the learner uses: the output, and the "
        "stages that help.",
    ),
    summarize=lambda table: (
        "Accuracy in %, by photographs per class:\n\n"
        + format_table(table, NAMES, "images", head="features")
    ),
)
