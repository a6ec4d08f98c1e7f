"""Laws of the shape of trees, against laws that are known and trees that were grown."""

from __future__ import annotations

import numpy as np
import pytest

from evergrow import NCMForestClassifier
from evergrow.distributed.planning.generated import generate
from evergrow.distributed.planning.shape import Law, ShapeLaws, measure_shape
from evergrow.distributed.planning.workload import Workload
from evergrow.estimators.forest.growth import centroids_per_node

SIZES = [(2000, 32, 10), (8000, 32, 10), (2000, 32, 80), (8000, 32, 80), (4000, 128, 40)]


def test_a_law_that_holds_is_found() -> None:
    truth = Law(0.7, 1.0, 0.4, 0.1, 0.5)
    works = [Workload(*size) for size in SIZES]
    found = Law.fitted(works, [truth.at(work) for work in works], (1.0, 0.4, 0.1, 0.5))
    assert found.at(Workload(64000, 256, 100)) == pytest.approx(truth.at(Workload(64000, 256, 100)))


@pytest.fixture(scope="module")
def grown() -> tuple[list[Workload], list[NCMForestClassifier]]:
    """Forests on data of several sizes."""
    works = [Workload(*size, trees=2) for size in SIZES]
    forests = []
    for work in works:
        X, y = generate(work.rows, work.features, work.classes)
        forests.append(NCMForestClassifier(2, random_state=0).fit(X, y))
    return works, forests


def test_visits_are_the_mean_depth_of_the_rows(
    grown: tuple[list[Workload], list[NCMForestClassifier]],
) -> None:
    works, forests = grown
    core = forests[0]._fitted.forest
    depths = []
    for place in range(2):
        tree = core.tree_arrays(place)
        depth = np.zeros(len(tree["left"]), dtype=int)
        for node in np.flatnonzero(tree["left"] >= 0):
            depth[tree["left"][node] : tree["left"][node] + 2] = depth[node] + 1
        leaves = tree["left"] < 0
        depths.append(float((depth * tree["row_size"])[leaves].sum() / works[0].rows))
    assert measure_shape(core).visits == pytest.approx(np.mean(depths))


def test_trees_of_8_times_the_rows_are_foretold(
    grown: tuple[list[Workload], list[NCMForestClassifier]],
) -> None:
    works, forests = grown
    shapes = [measure_shape(each._fitted.forest) for each in forests]
    laws = ShapeLaws.fitted(works, shapes, [centroids_per_node("sqrt", w.classes) for w in works])
    X, y = generate(32000, 32, 40)
    shape = measure_shape(NCMForestClassifier(1, random_state=0).fit(X, y)._fitted.forest)
    expected = laws.at(Workload(32000, 32, 40), 7)
    assert expected.visits == pytest.approx(shape.visits, rel=0.2)
    assert expected.splits == pytest.approx(shape.splits, rel=0.3)


def test_no_tree_has_more_splits_than_its_rows_allow() -> None:
    laws = ShapeLaws(*(Law(1e6, 1.0, 0.0, 0.0, 0.0),) * 5)
    shape = laws.at(Workload(100, 8, 5), 3)
    assert shape.splits <= 9
    assert shape.visits <= shape.splits
    assert shape.classes_per_node <= 5
    assert shape.vectors <= 3 * shape.splits
