"""Generated scenes: bicycles and cars among clutter, and clutter alone.

Clutter consists of the same discs, rings, bars and boards as the objects and partly hides them, so
that neither a colour nor a single edge reveals an object. The outline of the object is known.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import InvalidInputError
from evergrow.research.datasets import Dataset
from evergrow.vision.images.sources import import_extra

BACKGROUND, BICYCLE, CAR = "background", "bicycle", "car"

WIDTH, HEIGHT = 160, 120
# Scenes are drawn larger and then shrunk, which smooths edges.
_FINER = 2
# Even scenes of a class are for training, odd ones for testing.
_N_EACH = 120

Random = np.random.Generator
Colour = tuple[int, int, int]
Point = tuple[float, float]
RGB = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene and the mask of the object, which is empty in a scene of clutter."""

    pixels: RGB
    outline: Mask


class _Brush:
    """Draws on a scene; coordinates from 0 to 1 are rotated, scaled and shifted."""

    def __init__(self, canvas: Any, *, at: Point, size: float, turn: float, flip: bool) -> None:
        self._canvas, self._at, self._size = canvas, at, size
        self._across, self._down = math.cos(turn), math.sin(turn)
        self._side = -1.0 if flip else 1.0

    def _place(self, point: Point) -> Point:
        x, y = self._side * (point[0] - 0.5), point[1] - 0.5
        turned = x * self._across - y * self._down, x * self._down + y * self._across
        return (
            _FINER * (self._at[0] + self._size * turned[0]),
            _FINER * (self._at[1] + self._size * turned[1]),
        )

    def board(self, points: Iterable[Point], colour: Any) -> None:
        """Draw a filled polygon."""
        self._canvas.polygon([self._place(point) for point in points], fill=colour)

    def bar(self, points: Iterable[Point], colour: Any, width: float = 0.03) -> None:
        """Draw a line."""
        places = [self._place(point) for point in points]
        wide = max(1, round(_FINER * self._size * width))
        self._canvas.line(places, fill=colour, width=wide, joint="curve")

    def disc(self, x: float, y: float, radius: float, colour: Any, *, rim: float = 0.0) -> None:
        """Draw a disc, or a ring of width ``rim``."""
        centre, reach = self._place((x, y)), _FINER * self._size * radius
        box = [centre[0] - reach, centre[1] - reach, centre[0] + reach, centre[1] + reach]
        if rim:
            wide = max(1, round(_FINER * self._size * rim))
            self._canvas.ellipse(box, outline=colour, width=wide)
        else:
            self._canvas.ellipse(box, fill=colour)


def _colour(random: Random) -> Colour:
    red, green, blue = random.integers(20, 236, 3).tolist()
    return red, green, blue


def _dark(random: Random) -> Colour:
    grey = int(random.integers(15, 80))
    return grey, grey, grey


def _on_circle(x: float, y: float, radius: float, angle: float) -> Point:
    return x + radius * math.cos(angle), y + radius * math.sin(angle)


def _bicycle(brush: _Brush, random: Random) -> None:
    tyre, frame, thin = _dark(random), _colour(random), random.uniform(0.02, 0.035)
    radius = random.uniform(0.19, 0.23)
    back, front, pedal = (0.22, 0.66), (0.78, 0.66), (0.45, 0.68)
    saddle, bars = (0.37, 0.38), (0.68, 0.34)
    for x, y in (back, front):
        start = random.uniform(0, math.pi)
        for k in range(4):
            angle = start + k * math.pi / 4
            ends = [_on_circle(x, y, radius, angle), _on_circle(x, y, -radius, angle)]
            brush.bar(ends, (170, 170, 170), 0.01)
        brush.disc(x, y, radius, tyre, rim=0.035)
    brush.bar([back, pedal, (0.66, 0.44), (0.39, 0.45), back], frame, thin)
    brush.bar([pedal, saddle], frame, thin)
    brush.bar([front, bars, (0.62, 0.3)], frame, thin)
    brush.bar([(0.3, 0.36), (0.43, 0.36)], tyre, 0.05)


def _bicycle_outline(brush: _Brush) -> None:
    for x in (0.22, 0.78):
        brush.disc(x, 0.66, 0.22, 255)
    brush.board([(0.22, 0.66), (0.3, 0.34), (0.68, 0.3), (0.78, 0.66)], 255)


_BODY = [(0.03, 0.7), (0.05, 0.52), (0.25, 0.48), (0.35, 0.3), (0.68, 0.3), (0.8, 0.48)]
_BODY += [(0.97, 0.54), (0.97, 0.7)]


def _car(brush: _Brush, random: Random) -> None:
    paint, tyre, glass = _colour(random), _dark(random), int(random.integers(150, 220))
    brush.board(_BODY, paint)
    pane = (glass, glass, min(255, glass + 25))
    brush.board([(0.3, 0.48), (0.37, 0.34), (0.5, 0.34), (0.5, 0.48)], pane)
    brush.board([(0.54, 0.48), (0.54, 0.34), (0.66, 0.34), (0.75, 0.48)], pane)
    brush.bar([(0.52, 0.48), (0.52, 0.7)], tyre, 0.01)
    for x in (0.22, 0.77):
        brush.disc(x, 0.7, 0.11, tyre)
        brush.disc(x, 0.7, 0.05, (190, 190, 190))


def _car_outline(brush: _Brush) -> None:
    brush.board(_BODY, 255)
    for x in (0.22, 0.77):
        brush.disc(x, 0.7, 0.11, 255)


