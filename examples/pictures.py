"""Pictures of things, drawn by code: no two alike, the same for the same seed.

``python examples/pictures.py FOLDER`` writes those of the tutorials and the demo as JPEG files, one
folder per class.
"""

from __future__ import annotations

import colorsys
import math
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 160, 120
# Things are drawn larger and made smaller at the end, which smooths their edges.
_SIDE = 400

Random = np.random.Generator
Colour = tuple[int, int, int]
Point = tuple[float, float]


class Brush:
    """Draws on a transparent square; places go from 0 to 1, right and down."""

    def __init__(self, outline: Colour | None) -> None:
        self.layer = Image.new("RGBA", (_SIDE, _SIDE))
        self._draw = ImageDraw.Draw(self.layer)
        self._outline = outline

    def polygon(self, points: Iterable[Point], colour: Colour) -> None:
        """A filled area with straight sides."""
        places = [(x * _SIDE, y * _SIDE) for x, y in points]
        self._draw.polygon(places, fill=colour, outline=self._outline, width=5)

    def box(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        """A filled rectangle."""
        self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)

    def oval(self, x: float, y: float, across: float, down: float, colour: Colour) -> None:
        """A filled ellipse by its centre and its half sides."""
        box = [(x - across) * _SIDE, (y - down) * _SIDE, (x + across) * _SIDE, (y + down) * _SIDE]
        self._draw.ellipse(box, fill=colour, outline=self._outline, width=5)

    def bow(self, x: float, y: float, radius: float, angles: Point, colour: Colour) -> None:
        """A part of a disc, between two angles in degrees, clockwise from the right."""
        box = [(x - radius) * _SIDE, (y - radius) * _SIDE, (x + radius) * _SIDE]
        self._draw.chord(
            [*box, (y + radius) * _SIDE], *angles, fill=colour, outline=self._outline, width=5
        )

    def line(self, points: Iterable[Point], colour: Colour, width: float) -> None:
        """A line with round corners."""
        places = [(x * _SIDE, y * _SIDE) for x, y in points]
        self._draw.line(places, fill=colour, width=max(1, round(width * _SIDE)), joint="curve")


def _colour(
    random: Random,
    hue: Point = (0.0, 1.0),
    light: Point = (0.35, 0.7),
    strength: Point = (0.5, 0.95),
) -> Colour:
    """A colour within bounds; hues beyond 1 start again at 0."""
    rgb = colorsys.hls_to_rgb(
        random.uniform(*hue) % 1, random.uniform(*light), random.uniform(*strength)
    )
    return round(255 * rgb[0]), round(255 * rgb[1]), round(255 * rgb[2])


def _brown(random: Random) -> Colour:
    return _colour(random, (0.05, 0.1), (0.2, 0.35))


def _green(random: Random) -> Colour:
    return _colour(random, (0.22, 0.42), (0.2, 0.45))


def _pale(random: Random) -> Colour:
    return _colour(random, light=(0.75, 0.95))


def _dull(random: Random) -> Colour:
    return _colour(random, light=(0.45, 0.9), strength=(0.05, 0.4))


def _ring(x: float, y: float, radius: float, n: int, turn: float = 0.0) -> list[Point]:
    """Places on a circle, evenly apart."""
    angles = [turn + 2 * math.pi * k / n for k in range(n)]
    return [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]


def _house(brush: Brush, random: Random) -> None:
    wall, roof, left = _colour(random, light=(0.55, 0.9)), _colour(random), random.uniform(0.1, 0.2)
    right, eaves = 1 - left, random.uniform(0.4, 0.52)
    peak = 0.5 + random.uniform(-0.1, 0.1)
    if random.random() < 0.6:
        brush.box(0.64, 0.12, 0.74, eaves, _brown(random))
    brush.box(left, eaves, right, 0.95, wall)
    brush.polygon([(left - 0.08, eaves), (peak, 0.08), (right + 0.08, eaves)], roof)
    door = random.choice([left + 0.08, 0.43, right - 0.24])
    brush.box(door, 0.67, door + 0.16, 0.95, _brown(random))
    glass = _colour(random, (0.5, 0.6), (0.75, 0.9))
    for x in np.linspace(left + 0.07, right - 0.21, random.integers(2, 4)):
        if abs(x - door) > 0.17 or eaves < 0.46:
            brush.box(x, eaves + 0.05, x + 0.14, eaves + 0.17, glass)


