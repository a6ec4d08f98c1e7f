"""Forged model files and fuzzing: ``python -m tests.fuzz --help``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Nothing of Evergrow is imported here: Atheris must see it first.
from tests.fuzz.targets import NAMES

_CORPUS = Path(__file__).parent / "corpus"


def _forged(options: argparse.Namespace) -> int:
    """Print a row per kind of model; the exit status says whether there was any fault."""
    from tests.fuzz.forged import run
    from tests.fuzz.models import KINDS

    heads = ("kind", "files", "refused", "accepted", "crashes", "hangs", "errors", "memory (MB)",
             "times size over 128 MB", "ms per file")  # fmt: skip
    print("| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", sep="\n", flush=True)
    n_faults = 0
    for kind in options.kinds or KINDS:
        tally = run(
            kind, options.seed, options.first, options.count, limit_memory=not options.sanitized
        )
        cells = (
            kind, tally.files, tally.refused, tally.accepted, tally.crashes.total(), tally.hangs,
            tally.errors.total(), tally.growth >> 20, round(max(0.0, tally.multiple), 1),
            round(1e3 * tally.seconds / max(1, tally.files), 1),
        )  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
        for fault, number in tally.numbers.items():
            print(f"  {kind} {number} (seed {options.seed}): {fault}", file=sys.stderr, flush=True)
        n_faults += tally.n_faults
    return int(n_faults > 0)


def _fuzz(options: argparse.Namespace) -> int:
    from tests.fuzz.engine import fuzz

    fuzz(options.target, options.seconds, _CORPUS / options.target, options.faults, options.seed)
    return 0


def _fuzz_all(options: argparse.Namespace) -> int:
    """Fuzz every format in a process of its own, as many at a time as there are processors."""
    folder = Path(options.faults)
    folder.mkdir(parents=True, exist_ok=True)

    def start(name: str) -> int:
        command = [sys.executable, "-m", "tests.fuzz", "run", name]
        command += ["--seconds", str(options.seconds), "--faults", options.faults]
        log = folder / f"{name}.log"
        with log.open("w") as file:
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
        print(
            f"{name}: {'a fault, see ' + str(log) if done.returncode else 'no fault'}", flush=True
        )
        return done.returncode

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return int(any([*pool.map(start, NAMES)]))


def _seed(options: argparse.Namespace) -> int:
    """Write the files that a corpus begins with; files that are there already stay."""
    from tests.fuzz.targets import target

    for name in options.targets or NAMES:
        folder = _CORPUS / name
        folder.mkdir(parents=True, exist_ok=True)
        for label, content in target(name).seeds().items():
            path = folder / label
            if not path.exists():
                path.write_bytes(content)
    return 0


def main() -> int:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    commands = parser.add_subparsers(required=True)
    forged = commands.add_parser("forged", help="load and use forged model files")
    forged.add_argument("kinds", nargs="*", metavar="KIND", help="kinds of models; all by default")
    forged.add_argument("--count", type=int, default=1000, help="files per kind")
    forged.add_argument("--first", type=int, default=0, help="number of the first file")
    forged.add_argument("--seed", type=int, default=0)
    forged.add_argument("--sanitized", action="store_true", help="no limit on address space")
    forged.set_defaults(run=_forged)
    fuzz = commands.add_parser("run", help="fuzz one format, guided by coverage")
    fuzz.add_argument("target", choices=NAMES)
    fuzz.add_argument("--seconds", type=int, default=10)
    fuzz.add_argument("--seed", type=int, default=0, help="of the changes; 0 for a random one")
    fuzz.add_argument("--faults", default="build/fuzz", help="folder for inputs that fail")
    fuzz.set_defaults(run=_fuzz)
    every = commands.add_parser("all", help="fuzz every format")
    every.add_argument("--seconds", type=int, default=60, help="for each format")
    every.add_argument(
        "--faults", default="build/fuzz", help="folder for logs and for inputs that fail"
    )
    every.set_defaults(run=_fuzz_all)
    seed = commands.add_parser("seed", help="write the files that a corpus begins with")
    seed.add_argument("targets", nargs="*", metavar="TARGET")
    seed.set_defaults(run=_seed)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
