"""All experiments by name: the tables and figures of the five papers, and our own guide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import cast

from evergrow.foundation.errors import InvalidInputError
from evergrow.research.experiments.experiment import Experiment
from evergrow.research.experiments.terms import TERMS, Term


@dataclass(frozen=True)
class Illustration:
    """A figure without measurements: there is nothing to repeat."""

    name: str
    why: str


@dataclass(frozen=True)
class Paper:
    """One of the papers, with the modules of its experiments."""

    name: str
    citation: str
    modules: tuple[str, ...]
    illustrations: tuple[Illustration, ...] = ()
    about: str = ""
    """What a reader of any of its pages must know."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its experiments."""
        return tuple(f"{self.name}-{module.replace('_', '-')}" for module in self.modules)

    @property
    def terms(self) -> tuple[Term, ...]:
        """What the words of its pages mean."""
        return TERMS[self.name]


_ABOUT = {
    "guide": (
        "We measured this ourselves; it is in no paper. The claims back the advice in [Which "
        "learner to use](../choosing.md)."
    ),
    "icra2017": (
        "All methods are regularised least squares. A new class has few examples, and the others "
        "have many."
    ),
}

PAPERS = (
    Paper(
        "cvpr2014",
        "Ristin, Guillaumin, Gall, Van Gool: Incremental Learning of NCM Forests for Large-Scale "
        "Image Classification, CVPR 2014",
        ("fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10"),
        (
            Illustration("cvpr2014-fig1", "a drawing of how one tree classifies an image"),
            Illustration("cvpr2014-fig2", "a drawing of the four ways to update a tree"),
        ),
    ),
    Paper(
        "report",
        "Guo, Feng, Kondoh, Zhang: Incremental Learning of Random Forests for Large-Scale Image "
        "Classification, report, University of Michigan",
        ("fig2", "fig3", "fig4", "table1", "fig5", "fig6", "fig7"),
        (Illustration("report-fig1", "a drawing of the ways to update a tree"),),
    ),
    Paper(
        "icra2017",
        "Camoriano, Pasquale, Ciliberto, Natale, Rosasco, Metta: Incremental Robot Learning of "
        "New Objects with Fixed Update Time, ICRA 2017",
        ("fig1", "table1", "fig2", "fig3", "update_time"),
        about=_ABOUT["icra2017"],
    ),
    Paper(
        "nips2006",
        "Moosmann, Triggs, Jurie: Fast Discriminative Visual Codebooks using Randomized "
        "Clustering Forests, NIPS 2006",
        ("fig2", "fig3", "fig4a", "fig4b", "fig4c", "fig4d", "settings", "sift"),
        (Illustration("nips2006-fig1", "a drawing of the steps from image to class"),),
    ),
    Paper(
        "cvpr2015",
        "Ristin, Gall, Guillaumin, Van Gool: From Categories to Subcategories: Large-Scale Image "
        "Classification with Partial Class Label Refinement, CVPR 2015",
        (*(f"table{number}" for number in range(1, 7)), "fig2", "fig3", "fig4", "guesses", "sizes"),
        (Illustration("cvpr2015-fig1", "a drawing of coarse classes that get finer ones"),),
    ),
    Paper(
        "guide",
        "Which learner when: measurements of our own, in no paper",
        (
            "images_per_class",
            "first_pictures",
            "all_pictures",
            "new_class",
            "photographs",
            "forest_features",
            "many_classes",
            "update_time",
            "nightly",
        ),
        about=_ABOUT["guide"],
    ),
)


def find_paper(name: str) -> Paper | None:
    """The paper of an experiment; None if the experiment is not listed."""
    return next((paper for paper in PAPERS if name in paper.names), None)


def experiment_names() -> tuple[str, ...]:
    """Return the names of all experiments, paper by paper.

    Examples
    --------
    >>> from evergrow.research import experiment_names
    >>> "cvpr2014-fig5" in experiment_names()
    True
    """
    return tuple(name for paper in PAPERS for name in paper.names)


def find_experiments(names: Iterable[str]) -> list[Experiment]:
    """Find experiments by name; a paper's name means all of its experiments, "all" every one.

    Examples
    --------
    >>> from evergrow.research import find_experiments
    >>> [experiment.name for experiment in find_experiments(["icra2017-fig1"])]
    ['icra2017-fig1']
    """
    wanted: dict[str, None] = {}
    for name in names:
        wanted |= dict.fromkeys(_expand(name))
    return [_load(name) for name in wanted]


def _expand(name: str) -> tuple[str, ...]:
    if name == "all":
        return experiment_names()
    for paper in PAPERS:
        if name == paper.name:
            return paper.names
        for illustration in paper.illustrations:
            if name == illustration.name:
                raise InvalidInputError(f"{name} is {illustration.why}: it has nothing to measure")
    if name not in experiment_names():
        near = get_close_matches(name, experiment_names(), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "see evergrow experiment --list"
        raise InvalidInputError(f"unknown experiment {name!r}: {hint}")
    return (name,)


def _load(name: str) -> Experiment:
    paper, _, module = name.partition("-")
    found = import_module(f"evergrow.research.papers.{paper}.{module.replace('-', '_')}")
    return cast(Experiment, found.EXPERIMENT)
