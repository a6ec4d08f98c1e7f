"""Visual codebooks, embeddings and image folders: accuracy, and time by stage."""

from __future__ import annotations

from benchmarks.codebook import accuracy, embedding, folders, parameters, speed

__all__ = ["run"]


def run(quick: bool) -> None:
    """Measure on photographs, or on pictures drawn for it."""
    speed.run(quick)
    embedding.run(quick)
    folders.run(quick)
    accuracy.run(quick)
    parameters.run(quick)
