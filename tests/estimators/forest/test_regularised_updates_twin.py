"""Updates of regularised forests, flat or with coarse and fine classes, are those of the twin."""

from __future__ import annotations

from dataclasses import asdict, replace

from hypothesis import Phase, settings
from hypothesis import strategies as st

from tests.budget import budget
from tests.estimators.forest import test_updates_twin
from tests.estimators.forest.test_regularised_twin import some_parents
from tests.reference import ncm_forest as twin
from tests.reference.regularised_forest import OBJECTIVES, RegularisedPass, RegularisedRules


class RegularisedMachine(test_updates_twin.GrowingForestMachine):
    """A regularised forest and its twin through the same updates."""

    rules: RegularisedRules
    pass_kind = RegularisedPass

    def chosen(self, kind: str) -> str:
        return "regularised"

    def completed(self, rules: twin.Rules) -> twin.Rules:
        # Most can go wrong where coarse classes have means.
        objective = str(self.random.choice([*OBJECTIVES, "hierarchical", "hierarchical"]))
        is_flat = objective == "gain" or self.random.random() < 0.2
        return RegularisedRules(
            **asdict(rules),
            n_subsets=int(self.random.integers(2, 9)),
            cost_weight=float(self.random.choice([0.0, 0.001, 0.1])),
            max_scoring_samples=25 if self.random.random() < 0.3 else None,
            objective=objective,
            coarse_weight=float(self.random.choice([0.1, 1.0])),
            coarse_means=bool(self.random.random() < 0.7),
            parents=() if is_flat else some_parents(self.seed, rules.n_classes),
        )

    def with_more_classes(self, n_new: int) -> twin.Rules:
        n_old, parents = self.rules.n_classes, self.rules.parents
        for c in range(n_old, n_old + n_new) if parents else ():
            # On the top level, or below any class.
            parents = (*parents, int(self.random.integers(c + 1)))
        return replace(self.rules, n_classes=n_old + n_new, parents=parents)

    def with_other_columns(self, columns: list[int]) -> twin.Rules:
        parents = {
            new: columns[self.rules.parent(old)] for old, new in enumerate(columns) if new >= 0
        }
        renamed = tuple(parents[c] for c in sorted(parents)) if self.rules.parents else ()
        return replace(self.rules, n_classes=max(columns) + 1, parents=renamed)

    def parents(self, data: st.DataObject) -> list[int]:
        return list(self.rules.parents or range(self.rules.n_classes))

    def may_go(self, c: int) -> bool:
        return super().may_go(c) and not self.rules.is_divided(c)

    def may_be_one(self, a: int, b: int) -> bool:
        both_fine = self.rules.parent(a) == self.rules.parent(b) not in (a, b)
        return super().may_be_one(a, b) and (not self.rules.parents or both_fine)


TestRegularisedForest = RegularisedMachine.TestCase
TestRegularisedForest.settings = settings(
    max_examples=budget(100),
    stateful_step_count=12,
    # Shrinking takes minutes; the steps printed for the first failure are short enough.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
