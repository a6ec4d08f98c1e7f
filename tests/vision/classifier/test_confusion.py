"""The picture of a confusion matrix: which classes it shows, and their names."""

import numpy as np
import pytest

from evergrow.vision import draw_confusion


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Draw a confusion matrix; return the title, and the names of rows and columns."""

    def draw(counts, names, **options):
        found = []
        monkeypatch.setattr(
            "matplotlib.figure.Figure.savefig", lambda self, *_, **__: found.append(self.axes[0])
        )
        draw_confusion(counts, names, tmp_path / "c.svg", **options)
        (axes,) = found
        labels = (axes.get_yticklabels(), axes.get_xticklabels())
        return axes.get_title(), *([one.get_text() for one in each] for each in labels)

    return draw


@pytest.mark.slow
def test_the_title_counts_rejected_images(drawn):
    title, rows, columns = drawn([[3, 1], [0, 2]], ["cat", "dog"], rejected=[0, 4])
    assert title == "5 of 10 right"
    assert rows == ["cat", "dog"]
    assert columns == ["cat", "dog", "unknown"]


def test_classes_without_images_take_no_space(drawn):
    counts = np.zeros((5, 5), dtype=int)
    counts[3, 3], counts[0, 1] = 2, 1
    _, rows, columns = drawn(counts, ["10", "9", "8", "2", "1"])
    assert rows == ["2", "10"]
    assert columns == ["2", "9", "10"]


def test_of_many_classes_those_that_are_confused_are_shown_by_name(drawn):
    n = 200
    counts = np.diag(np.full(n, 5))
    for k in range(100):
        counts[k, k + 1] = 1
    counts[150, 7] = 3
    title, rows, columns = drawn(counts, [f"class {k}" for k in range(n)])
    assert title == f"1000 of {1000 + 100 + 3} right\nthe 60 most often confused of 200 classes"
    assert {"class 150", "class 7"} <= set(rows)
    assert rows == columns
    assert len(rows) == 60


def test_many_classes_without_confusions_are_named_too(drawn):
    title, rows, _ = drawn(np.diag(np.full(100, 5)), [f"{k}" for k in range(100)])
    assert title == "500 of 500 right\nnone is confused; 60 of 100 classes"
    assert rows == [f"{k}" for k in range(60)]
