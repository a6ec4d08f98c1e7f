"""Taking classes and samples out of a forest of coarse and fine classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evergrow.estimators.forest.change.removal import forget as forget_of_forest
from evergrow.estimators.forest.request import ForestRequest
from evergrow.estimators.forest.splits import FixedSplits
from evergrow.estimators.subcategory.fitted import FittedSubcategories
from evergrow.estimators.subcategory.hierarchy import LabelTree
from evergrow.estimators.subcategory.learning import Lesson, Plan, reguess
from evergrow.estimators.subcategory.unconfirmed import Unconfirmed
from evergrow.foundation.turns import turn_of_file

__all__ = ["forget"]


def forget(
    known: FittedSubcategories, gone: list[int], ids: npt.NDArray[np.int64], plan: Plan
) -> Lesson:
    """Take classes, by their numbers, and single samples, by their ids, out of a forest."""
    with turn_of_file(known.forest.forest.samples.path):
        return _forget(known, gone, ids, plan)


def _forget(
    known: FittedSubcategories, gone: list[int], ids: npt.NDArray[np.int64], plan: Plan
) -> Lesson:
    tree, place = known.tree.without(gone)
    # A guess may contradict the coarse class: not every sample of one that goes is in it.
    bare = known.unconfirmed.ids[np.isin(known.unconfirmed.coarse, gone)]
    ids = np.union1d(ids, bare)
    forest, guesses = reguess(known, gone, plan)
    recipe = _recipe_of_both(plan, known.tree, tree)
    forest, report = forget_of_forest(forest, gone, ids, recipe)
    forest = replace(forest, labels=tree.core_labels)
    left = known.unconfirmed.kept(forest.stored_ids)
    coarse = np.array(place, dtype=np.int32)[left.coarse]
    fitted = FittedSubcategories(tree, forest, plan.name, Unconfirmed(left.ids, coarse))
    return Lesson(fitted, report, guesses)


def _recipe_of_both(plan: Plan, before: LabelTree, after: LabelTree) -> ForestRequest:
    """Rules for the classes as they were and as they are, which differ in their number."""
    rules = {len(tree): plan.recipe(tree).splits.rules(len(tree), 0) for tree in (before, after)}
    return replace(plan.recipe(before), splits=FixedSplits(rules))
