"""A Label Studio of a few lines, for what the real one cannot be made to do.

It lists tasks as the real one does; ``tests/service/label_studio/test_real_server.py`` runs that.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.harness.pictures import picture

TOKEN = "0123456789abcdef"
PERSONAL_TOKEN = "head.body.signature"
CONFIG = (
    '<View><Image name="image" value="$image"/><Choices name="class" toName="image">'
    '<Choice value="cup"/><Choice value="pen"/><Choice value="watch"/></Choices></View>'
)
CREATED = "2026-11-01T10:00:00.123456Z"


class FakeLabelStudio:
    """Projects, tasks and images in memory, served over HTTP."""

    def __init__(self) -> None:
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self.images: dict[str, bytes] = {}
        self.predictions: dict[int, dict[str, Any]] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []
        self.access = "access-1"
        self.is_down = False
        self.url = ""
        self._now = datetime(2026, 11, 18, 12, tzinfo=UTC)
        self._next_id = 100
        self.add_project(1)

    def add_project(self, number: int, config: str = CONFIG, created: str = CREATED) -> None:
        """Add a project that has a webhook."""
        self.projects[number] = {
            "id": number,
            "created_at": created,
            "label_config": config,
            "model_version": "Evergrow",
            "sampling": "Sequential sampling",
        }

    def add_task(self, number: int, *, image: str | None = None, project: int = 1) -> int:
        """Add a task with an image of its own."""
        path = f"/data/upload/{project}/{number}.jpg" if image is None else image
        self.images.setdefault(path, picture(seed=number))
        self.tasks[number] = {
            "id": number,
            "project": project,
            "data": {"image": path},
            "annotations": [],
            "predictions": [],
            "updated_at": self._time(),
        }
        return number

    def annotate(self, task: int, label: str, *, person: int = 1, **members: Any) -> int:
        """Add an annotation; return its id."""
        self._next_id += 1
        one = {
            "id": self._next_id,
            "completed_by": person,
            "result": [self.choice(label)],
            "was_cancelled": False,
            "ground_truth": False,
        }
        self.tasks[task]["annotations"].append(one | members)
        self._touch(task)
        return self._next_id

    def correct(self, task: int, label: str) -> None:
        """Change the last annotation of a task."""
        self.tasks[task]["annotations"][-1]["result"] = [self.choice(label)]
        self._touch(task)

    def delete_annotations(self, task: int) -> None:
        """Delete all annotations of a task."""
        self.tasks[task]["annotations"].clear()
        self._touch(task)

    @staticmethod
    def choice(label: str) -> dict[str, Any]:
        """One item of a result."""
        value = {"choices": [label]}
        return {"from_name": "class", "to_name": "image", "type": "choices", "value": value}

    def webhook(self, action: str, task: int | None = None, **members: Any) -> dict[str, Any]:
        """What Label Studio sends."""
        body: dict[str, Any] = {"action": action, "project": {"id": 1}, **members}
        if task is not None:
            body |= {"task": {"id": task}, "annotation": {"id": 1, "task": task}}
        return body

    def _touch(self, task: int) -> None:
        self.tasks[task]["updated_at"] = self._time()

    def _time(self) -> str:
        self._now += timedelta(minutes=1)
        return self._now.isoformat().replace("+00:00", "Z")

    def answer(self, target: str, headers: Any, body: Any) -> tuple[int, Any]:
        """Status and content of one request."""
        path = urlsplit(target).path.rstrip("/")
        if path == "/api/token/refresh":
            return 200 if body == {"refresh": PERSONAL_TOKEN} else 401, {"access": self.access}
        if headers.get("Authorization") not in (f"Token {TOKEN}", f"Bearer {self.access}"):
            return 401, {}
        if path in self.redirects:
            return 303, self.redirects[path]
        if target in self.images:
            return 200, self.images[target]
        kind, _, rest = path.removeprefix("/api/").partition("/")
        answer = {
            "tasks": self._list,
            "webhooks": self._webhooks,
            "projects": self._project,
            "predictions": self._change_prediction,
        }.get(kind)
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        return (404, {}) if answer is None else answer(rest, query, body)

    def _webhooks(self, _: str, query: dict[str, str], __: Any) -> tuple[int, Any]:
        url = "http://here/v1/integrations/label-studio/webhook"
        is_connected = int(query["project"]) in self.projects
        return 200, [{"url": url, "is_active": True}] if is_connected else []

    def _project(self, rest: str, _: dict[str, str], body: Any) -> tuple[int, Any]:
        number, _, more = rest.partition("/")
        if int(number) not in self.projects:
            return 404, {}
        if more == "import/predictions":
            for one in body:
                self._next_id += 1
                self.predictions[self._next_id] = stored = {**one, "id": self._next_id}
                self.tasks[one["task"]]["predictions"].append(stored)
        return 200, self.projects[int(number)]

    def _change_prediction(self, rest: str, _: dict[str, str], body: Any) -> tuple[int, Any]:
        self.predictions[int(rest)].update(body)
        return 200, {}

    def _list(self, _: str, query: dict[str, str], __: Any) -> tuple[int, Any]:
        asked = json.loads(query["query"])
        found = [one for one in self.tasks.values() if one["project"] == int(query["project"])]
        selected = asked.get("selectedItems", {"all": True})
        if not selected["all"]:
            found = [one for one in found if one["id"] in selected["included"]]
        for item in asked.get("filters", {}).get("items", ()):
            if item["filter"].endswith("updated_at"):
                found = [one for one in found if one["updated_at"] >= item["value"]]
            else:
                found = [one for one in found if not one["annotations"]]
        size, page = int(query["page_size"]), int(query["page"])
        part = found[size * (page - 1) : size * page]
        return (200, {"tasks": part, "total": len(found)}) if part or page == 1 else (404, {})


@contextmanager
def fake_label_studio() -> Iterator[FakeLabelStudio]:
    """A fake that listens on a free port."""
    fake = FakeLabelStudio()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.requests.append((self.command, self.path))
            if fake.is_down:
                self.close_connection = True
                return
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            status, content = fake.answer(self.path, self.headers, body)
            self.send_response(status)
            if status == 303:
                self.send_header("Location", content)
                content = b""
            sent = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
