"""What may be wrong with labelled examples: labels, near-duplicates, and examples that do harm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from evergrow.estimators.classifier.learner import translate_errors
from evergrow.estimators.curation.duplicates import near_duplicates
from evergrow.estimators.curation.harm import measure_harm
from evergrow.estimators.curation.wrong_labels import Verdicts, judge_labels
from evergrow.estimators.linear.ridge import Codes, RotatedRidge
from evergrow.estimators.sums.accumulation import check_magnitude
from evergrow.foundation.foreign_arrays import from_other_library
from evergrow.foundation.labels import ClassList, check_label_types
from evergrow.foundation.params import Integer, Number, check_parameters

# Harm of less than this percent of the error of all examples is not listed.
_LEAST_HARM = 0.01


@dataclass(frozen=True)
class WrongLabel:
    """An example whose label the other examples contradict; found by :func:`label_issues`.

    Attributes
    ----------
    index : int
        Row of the example.
    label : object
        The label as given.
    suggestion : object
        The most probable other label.
    certainty : float
        Estimated probability that the label is wrong.
    probability : float
        Probability of the suggestion, by a model of the other examples.
    """

    index: int
    label: Any
    suggestion: Any
    certainty: float
    probability: float


@dataclass(frozen=True)
class DuplicateGroup:
    """Examples that are nearly the same; found by :func:`label_issues`.

    Attributes
    ----------
    indices : tuple of int
        Rows of the examples.
    labels : tuple
        Their labels, as given.
    """

    indices: tuple[int, ...]
    labels: tuple[Any, ...]

    @property
    def contradicts(self) -> bool:
        """Whether the examples have different labels."""
        return len(set(self.labels)) > 1


@dataclass(frozen=True)
class HarmfulExample:
    """An example that makes the model worse; found by :func:`label_issues`.

    Attributes
    ----------
    index : int
        Row of the example.
    label : object
        The label as given.
    harm : float
        How much the squared leave-one-out error of all other examples falls without this one, in
        percent.
    """

    index: int
    label: Any
    harm: float


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Result of :func:`label_issues`: wrong labels, near-duplicates and harmful examples.

    Attributes
    ----------
    wrong : tuple of WrongLabel
        Labels that are probably wrong, the most suspicious first.
    duplicates : tuple of DuplicateGroup
        Groups of near-duplicates. Groups with different labels come first.
    harmful : tuple of HarmfulExample
        Examples that make the model worse, the most harmful first.
    share_wrong : float
        Estimated share of wrong labels. It tends to be too high rather than too low.
    quality : ndarray of shape (n_samples,)
        Log probability of each label, by a model of the other examples. The lowest are the most
        suspicious. It is NaN for the only example of a class.
    """

    wrong: tuple[WrongLabel, ...]
    duplicates: tuple[DuplicateGroup, ...]
    harmful: tuple[HarmfulExample, ...]
    share_wrong: float
    quality: npt.NDArray[np.float32]


def label_issues(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    certainty: float = 0.5,
    similarity: float = 0.92,
    n_harmful: int = 100,
    random_state: int = 0,
) -> LabelIssues:
    """Find labels that are probably wrong, near-duplicates, and harmful examples.

    Each example is judged by a ridge regression on all others, which has a closed form. The penalty
    and the temperature are those that best separate the given labels from random ones. See
    :doc:`/clean_data`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features, such as those of :class:`evergrow.Embedder`.
    y : array-like of shape (n_samples,)
        Labels. The label of the only example of a class cannot be judged.
    certainty : float, default=0.5
        Estimated probability, from 0 to 1, from which a label is listed as wrong. With 0.9, fewer
        labels are listed and nearly all of them are wrong. With 0, all labels are listed, in order.
    similarity : float, default=0.92
        Cosine similarity from which two examples are near-duplicates, after the mean of all
        examples is subtracted. The default suits features of networks: most compressed or cropped
        copies are above it, and different pictures below. Simpler features, such as pixels, need a
        higher value.
    n_harmful : int, default=100
        Maximum number of harmful examples to list. 0 skips this step, which saves time.
    random_state : int, default=0
        Seed of the sample that chooses the penalty, and of the search for near-duplicates.

    Returns
    -------
    issues : LabelIssues
        Wrong labels, near-duplicates, harmful examples, and the quality of every label.

    See Also
    --------
    next_to_label : Choose which unlabelled examples to label next.

    Examples
    --------
    >>> import numpy as np
    >>> from evergrow import label_issues
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["cat", "dog"], 50)
    >>> X = rng.standard_normal((100, 5)) + 4 * (y == "dog")[:, None]
    >>> y[7] = "dog"
    >>> found = label_issues(X, y)
    >>> [(one.index, one.label, one.suggestion) for one in found.wrong]
    [(7, 'dog', 'cat')]
    """
    check_parameters(
        {"certainty": certainty, "similarity": similarity, "n_harmful": n_harmful},
        {
            "certainty": [Number(0.0, 1.0)],
            "similarity": [Number(0.0, 1.0, open_low=True)],
            "n_harmful": [Integer(0)],
        },
    )
    check_parameters({"random_state": random_state}, {"random_state": [Integer(0)]})
    rows, labels, codes = check_examples(X, y)
    ridge = RotatedRidge.of(rows, codes, len(labels))
    fit, verdicts = judge_labels(ridge, rows, codes, random_state)
    given = labels.classes[codes]
    harmful: tuple[HarmfulExample, ...] = ()
    if fit is not None and n_harmful:
        found = measure_harm(fit)
        pairs = zip(found.rows[:n_harmful].tolist(), found.percent.tolist(), strict=False)
        harmful = tuple(
            HarmfulExample(i, _plain(given[i]), harm) for i, harm in pairs if harm >= _LEAST_HARM
        )
    return LabelIssues(
        _wrong(verdicts, labels, codes, certainty),
        _duplicates(near_duplicates(rows, similarity, random_state), given),
        harmful,
        verdicts.share_wrong,
        np.where(np.isnan(verdicts.certainty), np.float32(np.nan), verdicts.quality),
    )


@translate_errors()
def check_rows(X: npt.ArrayLike, **options: Any) -> npt.NDArray[Any]:
    """Check that features are finite numbers whose squares do not overflow."""
    rows = np.asarray(check_array(from_other_library(X), dtype="numeric", **options))
    check_magnitude(rows)
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float32)


def check_examples(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[npt.NDArray[Any], ClassList, Codes]:
    """Check labelled examples; return features, classes and the column of each label."""
    rows = check_rows(X)
    with translate_errors():
        y = from_other_library(y)
        check_label_types(y)
        values = np.asarray(y)
        check_consistent_length(rows, values)
        with warnings.catch_warnings():
            # Many classes of one example each are usual when labels begin to come.
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(values)
    labels, codes = ClassList.of(values)
    return rows, labels, codes


def _wrong(
    verdicts: Verdicts, labels: ClassList, codes: Codes, certainty: float
) -> tuple[WrongLabel, ...]:
    names = labels.classes.tolist()
    return tuple(
        WrongLabel(
            i,
            names[codes[i]],
            names[verdicts.suggestion[i]],
            float(verdicts.certainty[i]),
            float(verdicts.probability[i]),
        )
        for i in verdicts.ranking.tolist()
        if verdicts.certainty[i] >= certainty
    )


def _duplicates(groups: list[list[int]], given: npt.NDArray[Any]) -> tuple[DuplicateGroup, ...]:
    found = [DuplicateGroup(tuple(rows), tuple(given[rows].tolist())) for rows in groups]
    return tuple(sorted(found, key=lambda group: not group.contradicts))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
