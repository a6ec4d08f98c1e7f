"""A token that may only read and 2,000 hostile connections: what others notice of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measure import Figure, report, show_table
from tests.harness.hostile_clients import (
    Attack,
    Bystanders,
    HostileClients,
    Source,
    n_open_files,
    teach_and_check,
)
from tests.harness.process import ServiceProcess
from tests.harness.workspaces import Tokens, fill_workspace, new_workspace

N_CLASSES, N_KNOWN = 100, 2_000
KINDS = ("pictures", "vectors")
SOURCES: tuple[Source, ...] = ("one address", "many addresses")


def run(quick: bool) -> None:
    """Teach before, during and after an attack, from one address and from many."""
    seconds = 5.0 if quick else 10.0
    attack = Attack().scaled(0.1) if quick else Attack()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        fill_workspace(folder, N_KNOWN // 10 if quick else N_KNOWN, N_CLASSES)
        for source in SOURCES:
            with ServiceProcess(folder) as service:
                _measure(service, tokens, attack, source, seconds, quick)


def _measure(
    service: ServiceProcess,
    tokens: Tokens,
    attack: Attack,
    source: Source,
    seconds: float,
    quick: bool,
) -> None:
    def observe(length: float) -> Bystanders:
        return teach_and_check(service.port, tokens.teach, tokens.n_features, length)

    observe(2.0)
    before = observe(seconds)
    memory, spent = service.memory(), service.processor_seconds()
    with HostileClients(service.port, tokens.read, attack, source) as hostile:
        # Until the first connections were refused, closed and opened again.
        observe(2.0)
        during = observe(seconds)
        n_files = n_open_files(service.pid)
        spent = service.processor_seconds() - spent
        most = service.memory()
    after = observe(seconds)
    found = hostile.found
    show_table(
        f"Hostile clients of {source}",
        ["kind", "connections", "open at the end", "opened", "responses"],
        [
            (
                kind.replace("_", " "),
                n,
                found.open[kind],
                found.opened[kind],
                ", ".join(
                    f"{status}: {count}"
                    for (of, status), count in sorted(found.statuses.items())
                    if of == kind
                ),
            )
            for kind, n in vars(attack).items()
        ],
    )
    figures = [Figure("hostile connections", attack.n_connections)]
    for kind in KINDS:
        alone = (before.per_second(kind) + after.per_second(kind)) / 2
        figures += [
            Figure(f"{kind} taught per second before", before.per_second(kind)),
            Figure(f"{kind} taught per second during", during.per_second(kind)),
            Figure(f"{kind} taught per second after", after.per_second(kind)),
            Figure(f"{kind}: during over before and after", during.per_second(kind) / alone, 0.5),
        ]
    figures += [
        Figure("health checks during", len(during.health)),
        Figure("slowest health check, s", max(during.health), 1, "at most"),
        Figure("failed requests of others", len(during.errors), 0, "at most"),
        Figure("open files of the service", n_files),
        Figure("memory before, MB", memory / 1e6),
        Figure("memory during, MB", most / 1e6),
        Figure("processor time of the service, s", spent),
        Figure("processor time of the attack, s", found.processor_seconds),
    ]
    report("service attacks", f"{source}, {seconds:g} s each", figures, bars=not quick)
    for line in during.errors[:20]:
        print(line)
