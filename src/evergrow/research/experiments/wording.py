"""How pages say the columns of tables and their values.

Tables have short names, such as ``nn-h`` in the column ``method``. Pages say "NN-H", as the paper
and the figures do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A value as part of a sentence, by its column; a column that is not named here is said as it is.
_SETTINGS = {
    "chunk": "{} classes at a time",
    "coarse": "coarse labels alone for {}",
    "codebook": "{}",
    "data": "{}",
    "descriptor": "{}",
    "descriptors": "{} descriptors",
    "features": "{}",
    "fine": "fine labels for {}",
    "forest": "{} forest",
    "guess": "{}",
    "initial": "{} classes at first",
    "leaves": "{} leaves per tree",
    "learner": "{}",
    "means": "means of {} classes",
    "method": "{}",
    "metric": "{}",
    "min_samples_leaf": "{} samples in a leaf",
    "n_before": "{} examples learnt before",
    "n_classes": "{} classes",
    "n_new": "new examples: {}",
    "object": "{}",
    "paper's data": "the paper's data: {}",
    "pooling": "{}",
    "recoding": "recoding {}",
    "samples": "{} samples known",
    "share": "{} of the nodes",
    "split": "{}",
    "strategy": "{}",
    "trees": "{} trees",
    "value": "{}",
    "weight": "weight {}",
    "windows": "{} windows",
}

_VALUES: dict[str, dict[Any, str]] = {
    "data": {
        "caltech101_efflite0_224": "Caltech-101",
        "cifar100_efflite0_pca256": "CIFAR-100",
        "mnist": "MNIST",
        "words": "visual words",
    },
    "descriptor": {"sift": "SIFT", "haar": "colour wavelets"},
    "guess": {
        "nn": "neighbour within",
        "nn-discard": "neighbour, discarded",
        "nn-unconstrained": "any neighbour",
        "ridge": "ridge (ours)",
    },
    "means": {"both": "coarse and fine", "fine": "fine"},
    "method": {
        "coarse": "coarse forest",
        "fine-only": "fine only",
        "full": "all fine",
        "hierarchical": "H",
        "joint": "J",
        "knn": "kNN",
        "met": "MET + NCM",
        "met_low_rank": "MET + NCM of low rank",
        "ncm": "NCM",
        "ncmf": "NCMF",
        "nn": "NN",
        "nn-h": "NN-H",
        "plain": "NCMF",
        "regularised": "RNCMF",
        "rf": "RF",
        "ridge-h": "ridge-H",
        "svm": "SVM",
    },
    "metric": {
        "all": "with a learnt metric",
        "coarse": "metric of the coarse part",
        "fine": "metric of the fine part",
        "none": "without a metric",
    },
    "pooling": {
        "binary": "binary codes",
        "mutual_information": "thresholds by information",
        "sqrt": "roots of shares",
        "votes": "votes without words",
    },
    "value": {"haar": "colour wavelets", "hsl": "raw colours"},
    "split": {"axis": "thresholds", "NCM": "class means", "SVM": "linear SVMs"},
}
# Columns whose values are shares.
_IN_PERCENT = ("coarse", "fine", "share")
# Strategies are words in tables and abbreviations in the papers.
_STRATEGIES = {name: name.upper() for name in ("uls", "igt", "rust", "rtst")}
_VALUES["strategy"] = _STRATEGIES
_VALUES["method"] |= _STRATEGIES

# Columns that are the same on all rows of a page.
_UNSAID = ("part",)
# Columns of shares, which pages show in percent.
_SHARES = (
    "accuracy",
    "coarse_accuracy",
    "new_class",
    "others",
    "relative",
    "test_error",
    "total",
    "train_error",
)
_PERCENT = ("rate",)

_QUANTITIES = {
    "accuracy": "accuracy",
    "coarse_accuracy": "accuracy on coarse classes",
    "new_class": "accuracy on the new class",
    "others": "accuracy on the other classes",
    "rate": "rate at equal error",
    "relative": "relative accuracy",
    "test_error": "error on test samples",
    "test_seconds": "test time, s",
    "total": "accuracy on all classes",
    "train_error": "error on training samples",
    "update_seconds": "time of the last step, s",
}


def say_value(column: str, value: Any) -> str:
    """A value of a column as part of a sentence.

    Examples
    --------
    >>> from evergrow.research.experiments.wording import say_value
    >>> say_value("method", "nn-h"), say_value("n_classes", 50), say_value("fine", 0.1)
    ('NN-H', '50 classes', 'fine labels for 10 %')
    """
    return _SETTINGS.get(column, "{}").format(_bare(column, value))


def _bare(column: str, value: Any) -> str:
    """The value alone."""
    known = _VALUES.get(column, {})
    if isinstance(value, str) and value not in known:
        # "joint, low rank" is the method "joint" in a setting of its own.
        first, comma, rest = value.partition(", ")
        return f"{known.get(first, first)}{comma}{rest}"
    if isinstance(value, (int, float)) and column in _IN_PERCENT:
        return f"{100 * value:g} %"
    return f"{value:g}" if isinstance(value, float) else known.get(value, str(value))


def say_sides(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Two sides of a comparison by the columns that differ.

    Examples
    --------
    >>> from evergrow.research.experiments.wording import say_sides
    >>> say_sides({"initial": 20, "strategy": "igt"}, {"initial": 3, "strategy": "igt"})
    '20 against 3 classes at first'
    """
    differing = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    if len(differing) == 1:
        (key,) = differing
        bare = (_bare(key, side.get(key)) for side in (one, other))
        return _SETTINGS.get(key, "{}").format(" against ".join(bare))
    sides = (", ".join(say_value(key, side.get(key)) for key in differing) for side in (one, other))
    return " against ".join(sides)


def say_setting(setting: Mapping[str, Any]) -> str:
    """Columns and their values, without missing ones."""
    said = {key: value for key, value in setting.items() if value is not None}
    return ", ".join(
        say_value(key, value) if key in _SETTINGS else f"{key} {say_value(key, value)}"
        for key, value in said.items()
        if key not in _UNSAID
    )


def say_signed(value: float, digits: int = 1) -> str:
    """A number with its sign; zero is positive.

    Examples
    --------
    >>> from evergrow.research.experiments.wording import say_signed
    >>> say_signed(-0.04), say_signed(-0.06)
    ('+0.0', '-0.1')
    """
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def say_quantity(column: str) -> str:
    """What a column of measurements is."""
    return _QUANTITIES.get(column, column)


def say_number(column: str, mean: float, deviation: float | None = None) -> str:
    """A number of a column with its standard deviation, shares in percent.

    Examples
    --------
    >>> from evergrow.research.experiments.wording import say_number
    >>> say_number("accuracy", 0.1402), say_number("accuracy", 0.6016, 0.0023)
    ('14.02 %', '60.2 ± 0.2 %')
    """
    scale = 100 if column in _SHARES else 1
    unit = " %" if column in (*_SHARES, *_PERCENT) else ""
    if deviation is None:
        return f"{scale * mean:.4g}{unit}"
    # Sums of equal numbers are rounded.
    spread = round(scale * deviation, 10)
    if unit:
        # A small deviation gets the digit that it needs to be seen.
        digits = 2 if 0 < spread < 0.05 else 1
        return f"{scale * mean:.{digits}f} ± {spread:.{digits}f}{unit}"
    return f"{mean:.4g} ± {spread:.2g}"