def _tree(brush: Brush, random: Random) -> None:
    leaves, width = _green(random), random.uniform(0.05, 0.08)
    brush.box(0.5 - width, 0.55, 0.5 + width, 0.97, _brown(random))
    if random.random() < 0.35:
        for k in range(3):
            top, half = 0.04 + 0.19 * k, 0.2 + 0.07 * k
            brush.polygon([(0.5 - half, top + 0.33), (0.5, top), (0.5 + half, top + 0.33)], leaves)
        return
    for x, y in _ring(0.5, 0.36, 0.19, int(random.integers(5, 8)), random.uniform(0, 6)):
        brush.oval(x, y, 0.17, 0.15, leaves)
    brush.oval(0.5, 0.36, 0.2, 0.2, leaves)
    if random.random() < 0.4:
        fruit = _colour(random, (0.95, 1.1))
        for x, y in random.uniform((0.27, 0.15), (0.73, 0.55), (7, 2)):
            brush.oval(x, y, 0.03, 0.03, fruit)


def _fish(brush: Brush, random: Random) -> None:
    body, fin, fat = _colour(random), _colour(random), random.uniform(0.15, 0.25)
    brush.polygon([(0.7, 0.5), (0.97, 0.5 - fat), (0.9, 0.5), (0.97, 0.5 + fat)], fin)
    brush.polygon([(0.35, 0.55 - fat), (0.5, 0.3 - fat / 2), (0.65, 0.55 - fat / 2)], fin)
    brush.polygon([(0.4, 0.45 + fat), (0.5, 0.6 + fat), (0.58, 0.42 + fat)], fin)
    brush.oval(0.43, 0.5, 0.37, fat, body)
    stripe = _colour(random, light=(0.6, 0.9))
    for x in np.linspace(0.4, 0.66, random.integers(0, 4)):
        reach = 0.85 * fat * math.sqrt(1 - ((x - 0.43) / 0.37) ** 2)
        brush.line([(x, 0.5 - reach), (x + 0.02, 0.5), (x, 0.5 + reach)], stripe, 0.03)
    brush.oval(0.2, 0.46, 0.045, 0.045, (255, 255, 255))
    brush.oval(0.19, 0.46, 0.02, 0.02, (10, 10, 10))
    brush.line([(0.08, 0.56), (0.15, 0.57)], (40, 20, 20), 0.015)


def _flower(brush: Brush, random: Random) -> None:
    green, petal = _green(random), _colour(random, (0.7, 1.2), (0.45, 0.85))
    bend = 0.5 + random.uniform(-0.08, 0.08)
    brush.line([(0.5, 0.36), (bend, 0.7), (0.5, 0.98)], green, 0.035)
    for side in (-1, 1):
        tip = (0.5 + 0.27 * side, 0.62 + random.uniform(0, 0.06))
        brush.polygon([(0.5, 0.85), (0.5 + 0.1 * side, 0.65), tip, (0.5 + 0.2 * side, 0.8)], green)
    n, size = int(random.integers(5, 9)), random.uniform(0.085, 0.115)
    for x, y in _ring(0.5, 0.32, 0.19, n, random.uniform(0, 6)):
        brush.oval(x, y, size, size, petal)
    brush.oval(0.5, 0.32, 0.11, 0.11, _colour(random, (0.08, 0.16), (0.4, 0.6)))


