"""Update strategies: how a forest takes new samples [Ristin2014 Sec. 4].

``STRATEGIES`` lists them. What a strategy does to a tree is in the core, ``cpp/update/``.
``CONTRIBUTING.md`` says how to add one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.params import Choice, Number, Rule, check_parameters

NodeSampling: TypeAlias = Literal["size", "uniform", "quality"]

NODE_RULES: dict[str, list[Rule]] = {
    "share": [Number(0.0, 1.0)],
    "nodes": [Choice(("size", "uniform", "quality"))],
}


@dataclass(frozen=True)
class Strategy:
    """What a forest must know about an update strategy.

    Attributes
    ----------
    _name : str
        Name of the strategy in the core and in model files.
    _needs_rows : bool
        It reads stored training samples.
    _needs_class_means : bool
        It works only on nodes that compare with class means.
    _changes_splits : bool
        It finds splits again with the new classes, so that all trees know them; otherwise only
        trees that were grown since a class came do.
    """

    _name: ClassVar[str]
    _needs_rows: ClassVar[bool] = True
    _needs_class_means: ClassVar[bool] = False
    _changes_splits: ClassVar[bool] = False

    def _chosen_nodes(
        self,
        update_fraction: float,  # noqa: ARG002
        node_sampling: NodeSampling,  # noqa: ARG002
    ) -> tuple[float, NodeSampling]:
        """Share of the splitting nodes to choose, and how; by default none."""
        return 0.0, "size"


@dataclass(frozen=True)
class ULS(Strategy):
    """Update leaf statistics: new samples only change the class counts of leaves.

    This update strategy of forests [Ristin2014 Sec. 4 a] is the fastest and the least accurate. It
    is the only one that does not need the stored training samples. ``update="uls"`` is the same.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, ULS
    >>> NCMForestClassifier(update=ULS()).update
    ULS()
    """

    _name = "uls"
    _needs_rows = False


@dataclass(frozen=True)
class IGT(Strategy):
    """Incrementally grow tree: leaves that new samples reach are split where possible.

    This update strategy of forests [Ristin2014 Sec. 4 b] keeps all existing splits.
    ``update="igt"``, the default of forests, is the same.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, IGT
    >>> NCMForestClassifier(update=IGT()).update
    IGT()
    """

    _name = "igt"


@dataclass(frozen=True)
class NodeStrategy(Strategy):
    """A strategy that changes a random choice of the splitting nodes."""

    share: float | None = None
    nodes: NodeSampling | None = None

    _changes_splits = True

    def _chosen_nodes(
        self, update_fraction: float, node_sampling: NodeSampling
    ) -> tuple[float, NodeSampling]:
        """Share of the splitting nodes to choose, and how; the arguments are the defaults."""
        share = update_fraction if self.share is None else self.share
        nodes = node_sampling if self.nodes is None else self.nodes
        check_parameters({"share": share, "nodes": nodes}, NODE_RULES)
        return float(share), nodes


@dataclass(frozen=True)
class RTST(NodeStrategy):
    """Retrain subtrees: some of the subtrees that new samples reach are grown again.

    Each of them is grown from all of its old and new samples. This update strategy of forests
    [Ristin2014 Sec. 4 c] is the slowest and the most accurate.
    ``update="rtst"`` is the same with the default options.

    Parameters
    ----------
    share : float, default=None
        Share of the splitting nodes that are chosen in each update, from 0 to 1. None uses the
        forest's ``update_fraction``.
    nodes : {"size", "uniform", "quality"}, default=None
        Which nodes are more likely to be chosen: those with a small subtree, all equally, or those
        whose subtree separates its samples badly. None uses the forest's ``node_sampling``.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, RTST
    >>> NCMForestClassifier(update=RTST(share=0.05, nodes="uniform")).update
    RTST(share=0.05, nodes='uniform')
    """

    _name = "rtst"


@dataclass(frozen=True)
class RUST(NodeStrategy):
    """Reuse subtree: some nodes add the means of new classes and keep the subtrees below them.

    This update strategy of forests [Ristin2014 Sec. 4 d] moves only the samples that now belong to
    the other child, and only the leaves that they reach may grow. It needs a forest of class means.
    ``update="rust"`` is the same with the default options.

    Parameters
    ----------
    share : float, default=None
        Share of the splitting nodes that are chosen in each update, from 0 to 1. None uses the
        forest's ``update_fraction``.
    nodes : {"size", "uniform", "quality"}, default=None
        Which nodes are more likely to be chosen: those with a small subtree, all equally, or those
        whose subtree separates its samples badly. None uses the forest's ``node_sampling``.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, RUST
    >>> NCMForestClassifier(update=RUST(share=0.5)).update
    RUST(share=0.5, nodes=None)
    """

    _name = "rust"
    _needs_class_means = True


# To add a strategy: write its NumPy reference in tests/reference/updates.py, a NodeDecider of the
# core such as cpp/update/rust.cpp with its line in cpp/update/strategy_table.cpp, and a class
# above. Tests read this table; they compare the core with the reference.
STRATEGIES: dict[str, type[Strategy]] = {kind._name: kind for kind in (ULS, IGT, RTST, RUST)}


def strategy_of(update: str | Strategy) -> Strategy:
    """A strategy given by its name or as a value.

    >>> strategy_of("rtst")
    RTST(share=None, nodes=None)
    """
    return STRATEGIES[update]() if isinstance(update, str) else update


def usable_strategies(*, has_class_means: bool) -> list[str]:
    """Names of the strategies that a forest with or without class means can use.

    >>> usable_strategies(has_class_means=False)
    ['uls', 'igt', 'rtst']
    """
    return [
        name for name, kind in STRATEGIES.items() if has_class_means or not kind._needs_class_means
    ]


def strategy_to_json(strategy: Strategy) -> dict[str, Any]:
    """Name and options of a strategy."""
    options = asdict(strategy).items()
    plain = {key: v.item() if isinstance(v, np.generic) else v for key, v in options}
    return {"name": strategy._name, **plain}


def strategy_from_json(entry: dict[str, Any]) -> Strategy:
    """Rebuild from :func:`strategy_to_json`; a ``ValueError`` for an unknown strategy."""
    options = dict(entry)
    kind = STRATEGIES.get(str(options.pop("name", None)))
    if kind is None or set(options) - {field.name for field in fields(kind)}:
        raise InvalidInputError(f"unknown update strategy {entry}")
    return kind(**options)
