"""Arrays of other libraries: every estimator takes them, and odd rows are named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evergrow import InvalidInputError, NCMClassifier, NCMForestClassifier, NCMMetric, RLSClassifier
from evergrow.foundation.foreign_arrays import from_other_library

X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
X += 5 * (np.arange(30) % 3)[:, None]
Y = np.arange(30) % 3


class OnlyDlpack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


def import_library(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed")


def of_datasets(form: str | None) -> Callable[[Any], Any]:
    def make(values: Any) -> Any:
        found = import_library("datasets").Dataset.from_dict({"a": values.tolist()})
        if form == "torch":
            import_library("torch")
        return found.with_format(form)["a"]

    return make


def of_pyarrow(kind: str) -> Callable[[Any], Any]:
    def make(values: Any) -> Any:
        pa = import_library("pyarrow")
        if values.ndim == 1 or kind == "list":
            return pa.array(values.tolist())
        if kind == "chunked":
            return pa.chunked_array([pa.array(values[:7].tolist()), pa.array(values[7:].tolist())])
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])

    return make


FORMS: dict[str, Callable[[Any], Any]] = {
    "torch": lambda values: import_library("torch").from_numpy(values),
    "dlpack": OnlyDlpack,
    "fixed lists of pyarrow": of_pyarrow("fixed"),
    "lists of pyarrow": of_pyarrow("list"),
    "chunks of pyarrow": of_pyarrow("chunked"),
    "series of polars": lambda values: import_library("polars").Series(values),
    "series of pandas": lambda values: import_library("pandas").Series(list(values)),
    "datasets": of_datasets(None),
    "datasets as torch": of_datasets("torch"),
    "datasets as numpy": of_datasets("numpy"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [RLSClassifier, NCMClassifier, NCMForestClassifier])
def test_estimators_take_them(form: str, kind: Any) -> None:
    options = {} if kind is NCMClassifier else {"random_state": 0}
    model, expected = kind(**options), kind(**options).fit(X, Y)
    rows, labels = FORMS[form](X), FORMS[form](Y)
    model.fit(rows, labels)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_array_equal(np.asarray(model.predict(rows)), expected.predict(X))
    assert model.score(rows, labels) == expected.score(X, Y)
    model.partial_fit(rows, FORMS[form](Y + 3))
    assert len(model.classes_) == 6


@pytest.mark.parametrize("form", FORMS)
def test_metrics_take_them(form: str) -> None:
    metric = NCMMetric(2, random_state=0).fit(FORMS[form](X), FORMS[form](Y))
    np.testing.assert_allclose(metric.transform(FORMS[form](X)), metric.transform(X), rtol=1e-5)


def test_what_numpy_and_scikit_learn_read_is_left_alone() -> None:
    pandas = import_library("pandas")
    for values in (X, X.tolist(), pandas.DataFrame(X), pandas.Series(["a", "b"]), object(), None):
        assert from_other_library(values) is values


def test_rows_are_not_copied() -> None:
    assert np.shares_memory(from_other_library(OnlyDlpack(X)), X)


def test_rows_of_other_widths_are_named() -> None:
    pa, pandas = import_library("pyarrow"), import_library("pandas")
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0]]
    for values in (pa.array(rows), pandas.Series(rows)):
        with pytest.raises(InvalidInputError, match="row 2 has 1 features"):
            RLSClassifier().fit(values, [0, 1, 1])
    for values in (pa.array([[1.0], None]), pandas.Series([[1.0], None])):
        with pytest.raises(InvalidInputError, match="row 1 is missing"):
            RLSClassifier().fit(values, [0, 1])


def test_devices_that_cannot_be_read() -> None:
    class Elsewhere:
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("cannot be exported")

        def __dlpack_device__(self) -> tuple[int, int]:
            # Vulkan.
            return 7, 0

    with pytest.raises(InvalidInputError, match="Elsewhere cannot be read as an array on the proc"):
        RLSClassifier().fit(Elsewhere(), [0, 1])


def test_wrong_shapes() -> None:
    model = RLSClassifier().fit(X, Y)
    with pytest.raises(InvalidInputError, match="expecting 4 features"):
        model.predict(OnlyDlpack(X[:, :3]))
    with pytest.raises(InvalidInputError, match="2D array"):
        model.predict(OnlyDlpack(X[0]))
