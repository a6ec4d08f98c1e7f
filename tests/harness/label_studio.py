"""A real Label Studio in its own process, and people who label in it.

The program is found by the environment variable LABEL_STUDIO, or where the Makefile installs it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar

from evergrow.workspace import Workspace
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess, free_port
from tests.harness.workspaces import new_workspace

Result = TypeVar("Result")

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "label_studio" / "connect.py"
DRAWING = ROOT / "examples" / "pictures.py"
_INSTALLED = ROOT / "build" / "label-studio" / "bin" / "label-studio"
N_CLASSES = 9
# The first start creates the database, on a busy machine.
_READY_SECONDS = 300.0
_LEGACY_TOKEN = "0123456789abcdef0123456789abcdef01234567"
# Steps of a person with the mouse: choose a class, submit; or only submit what is selected.
_CHOOSE_AND_SUBMIT, _SUBMIT = 2, 1
# Data manager: select all, Actions, Retrieve predictions, OK.
_RETRIEVE = 4
# Actions, Create annotations from predictions, the list of versions, a version, OK.
_CREATE = 5


def find_program() -> Path | None:
    """The command of Label Studio; None if it is not installed."""
    named = os.environ.get("LABEL_STUDIO")
    if named:
        found = shutil.which(named)
        return None if found is None else Path(found)
    return _INSTALLED if _INSTALLED.is_file() else None


def load_example(path: Path) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class LabelStudioProcess:
    """A Label Studio with its own SQLite database, in a session of its own."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start()
        self.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the process."""
        environment = {
            **os.environ,
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.folder),
            "LABEL_STUDIO_USERNAME": "annotator@example.org",
            "LABEL_STUDIO_PASSWORD": "only-for-tests",
            "LABEL_STUDIO_USER_TOKEN": _LEGACY_TOKEN,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            # Both servers are on this computer.
            "SSRF_PROTECTION_ENABLED": "false",
            "ML_BLOCK_LOCAL_IP": "false",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
        }
        command = [str(self._program), "start", "--no-browser", "--internal-host", "127.0.0.1"]
        command += ["--port", str(self.port), "--log-level", "WARNING"]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Wait until it answers."""
        end = time.monotonic() + _READY_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > end:
                    log = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"Label Studio did not start: {log[-2000:]}") from None
                time.sleep(0.1)

    def kill(self) -> None:
        """Kill it at once, as a power failure would."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def client(self) -> Any:
        """The client of the example, with the legacy token."""
        return load_example(EXAMPLE).LabelStudio(self.url, _LEGACY_TOKEN)

    def personal_token(self) -> str:
        """A new personal access token."""
        return str(self.client().ask("POST", "/api/token/", {})["token"])


@dataclass(frozen=True)
class Photograph:
    """A picture file and its true class."""

    path: Path
    label: str


def photographs(folder: Path, n: int) -> list[Photograph]:
    """Drawn pictures of nine classes in one folder."""
    folder.mkdir(parents=True)
    found = []
    drawing = load_example(DRAWING)
    things = sorted(drawing.THINGS)[:N_CLASSES]
    for number in range(n):
        thing = things[number % len(things)]
        path = folder / f"{thing}-{number:04}.jpg"
        drawing.draw_picture(thing, number).save(path)
        found.append(Photograph(path, thing))
    random.Random(0).shuffle(found)
    return found


@dataclass
class Labelling:
    """What a person did, and what the predictions were like."""

    n_labelled: int = 0
    n_right: int = 0
    n_clicks: int = 0
    # Corrections that the next prediction had learnt, of those that one followed.
    n_corrections_in_next: int = 0
    n_corrections_followed: int = 0


class Person:
    """A script that labels as a person does: it accepts right predictions and corrects wrong ones.

    The true class of a picture is in the name of its file.
    """

    def __init__(self, studio: Any, project: int) -> None:
        self.studio = studio
        self.project = project
        self.done = Labelling()
        # The version of the model that learnt the last correction, at least.
        self._corrected: int | None = None

    def label_next(self) -> bool:
        """Label the next task that Label Studio shows; False if there is none."""
        try:
            task = self.studio.ask("GET", f"/api/projects/{self.project}/next")
        except RuntimeError as error:
            if " 404 " in str(error):
                return False
            raise
        truth = true_class(task)
        predictions = task["predictions"]
        predicted = chosen_class(predictions[0]) if predictions else None
        self._note_version(predictions)
        self.done.n_labelled += 1
        self.annotate(task["id"], truth)
        if predicted == truth:
            self.done.n_right += 1
            self.done.n_clicks += _SUBMIT
            return True
        self.done.n_clicks += _CHOOSE_AND_SUBMIT
        self._corrected = _event_of(predictions[0]) if predictions else None
        return True

    def _note_version(self, predictions: Sequence[Any]) -> None:
        """Note whether a correction is in the next prediction."""
        if self._corrected is not None and predictions:
            self.done.n_corrections_followed += 1
            self.done.n_corrections_in_next += _event_of(predictions[0]) > self._corrected
        self._corrected = None

    def annotate(self, task: int, label: str) -> int:
        """Submit an annotation; return its id."""
        made = self.studio.ask("POST", f"/api/tasks/{task}/annotations/", annotation_of(label))
        return int(made["id"])

    def accept_many(self) -> None:
        """Accept all right predictions at once in the data manager, where all pictures are seen."""
        tasks = [one for one in self.tasks() if not one["annotations"]]
        selected = [one["id"] for one in tasks]
        if not selected:
            return
        self._act("retrieve_tasks_predictions", selected)
        self.done.n_clicks += _RETRIEVE
        tasks = [one for one in self.tasks() if one["id"] in set(selected)]
        version = max(_event_of(p) for one in tasks for p in one["predictions"])
        right = []
        for one in tasks:
            found = [p for p in one["predictions"] if _event_of(p) == version]
            if found and chosen_class(found[0]) == true_class(one):
                right.append(one["id"])
        # Each wrong one is deselected.
        self.done.n_clicks += len(tasks) - len(right) + _CREATE
        self._act("predictions_to_annotations", right, model_version=f"evergrow-{version}")
        self.done.n_labelled += len(right)
        self.done.n_right += len(right)
        self._corrected = None

    def _act(self, action: str, tasks: Sequence[int], **options: Any) -> None:
        selected = {"all": False, "included": list(tasks)}
        path = f"/api/dm/actions?id={action}&project={self.project}"
        body = {"project": self.project, "selectedItems": selected, **options}
        self.studio.ask("POST", path, body)

    def tasks(self) -> list[Any]:
        """All tasks of the project."""
        path = f"/api/tasks?project={self.project}&fields=all&page_size=1000"
        return list(self.studio.ask("GET", path)["tasks"])


def annotation_of(label: str) -> dict[str, Any]:
    """An annotation as the page of Label Studio sends it."""
    value = {"choices": [label]}
    item = {"from_name": "class", "to_name": "image", "type": "choices", "value": value}
    return {"result": [item]}


def true_class(task: Any) -> str:
    """The class of a picture, from the name of its file; Label Studio puts a number before it."""
    name: str = task["data"]["image"].rpartition("/")[2]
    return name.split("-")[1]


def chosen_class(prediction: Any) -> str | None:
    """The class that a prediction or annotation selects."""
    result = prediction["result"]
    return result[0]["value"]["choices"][0] if result else None


def _event_of(prediction: Any) -> int:
    version = str(prediction["model_version"])
    return int(version.removeprefix("evergrow-")) if version.startswith("evergrow-") else -1


@dataclass(frozen=True)
class Pair:
    """A Label Studio and a service that are connected, with a project of pictures."""

    studio: LabelStudioProcess
    service: ServiceProcess
    person: Person
    # The personal access token of Label Studio; a person can have one.
    token: str


@contextmanager
def connected_pair(
    folder: Path, program: Path, pictures: Sequence[Photograph], *, seconds: float = 2.0
) -> Iterator[Pair]:
    """Start both servers, upload pictures and connect them, as the example does.

    The service looks for lost webhooks after so many ``seconds``.
    """
    tokens = new_workspace(folder / "things", features="auto")
    secret = folder / "label-studio-token"
    with LabelStudioProcess(folder / "label-studio", program) as studio:
        token = studio.personal_token()
        secret.write_text(token)
        service = ServiceProcess(
            folder / "things",
            (
                *("--label-studio", studio.url, "--label-studio-token-file", str(secret)),
                *NO_RATE_LIMIT,
                "--log-requests",
            ),
            limits={"label_studio_seconds": seconds},
        )
        with service:
            example = load_example(EXAMPLE)
            client = studio.client()
            classes = sorted({one.label for one in pictures})
            project = example.create_project(client, "Nine classes", classes)
            for first in range(0, len(pictures), example.UPLOAD_AT_ONCE):
                some = pictures[first : first + example.UPLOAD_AT_ONCE]
                client.upload(project, [one.path for one in some])
            example.connect(client, project, f"http://127.0.0.1:{service.port}", tokens.teach)
            yield Pair(studio, service, Person(client, project), token)


def stored_labels(folder: Path) -> Counter[tuple[str, str]]:
    """Labels of a workspace by the SHA-256 of their images, each as often as it is there."""
    found: Counter[tuple[str, str]] = Counter()
    with Workspace.open(folder, read_only=True) as workspace:
        after = None
        while True:
            page = workspace.examples(after=after, limit=500)
            found.update((str(one.image), one.label) for one in page.items)
            after = page.next
            if after is None:
                return found


def annotated_labels(pair: Pair, pictures: Sequence[Photograph]) -> Counter[tuple[str, str]]:
    """The same of Label Studio: the newest annotation of each task that was not skipped."""
    hashes = {one.path.name: hashlib.sha256(one.path.read_bytes()).hexdigest() for one in pictures}
    found: Counter[tuple[str, str]] = Counter()
    for task in pair.person.tasks():
        valid = [one for one in task["annotations"] if not one["was_cancelled"]]
        if valid:
            newest = max(valid, key=lambda one: one["id"])
            name = task["data"]["image"].rpartition("/")[2].partition("-")[2]
            found[hashes[name], str(chosen_class(newest))] += 1
    return found


def wait_until_equal(
    pair: Pair, pictures: Sequence[Photograph], seconds: float = 60.0
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Wait until both have the same labels; return those of Label Studio and the workspace."""
    end = time.monotonic() + seconds
    while True:
        both = annotated_labels(pair, pictures), stored_labels(pair.service.folder)
        if both[0] == both[1] or time.monotonic() > end:
            return both
        time.sleep(0.2)


