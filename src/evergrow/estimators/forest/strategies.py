"""How a forest takes new samples: the update strategies and their options."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np

from evergrow.foundation.params import Choice, Number, Rule, check_parameters

NodeSampling: TypeAlias = Literal["size", "uniform", "quality"]

CHOICE_RULES: dict[str, list[Rule]] = {
    "share": [Number(0.0, 1.0)],
    "nodes": [Choice(("size", "uniform", "quality"))],
}


@dataclass(frozen=True)
class ULS:
    """Update leaf statistics: new samples only change the class counts of leaves.

    The fastest and least accurate way, and the only one that needs no stored samples.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, ULS
    >>> NCMForestClassifier(update=ULS()).update
    ULS()
    """


@dataclass(frozen=True)
class IGT:
    """Incrementally grow tree: leaves that receive samples may split.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, IGT
    >>> NCMForestClassifier(update=IGT()).update
    IGT()
    """


@dataclass(frozen=True)
class RTST:
    """Retrain subtree: chosen nodes that new samples reach are grown again with all they hold.

    Parameters
    ----------
    share : float, default=None
        Share of the splitting nodes that is chosen; None for the forest's ``update_fraction``.
    nodes : {"size", "uniform", "quality"}, default=None
        What makes a node likely to be chosen; None for the forest's ``node_sampling``.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, RTST
    >>> NCMForestClassifier(update=RTST(share=0.05, nodes="uniform")).update
    RTST(share=0.05, nodes='uniform')
    """

    share: float | None = None
    nodes: NodeSampling | None = None


@dataclass(frozen=True)
class RUST:
    """Reuse subtree: chosen nodes take the means of new classes.

    Only the samples whose side changes move; nothing else is grown again.

    Parameters
    ----------
    share : float, default=None
        Share of the splitting nodes that is chosen; None for the forest's ``update_fraction``.
    nodes : {"size", "uniform", "quality"}, default=None
        What makes a node likely to be chosen; None for the forest's ``node_sampling``.

    Examples
    --------
    >>> from evergrow import NCMForestClassifier, RUST
    >>> NCMForestClassifier(update=RUST(share=0.5)).update
    RUST(share=0.5, nodes=None)
    """

    share: float | None = None
    nodes: NodeSampling | None = None


Strategy: TypeAlias = ULS | IGT | RTST | RUST

STRATEGIES: dict[str, type[Strategy]] = {"uls": ULS, "igt": IGT, "rtst": RTST, "rust": RUST}


def resolve_strategy(
    update: str | Strategy, update_fraction: float, node_sampling: NodeSampling
) -> tuple[str, float, NodeSampling]:
    """Name, share and node sampling of a strategy given by name or value.

    >>> resolve_strategy("igt", 0.8, "size")
    ('igt', 0.0, 'size')
    >>> resolve_strategy(RTST(nodes="quality"), 0.8, "size")
    ('rtst', 0.8, 'quality')
    """
    strategy = STRATEGIES[update]() if isinstance(update, str) else update
    name = next(name for name, kind in STRATEGIES.items() if isinstance(strategy, kind))
    if isinstance(strategy, (ULS, IGT)):
        return name, 0.0, "size"
    share = update_fraction if strategy.share is None else strategy.share
    nodes = node_sampling if strategy.nodes is None else strategy.nodes
    check_parameters({"share": share, "nodes": nodes}, CHOICE_RULES)
    return name, float(share), nodes


def strategy_to_json(strategy: Strategy) -> dict[str, Any]:
    """A strategy's name and options."""
    name = next(name for name, kind in STRATEGIES.items() if isinstance(strategy, kind))
    options = asdict(strategy).items()
    return {"name": name, **{k: v.item() if isinstance(v, np.generic) else v for k, v in options}}


def strategy_from_json(entry: dict[str, Any]) -> Strategy:
    """Rebuild from :func:`strategy_to_json`; a ``ValueError`` if there is no such strategy."""
    options = dict(entry)
    kind = STRATEGIES.get(str(options.pop("name", None)))
    if kind is None or set(options) - {field.name for field in fields(kind)}:
        raise ValueError(f"there is no update strategy {entry}")
    return kind(**options)