def _boat(brush: Brush, random: Random) -> None:
    hull, mast = _colour(random), 0.5 + random.uniform(-0.06, 0.06)
    brush.line([(mast, 0.06), (mast, 0.74)], _brown(random), 0.03)
    sail = _pale(random) if random.random() < 0.7 else _colour(random)
    brush.polygon([(mast + 0.03, 0.08), (mast + 0.03, 0.66), (0.92, 0.66)], sail)
    if random.random() < 0.75:
        brush.polygon([(mast - 0.03, 0.16), (mast - 0.03, 0.66), (0.16, 0.66)], sail)
    brush.polygon([(0.05, 0.72), (0.95, 0.72), (0.8, 0.92), (0.2, 0.92)], hull)
    sea = _colour(random, (0.52, 0.62), (0.3, 0.6))
    waves = [(x, 0.94 + 0.02 * math.sin(30 * x)) for x in np.linspace(0, 1, 40)]
    brush.line(waves, sea, 0.05)


def _cup(brush: Brush, random: Random) -> None:
    colour, narrow = _colour(random, light=(0.4, 0.9)), random.uniform(0.0, 0.1)
    side = random.choice([-1, 1])
    handle = [(0.5 + side * (x - 0.5), y) for x, y in _ring(0.74, 0.52, 0.15, 24)]
    brush.line([*handle, handle[0]], colour, 0.06)
    corners = [(0.22, 0.25), (0.78, 0.25), (0.74 - narrow, 0.85), (0.26 + narrow, 0.85)]
    brush.polygon(corners, colour)
    if random.random() < 0.5:
        brush.box(0.25, 0.48, 0.75 - narrow / 3, 0.58, _colour(random))
    brush.oval(0.5, 0.25, 0.28, 0.08, _pale(random))
    brush.oval(0.5, 0.26, 0.23, 0.055, _brown(random))
    if random.random() < 0.5:
        for x in (0.4, 0.5, 0.6):
            steam = [(x + 0.02 * math.sin(40 * y), y) for y in np.linspace(0.02, 0.15, 12)]
            brush.line(steam, (235, 235, 235), 0.02)


def _star(brush: Brush, random: Random) -> None:
    n, turn = int(random.choice([5, 5, 5, 6])), random.uniform(-0.2, 0.2) - math.pi / 2
    outer = _ring(0.5, 0.5, 0.47, n, turn)
    inner = _ring(0.5, 0.5, random.uniform(0.18, 0.24), n, turn + math.pi / n)
    points = [point for pair in zip(outer, inner, strict=True) for point in pair]
    brush.polygon(points, _colour(random, (0.1, 0.17), (0.45, 0.7)))


def _balloon(brush: Brush, random: Random) -> None:
    colour, wide = _colour(random), random.uniform(0.25, 0.31)
    string = [(0.5 + 0.04 * math.sin(14 * y), y) for y in np.linspace(0.7, 1.0, 20)]
    brush.line(string, (60, 60, 60), 0.012)
    brush.polygon([(0.5, 0.66), (0.45, 0.74), (0.55, 0.74)], colour)
    brush.oval(0.5, 0.37, wide, 0.34, colour)
    shine = tuple(round(value + 0.6 * (255 - value)) for value in colour)
    brush.oval(0.4, 0.22, 0.05, 0.08, (shine[0], shine[1], shine[2]))


def _mushroom(brush: Brush, random: Random) -> None:
    cap, stem = _colour(random, (0.95, 1.1), (0.3, 0.5)), _pale(random)
    foot = random.uniform(0.1, 0.15)
    brush.polygon([(0.42, 0.45), (0.58, 0.45), (0.5 + foot, 0.95), (0.5 - foot, 0.95)], stem)
    brush.bow(0.5, 0.5, 0.43, (180, 360), cap)
    brush.oval(0.5, 0.5, 0.43, 0.05, stem)
    for x, y in ((0.3, 0.35), (0.5, 0.2), (0.68, 0.34), (0.46, 0.4), (0.82, 0.43)):
        size = random.uniform(0.025, 0.05)
        brush.oval(x, y, size, size, (250, 245, 235))


