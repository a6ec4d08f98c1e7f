"""The confusion picture: which classes are taken for which."""

from __future__ import annotations

from collections import Counter

from evergrow.service.http.bodies import ConfusionBody
from evergrow.workspace.workspace import Workspace

__all__ = ["confusion_of"]


def confusion_of(workspace: Workspace, most: int) -> ConfusionBody:
    """Counts of the last assessment between the classes with the most mistakes, at most so many."""
    assessment = workspace.assessment
    if assessment is None:
        return ConfusionBody(classes=[], counts=[], n_classes=0, event=None)
    names = workspace.snapshot.names
    # Classes may have gone since.
    cells = [cell for cell in assessment.confusion if cell[0] in names and cell[1] in names]
    shown = sorted(_most_mistaken(cells, most))
    places = {number: place for place, number in enumerate(shown)}
    counts = [[0] * len(shown) for _ in shown]
    for is_class, called, n_times in cells:
        if is_class in places and called in places:
            counts[places[is_class]][places[called]] += n_times
    return ConfusionBody(
        classes=[names[number] for number in shown],
        counts=counts,
        n_classes=len({number for cell in cells for number in cell[:2]}),
        event=assessment.event,
    )


def _most_mistaken(cells: list[tuple[int, int, int]], most: int) -> list[int]:
    mistakes: Counter[int] = Counter()
    for is_class, called, n_times in cells:
        wrong = n_times if is_class != called else 0
        mistakes[is_class] += wrong
        mistakes[called] += wrong
    return [number for number, _ in mistakes.most_common(most)]
