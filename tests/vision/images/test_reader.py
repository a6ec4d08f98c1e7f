"""Many images: in order, with bounded memory, and with a report of those left out."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import BadImageWarning, ImageError
from evergrow.vision import iterate_images, read_images
from tests.vision.images.drawn import encoded, noise

GOOD = [encoded(noise(seed=i)) for i in range(5)]
MIXED: list[Any] = [GOOD[0], b"text", GOOD[1], "missing.jpg"]


def running_threads() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name.startswith("evergrow-prefetch")}


@pytest.mark.parametrize("n_jobs", [None, 1, 3, -1])
def test_images_come_in_order_for_any_number_of_threads(n_jobs: int | None) -> None:
    found = list(iterate_images(GOOD * 7, n_jobs=n_jobs))
    assert [index for index, _ in found] == list(range(35))
    for index, image in found:
        np.testing.assert_array_equal(image, noise(seed=index % 5))


def test_a_bad_image_is_raised_with_its_name() -> None:
    with pytest.raises(ImageError, match="<4 bytes>"):
        list(iterate_images(MIXED))


def test_skipped_images_are_named_in_one_warning() -> None:
    with pytest.warns(
        BadImageWarning, match="^2 images were left out: <4 bytes>: .*missing"
    ) as all_:
        read = read_images(MIXED, on_error="skip")
    assert len(all_) == 1
    assert read.kept.tolist() == [0, 2]
    assert [problem.index for problem in read.problems] == [1, 3]
    np.testing.assert_array_equal(read.images[1], noise(seed=1))


def test_a_long_list_of_bad_images_is_cut_in_the_warning() -> None:
    with pytest.warns(BadImageWarning, match="and 15 more$"):
        read_images([b"text"] * 20, on_error="skip")


def test_closing_early_stops_the_threads() -> None:
    stream = iterate_images(GOOD * 20, n_jobs=2)
    next(stream)
    assert running_threads()
    stream.close()  # type: ignore[attr-defined]
    assert not running_threads()


def test_sources_are_taken_only_as_they_are_needed() -> None:
    taken = []

    def endless() -> Any:
        while True:
            taken.append(1)
            yield GOOD[0]

    stream = iterate_images(endless(), n_jobs=2)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert len(taken) < 20


@pytest.mark.parametrize(
    ("one", "advice"),
    [
        *((one, "put it into a list") for one in ("folder", b"content", Path("folder"))),
        *((np.zeros((8, 9, n), np.uint8), "put it into a list") for n in (3, 4)),
    ],
)
def test_one_source_in_place_of_a_list_is_refused(one: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        read_images(one)


@pytest.mark.parametrize("shape", [(2, 8, 9, 3), (2, 8, 9)])
def test_a_stack_of_images_is_as_good_as_a_list(shape: tuple[int, ...]) -> None:
    read = read_images(np.zeros(shape, np.uint8))  # type: ignore[arg-type]
    assert [image.shape for image in read.images] == [(8, 9, 3)] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "on_error must be one of"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"verbose": -1}, "verbose must be"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_images(GOOD, **options)


def test_a_progress_bar_is_shown_on_request(capsys: Any) -> None:
    read_images(GOOD, verbose=1)
    assert "5/5" in capsys.readouterr().err
