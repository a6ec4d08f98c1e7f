"""Changes of bytes for formats without hashes: entries, pieces, and pieces from a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_LARGEST = 1 << 16


def mutate_bytes(content: bytes, random: Random, words: Sequence[bytes] = ()) -> bytes:
    """A changed copy."""
    changed = bytearray(content[:_LARGEST] or b"\0")
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        at = random.randrange(len(changed) + 1)
        until = min(len(changed), at + random.choice((1, 1, 2, 4, 16, 256)))
        match random.randrange(7):
            case 0:
                changed[at:until] = random.randbytes(until - at)
            case 1:
                changed[at:until] = b""
            case 2:
                changed[at:at] = changed[at:until]
            case 3 if words:
                changed[at:at] = random.choice(words)
            case 4 if words:
                word = random.choice(words)
                changed[at : at + len(word)] = word
            case 5:
                changed[at:until] = random.choice((b"\0", b"\xff", b"\x7f\xff", b"\x80"))
            case _:
                changed[at : at + 1] = bytes([random.randrange(256)])
    return bytes(changed)
