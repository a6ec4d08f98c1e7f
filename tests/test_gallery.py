"""Every example of the gallery runs without a warning and draws its figures."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted((EXAMPLES / "gallery").rglob("*.py"))
SECTIONS = sorted(path for path in (EXAMPLES / "gallery").iterdir() if path.is_dir())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs_and_draws(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(EXAMPLES)
    plt.switch_backend("agg")
    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(len(plt.get_fignums())))
    try:
        runpy.run_path(str(script), run_name="__main__")
        assert shown == list(range(1, len(plt.get_fignums()) + 1)), "show each figure once"
        assert shown
    finally:
        plt.close("all")
    assert list(tmp_path.iterdir()) == []


def test_the_gallery_shows_every_script() -> None:
    # Other files are neither run nor shown by sphinx-gallery.
    assert len(SCRIPTS) > 10
    assert [path for path in SCRIPTS if not path.name.startswith("plot_")] == []
    for section in SECTIONS:
        assert (section / "GALLERY_HEADER.rst").is_file()
