"""Options of ``evergrow serve`` that are checked before it serves."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)


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
