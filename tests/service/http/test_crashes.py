"""A service in its own process: killed, on a full disk, backed up, stopped and fuzzed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest

from tests.harness.crashes import N_CLIENTS, kill_while_teaching
from tests.harness.full_disk import fill_disk
from tests.harness.fuzzer import fuzz, teach_some
from tests.harness.http_client import Caller, pictures_body
from tests.harness.malicious_files import refusals
from tests.harness.pictures import photograph
from tests.harness.process import NO_RATE_LIMIT, ServiceProcess, small_disk
from tests.harness.restarts import stop_while_teaching
from tests.harness.two_services import TRICKS, duel
from tests.harness.workspaces import Tokens, new_workspace
from tests.vision.embedding.models import onnx_model

pytestmark = [
    pytest.mark.skipif(find_spec("fastapi") is None, reason="the extra 'service' is missing"),
    pytest.mark.skipif(sys.platform == "win32", reason="services are killed by signals"),
]

# Features of the small network.
N_FEATURES = 5
# The other tricks are played every night.
ALWAYS = ("nothing but a second start",)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that costs next to nothing."""
    path: Path = tmp_path_factory.mktemp("network") / "small.onnx"
    onnx.save(onnx_model(("n", 3, 8, 8)), path)
    return path


@pytest.fixture(scope="module")
def served(
    network: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServiceProcess, Tokens]]:
    folder = tmp_path_factory.mktemp("served") / "workspace"
    tokens = new_workspace(folder, features=network)
    with ServiceProcess(folder, NO_RATE_LIMIT) as service:
        teach_some(service, tokens)
        yield service, tokens


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_taught_twice_when_the_service_is_killed(
    network: Path, tmp_path: Path
) -> None:
    found = kill_while_teaching(
        tmp_path / "workspace", 5, features=network, picture_share=0.2, seed=1
    )
    assert not found.failures
    assert (found.n_lost, found.n_duplicates, found.n_unknown, found.n_orphans) == (0, 0, 0, 0)
    assert not found.damage
    assert found.difference <= 1e-9
    assert found.n_acknowledged >= N_CLIENTS


@pytest.mark.slow
@pytest.mark.parametrize(
    "trick",
    [pytest.param(trick, marks=[] if trick in ALWAYS else pytest.mark.nightly) for trick in TRICKS],
)
def test_two_services_on_one_workspace_lose_nothing_acknowledged(
    trick: str, tmp_path: Path
) -> None:
    try:
        found = duel(tmp_path, trick, seconds=0.4)
    except PermissionError as error:
        pytest.skip(str(error))
    assert found.n_lost == 0
    assert not found.damage
    assert not found.failures
    assert found.n_before > 0
    # Only a folder of its own, or the last of two without locks, is taught by the second.
    own_folder = ("copied while", "in its place", "without locks")
    assert found.second_started == any(part in trick for part in own_folder), found.second_says
    assert bool(found.n_second) == found.second_started


@pytest.mark.nightly
def test_a_full_disk_refuses_clearly_and_continues_with_free_space(
    network: Path, tmp_path: Path
) -> None:
    try:
        with small_disk(tmp_path / "disk", 24 << 20) as disk:
            found = fill_disk(disk, (0, 3, 8, 16), features=network)
    except PermissionError as error:
        pytest.skip(str(error))
    assert not found.wrong
    assert found.n_full == 8


@pytest.mark.nightly
def test_generated_requests_get_responses_of_the_openapi_document(
    served: tuple[ServiceProcess, Tokens],
) -> None:
    service, tokens = served
    found = fuzz(service, tokens.teach, per_operation=9, phases="fuzzing")
    assert not found.failures, found.output
    assert found.n_cases >= 150
    assert found.n_tested == found.n_operations


@pytest.mark.nightly
def test_malicious_files_are_refused_with_a_reason_and_memory_is_released(
    served: tuple[ServiceProcess, Tokens],
) -> None:
    service, tokens = served
    first = list(refusals(service.port, tokens.teach))
    assert [one for one in first if not one.refused] == []
    before = service.memory()
    again = list(refusals(service.port, tokens.teach))
    assert [one for one in again if not one.refused] == []
    assert service.memory() < before + 50e6
    caller = Caller(service.port, tokens.teach)
    assert caller.predict(pictures_body([photograph(0)])).status == 200
    caller.close()


@pytest.mark.nightly
def test_a_copy_and_a_stop_while_clients_teach_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    tokens = new_workspace(folder, n_features=N_FEATURES)
    with ServiceProcess(folder, NO_RATE_LIMIT) as service:
        found = stop_while_teaching(service, tokens, tmp_path / "copy", seconds=0.5)
    assert not found.failures
    assert (found.n_lost, found.n_duplicates, found.n_lost_in_copy) == (0, 0, 0)
    assert not found.damage
    assert found.n_acknowledged > 20
