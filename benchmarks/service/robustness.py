"""What a service withstands: kills, a full disk, generated and malicious requests."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from benchmarks.measure import Figure, report, show_table
from tests.harness.crashes import kill_while_teaching
from tests.harness.floods import measure_floods
from tests.harness.full_disk import FREE_PAGES, fill_disk
from tests.harness.fuzzer import fuzz, teach_some
from tests.harness.http_client import Caller, picture_body, pictures_body
from tests.harness.malicious_files import refusals
from tests.harness.pictures import photograph
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess, small_disk
from tests.harness.two_services import TRICKS, Duel, duel
from tests.harness.workspaces import find_damage, new_workspace


def measure_crashes(quick: bool) -> None:
    """Kill the service 200 times, at any moment of its life."""
    n_kills = 6 if quick else 200
    with tempfile.TemporaryDirectory() as scratch:
        found = kill_while_teaching(
            Path(scratch, "workspace"),
            n_kills,
            features="efficientnet-lite0",
            picture_share=0.05,
        )
    report(
        "service crashes",
        f"{found.n_kills} kills, {found.n_kills_starting} of them while starting, 4 clients",
        [
            Figure("acknowledged examples", found.n_acknowledged),
            Figure("requests sent again", found.n_retried),
            Figure("of these taught before the kill", found.n_already_taught),
            Figure("acknowledged examples lost", found.n_lost, 0, "at most"),
            Figure("duplicates", found.n_duplicates, 0, "at most"),
            Figure("examples that no client got a response for", found.n_unknown, 0, "at most"),
            Figure("wrong responses", len(found.failures), 0, "at most"),
            Figure("processes left behind", found.n_orphans, 0, "at most"),
            Figure("damage found by check", len(found.damage), 0, "at most"),
            Figure("difference to the undisturbed twin", found.difference, 1e-9, "at most"),
        ],
    )
    for line in (*found.failures[:20], *found.damage[:20]):
        print(line)


def measure_two_services(quick: bool) -> None:
    """Start a second service on the folder of the first by every trick, three times each."""
    found: list[Duel] = []
    for trick in TRICKS:
        for _ in range(1 if quick else 3):
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    found.append(duel(Path(scratch), trick))
                except PermissionError as error:
                    print(f"service two-services, {trick}: not measured, {error}")
    show_table(
        "Two services on one workspace",
        ["trick", "before", "first", "second", "lost", "second service"],
        [
            (
                one.trick,
                one.n_before,
                one.n_first,
                one.n_second,
                one.n_lost,
                "started" if one.second_started else _without_paths(one.second_says)[:90],
            )
            for one in found
        ],
    )
    report(
        "service two-services",
        f"{len({one.trick for one in found})} tricks, {len(found)} runs, 2 clients per service",
        [
            Figure(
                "acknowledged examples",
                sum(one.n_before + one.n_first + one.n_second for one in found),
            ),
            Figure("acknowledged examples lost", sum(one.n_lost for one in found), 0, "at most"),
            Figure("damage found by check", sum(len(one.damage) for one in found), 0, "at most"),
            Figure("wrong responses", sum(len(one.failures) for one in found), 0, "at most"),
        ],
    )
    for one in found:
        for line in (*one.damage[:5], *one.failures[:5]):
            print(f"{one.trick}: {line}")


def _without_paths(message: str) -> str:
    """A message without the names of temporary folders."""
    return re.sub(r" '[^']*/[^']*'", "", message)


def measure_full_disk(quick: bool) -> None:
    """Fill a disk of a few megabytes, in memory."""
    free_pages = FREE_PAGES[:6] if quick else FREE_PAGES
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with small_disk(Path(scratch, "disk"), 64 << 20) as disk:
                found = fill_disk(disk, free_pages, features="efficientnet-lite0")
        except PermissionError as error:
            print(f"service full-disk: not measured, {error}")
            return
    report(
        "service full-disk",
        f"vectors and pictures, {len(free_pages)} amounts of free space",
        [
            Figure("times the disk was full", found.n_full, 2 * len(free_pages)),
            Figure("examples taught", found.n_taught),
            Figure("wrong responses, files left behind, damage", len(found.wrong), 0, "at most"),
        ],
    )
    for line in found.wrong[:20]:
        print(line)


def measure_fuzzing(quick: bool) -> None:
    """All phases with all checks, then the workspace's own check."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "workspace")
        tokens = new_workspace(folder, features="efficientnet-lite0")
        with ServiceProcess(folder, NO_RATE_LIMIT) as service:
            teach_some(service, tokens)
            found = fuzz(service, tokens.teach, per_operation=5 if quick else 60)
            up = service.running and service.ready()
            service.stop()
        damage = find_damage(folder)
    report(
        "service fuzzing",
        "schemathesis, all checks",
        [
            Figure("cases", found.n_cases, 2000),
            Figure("operations not tested", found.n_operations - found.n_tested, 0, "at most"),
            Figure("kinds of failures", len(found.failures), 0, "at most"),
            Figure("service up at the end", float(up), 1),
            Figure("damage found by check", len(damage), 0, "at most"),
        ],
        bars=not quick,
    )
    if found.failures:
        print(found.output)


def measure_malicious_requests(quick: bool) -> None:
    """Send the corpus several times; measure the memory before and after."""
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
        "Responses to malicious files",
        ["file", "status", "why", "s"],
        [(one.name, one.status, one.detail[:70], one.seconds) for one in rounds[-1]],
    )
    show_table(
        "Predictions of another client during floods of large pictures",
        ["one picture", "status", "s"],
        [(one.name, one.status, one.seconds) for one in held],
    )
    sent = [one for every in rounds for one in every]
    report(
        "service malicious-requests",
        f"{len(rounds[0])} malicious requests, {len(rounds)} times",
        [
            Figure("requests", len(sent)),
            Figure(
                "not refused with a 4xx and a reason",
                sum(not one.refused for one in sent),
                0,
                "at most",
            ),
            Figure("service up and right at the end", float(up), 1),
            Figure("slowest answer, s", max(one.seconds for one in sent), 30, "at most"),
            Figure(
                "not answered during a flood", sum(one.status != 200 for one in held), 0, "at most"
            ),
            Figure("slowest during a flood, s", max(one.seconds for one in held), 10, "at most"),
            Figure("memory before, MB", before / 1e6),
            Figure("memory after, MB", after / 1e6, before / 1e6 + 50, "at most"),
        ],
    )
