"""init and token: secrets are shown once, to whom they belong."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

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