def repeat_until_answered(ask: Callable[[], Result], seconds: float = 300.0) -> Result:
    """Repeat a request while the server is down."""
    end = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except (OSError, RuntimeError, urllib.error.URLError) as error:
            is_down = isinstance(error, OSError) or " 50" in str(error)
            if not is_down or time.monotonic() > end:
                raise
            time.sleep(0.1)


@dataclass(frozen=True)
class Killed:
    """What was lost and what was learnt twice while servers were killed."""

    n_actions: int
    n_lost: int
    n_twice: int


def label_while_killed(
    pair: Pair, pictures: Sequence[Photograph], n_kills: int, seed: int = 0
) -> Killed:
    """Label, correct and delete at random while the two servers are killed in turns."""
    annotator = _RestlessPerson(pair.person, seed)
    thread = threading.Thread(target=annotator.run, daemon=True)
    thread.start()
    rng = random.Random(seed + 1)
    victims: list[LabelStudioProcess | ServiceProcess] = [pair.studio, pair.service]
    for number in range(n_kills):
        time.sleep(rng.uniform(0.2, 3.0))
        victim = victims[number % 2]
        victim.kill()
        victim.start()
        victim.wait_ready()
    annotator.stopping.set()
    thread.join()
    if annotator.error is not None:
        raise annotator.error
    wanted, found = wait_until_equal(pair, pictures)
    return Killed(annotator.n_actions, (wanted - found).total(), (found - wanted).total())