_OBJECTS: dict[str, tuple[Callable[[_Brush, Random], None], Callable[[_Brush], None]]] = {
    BICYCLE: (_bicycle, _bicycle_outline),
    CAR: (_car, _car_outline),
}


def _disc(brush: _Brush, random: Random) -> None:
    brush.disc(0.5, 0.5, 0.4, _colour(random))


def _ring(brush: _Brush, random: Random) -> None:
    brush.disc(0.5, 0.5, 0.4, _colour(random), rim=random.uniform(0.08, 0.2))


def _bars(brush: _Brush, random: Random) -> None:
    points = random.uniform(0.0, 1.0, (random.integers(2, 5), 2))
    brush.bar([(x, y) for x, y in points.tolist()], _colour(random), random.uniform(0.03, 0.1))


def _board(brush: _Brush, random: Random) -> None:
    angles = np.sort(random.uniform(0, 2 * math.pi, random.integers(3, 6))).tolist()
    brush.board([_on_circle(0.5, 0.5, 0.5, angle) for angle in angles], _colour(random))


_CLUTTER = (_disc, _ring, _bars, _board)


def _scatter(canvas: Any, random: Random, n: int, sizes: Point) -> None:
    for _ in range(n):
        at = random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
        size, turn = random.uniform(*sizes), random.uniform(0, 2 * math.pi)
        brush = _Brush(canvas, at=at, size=size, turn=turn, flip=False)
        _CLUTTER[random.integers(len(_CLUTTER))](brush, random)


def _gradient(random: Random) -> RGB:
    """A vertical gradient between two colours."""
    top, bottom = (np.array(_colour(random), dtype=np.float64) for _ in range(2))
    share = np.linspace(0, 1, _FINER * HEIGHT)[:, None, None]
    rows = (1 - share) * top + share * bottom
    whole = np.broadcast_to(rows, (_FINER * HEIGHT, _FINER * WIDTH, 3))
    return np.ascontiguousarray(whole, dtype=np.uint8)


def _generate(kind: str, number: int) -> Scene:
    image, draw = import_extra("PIL.Image"), import_extra("PIL.ImageDraw")
    random = np.random.default_rng([zlib.crc32(kind.encode()), number])
    scene = image.fromarray(_gradient(random))
    mask = image.new("L", scene.size)
    canvas = draw.Draw(scene)
    _scatter(canvas, random, int(random.integers(8, 16)), (12.0, 60.0))
    if kind in _OBJECTS:
        size = random.uniform(55, 100)
        at = random.uniform(0.4 * size, WIDTH - 0.4 * size), random.uniform(40, HEIGHT - 40)
        turn, flip = random.uniform(-0.25, 0.25), bool(random.random() < 0.5)
        thing, outline = _OBJECTS[kind]
        thing(_Brush(canvas, at=at, size=size, turn=turn, flip=flip), random)
        outline(_Brush(draw.Draw(mask), at=at, size=size, turn=turn, flip=flip))
    _scatter(canvas, random, int(random.integers(1, 4)), (10.0, 30.0))
    small = scene.resize((WIDTH, HEIGHT), image.Resampling.BOX)
    pixels = np.asarray(small, dtype=np.float64) * random.uniform(0.7, 1.1)
    pixels += random.normal(0, random.uniform(3, 14), pixels.shape)
    covered = np.asarray(mask.resize((WIDTH, HEIGHT), image.Resampling.BOX)) > 127
    return Scene(np.clip(pixels, 0, 255).astype(np.uint8), covered)


def generate_scenes(kind: str, numbers: Iterable[int]) -> Iterator[Scene]:
    """Generate scenes of a kind by number; the same number gives the same scene.

    Examples
    --------
    >>> from evergrow.research.papers.nips2006.scenes import generate_scenes
    >>> (scene,) = generate_scenes("bicycle", [0])
    >>> scene.pixels.shape, bool(scene.outline.any())
    ((120, 160, 3), True)
    """
    if kind not in (*_OBJECTS, BACKGROUND):
        raise InvalidInputError(f"kind must be one of {[*_OBJECTS, BACKGROUND]}, got {kind!r}")
    return (_generate(kind, number) for number in numbers)


def scene_dataset(n_each: int = _N_EACH) -> Dataset:
    """The same number of scenes of each kind, even ones for training and odd ones for testing.

    Examples
    --------
    >>> from evergrow.research.papers.nips2006.scenes import scene_dataset
    >>> scene_dataset(4).X_train.shape
    (6, 120, 160, 3)
    """
    X_train, y_train = _scenes(range(0, n_each, 2))
    X_test, y_test = _scenes(range(1, n_each, 2))
    return Dataset("drawn scenes", X_train, y_train, X_test, y_test)


def _scenes(numbers: range) -> tuple[RGB, npt.NDArray[np.str_]]:
    kinds = (*_OBJECTS, BACKGROUND)
    pixels = [scene.pixels for kind in kinds for scene in generate_scenes(kind, numbers)]
    return np.stack(pixels), np.repeat(np.array(kinds), len(numbers))


def outlines(kind: str, n: int, *, trains: bool = False) -> list[Mask]:
    """Masks of the object in the first test scenes of a kind, or in the first training scenes."""
    first = 0 if trains else 1
    return [scene.outline for scene in generate_scenes(kind, range(first, first + 2 * n, 2))]
