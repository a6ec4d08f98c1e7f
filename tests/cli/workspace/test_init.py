"""init and token: secrets are shown once, to whom they belong."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from evergrow.cli.workspace.serve import for_others
from evergrow.workspace import Workspace
from evergrow.workspace.tokens import Tokens

NONE = ["--features", "none"]


def scope_of(folder, secret):
    found = Tokens(folder).authenticate(secret)
    return getattr(found, "scope", found)


def test_init_makes_two_tokens_that_work(run, tmp_path):
    result = run.ok("init things", *NONE)
    (first, teach), (second, read) = [line.split("\t") for line in result.stdout.splitlines()]
    assert (first, second) == ("teach", "read")
    assert scope_of(tmp_path / "things", teach) == "teach"
    assert scope_of(tmp_path / "things", read) == "read"
    assert "shown only once" in result.stderr


def test_tokens_are_nowhere_in_the_folder(run, tmp_path):
    result = run("init things", *NONE)
    secrets = [line.split("\t")[1].encode() for line in result.stdout.splitlines()]
    for path in (tmp_path / "things").rglob("*"):
        assert path.is_dir() or not any(secret in path.read_bytes() for secret in secrets)


def test_a_token_file_is_for_its_owner_alone(run, tmp_path):
    os.umask(os.umask(0))
    result = run.ok("init things", *NONE, "--token-file", "tokens")
    assert "eg_" not in result.output
    teach, read = (tmp_path / "tokens").read_text().splitlines()
    assert scope_of(tmp_path / "things", teach) == "teach"
    assert scope_of(tmp_path / "things", read) == "read"
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "tokens").stat().st_mode) == 0o600


def test_a_token_file_that_is_there_is_not_replaced(run, tmp_path):
    (tmp_path / "tokens").write_text("old")
    run.fails("init things", *NONE, "--token-file", "tokens", says="name a new file")
    assert (tmp_path / "tokens").read_text() == "old"
    assert not (tmp_path / "things").exists()


def test_a_token_file_in_a_missing_folder_is_refused(run, tmp_path):
    run.fails(
        "init things",
        *NONE,
        "--token-file",
        "nowhere/tokens",
        says="cannot write 'nowhere/tokens': the folder 'nowhere' does not exist",
    )
    assert not (tmp_path / "things").exists()


def test_an_init_that_fails_leaves_no_token_file(run, tmp_path):
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "diary.txt").write_text("mine")
    run.fails("init things", *NONE, "--token-file", "tokens")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["things"]
    assert [path.name for path in (tmp_path / "things").iterdir()] == ["diary.txt"]


def test_a_workspace_is_not_made_twice(run):
    run.ok("init things", *NONE)
    result = run.fails("init things", *NONE, says="'things'")
    assert result.stdout == ""


def test_init_takes_what_the_workspace_will_be(run):
    choices = ["--n-features", 6, "--forest", "--false-alarms", 0.05, "--seed", 3]
    run.ok("init things", *NONE, *choices)
    with Workspace.open("things") as workspace:
        status = workspace.status()
    assert (status.n_features, status.forest, status.false_alarms) == (6, True, 0.05)


def test_init_for_programs_is_one_object(run):
    found = json.loads(run("init things", *NONE, "--json", "-q").stdout)
    assert set(found) == {"folder", "teach", "read"}


@pytest.mark.parametrize(
    "options",
    [
        ["--features", "pixels"],
        ["--n-features", "4"],
        ["--false-alarms", "0"],
        ["--expires", "soon"],
        ["--expires", "2001-01-01"],
    ],
)
def test_choices_that_make_no_sense_are_refused(run, options):
    run.fails("init things", *options, code=2)
    assert not Path("things").exists()


@pytest.mark.parametrize("expires", ["12h", "30d", "8w", "2999-12-31"])
def test_tokens_can_end(run, tmp_path, expires):
    run.ok("init things", *NONE, "--expires", expires)
    assert all(record.expires is not None for record in Tokens(tmp_path / "things").list())


def test_a_token_is_made_listed_and_revoked(run, tmp_path):
    run("init things", *NONE)
    made = run.ok("token add things robot --scope teach")
    secret = made.stdout.strip()
    assert scope_of(tmp_path / "things", secret) == "teach"
    listed = run("token list things")
    assert secret not in listed.output
    assert [line.split("\t")[:3] for line in listed.stdout.splitlines()][-1] == [
        "robot",
        "teach",
        "valid",
    ]
    run.ok("token revoke things robot")
    assert scope_of(tmp_path / "things", secret) != "teach"
    last = json.loads(run("token list things --json").stdout.splitlines()[-1])
    assert last["name"] == "robot"
    assert set(last) == {"name", "scope", "state", "created", "expires"}


def test_tokens_are_made_while_another_process_has_the_workspace(run):
    run("init things", *NONE)
    with Workspace.open("things"):
        run.ok("token add things robot")


def test_a_token_that_is_not_there_cannot_be_revoked(run):
    run("init things", *NONE)
    run.fails("token revoke things nobody", says="nobody")


@pytest.mark.parametrize("command", [["add", "x", "n"], ["list", "x"], ["revoke", "x", "n"]])
def test_tokens_need_a_workspace(run, tmp_path, command):
    (tmp_path / "x").mkdir()
    run.fails("token", *command, says="is not a workspace")
    assert list((tmp_path / "x").iterdir()) == []


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)


@pytest.mark.slow
def test_label_studio_needs_a_token(run, tmp_path):
    found = run("serve", tmp_path, "--label-studio", "http://127.0.0.1:8081")
    assert found.exit_code == 2
    assert "LABEL_STUDIO_API_KEY" in found.stderr


def test_a_token_needs_label_studio(run, tmp_path):
    found = run("serve", tmp_path, "--label-studio-token-file", tmp_path / "token")
    assert found.exit_code == 2
    assert "needs --label-studio" in found.stderr


def test_a_missing_token_file_is_named(run, tmp_path):
    path = tmp_path / "token"
    options = ("--label-studio", "http://127.0.0.1:8081", "--label-studio-token-file", path)
    found = run("serve", tmp_path, *options)
    assert found.exit_code != 0
    assert str(path) in found.stderr


def test_the_token_is_not_shown_in_an_error(run, tmp_path, monkeypatch):
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "very-secret")
    found = run("serve", tmp_path, "--label-studio", "not an address")
    assert found.exit_code != 0
    assert "label_studio" in found.stderr
    assert "very-secret" not in found.stderr


class Probe:
    """A socket that finds this address, or no network."""

    def __init__(self, address):
        self._address = address

    def __call__(self, *_):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def connect(self, _):
        if self._address is None:
            raise OSError(101, "Network is unreachable")

    def getsockname(self):
        return self._address, 1234


@pytest.mark.parametrize(
    ("host", "own", "shown"),
    [
        ("0.0.0.0", "192.168.1.5", "192.168.1.5"),
        ("[::]", "fd00::5", "[fd00::5]"),
        ("192.168.1.7", "192.168.1.5", "192.168.1.7"),
        ("127.0.0.1", "192.168.1.5", "127.0.0.1"),
        ("robot.local", "192.168.1.5", "robot.local"),
    ],
)
def test_the_address_is_one_that_others_can_open(monkeypatch, host, own, shown):
    monkeypatch.setattr(socket, "socket", Probe(own))
    assert for_others(f"https://{host}:8443/#token=abc") == f"https://{shown}:8443/#token=abc"


@pytest.mark.parametrize("own", [None, "127.0.0.1"])
def test_without_a_network_the_address_says_what_to_fill_in(monkeypatch, own):
    monkeypatch.setattr(socket, "socket", Probe(own))
    shown = for_others("https://0.0.0.0:8443/#token=abc")
    assert shown.startswith("https://HOST:8443/#token=abc, with the name or address of this")
