"""Forms with images: which parts there may be, and how often."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request

from evergrow.service.http.asking import service_of
from evergrow.service.http.multipart import Part, form_parts
from evergrow.service.http.problems import ProblemError

__all__ = ["image_lesson", "several_images"]


async def image_lesson(request: Request) -> tuple[bytes, str, str | None]:
    """The image, the label and the finer name of a form."""
    parts = await _parts(request, 3)
    found = {part.name: part.content for part in parts}
    if len(found) < len(parts) or not found.keys() <= {"image", "label", "fine"}:
        raise _bad("the form must have the parts image, label and perhaps fine, each once")
    for name in ("image", "label"):
        if name not in found:
            raise _bad(f"the part {name} is missing")
    fine = found.get("fine")
    label = _text(found["label"], "label")
    return found["image"], label, None if fine is None else _text(fine, "fine")


async def several_images(request: Request) -> list[bytes]:
    """The images of a form, in their order."""
    most = service_of(request).settings.max_images
    parts = await _parts(request, most)
    if not parts or any(part.name != "image" for part in parts):
        raise _bad(f"the form must have 1 to {most} parts called image, and no others")
    return [part.content for part in parts]


async def _parts(request: Request, most: int) -> list[Part]:
    body = await request.body()
    return form_parts(body, request.headers["content-type"], max_parts=most)


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _bad(f"the part {name} must be text in UTF-8") from None


def _bad(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
