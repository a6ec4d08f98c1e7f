"""Forms with images: parse a complete ``multipart/form-data`` body into its parts."""

from __future__ import annotations

from starlette.requests import Request

from evergrow.service.http.requests import service_of
from evergrow.service.http.responses import invalid_request

FORM_TYPE = "multipart/form-data"
_MAX_BOUNDARY = 200
_MAX_HEADER_BYTES = 4096

# The name and the content of one field.
Part = tuple[str, bytes]


async def read_teach_form(request: Request) -> tuple[bytes, str, str | None]:
    """Return the image, the label and the finer class of a form."""
    parts = await _read_parts(request, 3)
    found = dict(parts)
    if len(found) < len(parts) or not found.keys() <= {"image", "label", "fine"}:
        raise invalid_request("the form must have the parts image, label and optionally fine")
    for name in ("image", "label"):
        if name not in found:
            raise invalid_request(f"the part {name} is missing")
    fine = found.get("fine")
    label = _decode_text(found["label"], "label")
    return found["image"], label, None if fine is None else _decode_text(fine, "fine")


async def read_image_form(request: Request) -> list[bytes]:
    """Return the images of a form, in their order."""
    max_images = service_of(request).settings.max_images
    parts = await _read_parts(request, max_images)
    if not parts or any(name != "image" for name, _ in parts):
        raise invalid_request(
            f"the form must have 1 to {max_images} parts named image, and no others"
        )
    return [content for _, content in parts]


async def _read_parts(request: Request, max_parts: int) -> list[Part]:
    body = await request.body()
    return parse_form(body, request.headers["content-type"], max_parts=max_parts)


def _decode_text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise invalid_request(f"the part {name} must be text in UTF-8") from None


def parse_form(body: bytes, content_type: str, *, max_parts: int) -> list[Part]:
    """Return the parts of a form in their order; raise a ``ProblemError`` if it is not valid."""
    from python_multipart import MultipartParser
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import parse_options_header

    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not boundary or len(boundary) > _MAX_BOUNDARY:
        raise invalid_request("the Content-Type has no valid boundary")
    collector = _PartCollector(max_parts)
    names = [name for name in dir(collector) if name.startswith("on_")]
    parser = MultipartParser(boundary, {name: getattr(collector, name) for name in names})  # type: ignore[arg-type]
    try:
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise invalid_request(f"the form cannot be parsed: {error}") from error
    if not collector.ended:
        raise invalid_request("the form is truncated: its last boundary is missing")
    return collector.parts


class _PartCollector:
    """Callbacks of the parser, which collect the parts as slices of the body."""

    def __init__(self, max_parts: int) -> None:
        self.parts: list[Part] = []
        self.ended = False
        self._max_parts = max_parts
        self._n_header_bytes = 0
        self._name: list[bytes] = []
        self._value: list[bytes] = []
        self._disposition = b""
        self._data: list[bytes] = []

    def on_part_begin(self) -> None:
        if len(self.parts) == self._max_parts:
            raise invalid_request(f"the form has more than {self._max_parts} parts")
        self._n_header_bytes, self._disposition = 0, b""
        self._data = []

    def on_header_begin(self) -> None:
        self._name, self._value = [], []

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name.append(self._count_header(data[start:end]))

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value.append(self._count_header(data[start:end]))

    def on_header_end(self) -> None:
        if b"".join(self._name).lower() == b"content-disposition":
            self._disposition = b"".join(self._value)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def on_part_end(self) -> None:
        from python_multipart.multipart import parse_options_header

        kind, options = parse_options_header(self._disposition)
        if kind != b"form-data" or b"name" not in options:
            raise invalid_request("a part of the form has no name")
        try:
            name = options[b"name"].decode()
        except UnicodeDecodeError:
            raise invalid_request("the name of a part is not UTF-8") from None
        content = self._data[0] if len(self._data) == 1 else b"".join(self._data)
        self.parts.append((name, content))

    def on_end(self) -> None:
        self.ended = True

    def _count_header(self, data: bytes) -> bytes:
        self._n_header_bytes += len(data)
        if self._n_header_bytes > _MAX_HEADER_BYTES:
            raise invalid_request("the headers of a part are too long")
        return data
