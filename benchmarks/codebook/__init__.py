"""Visual codebooks, embeddings and image folders: time by stage.

What the parameters of codebooks do to accuracy is in ``evergrow experiment nips2006``; here are
only the rates that it has not: every object, and SIFT.
"""

from __future__ import annotations

from benchmarks.codebook import accuracy, embedding, folders, speed

PARTS = {
    "speed": speed.run,
    "embedding": embedding.run,
    "folders": folders.run,
    "accuracy": accuracy.run,
}
