"""A real Label Studio, with its own database, driven over its API."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.label_studio import (
    EXAMPLE,
    Pair,
    Photograph,
    annotation_of,
    chosen_class,
    connected_pair,
    find_program,
    label_while_killed,
    photographs,
    wait_until_equal,
)

PROGRAM = find_program()
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        PROGRAM is None,
        reason="Label Studio is not installed: run 'make build/label-studio' or set LABEL_STUDIO",
    ),
    pytest.mark.skipif(
        not EXAMPLE.is_file(), reason="the examples are not part of an installed package"
    ),
]
N_PICTURES = 36
# A third of them is labelled one by one, then all right predictions are accepted at once.
N_FIRST = 12


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Photograph]:
    return photographs(tmp_path_factory.mktemp("label-studio") / "pictures", N_PICTURES)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, pictures: list[Photograph]) -> Iterator[Pair]:
    """Both servers and a project; the tests below continue where those before them ended."""
    assert PROGRAM is not None
    with connected_pair(tmp_path_factory.mktemp("pair"), PROGRAM, pictures) as made:
        yield made


def test_a_person_labels_pictures_with_the_help_of_predictions(
    pair: Pair, pictures: list[Photograph]
) -> None:
    person = pair.person
    for _ in range(N_FIRST):
        assert person.label_next()
    person.accept_many()
    while person.label_next():
        pass
    done = person.done
    assert done.n_labelled == N_PICTURES
    # By hand it takes two clicks per picture. Half of the pictures were the first of their class.
    assert done.n_clicks < 2 * N_PICTURES
    assert done.n_right > N_PICTURES // 3
    assert done.n_corrections_in_next >= done.n_corrections_followed - 1
    wanted, found = wait_until_equal(pair, pictures)
    assert wanted == found
    assert wanted.total() == N_PICTURES


def test_corrections_and_deletions_are_learnt(pair: Pair, pictures: list[Photograph]) -> None:
    first, second, *_ = pair.person.tasks()
    studio = pair.person.studio
    path = f"/api/annotations/{first['annotations'][0]['id']}/"
    studio.ask("PATCH", path, annotation_of(pictures[0].label))
    studio.ask("DELETE", f"/api/annotations/{second['annotations'][0]['id']}/")
    wanted, found = wait_until_equal(pair, pictures)
    assert wanted == found
    assert wanted.total() == N_PICTURES - 1


def test_nothing_is_lost_or_learnt_twice_when_the_servers_are_killed(
    pair: Pair, pictures: list[Photograph]
) -> None:
    found = label_while_killed(pair, pictures, n_kills=2)
    assert (found.n_lost, found.n_twice) == (0, 0)
    assert found.n_actions > 0


def test_a_deleted_task_is_taken_back(pair: Pair, pictures: list[Photograph]) -> None:
    labelled = [one for one in pair.person.tasks() if one["annotations"]]
    pair.person.studio.ask("DELETE", f"/api/tasks/{labelled[0]['id']}/")
    wanted, found = wait_until_equal(pair, pictures)
    assert wanted == found
    assert wanted.total() == len(labelled) - 1


def test_the_log_has_no_token(pair: Pair) -> None:
    assert pair.token not in pair.service.log.read_text()


def test_the_example_of_the_guide_connects_a_folder(
    pair: Pair, tmp_path: Path, pictures: list[Photograph]
) -> None:
    from evergrow.workspace.tokens import Tokens

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.jpg").write_bytes(pictures[0].path.read_bytes())
    environment = {
        **os.environ,
        "LABEL_STUDIO_API_KEY": pair.token,
        "EVERGROW_TOKEN": Tokens(pair.service.folder).add("example", "teach"),
    }
    command = [sys.executable, str(EXAMPLE), str(tmp_path), "--classes", "cup", "pen"]
    command += ["--label-studio", pair.studio.url]
    command += ["--evergrow", f"http://127.0.0.1:{pair.service.port}"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 pictures: label them at" in done.stdout
    project = int(done.stdout.rpartition("/projects/")[2].partition("/")[0])
    found = pair.person.studio.ask("GET", f"/api/ml/?project={project}")
    assert [one["state"] for one in found] == ["CO"]


def test_what_changed_while_the_service_was_down_is_learnt_once_both_run(
    pair: Pair, pictures: list[Photograph]
) -> None:
    pair.service.stop()
    task = next(one for one in pair.person.tasks() if one["annotations"])
    annotation = task["annotations"][-1]
    label = next(one.label for one in pictures if one.label != chosen_class(annotation))
    path = f"/api/annotations/{annotation['id']}/"
    pair.person.studio.ask("PATCH", path, annotation_of(label))
    pair.studio.kill()
    # It starts without Label Studio too.
    pair.service.start()
    pair.service.wait_ready()
    pair.studio.start()
    pair.studio.wait_ready()
    wanted, found = wait_until_equal(pair, pictures)
    assert wanted == found
