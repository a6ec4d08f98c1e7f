"""Access tokens of the service."""

from __future__ import annotations

import json
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from evergrow import WorkspaceError
from evergrow.workspace import ConflictError, WorkspaceFormatError
from evergrow.workspace.tokens import TokenRecord, Tokens


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path)


class ManualClock:
    """A clock that is set by hand, and one that only goes forward."""

    def __init__(self):
        self.time = datetime(2026, 1, 1, tzinfo=UTC)
        self.seconds = 0.0

    def __call__(self):
        return self.time

    def monotonic(self):
        return self.seconds

    def wait(self, **duration):
        self.time += timedelta(**duration)
        self.seconds += timedelta(**duration).total_seconds()


def tokens_at(folder, clock):
    return Tokens(folder, read_clock=clock, read_monotonic=clock.monotonic)


@pytest.mark.parametrize("scope", ["teach", "read"])
def test_a_token_shows_its_scope_and_has_256_random_bits(tokens, scope):
    token = tokens.add("robot", scope)
    assert token.startswith(f"eg_{scope}_")
    assert len(token.removeprefix(f"eg_{scope}_")) == 43


def test_the_scope_teach_includes_read(tokens):
    teach, read = (tokens.authenticate(tokens.add(scope, scope)) for scope in ("teach", "read"))
    assert teach.may("read")
    assert teach.may("teach")
    assert read.may("read")
    assert not read.may("teach")


@pytest.mark.parametrize(
    "guess",
    ["", "x", "eg_teach_" + "a" * 43, "eg_teach_\n", "é" * 50, "\ud800", "eg_admin_" + "a" * 43],
)
def test_a_token_that_was_never_created_is_unknown(tokens, guess):
    tokens.add("robot", "teach")
    assert tokens.authenticate(guess) == "unknown"


def test_the_hash_of_a_token_is_not_accepted(tokens):
    tokens.add("robot", "teach")
    assert tokens.authenticate(tokens.list()[0].sha256) == "unknown"


def test_an_expired_token_stays_expired_when_the_clock_goes_back(tmp_path):
    clock = ManualClock()
    tokens = tokens_at(tmp_path, clock)
    token = tokens.add("robot", "read", expires_in=timedelta(hours=1))
    other = tokens.add("phone", "read", expires_in=timedelta(days=9))
    clock.wait(hours=1)
    # Any request will do: here another token is used.
    assert isinstance(tokens.authenticate(other), TokenRecord)
    clock.wait(hours=1)
    assert isinstance(tokens.authenticate(other), TokenRecord)
    clock.time -= timedelta(hours=2)
    assert tokens.authenticate(token) == "expired"
    # Also for a service that is started later.
    restarted = tokens_at(tmp_path, clock)
    assert restarted.authenticate(token) == "expired"
    assert isinstance(restarted.authenticate(other), TokenRecord)


@pytest.mark.parametrize("n_requests", [1, 50])
def test_a_clock_that_jumps_forward_and_is_corrected_ends_no_token(tmp_path, n_requests):
    clock = ManualClock()
    tokens = tokens_at(tmp_path, clock)
    token = tokens.add("robot", "read", expires_in=timedelta(days=9))
    for _ in range(2):
        clock.time += timedelta(days=4000)
        for _ in range(n_requests):
            assert tokens.authenticate(token) == "expired"
            clock.wait(minutes=1)
        clock.time -= timedelta(days=4000)
        # Two jumps of less than an hour each do not add up.
        assert isinstance(tokens.authenticate(token), TokenRecord)
    assert isinstance(tokens_at(tmp_path, clock).authenticate(token), TokenRecord)
    assert [one.revoked for one in tokens.list()] == [None]


def test_an_expired_token_stays_expired_where_the_file_cannot_be_written(tmp_path, monkeypatch):
    clock = ManualClock()
    tokens = tokens_at(tmp_path, clock)
    token = tokens.add("robot", "read", expires_in=timedelta(hours=1))

    def refuse(*_):
        raise OSError("read-only")

    monkeypatch.setattr("os.replace", refuse)
    for _ in range(2):
        clock.wait(hours=1)
        assert tokens.authenticate(token) == "expired"
    clock.time -= timedelta(hours=2)
    assert tokens.authenticate(token) == "expired"


