"""The runtime for web pages is the pinned one, or an error says how to get it."""

from __future__ import annotations

import pytest

from evergrow.export.html import runtime


@pytest.fixture
def nothing(monkeypatch, tmp_path):
    """An installation without the runtime, and without npm."""
    monkeypatch.setattr(runtime, "INCLUDED", tmp_path / "included")
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runtime.shutil, "which", lambda _: None)
    return tmp_path


def test_without_npm_nothing_is_fetched(nothing):
    with pytest.raises(runtime.RuntimeMissingError, match="install Node"):
        runtime.fetch_runtime()
    assert not runtime.can_fetch()
    assert not (nothing / "cache").exists()


def test_a_failing_npm_is_an_error(nothing, monkeypatch):
    monkeypatch.setattr(runtime.shutil, "which", lambda _: "/bin/false")
    with pytest.raises(runtime.RuntimeMissingError, match="npm cannot fetch"):
        runtime.fetch_runtime()


def test_a_changed_package_is_refused():
    with pytest.raises(runtime.RuntimeMissingError, match="another hash"):
        runtime.unpack(b"something else")


def test_a_changed_file_is_not_used(runtime_files, nothing):
    folder = nothing / "included"
    folder.mkdir()
    for name, content in runtime_files.items():
        (folder / name).write_bytes(content)
    assert runtime.load_runtime().script.startswith(b"/*!")
    (folder / "ort.wasm.min.js").write_bytes(b"evil()")
    with pytest.raises(runtime.RuntimeMissingError):
        runtime.load_runtime()


@pytest.fixture
def runtime_files():
    try:
        found = runtime.load_runtime()
    except runtime.RuntimeMissingError as missing:
        pytest.skip(str(missing))
    return {
        "ort.wasm.min.js": found.script,
        "ort-wasm-simd-threaded.mjs": found.glue,
        "ort-wasm-simd-threaded.wasm": found.wasm,
    }


def test_files_of_the_cache_folder_are_used(runtime_files, nothing):
    folder = nothing / "cache" / f"{runtime.PACKAGE}-{runtime.VERSION}"
    folder.mkdir(parents=True)
    for name, content in runtime_files.items():
        (folder / name).write_bytes(content)
    assert runtime.load_runtime().wasm.startswith(b"\x00asm")
