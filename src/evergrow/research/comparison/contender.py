"""What takes part in a comparison, as values: how it is built and what it can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from evergrow.research.comparison.river_learner import RiverLearner
from evergrow.research.streams import Learner, Retrained

__all__ = ["Contender", "Estimator", "Family", "RiverModel", "Setting", "Way"]

Array = npt.NDArray[Any]

Family = Literal["forests", "means and least squares", "scikit-learn", "river"]
# "grows": takes new classes as they come. "told": learns in place, but must be told all classes
# beforehand. "retrained": trains anew from all examples, which it must keep.
Way = Literal["grows", "told", "retrained"]


@dataclass(frozen=True)
class Setting:
    """What all contenders of one run share."""

    seed: int
    n_jobs: int
    classes: Array
    """All classes that will come, for those who must be told."""


class Recipe(Protocol):
    """How to make an estimator that has learnt nothing yet."""

    @property
    def code(self) -> str:
        """The call that makes it, for people."""

    @property
    def package(self) -> str:
        """The package it comes from."""

    def build(self, setting: Setting) -> Any:
        """Make one."""


@dataclass(frozen=True)
class Estimator:
    """An estimator of scikit-learn's kind, imported when it is built."""

    home: str
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    unit_length: bool = False
    """Whether samples are scaled to length 1 first."""

    @property
    def code(self) -> str:
        """The call that makes it, for people."""
        given = ", ".join(f"{name}={_shown(value)}" for name, value in self.parameters.items())
        call = f"{self.name}({given})"
        return f"make_pipeline(Normalizer(), {call})" if self.unit_length else call

    @property
    def package(self) -> str:
        """The package it comes from."""
        return self.home.partition(".")[0]

    def build(self, setting: Setting) -> Any:
        """Make one, with threads and seed where it takes them."""
        model = getattr(import_module(self.home), self.name)(**self.parameters)
        shared = {"n_jobs": setting.n_jobs, "random_state": setting.seed}
        taken = model.get_params(deep=False)
        model.set_params(**{name: value for name, value in shared.items() if name in taken})
        if not self.unit_length:
            return model
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        return make_pipeline(Normalizer(), model)


def _shown(value: Any) -> str:
    # Options that were not given only make the call longer.
    return repr(value).replace(", nodes=None", "")


@dataclass(frozen=True)
class RiverModel:
    """A model of river's, which learns one example at a time."""

    code: str
    make: Callable[[int], Any]
    """From a seed to a model."""
    package: str = "river"

    def build(self, setting: Setting) -> Any:
        """Make one."""
        return RiverLearner(self.make(setting.seed))


@dataclass(frozen=True)
class Contender:
    """One learner of a comparison."""

    name: str
    """What ``--only`` and ``--skip`` call it."""
    title: str
    """What tables call it."""
    family: Family
    recipe: Recipe
    way: Way = "grows"
    holds_examples: bool = False
    """Whether the trained model holds the examples itself."""
    on_sample: bool = False
    """Whether it takes part in the comparison on a subsample, for being slow or to stand beside."""
    in_quick: bool = True
    """Whether it is fast enough for a quick run."""
    note: str = ""

    def missing(self) -> str:
        """The package that would have to be installed; empty if all is there."""
        package = self.recipe.package
        return "" if find_spec(package) is not None else package

    def learner(self, setting: Setting) -> Learner:
        """One that has learnt nothing yet, ready to follow a stream."""
        if self.way == "retrained":
            return Retrained(lambda: self.recipe.build(setting))
        model: Learner = self.recipe.build(setting)
        return _Told(model, setting.classes) if self.way == "told" else model


class _Told:
    """Tells a model all classes beforehand, those included that nobody could know yet."""

    def __init__(self, model: Any, classes: Sequence[Any] | Array) -> None:
        self.model, self._classes = model, np.sort(np.asarray(classes))

    def partial_fit(self, X: Any, y: Any) -> _Told:
        self.model.partial_fit(X, y, classes=self._classes)
        return self

    def predict(self, X: Any) -> Array:
        answers: Array = self.model.predict(X)
        return answers
