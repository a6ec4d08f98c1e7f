"""Every command that the README and the docs show is run, or listed here with the reason why not.

Blocks of one page do not depend on each other here: each runs in a copy of a folder with everything
that the docs assume to be there. Commands of Evergrow run in this process, others in a shell.
"""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import evergrow
from evergrow.cli import main
from tests.harness.process import ServiceProcess

ROOT = Path(__file__).resolve().parents[1]
# Pages whose commands need files of their own, or each other, and the tests that run all of them.
OWN_TESTS = {"formats.md": "tests/test_docs_formats.py"}
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in OWN_TESTS),
)
PROMPT = re.compile(r"^(\w*)[$#] ")

# Commands by their beginning, and why no test runs them as they stand.
NOT_RUN = {
    "pip install": "tests/foundation/test_extras.py lets pip resolve them",
    "make ": "runs the tests, or what the tests test",
    "evergrow serve": "does not end; the service that answers curl here is started by it",
    "export ": "a shell of its own has the variable set",
    "evergrow download": "needs the internet",
    "evergrow experiment": "tests/cli/test_experiment.py runs one; they take minutes",
    "evergrow compare cub200": "needs a data set; a comparison of few learners runs",
    "evergrow compare features.npz": "all learners take a minute; a comparison of few runs",
    "evergrow learn things things-lessons.json": "the tests of exported pages make such a file",
    "EVERGROW_DATA=folder python -m benchmarks": "needs large data sets",
    "python -m tests.fuzz": "tests/fuzz runs it with fewer files",
    "python -m tests.sanitized": "make sanitize runs it",
    ".venv/bin/python -m tests.": "rewrites the stored files of the tests",
    "ray start": "tests/distributed starts clusters",
    "python train_anywhere.py": "tests/distributed/test_example.py runs it",
    "python classify.py": "tests/export/onnx/test_examples.py runs it",
    "c++ ": "tests/export/onnx/test_examples.py compiles it where the header is",
    "./classify": "tests/export/onnx/test_examples.py runs it",
    "mlflow models": "tests/integrations/test_mlflow.py runs it",
    "python3 -m venv label-studio": "make build/label-studio installs the same version",
    "label-studio/bin/label-studio start": "does not end; tests/service/label_studio starts it",
    "python examples/label_studio/connect.py": "tests/service/label_studio runs it",
    "curl -X POST -H": "needs a Label Studio; tests/service/label_studio sends it",
    "podman ": "needs images from a registry",
    "curl --cacert": "needs an address in a local network; tests/service tests TLS",
    "python3 -m venv": "makes an environment, which pip then fills",
    "source .venv/bin/activate": "changes the shell it is typed in",
    "python robot.py": "tests/test_tutorials.py runs it",
    "evergrow fit photos/ -o model.evergrow --network": "needs a network of transformers; "
    "tests/vision/embedding/pretrained makes some",
    "evergrow shard photos/ -o features --network": "needs a network of transformers",
    "evergrow init things --features dinov2-small/": "needs a network of transformers",
    "evergrow shard part-*.parquet": "tests/cli/test_shard.py reads such files",
    "evergrow shard embeddings.arrow": "tests/storage/shards reads such files and folders",
    "useradd ": "changes the users of the system",
    "install -d -o": "needs the user that useradd makes",
    "cd /var/lib/evergrow": "needs the user that useradd makes",
    "cp deploy/evergrow.service": "changes the system; tests/test_deploy.py checks the unit",
    "systemctl ": "changes the system; tests/test_deploy.py checks the unit",
    "cat /var/lib/evergrow": "needs the service of the system",
}
# Blocks whose commands are alternatives: each starts from the same state.
ALTERNATIVES = ("evergrow rename things",)
# What the reader has instead of what the docs show.
READER = {"/mnt/backup/": "backup/", "IP:192.168.1.20": "IP:127.0.0.1"}
PORT = re.compile(r"127\.0\.0\.1:8080")


