"""Split rules, update plans and reports of the core as Python values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from evergrow import _core
from tests.estimators.forest.cores import RULES, plan, rules

VALUES: dict[str, Any] = {
    **{proposer: rules(proposer) for proposer in RULES},
    "plan": plan("regularised", node_sampling="quality", n_refreshed=1 << 40),
    "report": _core.UpdateReport(n_chosen=2**40, pass_seconds=0.5),
}


def plain(value: Any) -> Any:
    """Nested values as dictionaries."""
    fields = value.as_dict()
    return {k: plain(v) if hasattr(v, "as_dict") else v for k, v in fields.items()}


@pytest.mark.parametrize("name", VALUES)
def test_values_survive_pickling_and_their_own_fields(name: str) -> None:
    value = VALUES[name]
    assert plain(pickle.loads(pickle.dumps(value))) == plain(value)
    assert plain(type(value)(**value.as_dict())) == plain(value)


def test_fields_that_are_left_out_have_the_defaults_of_the_core() -> None:
    fields = rules("ncm").as_dict()
    assert (fields["n_subsets"], fields["objective"], fields["parents"]) == (1, "gain", [])


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "unknown": ({"n_centroid": 3}, TypeError, "SplitRules has no field 'n_centroid'"),
    "type": ({"n_centroids": "three"}, TypeError, "'n_centroids' has the wrong type"),
    "negative": ({"n_centroids": -1}, TypeError, "'n_centroids' has the wrong type"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_fields_are_refused_by_name(case: str) -> None:
    changed, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        _core.SplitRules(**{**rules("ncm").as_dict(), **changed})


def test_missing_fields_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="SplitRules lacks the field 'n_centroids'"):
        _core.SplitRules(proposer="ncm")  # type: ignore[call-arg]


def test_a_plan_knows_its_ways_to_choose_nodes() -> None:
    with pytest.raises(ValueError, match="unknown node sampling 'age'"):
        plan("ncm", node_sampling="age")


def test_a_plan_needs_a_parent_for_every_class() -> None:
    few = _core.SplitRules(**{**rules("ncm").as_dict(), "parents": [0, 0]})
    with pytest.raises(ValueError, match="an entry for every class"):
        plan("ncm", rules=few)
