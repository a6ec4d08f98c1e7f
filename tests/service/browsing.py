"""A service in its own process, a browser, and the pictures that they show."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from tests.harness.process import ServiceProcess
from tests.harness.workspaces import new_workspace

# Where the things are drawn, and in which colours: enough for a network that only shrinks images.
THINGS = {
    "mug": ((235, 225, 205), (190, 60, 40), (0.2, 0.25, 0.5, 0.8)),
    "bowl": ((200, 220, 240), (40, 80, 170), (0.3, 0.5, 0.9, 0.8)),
    "plant": ((240, 240, 235), (40, 130, 60), (0.5, 0.1, 0.8, 0.9)),
}
SIZE = (160, 120)
N_FRAMES = 30
TIMEOUT = 15


def drawn(thing: str, seed: int) -> Any:
    """A picture of a thing, never twice the same."""
    from PIL import Image, ImageDraw

    ground, colour, (left, top, right, bottom) = THINGS[thing]
    shift = np.random.default_rng(seed).integers(-8, 9, 2)
    image = Image.new("RGB", SIZE, ground)
    width, height = SIZE
    box = [left * width, top * height, right * width, bottom * height]
    ImageDraw.Draw(image).rectangle(
        [place + shift[i % 2] for i, place in enumerate(box)], fill=colour
    )
    return image


def files(thing: str, seeds: range) -> list[dict[str, Any]]:
    """Pictures of a thing as a person would choose them."""
    chosen = []
    for seed in seeds:
        content = BytesIO()
        drawn(thing, seed).save(content, "PNG")
        name = f"{thing}{seed}.png"
        chosen.append({"name": name, "mimeType": "image/png", "buffer": content.getvalue()})
    return chosen


def portrait() -> dict[str, Any]:
    """A picture four times as high as wide."""
    from PIL import Image

    content = BytesIO()
    Image.new("RGB", (120, 480), (190, 60, 40)).save(content, "PNG")
    return {"name": "tower.png", "mimeType": "image/png", "buffer": content.getvalue()}


def write_film(path: Path, thing: str) -> None:
    """What the camera sees: a thing that moves a little."""
    width, height = SIZE
    with path.open("wb") as film:
        film.write(f"YUV4MPEG2 W{width} H{height} F10:1 Ip A1:1 C420jpeg\n".encode())
        for seed in range(N_FRAMES):
            y, cb, cr = np.moveaxis(np.asarray(drawn(thing, seed).convert("YCbCr")), -1, 0)
            film.write(b"FRAME\n" + y.tobytes() + cb[::2, ::2].tobytes() + cr[::2, ::2].tobytes())


def write_network(path: Path) -> None:
    """A network that sees eight by eight pixels and passes them on."""
    import onnx
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Flatten", ["images"], ["features"])],
        "pixels",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 192])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


@dataclass(frozen=True)
class Served:
    """A service in a process of its own."""

    url: str
    teaching: str
    reading: str

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask it without a browser."""
        headers = {"Authorization": f"Bearer {self.teaching}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.url + path, data, headers), timeout=TIMEOUT) as answer:
            return json.load(answer)

    def counts(self) -> dict[str, int]:
        """Examples by class."""
        classes = self.ask("v1/classes")["items"]
        return {entry["name"]: entry["n_examples"] for entry in classes}

    def forget_all(self) -> None:
        """Make it as good as new."""
        for name in self.counts():
            self.ask("v1/forget", {"label": name})


@contextmanager
def serving(
    folder: Path, *, name: str = "workspace", features: str | None = None
) -> Iterator[Served]:
    """Serve a new workspace in the folder, with a network that only shrinks images by default."""
    network = features or folder / "network.onnx"
    if features is None:
        write_network(folder / "network.onnx")
    tokens = new_workspace(folder / name, features=network)
    with ServiceProcess(folder / name, ["--decoders", "1"]) as service:
        yield Served(f"http://127.0.0.1:{service.port}/", tokens.teach, tokens.read)
        service.stop()


# A script cannot make entries of folders: those of the browser are replaced by objects like them.
_DROP = """async (sent) => {
    const data = new DataTransfer();
    const folders = new Map();
    for (const { name, mimeType, buffer, folder } of sent) {
        const bytes = Uint8Array.from(atob(buffer), (letter) => letter.charCodeAt(0));
        const file = new File([bytes], name, { type: mimeType });
        data.items.add(file);
        const entry = { name, isDirectory: false, file: (give) => give(file) };
        if (folder) folders.set(folder, [...(folders.get(folder) ?? []), entry]);
    }
    const entries = [...folders].map(([name, files]) => {
        const parts = [files, []];
        const createReader = () => ({ readEntries: (give) => give(parts.shift()) });
        return { name, isDirectory: true, createReader };
    });
    const plain = DataTransferItem.prototype.webkitGetAsEntry;
    if (entries.length > 0) {
        DataTransferItem.prototype.webkitGetAsEntry = () => entries.shift() ?? null;
    }
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    DataTransferItem.prototype.webkitGetAsEntry = plain;
}"""


@dataclass
class Visit:
    """A page that was opened, and every complaint of the browser about it."""

    page: Any
    served: Served
    complaints: list[str] = field(default_factory=list)
    # What the test itself brings about, such as a refused token.
    expected: tuple[str, ...] = ()
    # Tests that do not need it keep the worker out, so that they see every request themselves.
    always_expected = "Service Worker registration blocked by Playwright"

    def watch(self) -> None:
        """Note complaints from now on; violations of the security policy are among them."""
        page = self.page
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("console", self._hear)

    def _hear(self, message: Any) -> None:
        text = f"{message.type}: {message.text}"
        expected = any(part in text for part in (*self.expected, self.always_expected))
        if message.type in ("error", "warning") and not expected:
            self.complaints.append(text)

    def enter(self, token: str | None = None) -> None:
        """Come in with a token, the teaching one unless another is given."""
        self.page.goto(self.served.url)
        self.page.fill("#token", token or self.served.teaching)
        self.page.press("#token", "Enter")
        self.page.wait_for_selector("body:not(.outside)")

    def add(self, thing: str, seeds: range) -> None:
        """Choose pictures."""
        self.page.set_input_files("#files", files(thing, seeds))
        self.page.wait_for_selector("#tray:not([hidden])")

    def drop(self, pictures: list[dict[str, Any]]) -> None:
        """Drop pictures on the page."""
        sent = [
            {**one, "buffer": b64encode(one["buffer"]).decode(), "folder": one.get("folder")}
            for one in pictures
        ]
        self.page.evaluate(_DROP, sent)

    def teach(self, thing: str, seeds: range, label: str | None = None, fine: str = "") -> None:
        """Choose pictures and teach them all."""
        self.add(thing, seeds)
        self.page.fill("#label", label or thing)
        if fine:
            self.page.evaluate("document.getElementById('kind-field').hidden = false")
            self.page.fill("#kind", fine)
        self.page.click("#take-all" if len(seeds) > 1 else "#take")
        self.settle()

    def settle(self) -> None:
        """Wait until everything taught is acknowledged and the page knows it."""
        self.page.evaluate(
            """async () => {
                const module = (name) => import(new URL(`static/${name}.js`, document.baseURI));
                const { outbox } = await module("outbox");
                const { workspace } = await module("workspace");
                const once = { once: true };
                while (outbox.waiting > 0) {
                    await new Promise((heard) => outbox.addEventListener("change", heard, once));
                }
                await workspace.refresh();
            }"""
        )

    def go(self, view: str) -> None:
        """Open a view."""
        self.page.click(f"#views a[href='#{view}']")
        self.page.wait_for_selector(f"#view-{view}:not([hidden])")
