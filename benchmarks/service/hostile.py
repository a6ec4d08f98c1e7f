"""Files meant to take a service down: each is refused with a reason, and memory comes back."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, report, show_table
from tests.harness.floods import measure_floods
from tests.harness.http_client import Caller, picture_body, pictures_body
from tests.harness.malicious_files import Refusal, refusals
from tests.harness.pictures import photograph
from tests.harness.process import ServiceProcess
from tests.harness.workspaces import new_workspace

__all__ = ["run"]


def run(quick: bool) -> None:
    """Send the corpus, some times over, and look at the memory before and after."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        with ServiceProcess(folder) as service:
            caller = Caller(service.port, tokens.teach)
            picture = picture_body(photograph(1), "a thing")
            right = [caller.teach(picture).status]
            # Once for what is loaded at first use; later rounds show what is never given back.
            rounds = [list(refusals(service.port, tokens.teach))]
            before, pid = service.memory(), service.pid
            n_more = 1 if quick else 3
            rounds += [list(refusals(service.port, tokens.teach)) for _ in range(n_more)]
            held = measure_floods(service.port, tokens.read, tokens.teach)
            # A new connection: the service closes one that was silent for so long.
            caller = Caller(service.port, tokens.teach)
            right.append(caller.predict(pictures_body([photograph(2)])).status)
            after = service.memory()
            up = service.running and service.pid == pid and right == [201, 200]
    show_table(
        "What hostile files got",
        ["file", "status", "why", "s"],
        [(one.name, one.status, one.detail[:70], one.seconds) for one in rounds[-1]],
    )
    show_table(
        "What others saw of floods of large pictures",
        ["one picture", "status", "s"],
        [(one.name, one.status, one.seconds) for one in held],
    )
    sent = [one for every in rounds for one in every]
    report(
        "service hostile",
        f"{len(rounds[0])} hostile requests, {len(rounds)} times",
        [
            Figure("requests", len(sent)),
            Figure("not refused with a 4xx and a reason", _n_taken(sent), 0, "at most"),
            Figure("service up and right at the end", float(up), 1),
            Figure("slowest answer, s", max(one.seconds for one in sent), 30, "at most"),
            Figure(
                "not answered beside a flood", sum(one.status != 200 for one in held), 0, "at most"
            ),
            Figure("slowest beside a flood, s", max(one.seconds for one in held), 10, "at most"),
            Figure("memory before, MB", before / 1e6),
            Figure("memory after, MB", after / 1e6, before / 1e6 + 50, "at most"),
        ],
    )


def _n_taken(sent: list[Refusal]) -> int:
    return sum(not one.refused for one in sent)
