"""export: a page from a workspace or a model file, and what is missing for it."""

import pytest

from evergrow.export.html import runtime


@pytest.fixture
def has_runtime():
    try:
        runtime.load_runtime()
    except runtime.RuntimeMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def lacks_runtime(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "INCLUDED", tmp_path / "included")
    monkeypatch.setenv("EVERGROW_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_a_workspace_and_its_model_file_become_pages(run, has_runtime, things, tmp_path):
    model, page = tmp_path / "things.evergrow", tmp_path / "things.html"
    assert "MB." in run.ok(f"export {things} -o {page}").stderr
    run.ok(f"export {things} -o {model}")
    run.ok(f"export {model} -o {tmp_path / 'model.html'} --weights int8")
    for path in (page, tmp_path / "model.html"):
        assert path.read_bytes().startswith(b"<!doctype html>")


def test_an_existing_page_is_replaced_only_by_force(run, has_runtime, things, tmp_path):
    page = tmp_path / "things.html"
    page.write_text("mine")
    assert "--force" in run(f"export {things} -o {page}").stderr
    assert page.read_text() == "mine"
    run.ok(f"export {things} -o {page} --force")


def test_without_runtime_and_npm_the_error_says_what_to_do(
    run, lacks_runtime, things, monkeypatch, tmp_path
):
    monkeypatch.setattr(runtime.shutil, "which", lambda _: None)
    result = run(f"export {things} -o {tmp_path / 'things.html'}")
    assert result.exit_code == 1
    assert "install Node.js" in result.stderr
    assert not (tmp_path / "things.html").exists()


def test_npm_that_fails_is_an_error(run, lacks_runtime, things, monkeypatch, tmp_path):
    monkeypatch.setattr(runtime.shutil, "which", lambda _: "/bin/false")
    result = run(f"export {things} -o {tmp_path / 'things.html'}")
    assert result.exit_code == 1
    assert "Fetching onnxruntime-web" in result.stderr
    assert "npm cannot fetch" in result.stderr
