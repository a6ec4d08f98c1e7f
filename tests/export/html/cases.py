"""Models, embeddings and what Python answers: the JavaScript of a page must give the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from evergrow import RejectingClassifier, RLSClassifier
from evergrow.estimators.linear.leave_one_out import LeftOutExamples
from evergrow.estimators.sums.moments import Batch
from evergrow.export.html.head import read_head

N_FEATURES = 24
NAMES = ["ant", "bee", "cat", "dog", "elk"]


def examples(names: list[str], n: int, seed: int) -> tuple[Any, Any]:
    """Embeddings as a network computes them: 32 bits, with much in common."""
    random = np.random.default_rng(seed)
    centres = {name: np.random.default_rng(ord(name[0])).normal(0, 1, N_FEATURES) for name in names}
    labels = np.array([names[i % len(names)] for i in range(n)])
    rows = np.array([centres[label] for label in labels]) + random.normal(0, 1, (n, N_FEATURES)) + 1
    return rows.astype(np.float32), labels


def fitted(n: int = 60, **parameters: Any) -> Any:
    """A classifier that rejects what it does not know, of three classes."""
    learner = RLSClassifier(**{"regularization": 3.0, "recoding": 0.4, **parameters})
    return RejectingClassifier(learner, random_state=0).fit(*examples(NAMES[:3], n, 0))


def unit_vectors() -> Any:
    """A classifier of vectors of one length, which then tells nothing."""
    rows, labels = examples(NAMES[:3], 60, 0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    learner = RLSClassifier(regularization=0.1, recoding=0.4)
    return RejectingClassifier(learner, random_state=0).fit(rows, labels)


def unused_blocks() -> Any:
    """A classifier that leaves out a block of features that is noise."""
    learner = RLSClassifier(blocks=(N_FEATURES - 8, 8), random_state=0)
    rows, labels = examples(NAMES[:3], 90, 0)
    rows[:, -8:] = 20 * np.random.default_rng(9).normal(0, 1, (90, 8))
    return RejectingClassifier(learner, random_state=0).fit(rows, labels)


MODELS = {
    "class means": fitted,
    "all examples": lambda: fitted(selection="leave-one-out", scoring="regression"),
    "many examples": lambda: fitted(n=900),
    "without unknown": lambda: fitted().estimator_,
    "chosen": lambda: RejectingClassifier(RLSClassifier(random_state=0), random_state=0).fit(
        *examples(NAMES[:3], 90, 0)
    ),
    "unit vectors": unit_vectors,
    "unused blocks": unused_blocks,
}


def write_cases(folder: Path) -> None:
    """Write each model, lessons, and what Python answers before and after them."""
    lessons, names = examples(NAMES, 40, seed=1)
    queries, _ = examples([*NAMES, "fox"], 30, seed=2)
    cases = []
    for number, (name, make) in enumerate(MODELS.items()):
        model = make()
        head = read_head(model)
        (folder / f"head{number}.tensors").write_bytes(
            save(head.tensors, metadata={"facts": json.dumps({"head": head.settings})})
        )
        before = _answers(model, queries, head.places)
        left_out = _left_out(model)
        fix_parameters(model)
        for row, label in zip(lessons, names, strict=True):
            model.partial_fit(row[None], [label])
        cases.append(
            {
                "name": name,
                "file": f"head{number}.tensors",
                "lessons": lessons[:, head.places].tolist(),
                "labels": names.tolist(),
                "queries": queries[:, head.places].tolist(),
                "before": before,
                "left_out": left_out,
                "after": _answers(model, queries, head.places),
                # Of many examples the file has some; blocks are chosen again by Python.
                "is_exact": name not in ("many examples", "unused blocks"),
            }
        )
    (folder / "cases.json").write_text(json.dumps(cases))


def fix_parameters(model: Any) -> None:
    """Keep the hyperparameters, as a page does."""
    if isinstance(model, RejectingClassifier):
        known = model._fitted
        model._set_fitted(replace(known, penalty=known.scorer.summed.penalty), None)
    inside = model.estimator if isinstance(model, RejectingClassifier) else model
    learnt = model.estimator_ if isinstance(model, RejectingClassifier) else model
    chosen = {"regularization": learnt.regularization_, "recoding": learnt.recoding_}
    inside.set_params(**chosen)
    learnt.set_params(**chosen)


def _answers(model: Any, queries: Any, places: Any) -> dict[str, Any]:
    rejects = isinstance(model, RejectingClassifier)
    inside = model.estimator_ if rejects else model
    with inside._fitted.solution(inside._ridge(), with_held_out=True) as solution:
        weights = solution.weights[:, [*places, -1]].tolist()
    return {
        "classes": inside.classes_.tolist(),
        "weights": weights,
        "probabilities": inside.predict_proba(queries).tolist(),
        "novelty": model.novelty(queries).tolist() if rejects else None,
        "known": model.is_known(queries).tolist() if rejects else None,
        "level": model.level_ if rejects else None,
    }


def _left_out(model: Any) -> list[str] | None:
    """How often each class is recognised by a model of the other examples."""
    rejects = isinstance(model, RejectingClassifier)
    inside = model.estimator_ if rejects else model
    fitted, ridge = inside._fitted, inside._ridge()
    holdout = (model._fitted if rejects else fitted).holdout
    if len(holdout) < fitted.moments.n_examples:
        return None
    stored = holdout.batch
    places = np.append(np.arange(N_FEATURES)[inside._used_features()], N_FEATURES)
    rows = np.column_stack([stored.rows, np.ones(len(stored.rows))])[:, places]
    moments = fitted.moments.with_features(places)
    stream = LeftOutExamples.of(Batch(rows, stored.codes, stored.weights), moments)
    plain = replace(ridge, columns=None)
    scores = stream.scores_by(stream.solve(plain), plain)
    found = stream.normalised(scores, inside.recoding_).argmax(axis=1)
    right = np.bincount(stored.codes[found == stored.codes], minlength=moments.n_classes)
    return (right / np.bincount(stored.codes)).tolist()
