"""Create a Label Studio project for a folder of pictures, with Evergrow as its back end.

Both servers run, and their tokens are in the environment; docs/label_studio.md has the commands.

    python examples/label_studio/connect.py pictures --classes cup pen watch
"""

from __future__ import annotations

import argparse
import json
import mimetypes
import os
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

TITLE = "Evergrow"
BACK_END_PATH = "/v1/integrations/label-studio"
# Pictures in one request.
UPLOAD_AT_ONCE = 20


class LabelStudio:
    """Requests to Label Studio's API with a personal access token or a legacy token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._header = f"Token {token}"
        if token.count(".") == 2:
            self.renew()

    def renew(self) -> None:
        """Exchange the personal access token for one that is valid for five minutes."""
        self._header = ""
        access = self.ask("POST", "/api/token/refresh/", {"refresh": self._token})["access"]
        self._header = f"Bearer {access}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send JSON and return the JSON of the response."""
        content = None if body is None else json.dumps(body).encode()
        return self._send(method, path, content, "application/json")

    def upload(self, project: int, pictures: Sequence[Path]) -> None:
        """Make a task of each picture."""
        if self._token.count(".") == 2:
            # The one before may have expired while pictures were sent.
            self.renew()
        boundary = secrets.token_hex(16)
        parts = []
        for number, path in enumerate(pictures):
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            # As browsers write names into such a header.
            name = path.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
            head = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="picture{number}"; '
                f'filename="{name}"\r\nContent-Type: {kind}\r\n\r\n'
            )
            parts += [head.encode(), path.read_bytes(), b"\r\n"]
        body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        path = f"/api/projects/{project}/import?commit_to_project=true"
        self._send("POST", path, body, f"multipart/form-data; boundary={boundary}")

    def _send(self, method: str, path: str, body: bytes | None, kind: str) -> Any:
        headers = {"Content-Type": kind}
        if self._header:
            headers["Authorization"] = self._header
        request = urllib.request.Request(self.url + path, body, headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
                content = response.read()
        except urllib.error.HTTPError as error:
            detail = error.read().decode(errors="replace")[:1000]
            raise RuntimeError(f"{method} {path}: {error.code} {detail}") from error
        return json.loads(content) if content else None


def labelling_config(classes: Sequence[str]) -> str:
    """The configuration of a project: one picture, one choice."""
    choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View><Image name="image" value="$image"/>'
        f'<Choices name="class" toName="image" choice="single-radio">{choices}</Choices></View>'
    )


def create_project(studio: LabelStudio, title: str, classes: Sequence[str]) -> int:
    """Create a project that shows predictions and asks for the most useful pictures first."""
    project = studio.ask(
        "POST",
        "/api/projects/",
        {
            "title": title,
            "label_config": labelling_config(classes),
            "show_collab_predictions": True,
            "sampling": "Uncertainty sampling",
        },
    )
    return int(project["id"])


def connect(studio: LabelStudio, project: int, evergrow: str, token: str) -> None:
    """Connect the back end and its webhook.

    The webhook comes first: otherwise Label Studio makes one itself, which sends no token.
    """
    address = evergrow.rstrip("/") + BACK_END_PATH
    studio.ask(
        "POST",
        "/api/webhooks/",
        {
            "project": project,
            "url": f"{address}/webhook",
            "headers": {"Authorization": f"Bearer {token}"},
            "send_payload": True,
            "send_for_all_actions": True,
        },
    )
    studio.ask(
        "POST",
        "/api/ml/",
        {
            "project": project,
            "title": TITLE,
            "url": address,
            "auth_method": "BASIC_AUTH",
            "basic_auth_user": "label-studio",
            "basic_auth_pass": token,
        },
    )


def find_pictures(folder: Path) -> list[Path]:
    """All pictures below a folder."""
    kinds = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in kinds)


def main() -> int:
    """Create, upload, connect."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", type=Path, help="folder of pictures")
    parser.add_argument("--classes", nargs="+", required=True, help="names of the classes")
    parser.add_argument("--title", default="Evergrow", help="title of the project")
    parser.add_argument("--label-studio", default="http://127.0.0.1:8081", metavar="URL")
    parser.add_argument("--evergrow", default="http://127.0.0.1:8080", metavar="URL")
    options = parser.parse_args()
    try:
        tokens = [os.environ[name] for name in ("LABEL_STUDIO_API_KEY", "EVERGROW_TOKEN")]
    except KeyError as error:
        print(f"the environment variable {error.args[0]} is missing", file=sys.stderr)
        return 2
    pictures = find_pictures(options.pictures)
    if not pictures:
        print(f"{options.pictures} has no pictures", file=sys.stderr)
        return 2
    studio = LabelStudio(options.label_studio, tokens[0])
    project = create_project(studio, options.title, options.classes)
    for first in range(0, len(pictures), UPLOAD_AT_ONCE):
        studio.upload(project, pictures[first : first + UPLOAD_AT_ONCE])
    connect(studio, project, options.evergrow, tokens[1])
    print(f"{len(pictures)} pictures: label them at {studio.url}/projects/{project}/data")
    return 0


if __name__ == "__main__":
    sys.exit(main())
