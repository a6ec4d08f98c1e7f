"""Coverage-guided fuzzing of one target with Atheris, which runs libFuzzer on Python code."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.sanitized import use_core

_SOURCES = Path(__file__).parents[2] / "src"
# The longest input, and the most memory and time that one may take.
_LONGEST = 1 << 16
_MEGABYTES = 4096
_SECONDS_EACH = 5


def fuzz(name: str, seconds: int, corpus: Path, faults: str, seed: int) -> None:
    """Fuzz until the time is over; does not return. A fault ends the process with its trace.

    A seed of 0 is random. New inputs go to a temporary folder: those of the repository stay few and
    small.
    """
    import atheris

    os.environ.setdefault("EVERGROW_CACHE", tempfile.mkdtemp(prefix="evergrow-fuzz-"))
    _bypass_editable_install()
    # Only Evergrow is instrumented: what reaches a new line there is worth more changes.
    with atheris.instrument_imports(include=["evergrow"]), contextlib.suppress(KeyboardInterrupt):
        import evergrow  # noqa: F401
        from tests.fuzz.targets import target

        found = target(name)
        for content in found.seeds().values():
            # What is imported on first use is instrumented too.
            found.run(content)

    def change(content: bytes, longest: int, seed: int) -> bytes:
        changed = found.mutate(content, Random(seed))
        return changed if len(changed) <= longest else content

    folder = Path(faults) / name
    folder.mkdir(parents=True, exist_ok=True)
    atheris.Setup(
        [
            sys.argv[0],
            tempfile.mkdtemp(prefix="evergrow-fuzz-"),
            str(corpus),
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-max_len={_LONGEST}",
            f"-timeout={_SECONDS_EACH}",
            f"-rss_limit_mb={_MEGABYTES}",
            f"-artifact_prefix={folder}/",
            "-print_final_stats=1",
        ],
        found.run,
        custom_mutator=change,
    )
    atheris.Fuzz()


def _bypass_editable_install() -> None:
    """Import the package from ``src``: Atheris finds no code through the loader of the install."""
    finders = [f for f in sys.meta_path if type(f).__module__ == "_editable_skbc_evergrow"]
    if "evergrow" in sys.modules:
        raise SystemExit("evergrow was imported before it could be instrumented")
    for finder in finders:
        spec = finder.find_spec("evergrow._core", None)
        if spec is None or spec.origin is None:
            raise SystemExit("the compiled core is missing: run make")
        sys.meta_path.remove(finder)
        sys.path.insert(0, str(_SOURCES))
        if "evergrow._core" not in sys.modules:
            use_core(Path(spec.origin))
