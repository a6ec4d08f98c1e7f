"""Why an image is not taken, by kind: each kind has one status of HTTP."""

from __future__ import annotations

from http import HTTPStatus

__all__ = ["STATUS_OF_REFUSAL", "DecoderError", "RefusedImageError"]

STATUS_OF_REFUSAL = {
    # Not an image of a kind that is read.
    "format": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    # Too many pixels, too long for its width, or more memory than one image may take.
    "size": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    # Truncated or broken.
    "damaged": HTTPStatus.UNPROCESSABLE_ENTITY,
    # An image and something else at once.
    "hidden": HTTPStatus.UNPROCESSABLE_ENTITY,
    # The decoder took too long, or died of it.
    "decoder": HTTPStatus.UNPROCESSABLE_ENTITY,
}


class RefusedImageError(ValueError):
    """An image is not taken; ``kind`` is a key of ``STATUS_OF_REFUSAL``.

    >>> str(RefusedImageError("damaged", "the file is truncated"))
    'the image was refused: the file is truncated'
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason

    def __str__(self) -> str:
        return f"the image was refused: {self.reason}"


class DecoderError(RuntimeError):
    """Decoders cannot be started, whatever the image."""
