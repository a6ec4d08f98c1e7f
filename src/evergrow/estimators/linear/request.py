"""The parameters of one call of least squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from evergrow.estimators.linear.equations import Ridge, Scoring
from evergrow.estimators.linear.feature_map import RFF, resolve_map
from evergrow.estimators.linear.penalties import SelectionRequest
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import bytes_of

if TYPE_CHECKING:
    from evergrow.estimators.linear.fitted import FittedRLS


@dataclass(frozen=True)
class RLSRequest:
    """The parameters of one call; ``structure`` holds those that determine the sums."""

    selection: SelectionRequest
    ridge: Callable[[float], Ridge]
    validation_every: int
    max_stored: int
    max_gram_bytes: int
    verbose: int
    structure: Mapping[str, Any]

    @classmethod
    def of(cls, estimator: Any) -> RLSRequest:
        """Copy the parameters from an estimator."""
        penalty, recoding = estimator.regularization, estimator.recoding
        standardize, intercept = bool(estimator.standardize), bool(estimator.fit_intercept)
        blocks, n_random = estimator.blocks, estimator.n_random_features
        if n_random == "auto" and estimator.selection == "paper":
            raise InvalidInputError(
                'n_random_features="auto" is selected by leave-one-out: give a number of random '
                'features, or use selection="leave-one-out"'
            )
        scoring: Scoring = estimator.scoring
        return cls(
            SelectionRequest(
                None if penalty == "auto" else float(penalty),
                None if recoding == "auto" else float(recoding),
                standardize,
                estimator.selection,
                # Random features in place of the inputs mix the blocks, so all of them take part.
                () if blocks is None or n_random not in (0, "auto") else tuple(map(int, blocks)),
                scoring,
            ),
            partial(Ridge, standardize=standardize, intercept=intercept, scoring=scoring),
            int(estimator.validation_every),
            int(estimator.max_stored),
            bytes_of(estimator.max_gram_memory),
            int(estimator.verbose),
            {
                "fit_intercept": intercept,
                "n_random_features": n_random,
                "keep_class_statistics": bool(estimator.keep_class_statistics),
                "feature_map": estimator.feature_map,
            },
        )

    @property
    def needs_examples(self) -> bool:
        """Whether examples are stored: something is to be selected, now or later."""
        return self.selection.needs_examples or self.structure["n_random_features"] == "auto"

    def n_affordable(self, n_inputs: int) -> int:
        """Return how many random features may follow the inputs; a multiple of four."""
        width = math.isqrt(self.max_gram_bytes // 8)
        n_left = width - n_inputs - bool(self.structure["fit_intercept"])
        return max(0, n_left) // 4 * 4

    def check(self, known: FittedRLS, action: str) -> None:
        """Raise a ``ValueError`` if a fitted value cannot change, or not under these parameters."""
        if known.fixed is not None:
            raise InvalidInputError(
                f"cannot {action}: the model was saved with inference_only=True and has only "
                "weights"
            )
        self.check_structure(known)

    def check_blocks(self, n_inputs: int) -> None:
        """Raise a ``ValueError`` if the blocks are not those of the features."""
        blocks = self.selection.blocks
        if blocks and sum(blocks) != n_inputs:
            raise InvalidInputError(
                f"blocks={blocks} have {sum(blocks)} columns together but X has {n_inputs}"
            )

    def check_structure(self, known: FittedRLS) -> None:
        """Raise a ``ValueError`` if parameters that determine the sums have changed."""
        self.check_blocks(known.features.n_inputs)
        if known.fixed is not None:
            return
        features = known.features
        then: dict[str, Any] = {
            "fit_intercept": known.intercept,
            "n_random_features": "auto" if features.with_inputs else features.n_random,
            "keep_class_statistics": known.moments.class_settled is not None,
        }
        now = {name: self.structure[name] for name in then}
        wanted_map = resolve_map(self.structure["feature_map"])
        if features.kind != "none":
            now["feature_map"], then["feature_map"] = wanted_map.name, features.kind
        has_width = features.kind == "rff" and features.n_random > 0
        if has_width and isinstance(wanted_map, RFF) and wanted_map.gamma != "scale":
            now["gamma"], then["gamma"] = float(wanted_map.gamma), features.gamma
        for name, wanted in now.items():
            if wanted != then[name]:
                raise InvalidInputError(
                    f"{name} is {wanted!r} but the model was trained with {then[name]!r}: "
                    "fit again to change it"
                )
