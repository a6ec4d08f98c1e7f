"""Drawn scenes: bicycles and cars among clutter, and clutter alone.

Clutter consists of the same discs, rings, bars and boards as the objects and partly hides them, so
that neither a colour nor a single edge reveals an object. The outline of the object is known.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergrow.compare import Dataset
from evergrow.vision.images.sources import import_extra
from evergrow_papers.data import Array

BACKGROUND, BICYCLE, CAR = "background", "bicycle", "car"
KINDS = (BICYCLE, CAR, BACKGROUND)
WIDTH, HEIGHT = 160, 120
# Scenes are drawn larger and then shrunk, which smooths edges.
FINER = 2

Random = np.random.Generator
Point = tuple[float, float]


@dataclass(frozen=True)
class Brush:
    """Draws on a scene; coordinates from 0 to 1 are rotated, scaled and shifted."""

    canvas: Any
    at: Point
    size: float
    turn: float
    flip: bool = False

    def place(self, point: Point) -> Point:
        """A point of the canvas."""
        x, y = (-1.0 if self.flip else 1.0) * (point[0] - 0.5), point[1] - 0.5
        across, down = math.cos(self.turn), math.sin(self.turn)
        turned = x * across - y * down, x * down + y * across
        return (
            FINER * (self.at[0] + self.size * turned[0]),
            FINER * (self.at[1] + self.size * turned[1]),
        )

    def wide(self, width: float) -> int:
        """The width of a line in pixels."""
        return max(1, round(FINER * self.size * width))

    def board(self, points: Iterable[Point], colour: Any) -> None:
        """Draw a filled polygon."""
        self.canvas.polygon([self.place(point) for point in points], fill=colour)

    def bar(self, points: Iterable[Point], colour: Any, width: float = 0.03) -> None:
        """Draw a line."""
        places = [self.place(point) for point in points]
        self.canvas.line(places, fill=colour, width=self.wide(width), joint="curve")

    def disc(self, x: float, y: float, radius: float, colour: Any, rim: float = 0.0) -> None:
        """Draw a disc, or a ring of width ``rim``."""
        (a, b), reach = self.place((x, y)), FINER * self.size * radius
        look = {"outline": colour, "width": self.wide(rim)} if rim else {"fill": colour}
        self.canvas.ellipse([a - reach, b - reach, a + reach, b + reach], **look)


def _colour(random: Random) -> tuple[int, ...]:
    return tuple(random.integers(20, 236, 3).tolist())


def _on_circle(x: float, y: float, radius: float, angle: float) -> Point:
    return x + radius * math.cos(angle), y + radius * math.sin(angle)


def _bicycle(brush: Brush, mask: Brush, random: Random) -> None:
    tyre, frame = (int(random.integers(15, 80)),) * 3, _colour(random)
    thin, radius = random.uniform(0.02, 0.035), random.uniform(0.19, 0.23)
    back, front, pedal = (0.22, 0.66), (0.78, 0.66), (0.45, 0.68)
    saddle, bars = (0.37, 0.38), (0.68, 0.34)
    for x, y in (back, front):
        start = random.uniform(0, math.pi)
        for k in range(4):
            angle = start + k * math.pi / 4
            ends = [_on_circle(x, y, r, angle) for r in (radius, -radius)]
            brush.bar(ends, (170, 170, 170), 0.01)
        brush.disc(x, y, radius, tyre, rim=0.035)
        mask.disc(x, y, 0.22, 255)
    brush.bar([back, pedal, (0.66, 0.44), (0.39, 0.45), back], frame, thin)
    brush.bar([pedal, saddle], frame, thin)
    brush.bar([front, bars, (0.62, 0.3)], frame, thin)
    brush.bar([(0.3, 0.36), (0.43, 0.36)], tyre, 0.05)
    mask.board([back, (0.3, 0.34), (0.68, 0.3), front], 255)


def _car(brush: Brush, mask: Brush, random: Random) -> None:
    paint, tyre = _colour(random), (int(random.integers(15, 80)),) * 3
    glass = int(random.integers(150, 220))
    body = [(0.03, 0.7), (0.05, 0.52), (0.25, 0.48), (0.35, 0.3), (0.68, 0.3), (0.8, 0.48)]
    body += [(0.97, 0.54), (0.97, 0.7)]
    brush.board(body, paint)
    mask.board(body, 255)
    pane = (glass, glass, min(255, glass + 25))
    brush.board([(0.3, 0.48), (0.37, 0.34), (0.5, 0.34), (0.5, 0.48)], pane)
    brush.board([(0.54, 0.48), (0.54, 0.34), (0.66, 0.34), (0.75, 0.48)], pane)
    brush.bar([(0.52, 0.48), (0.52, 0.7)], tyre, 0.01)
    for x in (0.22, 0.77):
        brush.disc(x, 0.7, 0.11, tyre)
        brush.disc(x, 0.7, 0.05, (190, 190, 190))
        mask.disc(x, 0.7, 0.11, 255)


def _scatter(canvas: Any, random: Random, n: int, sizes: Point) -> None:
    """Draw clutter: discs, rings, some bars or boards."""
    for _ in range(n):
        at = random.uniform(0, WIDTH), random.uniform(0, HEIGHT)
        brush = Brush(canvas, at, random.uniform(*sizes), random.uniform(0, 2 * math.pi))
        kind = random.integers(4)
        if kind == 0:
            brush.disc(0.5, 0.5, 0.4, _colour(random))
        elif kind == 1:
            brush.disc(0.5, 0.5, 0.4, _colour(random), rim=random.uniform(0.08, 0.2))
        elif kind == 2:
            ends = random.uniform(0.0, 1.0, (random.integers(2, 5), 2)).tolist()
            brush.bar([(x, y) for x, y in ends], _colour(random), random.uniform(0.03, 0.1))
        else:
            angles = np.sort(random.uniform(0, 2 * math.pi, random.integers(3, 6))).tolist()
            brush.board([_on_circle(0.5, 0.5, 0.5, angle) for angle in angles], _colour(random))


def draw_scene(kind: str, number: int) -> tuple[Array, Array]:
    """The pixels of a scene, and the mask of its object, which is empty in a scene of clutter."""
    image, draw = import_extra("PIL.Image"), import_extra("PIL.ImageDraw")
    random = np.random.default_rng([zlib.crc32(kind.encode()), number])
    top, bottom = (np.array(_colour(random), dtype=np.float64) for _ in range(2))
    share = np.linspace(0, 1, FINER * HEIGHT)[:, None, None]
    rows = ((1 - share) * top + share * bottom).astype(np.uint8)
    scene = image.fromarray(np.repeat(rows, FINER * WIDTH, axis=1))
    mask = image.new("L", scene.size)
    canvas = draw.Draw(scene)
    _scatter(canvas, random, int(random.integers(8, 16)), (12.0, 60.0))
    if kind != BACKGROUND:
        size = random.uniform(55, 100)
        at = random.uniform(0.4 * size, WIDTH - 0.4 * size), random.uniform(40, HEIGHT - 40)
        place = (at, size, random.uniform(-0.25, 0.25), bool(random.random() < 0.5))
        brushes = Brush(canvas, *place), Brush(draw.Draw(mask), *place)
        (_bicycle if kind == BICYCLE else _car)(*brushes, random)
    _scatter(canvas, random, int(random.integers(1, 4)), (10.0, 30.0))
    small = (WIDTH, HEIGHT), image.Resampling.BOX
    pixels = np.asarray(scene.resize(*small), dtype=np.float64) * random.uniform(0.7, 1.1)
    pixels += random.normal(0, random.uniform(3, 14), pixels.shape)
    return np.clip(pixels, 0, 255).astype(np.uint8), np.asarray(mask.resize(*small)) > 127


def draw_scenes(n_each: int = 120) -> Dataset:
    """The same number of scenes of each kind, even ones for training and odd ones for testing."""
    train, test = (range(first, n_each, 2) for first in (0, 1))
    X_train, X_test = (
        np.stack([draw_scene(kind, k)[0] for kind in KINDS for k in part]) for part in (train, test)
    )
    y_train, y_test = (np.repeat(np.array(KINDS), len(part)) for part in (train, test))
    return Dataset("drawn scenes", X_train, y_train, X_test, y_test)
