"""The unit, the container file and what CI installs are as the documentation says."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from evergrow.cli import main

TOP = Path(__file__).parents[1]
DEPLOY = TOP / "deploy"
WORKFLOWS = sorted((TOP / ".github" / "workflows").glob("*.yml"))
# These install their tools from requirements/release.txt.
RELEASE_TARGETS = {"sdist", "wheels", "audit", "dist", "reproducible", "test-wheels", "test-extras"}
LOCKS = sorted((TOP / "requirements").glob("*.txt"))


class _Unit(dict[str, list[str]]):
    """Settings of a unit by name; a setting may stand there more than once."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and line[0] not in "#[":
                name, _, value = line.partition("=")
                self.setdefault(name, []).append(value)


@pytest.fixture(scope="module")
def unit() -> _Unit:
    return _Unit(DEPLOY / "evergrow.service")


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """The instructions of the container file."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in whole.splitlines() if line]


def options_of(command: str) -> set[str]:
    """All options that a command of ours takes."""
    return {name for one in main.commands[command].params for name in one.opts}


def test_the_unit_is_made_of_sections() -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "evergrow.service")
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_the_unit_starts_a_command_that_is_understood(unit: _Unit) -> None:
    program, command, folder, *options = shlex.split(unit["ExecStart"][0])
    assert program.endswith("/evergrow")
    assert unit["AssertPathExists"] == [f"{folder}/workspace.json"]
    given = {option for option in options if option.startswith("-")}
    assert given <= options_of(command)


def test_the_unit_can_write_only_where_its_state_is(unit: _Unit) -> None:
    assert unit["ProtectSystem"] == ["strict"]
    assert "ReadWritePaths" not in unit
    state = f"/var/lib/{unit['StateDirectory'][0]}/"
    assert shlex.split(unit["ExecStart"][0])[2].startswith(state)
    assert unit["Environment"] == [f"EVERGROW_CACHE=/var/cache/{unit['CacheDirectory'][0]}"]


@pytest.mark.parametrize(
    "name",
    ["User", "MemoryMax", "TimeoutStopSec", "CapabilityBoundingSet", "SystemCallFilter"],
)
def test_the_unit_limits_the_service(unit: _Unit, name: str) -> None:
    assert name in unit
    assert unit["User"] != ["root"]
    assert unit["NoNewPrivileges"] == ["yes"]


def test_the_unit_comes_back_after_a_failure_only(unit: _Unit) -> None:
    assert unit["Restart"] == ["on-failure"]


def test_decoders_may_limit_themselves(unit: _Unit) -> None:
    denied = [value for value in unit["SystemCallFilter"] if value.startswith("~")]
    assert not any("@resources" in value or "@sandbox" in value for value in denied)
    assert any("seccomp" in value.split() for value in unit["SystemCallFilter"])


def test_the_unit_has_files_for_all_connections(unit: _Unit) -> None:
    assert int(unit["LimitNOFILE"][0]) >= 2 * 1000


def test_the_container_runs_as_an_unprivileged_user(steps: list[tuple[str, str]]) -> None:
    users = [what for kind, what in steps if kind == "USER"]
    assert users
    assert all(int(part) > 0 for user in users for part in user.split(":"))


def test_the_container_starts_a_command_that_is_understood(steps: list[tuple[str, str]]) -> None:
    entry = json.loads(dict(steps)["ENTRYPOINT"])
    command, folder, *options = json.loads(dict(steps)["CMD"])
    assert entry == ["evergrow"]
    assert folder.startswith(f"{dict(steps)['VOLUME']}/")
    assert {option for option in options if option.startswith("--")} <= options_of(command)
    assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_the_health_check_asks_the_port_that_is_served(steps: list[tuple[str, str]]) -> None:
    checks = dict(steps)["HEALTHCHECK"]
    _, _, code = json.loads(checks[checks.index("[") :])
    compile(code, "HEALTHCHECK", "exec")
    options = json.loads(dict(steps)["CMD"])
    port = options[options.index("--port") + 1]
    assert f"127.0.0.1:{port}/readyz" in code
    assert dict(steps)["EXPOSE"] == port


def test_only_what_is_named_gets_into_the_image(steps: list[tuple[str, str]]) -> None:
    kinds = [kind for kind, _ in steps]
    assert "ADD" not in kinds
    copied = [what.split()[:-1] for kind, what in steps if kind == "COPY" and "--from" not in what]
    names = {name for sources in copied for name in sources}
    assert names == {
        "pyproject.toml",
        "CMakeLists.txt",
        "README.md",
        "LICENSE",
        "cpp",
        "src",
        "release/sbom.py",
        "requirements/deploy.txt",
    }
    assert all((DEPLOY.parent / name).exists() for name in names)
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == names


def test_no_secret_is_in_the_container_file(steps: list[tuple[str, str]]) -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    assert "eg_teach" not in text
    assert not any(kind == "ENV" and "TOKEN" in what for kind, what in steps)


def test_base_images_are_named_by_their_digest(steps: list[tuple[str, str]]) -> None:
    images = [what.split()[0] for kind, what in steps if kind == "FROM"]
    assert images
    assert all(re.fullmatch(r".+@sha256:[0-9a-f]{64}", image) for image in images)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_their_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text(encoding="utf-8"))
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v[\d.]+", comment), f"{action} does not say its version"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_install_only_what_is_locked(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if "pip install" in line:
            assert "--require-hashes" in line or "--no-index" in line, line
        if re.search(r"run: make\b", line):
            targets = set(line.split("make", maxsplit=1)[1].split())
            assert targets <= RELEASE_TARGETS or "LOCK=requirements/ci.txt" in line, line
        assert "pipx" not in line


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_requirement_has_one_version_and_hashes(path: Path) -> None:
    whole = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
    assert "://" not in whole
    for line in whole.splitlines():
        assert re.match(r"[\w.\[\]-]+==[\w.+!]+ ", line), line
        assert re.search(r" --hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize(("lock", "extras"), [("ci", None), ("deploy", {"service", "vision"})])
def test_the_lock_has_all_that_the_package_names(lock: str, extras: set[str] | None) -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"]
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in optional if extras is None else extras:
        # The default build of torch depends on CUDA, so only what it needs besides is locked.
        in_torch = extra in ("gpu", "huggingface")
        named += _requirements("torch.in") if in_torch else optional[extra]
    text = (TOP / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    locked = {name.lower() for name in re.findall(r"^([\w.-]+)", text, re.MULTILINE)}
    for requirement in named:
        name = re.match(r"[\w.-]+", requirement)
        assert name is not None
        if name.group() != "evergrow":
            assert name.group().lower() in locked, f"run make lock: {requirement} is missing"


def _requirements(name: str) -> list[str]:
    lines = (TOP / "requirements" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_no_lock_has_torch() -> None:
    for path in LOCKS:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^(torch|nvidia-|cuda-)", text, re.MULTILINE), path


def test_ci_and_the_container_install_only_what_is_locked(steps: list[tuple[str, str]]) -> None:
    assert "LOCK=requirements/ci.txt" in (TOP / ".ci" / "run").read_text(encoding="utf-8")
    installs = [
        part
        for kind, what in steps
        if kind == "RUN"
        for part in what.split("&&")
        if "pip install" in part
    ]
    assert len(installs) == 2
    for part in installs:
        assert "--require-hashes" in part or {"--no-deps", "--no-index"} <= set(part.split())