class _RestlessPerson:
    """Labels, changes and deletes annotations at random until it is stopped."""

    def __init__(self, person: Person, seed: int) -> None:
        self._person = person
        self._rng = random.Random(seed)
        tasks = person.tasks()
        self._classes = sorted({true_class(one) for one in tasks})
        self._free = [one["id"] for one in tasks if not one["annotations"]]
        self._annotations: dict[int, int] = {}
        self.stopping = threading.Event()
        self.n_actions = 0
        self.error: Exception | None = None

    def run(self) -> None:
        """Act until stopped; an error is kept."""
        try:
            while not self.stopping.is_set():
                self._act()
                self.n_actions += 1
        # Raised in the main thread.
        except Exception as error:  # noqa: BLE001
            self.error = error

    def _act(self) -> None:
        label = self._rng.choice(self._classes)
        if self._free and (self._rng.random() < 0.6 or not self._annotations):
            task = self._free.pop(self._rng.randrange(len(self._free)))
            made = repeat_until_answered(lambda: self._person.annotate(task, label))
            self._annotations[made] = task
            return
        number = self._rng.choice(list(self._annotations))
        path = f"/api/annotations/{number}/"
        if self._rng.random() < 0.6:
            body = annotation_of(label)
            repeat_until_answered(lambda: self._person.studio.ask("PATCH", path, body))
            return
        repeat_until_answered(lambda: self._delete(path))
        self._free.append(self._annotations.pop(number))

    def _delete(self, path: str) -> None:
        try:
            self._person.studio.ask("DELETE", path)
        except RuntimeError as error:
            # The first request was lost only on its way back.
            if " 404 " not in str(error):
                raise
