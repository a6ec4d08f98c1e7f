"""Update strategies: how a forest takes new samples [Ristin2014 Sec. 4].

``STRATEGIES`` lists them. What a strategy does to a tree is in the core, ``cpp/update/``.
``CONTRIBUTING.md`` says how to add one.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, TypeAlias

from evergrow.foundation.params import Choice, Number, OneOf, Rule, Value

NodeSampling: TypeAlias = Literal["size", "uniform", "quality"]


@dataclass(frozen=True, repr=False)
class Strategy(Value):
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

    _: KW_ONLY
    refresh: float | Literal["auto"] = "auto"

    _name: ClassVar[str]
    _needs_rows: ClassVar[bool] = True
    _needs_class_means: ClassVar[bool] = False
    _changes_splits: ClassVar[bool] = False
    _rules: ClassVar[dict[str, list[Rule]]] = {"refresh": [Choice(("auto",)), Number(0.0, 1.0)]}

    @property
    def _chosen_nodes(self) -> tuple[float, NodeSampling]:
        """Share of the splitting nodes to choose, and how."""
        return 0.0, "size"


@dataclass(frozen=True, repr=False)
class ULS(Strategy):
    """Update leaf statistics: new samples only change the class counts of leaves.

    This update strategy of forests [Ristin2014 Sec. 4 a] is the fastest and the least accurate. It
    is the only one that does not need the stored training samples, except to grow trees again.
    ``update="uls"`` is ``ULS()``.

    Parameters
    ----------
    refresh : "auto" or float, default="auto"
        Share of the trees that each update also grows again from scratch, as in :class:`IGT`.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, ULS
    >>> NCMForestClassifier(update=ULS()).update
    ULS()
    """

    _name = "uls"
    _needs_rows = False


@dataclass(frozen=True, repr=False)
class IGT(Strategy):
    """Incrementally grow tree: leaves that new samples reach are split where possible.

    This update strategy of forests [Ristin2014 Sec. 4 b] keeps all existing splits.
    ``update="igt"``, the default of most forests, is ``IGT()``.

    Parameters
    ----------
    refresh : "auto" or float, default="auto"
        Share of the trees that each update also grows again from scratch. The trees take turns.
        ``"auto"`` grows a tree again once the number of classes or of samples has increased by 30 %
        since the tree was last grown. An update with new classes grows at least one tree again.
        With 0.0, trees are never grown again. Updates are then faster, and the forest is less
        accurate.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, IGT
    >>> NCMForestClassifier(update=IGT()).update
    IGT()
    """

    _name = "igt"


@dataclass(frozen=True, repr=False)
class NodeStrategy(Strategy):
    """A strategy that changes a random choice of the splitting nodes."""

    share: float = 0.8
    nodes: NodeSampling = "size"

    _changes_splits = True
    _rules: ClassVar[dict[str, list[Rule]]] = {
        "share": [Number(0.0, 1.0)],
        "nodes": [Choice(("size", "uniform", "quality"))],
        **Strategy._rules,
    }

    @property
    def _chosen_nodes(self) -> tuple[float, NodeSampling]:
        return float(self.share), self.nodes


@dataclass(frozen=True, repr=False)
class RTST(NodeStrategy):
    """Retrain subtrees: some of the subtrees that new samples reach are grown again.

    Each of them is grown from all of its old and new samples. This update strategy of forests
    [Ristin2014 Sec. 4 c] is the slowest and the most accurate.
    ``update="rtst"`` is ``RTST()``.

    Parameters
    ----------
    share : float, default=0.8
        Share of the splitting nodes that are chosen in each update, from 0 to 1. Lower values
        update faster and less accurately.
    nodes : {"size", "uniform", "quality"}, default="size"
        Which nodes are more likely to be chosen: those with a small subtree, all equally, or those
        whose subtree separates its samples badly.
    refresh : "auto" or float, default="auto"
        Share of the trees that each update also grows again from scratch, as in :class:`IGT`.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, RTST
    >>> NCMForestClassifier(update=RTST(share=0.05, nodes="uniform")).update
    RTST(share=0.05, nodes='uniform')
    """

    _name = "rtst"


@dataclass(frozen=True, repr=False)
class RUST(NodeStrategy):
    """Reuse subtree: some nodes add the means of new classes and keep the subtrees below them.

    This update strategy of forests [Ristin2014 Sec. 4 d] moves only the samples that now belong to
    the other child, and only the leaves that they reach may grow. It needs a forest of class means.
    ``update="rust"`` is ``RUST()``.

    Parameters
    ----------
    share : float, default=0.8
        Share of the splitting nodes that are chosen in each update, from 0 to 1. Lower values
        update faster and less accurately.
    nodes : {"size", "uniform", "quality"}, default="size"
        Which nodes are more likely to be chosen: those with a small subtree, all equally, or those
        whose subtree separates its samples badly.
    refresh : "auto" or float, default="auto"
        Share of the trees that each update also grows again from scratch, as in :class:`IGT`.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, RUST
    >>> NCMForestClassifier(update=RUST(share=0.5)).update
    RUST(share=0.5)
    """

    _name = "rust"
    _needs_class_means = True


# To add a strategy: write its NumPy reference in tests/reference/updates.py, a NodeDecider of the
# core such as cpp/update/rust.cpp with its line in cpp/update/strategy_table.cpp, and a class
# above. Tests read this table; they compare the core with the reference.
STRATEGIES: dict[str, type[Strategy]] = {kind._name: kind for kind in (ULS, IGT, RTST, RUST)}


STRATEGY_RULES: list[Rule] = [Choice(tuple(STRATEGIES)), OneOf(tuple(STRATEGIES.values()))]


def strategy_of(update: str | Strategy | None) -> Strategy:
    """A strategy given by its name or as a value; None is that of [Ristin2015].

    >>> strategy_of("rtst"), strategy_of(None)
    (RTST(), RUST(refresh=0.0))
    """
    if update is None:
        return RUST(refresh=0.0)
    return STRATEGIES[update]() if isinstance(update, str) else update


def usable_strategies(*, has_class_means: bool) -> list[str]:
    """Names of the strategies that a forest with or without class means can use.

    >>> usable_strategies(has_class_means=False)
    ['uls', 'igt', 'rtst']
    """
    return [
        name for name, kind in STRATEGIES.items() if has_class_means or not kind._needs_class_means
    ]