def test_marking_an_expired_token_does_not_lose_a_change_of_another_process(tmp_path):
    clock = ManualClock()
    service, admin = (tokens_at(tmp_path, clock) for _ in range(2))
    token = admin.add("robot", "read", expires_in=timedelta(hours=1))
    clock.wait(hours=1)
    service.list()
    read = service._refresh
    service._refresh = lambda: None
    added = admin.add("phone", "read")
    clock.wait(hours=1)
    assert service.authenticate(token) == "expired"
    service._refresh = read
    assert isinstance(service.authenticate(added), TokenRecord)
    clock.time -= timedelta(hours=2)
    assert service.authenticate(token) == "expired"
    assert [one.name for one in admin.list()] == ["robot", "phone"]


def test_a_token_may_expire_after_the_last_date(tokens):
    token = tokens.add("robot", "read", expires_in=timedelta.max)
    assert isinstance(tokens.authenticate(token), TokenRecord)


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_token_must_expire_in_the_future(tokens, seconds):
    with pytest.raises(WorkspaceError, match="must expire in the future"):
        tokens.add("robot", "read", expires_in=timedelta(seconds=seconds))


def test_a_revoked_token_is_refused_by_a_running_service(tmp_path, tokens):
    token = tokens.add("robot", "teach")
    service = Tokens(tmp_path)
    assert isinstance(service.authenticate(token), TokenRecord)
    tokens.revoke("robot")
    assert service.authenticate(token) == "revoked"


def test_a_name_is_never_used_twice(tokens):
    tokens.add("robot", "teach")
    tokens.revoke("robot")
    with pytest.raises(ConflictError, match="the name 'robot' is or was used"):
        tokens.add("robot", "read")


def test_revoking_an_unknown_token_lists_the_known_ones(tokens):
    tokens.add("robot", "teach")
    with pytest.raises(WorkspaceError, match="'phone' does not exist; the tokens are: 'robot'"):
        tokens.revoke("phone")


def test_an_unknown_scope_is_refused(tokens):
    with pytest.raises(WorkspaceError, match=r"scope must be one of \['read', 'teach'\]"):
        tokens.add("robot", "admin")


def test_the_token_file_does_not_contain_tokens(tmp_path, tokens):
    token = tokens.add("robot", "teach")
    assert token[-20:] not in (tmp_path / "tokens.json").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_the_file_is_for_its_owner_only(tmp_path, tokens):
    tokens.add("robot", "teach")
    tokens.revoke("robot")
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 1, "tokens": [{}]}',
        b"\xff",
        json.dumps(
            {
                "format": 1,
                "tokens": [
                    {
                        "name": "a",
                        "scope": "admin",
                        "sha256": "0" * 64,
                        "created": "",
                        "expires": None,
                        "revoked": None,
                    }
                ],
            }
        ).encode(),
    ],
)
def test_a_damaged_token_file_accepts_no_token(tmp_path, content):
    (tmp_path / "tokens.json").write_bytes(content)
    with pytest.raises(WorkspaceError, match="is damaged"):
        Tokens(tmp_path).authenticate("eg_teach_" + "a" * 43)


def test_a_file_of_another_format_is_refused(tmp_path):
    (tmp_path / "tokens.json").write_text('{"format": 2, "tokens": []}')
    with pytest.raises(WorkspaceFormatError, match=r"has format 2, and .* reads format 1"):
        Tokens(tmp_path).list()


def test_tokens_added_concurrently_are_all_stored(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: Tokens(tmp_path).add(f"t{n}", "read"), range(12)))
    tokens = Tokens(tmp_path)
    assert all(isinstance(tokens.authenticate(token), TokenRecord) for token in made)


def test_the_name_of_label_studio_is_reserved(tmp_path):
    with pytest.raises(WorkspaceError, match="choose another one"):
        Tokens(tmp_path).add("Label Studio", "teach")


def test_the_name_of_a_session_is_reserved(tmp_path):
    with pytest.raises(WorkspaceError, match="used by 'evergrow serve'"):
        Tokens(tmp_path).add("session", "teach")
