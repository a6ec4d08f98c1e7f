"""Firefox, driven over its own remote protocol (Marionette): no driver program is needed."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from tests.harness.process import free_port

_START_SECONDS = 60.0
_WAIT_SECONDS = 20.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PREFERENCES = {
    # A camera that shows a moving test picture, which no one has to allow.
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False,
}


def find_firefox() -> str | None:
    """The path of Firefox, or None."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One window of Firefox without a screen; a context manager."""

    def __init__(self, program: str, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        port = free_port()
        self.downloads = folder / "downloads"
        preferences = {
            **_PREFERENCES,
            "marionette.port": port,
            # A folder that is named here, and no question.
            "browser.download.folderList": 2,
            "browser.download.dir": str(self.downloads),
        }
        lines = [
            f"user_pref({json.dumps(name)}, {json.dumps(value)});"
            for name, value in preferences.items()
        ]
        (folder / "user.js").write_text("\n".join(lines))
        self._port = port
        self._command = [program, "--headless", "--marionette", "--profile", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        try:
            self._socket = self._connect(time.monotonic() + _START_SECONDS)
            self._read()
            self._call("NewSession", {"capabilities": {"alwaysMatch": {}}})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_WAIT_SECONDS)
            self._process.kill()
            self._process.wait()

    def go(self, url: str) -> None:
        """Open an address."""
        self._call("Navigate", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page and return its value."""
        body = {"script": script, "args": list(arguments)}
        return self._call("ExecuteScript", body)["value"]

    def wait(self, script: str, *arguments: object) -> Any:
        """Run a script until its value is true, and return it."""
        end = time.monotonic() + _WAIT_SECONDS
        while not (found := self.run(script, *arguments)):
            assert time.monotonic() < end, f"still not: {script} {arguments}"
            time.sleep(0.05)
        return found

    def wait_text(self, selector: str, text: str) -> None:
        """Wait until a visible element contains a text."""
        self.wait(
            "return [...document.querySelectorAll(arguments[0])].some("
            "(one) => one.checkVisibility() && one.textContent.includes(arguments[1]))",
            selector,
            text,
        )

    def click(self, selector: str) -> None:
        """Click an element, once it is visible."""
        self.wait("return document.querySelector(arguments[0])?.checkVisibility()", selector)
        self._call("ElementClick", {"id": self._find(selector)})

    def type(self, selector: str, text: str) -> None:
        """Type into an element; into one for files, their paths."""
        self._call("ElementSendKeys", {"id": self._find(selector), "text": text})

    def screenshot(self, path: Path) -> None:
        """Write what the window shows."""
        found = self._call("TakeScreenshot", {"full": False})["value"]
        path.write_bytes(base64.b64decode(found))

    def _find(self, selector: str) -> str:
        found = self._call("FindElement", {"using": "css selector", "value": selector})
        return str(found["value"][_ELEMENT])

    def _connect(self, end: float) -> socket.socket:
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self._port), timeout=_START_SECONDS)
            except ConnectionRefusedError:
                assert time.monotonic() < end, (self._folder / "log").read_text()
                time.sleep(0.1)

    def _call(self, name: str, body: dict[str, Any]) -> Any:
        assert self._socket is not None
        message = json.dumps([0, next(self._numbers), f"WebDriver:{name}", body]).encode()
        self._socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, value = self._read()
        assert error is None, error
        return value

    def _read(self) -> Any:
        """One message: its length, a colon, JSON."""
        assert self._socket is not None
        length = b""
        while (one := self._socket.recv(1)) != b":":
            assert one, "Firefox closed the connection"
            length += one
        content = b""
        while len(content) < int(length):
            part = self._socket.recv(int(length) - len(content))
            assert part, "Firefox closed the connection"
            content += part
        return json.loads(content)
