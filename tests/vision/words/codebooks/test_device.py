"""K-means codebooks on a GPU, and the same code by torch on the processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import DeviceMemoryError, load
from evergrow.vision import HierarchicalKMeans, KMeansCodebook, RandomKDTrees
from evergrow.vision.words.codebooks import clustering
from evergrow.vision.words.codebooks.clustering import Clustering, nearest
from tests.devices import every_device, import_torch, on
from tests.vision.words.cases import CODEBOOKS, descriptors

torch = import_torch()
D = descriptors(2000)
KINDS = [name for name in CODEBOOKS if name != "kd-trees"]
every_kind = pytest.mark.parametrize("make", [CODEBOOKS[kind] for kind in KINDS], ids=KINDS)


def distortion(codebook: Any) -> float:
    """Mean squared distance from the mean of all descriptors of the same word."""
    words = np.asarray(codebook.transform(D))[:, 0]
    return float(sum(((D[words == k] - D[words == k].mean(0)) ** 2).sum() for k in set(words)))


@every_device
@every_kind
@pytest.mark.parametrize("n_words", [12, 60])
def test_words_are_as_close_as_on_the_processor(make: Any, n_words: int, device: str) -> None:
    here, there = make(n_words).fit(D), make(n_words, device=device).fit(on(device, D))
    assert there.n_words_ == n_words
    assert distortion(there) < 1.05 * distortion(here)


@pytest.mark.parametrize("options", [{"start": "random"}, {"n_init": 3}, {"batch_size": 16}])
def test_every_option_is_as_good_as_on_the_processor(options: dict[str, Any]) -> None:
    here = KMeansCodebook(20, random_state=0, **options).fit(D)
    there = KMeansCodebook(20, random_state=0, **options, device="torch-cpu").fit(D)
    assert distortion(there) < 1.1 * distortion(here)


@every_device
@every_kind
def test_a_seed_leads_to_the_same_words(make: Any, device: str) -> None:
    first, same = (make(device=device).fit(D)._fitted.to_tensors() for _ in range(2))
    for name, array in first.items():
        np.testing.assert_array_equal(array, same[name])


@every_device
@every_kind
def test_words_lie_where_the_descriptors_do_and_are_the_same(make: Any, device: str) -> None:
    codebook = make().fit(D)
    expected = codebook.transform(D)
    codebook.set_params(device=device)
    there = codebook.transform(on(device, D))
    assert there.device == on(device, D).tensor.device
    assert there.dtype == torch.int32
    np.testing.assert_array_equal(there.cpu(), expected)
    here = codebook.transform(D)
    assert isinstance(here, np.ndarray)
    np.testing.assert_array_equal(here, expected)
    assert (codebook.encode([D[:5], D[:0], D[5:]]).sum(axis=1) == [5, 0, 1995]).all()


@pytest.mark.gpu
@every_kind
def test_without_a_device_it_computes_where_the_descriptors_lie(make: Any) -> None:
    rows = torch.as_tensor(D, device="cuda")
    assert make().fit(rows).transform(rows).is_cuda


def test_codebooks_that_use_no_gpu_take_rows_from_one() -> None:
    trees = RandomKDTrees(2, n_words=4, random_state=0)
    words = trees.fit(on("torch-cpu", D)).transform(on("torch-cpu", D))
    assert isinstance(words, torch.Tensor)
    np.testing.assert_array_equal(words, trees.transform(D))


def test_the_first_of_equally_near_centres_is_taken() -> None:
    centres = np.array([[0.0], [2.0], [0.0], [2.0]], dtype=np.float32)
    rows = torch.tensor([[1.0], [1.5], [-3.0]])
    assert nearest(rows, centres).tolist() == [0, 1, 0]


def test_blocks_change_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.as_tensor(D)
    expected = nearest(rows, D[:50])
    monkeypatch.setattr(clustering, "_DEVICE_BLOCK_SCORES", 300)
    np.testing.assert_array_equal(nearest(rows, D[:50]), expected)


@every_kind
def test_fewer_distinct_descriptors_than_words_are_the_words(make: Any) -> None:
    few = np.repeat(D[:4], 10, axis=0)
    codebook = make(device="torch-cpu").fit(few)
    assert codebook.n_words_ == 4
    assert len(np.unique(codebook.transform(few))) == 4


def test_centres_without_descriptors_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = torch.as_tensor(np.concatenate([D[:10], np.full((2, 6), 1e6, np.float32)]))
    monkeypatch.setattr(Clustering, "find_centres", lambda *_: lost)
    codebook = KMeansCodebook(12, random_state=0, device="torch-cpu").fit(D)
    assert np.unique(codebook.transform(D)).tolist() == list(range(12))


def test_a_centre_that_loses_its_descriptors_is_replaced() -> None:
    # Two far groups: random centres that all lie in one of them must spread.
    rows = torch.as_tensor(np.concatenate([D[:990], D[:10] + 50]))
    centres = Clustering(8, "random", batch_size=200).find_centres(rows, np.random.RandomState(3))
    assert (centres[:, 0] > 25).any()


def test_a_file_names_no_device(tmp_path: Path) -> None:
    for codebook in (KMeansCodebook(5, device="torch-cpu"), HierarchicalKMeans(5, device="cpu")):
        codebook.fit(D).save(tmp_path / "words.evergrow")
        loaded = load(tmp_path / "words.evergrow")
        assert loaded.device is None
        np.testing.assert_array_equal(loaded.transform(D), codebook.transform(D))


@pytest.mark.parametrize(
    ("raised", "expected"),
    [(torch.OutOfMemoryError("full"), DeviceMemoryError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
@every_kind
def test_a_full_device_or_an_interrupt_leaves_the_codebook_as_it_was(
    make: Any, raised: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    codebook = make(device="torch-cpu").fit(D)
    before = dict(vars(codebook))

    def fail(*_: Any) -> None:
        raise raised

    monkeypatch.setattr(clustering._Learner, "_step", fail)
    with pytest.raises(expected):
        codebook.fit(D + 1)
    assert vars(codebook) == before


@pytest.mark.parametrize(("value", "message"), [(1e39, "single precision"), (1e20, "too large")])
def test_descriptors_that_are_too_large_are_refused(value: float, message: str) -> None:
    wrong = on("torch-cpu", np.full((20, 3), value))
    with pytest.raises(ValueError, match=message):
        KMeansCodebook(2, device="torch-cpu").fit(wrong)