@dataclass(frozen=True)
class Block:
    """Commands that follow each other, with whether the docs show that they fail."""

    page: str
    line: int
    commands: tuple[tuple[str, bool], ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of commands of a page: console blocks, unmarked and indented ones."""
    lines = path.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = re.match(r"^ *```(.*)$", lines[number])
        end = number + 1
        if fence is not None:
            while not re.match(r"^ *```\s*$", lines[end]):
                end += 1
            if fence[1] in ("console", "", "sh", "bash", "shell"):
                yield _block(path, number, lines[number + 1 : end], prompted=fence[1] == "console")
        elif re.match(r"^    \S", lines[number]) and (number == 0 or not lines[number - 1].strip()):
            while end < len(lines) and re.match(r"^    \S", lines[end]):
                end += 1
            shown = [line[4:] for line in lines[number:end]]
            yield _block(path, number, shown, prompted=False)
            end -= 1
        number = end + 1 if fence is not None else max(end, number + 1)


def _block(path: Path, number: int, lines: list[str], *, prompted: bool) -> Block:
    commands: list[tuple[str, bool]] = []
    for line in re.sub(r" *\\\n *", " ", "\n".join(lines)).splitlines():
        if prompted and not PROMPT.match(line):
            if line.startswith("Error:") and commands:
                commands[-1] = (commands[-1][0], True)
        elif line.strip():
            # Comments explain; they are not part of the command.
            command = re.sub(r"\s+# .*$", "", PROMPT.sub("", line) if prompted else line)
            commands.append((command.strip(), False))
    return Block(path.relative_to(ROOT).as_posix(), number + 1, tuple(commands))


BLOCKS = [block for page in PAGES for block in read_blocks(page)]


def test_pages_with_tests_of_their_own_have_them() -> None:
    for page, test in OWN_TESTS.items():
        assert page in (ROOT / test).read_text("utf-8")


def reason_not_to_run(command: str) -> str | None:
    if command == "evergrow compare photos/":
        return "all learners take a minute; a comparison of few runs"
    return next((why for start, why in NOT_RUN.items() if command.startswith(start)), None)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the docs assume to be there."""
    folder = tmp_path_factory.mktemp("docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(ROOT / "examples")
        pictures = importlib.import_module("pictures")
        _write_pictures(folder, pictures.write_pictures)
        for command in (
            "fit photos -o model.evergrow --quiet",
            "init things --token-file token --quiet",
            "learn things photos --quiet",
            "learn things dogs --fine --quiet",
            "shard photos -o features --quiet",
        ):
            _run_evergrow(command.split())
        for name in ("pets", "strict"):
            shutil.copy(folder / "model.evergrow", folder / f"{name}.evergrow")
        _write_features(folder)
        # Outputs of the docs' own commands.
        shutil.rmtree("features")
    (folder / "backup").mkdir()
    return folder


def _write_pictures(folder: Path, write) -> None:
    write(folder / "photos", ["house", "fish"], range(6))
    for name, drawn in {"mug": "cup", "cup": "cup", "anna": "star"}.items():
        write(folder / "drawn", [drawn], range(4) if name == "mug" else range(10, 14))
        shutil.move(folder / "drawn" / drawn, folder / "photos" / name)
    for name, drawn in {"beagle": "boat", "poodle": "tree"}.items():
        write(folder / "drawn", [drawn], range(4))
        shutil.copytree(folder / "drawn" / drawn, folder / "dogs" / "dog" / name)
    write(folder / "more_photos", ["tree", "fish"], range(10, 14))
    for name in ("test_photos", "demo_pictures/test"):
        write(folder / name, ["house", "fish", "cup"], range(25, 28))
    write(folder / "demo_pictures" / "first", ["house", "fish"], range(4))
    write(folder / "demo_pictures" / "more", ["cup"], range(4))
    write(folder / "demo_pictures" / "rare", ["umbrella"], range(12))
    write(folder / "new", ["house", "cup"], range(30, 33))
    for name in ("holiday", "new_photos"):
        (folder / name).mkdir()
        for number, path in enumerate(sorted((folder / "new").rglob("*.jpg"))):
            shutil.copy(path, folder / name / f"{number}.jpg")
    for name in ("cup", "what", "cat"):
        shutil.copy(folder / "holiday" / "0.jpg", folder / f"{name}.jpg")


def _write_features(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    shards = evergrow.open_shards(folder / "features")
    X = shards[: len(shards)]
    y = np.asarray(shards.labels)
    for name in ("features", "old"):
        np.savez(folder / f"{name}.npz", X=X, y=y)
    np.save(folder / "rows.npy", X)
    np.save(folder / "classes.npy", y)
    for name in ("more", "new"):
        table = pa.table({"X": list(X.astype(np.float32)), "y": [str(one) for one in y]})
        parquet.write_table(table, folder / f"{name}.parquet")


def _run_evergrow(words: list[str], *, fails: bool = False) -> str:
    result = CliRunner().invoke(main, words)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert (result.exit_code != 0) == fails, result.output
    return result.stdout


def _run(command: str, *, fails: bool) -> None:
    first, sign, rest = re.split(r" ([|>]) ", f"{command} | cat", maxsplit=1)
    if not first.startswith("evergrow "):
        subprocess.run(["bash", "-ec", command], check=True, capture_output=True)
        return
    words = shlex.split(first)[1:]
    if "-o" in words and "--force" not in words and words[0] != "shard":
        made = Path(words[words.index("-o") + 1])
        if made.is_file():
            made.unlink()
    if words[0] == "init":
        shutil.rmtree(words[1])
        Path("token").unlink()
    shown = _run_evergrow(words, fails=fails)
    after = rest.removesuffix(" | cat")
    piped = f"cat > {after}" if sign == ">" else after
    subprocess.run(["bash", "-ec", piped], input=shown.encode(), check=True, capture_output=True)


@pytest.fixture(scope="module")
def service(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(prepared / "things", folder / "things")
    with ServiceProcess(folder / "things") as running:
        yield running


RUN = [block for block in BLOCKS if any(not reason_not_to_run(one) for one, _ in block.commands)]


@pytest.mark.parametrize("block", RUN, ids=str)
def test_commands_of_the_docs_run(
    block: Block,
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    pytest.importorskip("matplotlib")
    place = tmp_path / "place"
    for number, (command, fails) in enumerate(block.commands):
        if reason_not_to_run(command):
            continue
        program = command.split()[0]
        if program != "evergrow" and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        if not place.exists() or block.commands[0][0].startswith(ALTERNATIVES):
            place = tmp_path / f"place-{number}"
            shutil.copytree(prepared, place)
            monkeypatch.chdir(place)
        line = command
        for shown, meant in READER.items():
            line = line.replace(shown, meant)
        if PORT.search(line):
            running: ServiceProcess = request.getfixturevalue("service")
            line = PORT.sub(f"127.0.0.1:{running.port}", line).replace("curl ", "curl -sSf ", 1)
            monkeypatch.setenv("EVERGROW_TOKEN", (place / "token").read_text().splitlines()[0])
        _run(line, fails=fails)


def test_every_reason_is_needed() -> None:
    commands = [command for block in BLOCKS for command, _ in block.commands]
    unused = [start for start in NOT_RUN if not any(one.startswith(start) for one in commands)]
    assert unused == []
    assert sum(1 for one in commands if not reason_not_to_run(one)) > 40


def test_options_of_commands_that_are_not_run_exist() -> None:
    for block in BLOCKS:
        for command, _ in block.commands:
            words = shlex.split(command)
            if words[0] != "evergrow":
                continue
            found = main.commands[words[1]]
            found = getattr(found, "commands", {}).get(words[2], found)
            known = {name for one in found.params for name in (*one.opts, *one.secondary_opts)}
            given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert given <= known, f"{block}: {command}"
