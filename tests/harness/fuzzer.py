"""Generate requests from the OpenAPI document: every response must conform to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tests
from tests.harness.http_client import Caller, embedding_body, picture_body
from tests.harness.pictures import photograph
from tests.harness.process import ServiceProcess
from tests.harness.workspaces import Tokens, vectors

# Where this package lies: schemathesis loads its hooks from here.
ROOT = Path(tests.__file__).parents[1]
N_CLASSES = 4


@dataclass(frozen=True)
class FuzzResult:
    """The result of schemathesis."""

    n_cases: int
    n_operations: int
    n_tested: int
    # Title and operations of every kind of failure, and errors of schemathesis.
    failures: tuple[str, ...]
    output: str


def teach_some(service: ServiceProcess, tokens: Tokens) -> None:
    """Teach some classes with fine classes, so that there is something to rename and split."""
    caller = Caller(service.port, tokens.teach)
    X, labels = vectors(40, tokens.n_features, N_CLASSES, seed=1)
    for i, (row, label) in enumerate(zip(X, labels, strict=True)):
        caller.teach(embedding_body(np.asarray(row), label, fine=f"kind {i // N_CLASSES % 2}"))
        caller.teach(picture_body(photograph(i, width=48, height=32), label))
    caller.close()


def fuzz(
    service: ServiceProcess,
    token: str,
    *,
    per_operation: int,
    phases: str = "examples,coverage,fuzzing,stateful",
    seed: int = 0,
) -> FuzzResult:
    """Run schemathesis with all of its checks against a running service."""
    with tempfile.TemporaryDirectory() as scratch:
        result, document = Path(scratch, "report.json"), Path(scratch, "openapi.json")
        with closing(Caller(service.port, token)) as caller:
            document.write_text(json.dumps(caller.get("/openapi.json")))
        # As a scheme instead of a header, so that requests without a token are generated too.
        # The service says 501 where a package is not installed that a download needs.
        Path(scratch, "schemathesis.toml").write_text(
            f'[auth.openapi.token]\nbearer = "{token}"\n'
            '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", "501"]\n'
        )
        address = f"http://127.0.0.1:{service.port}"
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", address]
        command += ["--checks", "all", "--phases", phases]
        command += ["--max-examples", str(per_operation), "--seed", str(seed), "--no-color"]
        command += ["--generation-database", "none", "--continue-on-failure"]
        command += ["--report", "json", "--report-json-path", str(result)]
        environment = {
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.harness.fuzzer_hooks",
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(
            command, cwd=scratch, env=environment, capture_output=True, text=True, check=False
        )
        if not result.is_file():
            raise RuntimeError(f"schemathesis gave no report:\n{done.stdout}{done.stderr}")
        found = json.loads(result.read_text())
    failures = [f"{one['title']}: {', '.join(one['operations'])}" for one in found["failures"]]
    # Errors of schemathesis itself.
    failures += [f"{one['title']}, {one['count']} times" for one in found["errors"]]
    return FuzzResult(
        found["test_cases"]["generated"],
        found["operations"]["selected"],
        found["operations"]["tested"],
        tuple(failures),
        done.stdout,
    )
