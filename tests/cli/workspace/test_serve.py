"""Options of ``evergrow serve`` that are checked before it serves."""

from __future__ import annotations

import socket

import pytest

from evergrow.cli.workspace.serve import for_others


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
