"""The parts of a form with files, from a body that is whole and not too long."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from evergrow.service.http.problems import ProblemError

__all__ = ["FORM_TYPE", "Part", "form_parts"]

FORM_TYPE = "multipart/form-data"
_MAX_BOUNDARY = 200
_MAX_HEAD_BYTES = 4096


@dataclass(frozen=True)
class Part:
    """One field of a form."""

    name: str
    content: bytes


class _Reader:
    """Collects what the parser finds; slices of the body, no copies on the way."""

    def __init__(self, max_parts: int) -> None:
        self.parts: list[Part] = []
        self.ended = False
        self._max_parts = max_parts
        self._n_head = 0
        self._name: list[bytes] = []
        self._value: list[bytes] = []
        self._disposition = b""
        self._data: list[bytes] = []

    def on_part_begin(self) -> None:
        if len(self.parts) == self._max_parts:
            raise _bad(f"the form has more than {self._max_parts} parts")
        self._n_head, self._disposition = 0, b""
        self._data = []

    def on_header_begin(self) -> None:
        self._name, self._value = [], []

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name.append(self._head(data[start:end]))

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value.append(self._head(data[start:end]))

    def on_header_end(self) -> None:
        if b"".join(self._name).lower() == b"content-disposition":
            self._disposition = b"".join(self._value)

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def on_part_end(self) -> None:
        from python_multipart.multipart import parse_options_header

        kind, options = parse_options_header(self._disposition)
        if kind != b"form-data" or b"name" not in options:
            raise _bad("a part of the form has no name")
        try:
            name = options[b"name"].decode()
        except UnicodeDecodeError:
            raise _bad("the name of a part is no UTF-8") from None
        content = self._data[0] if len(self._data) == 1 else b"".join(self._data)
        self.parts.append(Part(name, content))

    def on_end(self) -> None:
        self.ended = True

    def _head(self, data: bytes) -> bytes:
        self._n_head += len(data)
        if self._n_head > _MAX_HEAD_BYTES:
            raise _bad("the head of a part is too long")
        return data


def form_parts(body: bytes, content_type: str, *, max_parts: int) -> list[Part]:
    """The parts of a form in their order; a ``ProblemError`` for anything that is none."""
    from python_multipart import MultipartParser
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import parse_options_header

    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if not boundary or len(boundary) > _MAX_BOUNDARY:
        raise _bad("the Content-Type names no boundary")
    reader = _Reader(max_parts)
    names = [name for name in dir(reader) if name.startswith("on_")]
    parser = MultipartParser(boundary, {name: getattr(reader, name) for name in names})  # type: ignore[arg-type]
    try:
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise _bad(f"the form cannot be read: {error}") from error
    if not reader.ended:
        raise _bad("the form is truncated: its last boundary is missing")
    return reader.parts


def _bad(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