def _umbrella(brush: Brush, random: Random) -> None:
    one, two, grip = _colour(random), _pale(random), _brown(random)
    hook = [(0.5, 0.45), (0.5, 0.85), (0.53, 0.92), (0.6, 0.92), (0.63, 0.85)]
    brush.line(hook, grip, 0.035)
    brush.line([(0.5, 0.03), (0.5, 0.12)], grip, 0.03)
    brush.bow(0.5, 0.5, 0.42, (180, 360), one)
    top = (0.5, 0.08)
    brush.polygon([top, (0.24, 0.5), (0.41, 0.5)], two)
    brush.polygon([top, (0.59, 0.5), (0.76, 0.5)], two)


THINGS: dict[str, Callable[[Brush, Random], None]] = {
    "house": _house,
    "tree": _tree,
    "fish": _fish,
    "flower": _flower,
    "boat": _boat,
    "cup": _cup,
    "star": _star,
    "balloon": _balloon,
    "mushroom": _mushroom,
    "umbrella": _umbrella,
}


def _background(random: Random) -> Image.Image:
    """Two colours that run into each other, with blurred spots and sometimes a ground."""
    top, bottom = (np.array(_dull(random), float) for _ in range(2))
    share = np.linspace(0, 1, HEIGHT)[:, None, None]
    rows = (1 - share) * top + share * bottom
    pixels = np.broadcast_to(rows, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    image = Image.fromarray(np.ascontiguousarray(pixels))
    draw = ImageDraw.Draw(image)
    if random.random() < 0.5:
        draw.rectangle((0, random.integers(70, 105), WIDTH, HEIGHT), fill=_dull(random))
    for x, y, size in random.uniform((0, 0, 4), (WIDTH, HEIGHT, 22), (random.integers(2, 8), 3)):
        draw.ellipse((x - size, y - size, x + size, y + size), fill=_dull(random))
    return image.filter(ImageFilter.GaussianBlur(random.uniform(1.0, 4.0)))


def draw_picture(thing: str, seed: int) -> Image.Image:
    """One picture of a thing, of its own size, place, turn, colours, light and noise."""
    random = np.random.default_rng([zlib.crc32(thing.encode()), seed])
    outlined = random.random() < 0.5
    brush = Brush((30, 30, 30) if outlined else None)
    THINGS[thing](brush, random)
    layer = brush.layer
    if random.random() < 0.5:
        layer = layer.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    layer = layer.rotate(random.uniform(-18, 18), Image.Resampling.BICUBIC, expand=True)
    size = int(random.integers(58, 112))
    stretched = max(1, round(size * random.uniform(0.8, 1.2)))
    layer = layer.resize((stretched, size), Image.Resampling.LANCZOS)
    image = _background(random)
    # A little may stick out over the edge, as in photographs.
    place = random.uniform((-0.08, -0.08), (1.08, 1.08)) * (WIDTH - stretched, HEIGHT - size)
    image.paste(layer, (int(place[0]), int(place[1])), layer)
    pixels = np.asarray(image, float) * random.uniform(0.7, 1.15)
    pixels += random.normal(0, random.uniform(2, 16), pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def write_pictures(folder: Path, things: Iterable[str], seeds: range) -> list[Path]:
    """Write pictures as ``folder/thing/NN.jpg``, one of each thing for each seed."""
    paths = []
    for thing in things:
        (folder / thing).mkdir(parents=True, exist_ok=True)
        for seed in seeds:
            paths.append(folder / thing / f"{seed:02}.jpg")
            draw_picture(thing, seed).save(paths[-1], quality=90)
    return paths


def write_parts(folder: Path) -> list[Path]:
    """Write the pictures of the tutorials: to learn first and later, to test, and a rare thing."""
    *common, rare = THINGS
    train, test = range(25), range(25, 40)
    return [
        *write_pictures(folder / "first", common[:5], train),
        *write_pictures(folder / "more", common[5:], train),
        *write_pictures(folder / "test", common, test),
        *write_pictures(folder / "rare", [rare], range(40)),
    ]


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "demo_pictures")
    print(f"Drew {len(write_parts(target))} pictures of {len(THINGS)} things into {target}/")
