"""Bodies of requests, and how many images fit into one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evergrow.service.client.sources import EmbeddingItem, ImageItem, Item

__all__ = ["Body", "batches_of", "json_body", "prediction_body", "teaching_body"]

# Of a request beside the images themselves, for each of them.
_AROUND_BYTES = 300


@dataclass(frozen=True)
class Body:
    """What is sent, and what it is."""

    content: bytes
    media_type: str


def json_body(value: Any) -> Body:
    """A JSON value."""
    return Body(json.dumps(value, allow_nan=False).encode(), "application/json")


def teaching_body(item: Item, label: str, fine: str | None) -> Body:
    """One example to teach."""
    named = {"label": label} if fine is None else {"label": label, "fine": fine}
    for name, value in named.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str, got {type(value).__name__}")
    if isinstance(item, EmbeddingItem):
        return json_body({"embedding": _finite(item), **named})
    return _multipart([item], named)


def prediction_body(items: Sequence[Item]) -> Body:
    """Some images, or some embeddings, to ask about."""
    embeddings = [_finite(one) for one in items if isinstance(one, EmbeddingItem)]
    if embeddings:
        return json_body({"embeddings": embeddings})
    return _multipart([one for one in items if isinstance(one, ImageItem)], {})


def batches_of(
    items: Sequence[Item], *, most_items: int, most_bytes: int
) -> Iterator[Sequence[Item]]:
    """Items of one kind together, no more than a request takes.

    Examples
    --------
    >>> from evergrow.service.client.requesting import batches_of
    >>> from evergrow.service.client.sources import ImageItem
    >>> items = [ImageItem(bytes(n)) for n in (500, 400, 300, 20, 10)]
    >>> [len(batch) for batch in batches_of(items, most_items=2, most_bytes=2000)]
    [2, 2, 1]
    """
    first, n_bytes = 0, 0
    for place, item in enumerate(items):
        size = item.n_bytes + _AROUND_BYTES
        full = place - first == most_items or n_bytes + size > most_bytes
        if place > first and (full or type(item) is not type(items[first])):
            yield items[first:place]
            first, n_bytes = place, 0
        n_bytes += size
    if items:
        yield items[first:]


def _finite(item: EmbeddingItem) -> list[float]:
    for place, value in enumerate(item.values):
        # Infinity minus itself is no number, and no number equals itself.
        if value - value != 0:
            raise ValueError(f"an embedding must be of finite numbers, got {value} at {place}")
    return item.values


def _multipart(images: Sequence[ImageItem], texts: dict[str, str]) -> Body:
    # Random, so that no image can hold it by chance or on purpose.
    boundary = secrets.token_hex(24)
    parts = []
    for name, text in texts.items():
        parts += [_part_head(boundary, f'name="{name}"', "text/plain; charset=utf-8")]
        parts += [text.encode(), b"\r\n"]
    for image in images:
        where = 'name="image"; filename="image"'
        parts += [_part_head(boundary, where, "application/octet-stream")]
        parts += [image.content, b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return Body(b"".join(parts), f"multipart/form-data; boundary={boundary}")


def _part_head(boundary: str, where: str, media_type: str) -> bytes:
    return (
        f"--{boundary}\r\nContent-Disposition: form-data; {where}\r\n"
        f"Content-Type: {media_type}\r\n\r\n"
    ).encode()
