"""The table of what each learner can forget, in the docs, is what the learners do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from evergrow import (
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RejectingClassifier,
    RLSClassifier,
    SubcategoryForestClassifier,
)
from evergrow.estimators import AxisForestClassifier, LinearForestClassifier, SVMForestClassifier
from tests.estimators.classifiers import X, Y

PAGE = Path(__file__).resolve().parents[2] / "docs" / "getting_started.md"
COLUMNS = ("classes", "X, y", "samples")
LEAST_SQUARES = RLSClassifier(random_state=0)
OPTIONS: dict[str, Any] = {"n_estimators": 2, "random_state": 0}
FORESTS = (NCMForestClassifier, SVMForestClassifier, LinearForestClassifier, AxisForestClassifier)
# By the first cell of a row.
LEARNERS: dict[str, list[Any]] = {
    "`RLSClassifier`": [LEAST_SQUARES],
    "`NCMClassifier`": [NCMClassifier()],
    '`NCMClassifier(metric="mahalanobis")`': [NCMClassifier(metric="mahalanobis")],
    "`NCMClassifier(metric=NCMMetric())`": [
        NCMClassifier(metric=NCMMetric(max_iter=2, random_state=0))
    ],
    "`NCMForestClassifier` and other forests": [kind(**OPTIONS) for kind in FORESTS],
    "`SubcategoryForestClassifier`": [SubcategoryForestClassifier(**OPTIONS)],
}
INSIDE = [LEAST_SQUARES, NCMClassifier(), NCMForestClassifier(**OPTIONS)]


def table() -> dict[str, list[str]]:
    section = PAGE.read_text("utf-8").partition("\n## Forget\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {first: others for first, *others in cells[1:]}


def can_forget(model: Any, column: str) -> str:
    """Yes, no, or only: the first word of a cell."""
    columns = np.stack([Y, Y], axis=1)
    y = columns if isinstance(model, SubcategoryForestClassifier) else Y
    model = clone(model).fit(X, y)
    try:
        if column == "X, y":
            model.forget(X[:2], y[:2])
        else:
            model.forget(**{column: [int(Y[0])] if column == "classes" else [0]})
    except TypeError:
        return "no"
    except ValueError as error:
        with_examples = model.forget(X[Y[0] == Y], Y[Y[0] == Y], classes=[Y[0]])
        is_price = "keep_class_statistics=True" in str(error)
        return "only" if is_price and Y[0] not in with_examples.classes_ else str(error)
    return "yes"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_each_cell_says_what_the_learner_does(learner: str, column: str) -> None:
    cell = table()[learner][COLUMNS.index(column)]
    found = {can_forget(model, column) for model in LEARNERS[learner]}
    assert found == {cell.replace(",", " ").split()[0]}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("inside", INSIDE)
def test_rejection_forgets_as_its_estimator(inside: Any, column: str) -> None:
    cell = table()["`RejectingClassifier`"][COLUMNS.index(column)]
    wanted = can_forget(inside, column) if cell == "as the estimator in it" else cell
    assert can_forget(RejectingClassifier(inside, random_state=0), column) == wanted


def test_the_table_has_every_learner() -> None:
    assert table().keys() == {*LEARNERS, "`RejectingClassifier`", "`ImageClassifier`"}
