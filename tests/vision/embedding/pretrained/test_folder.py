"""Folders that are damaged, incomplete or hostile: an error, in little time and memory."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from evergrow import Embedder
from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.pretrained.folder import PretrainedFolder
from tests.vision.embedding.pretrained.folders import write_folder

WEIGHTS = {"a.weight": np.zeros((3, 2), np.float32)}


def make_folder(folder: Path, config: Any = None, weights: Any = None) -> Path:
    content = config if isinstance(config, str) else json.dumps(config or {"model_type": "vit"})
    (folder / "config.json").write_text(content)
    save_file(WEIGHTS if weights is None else weights, folder / "model.safetensors")
    return folder


def test_a_folder_is_read(tmp_path: Path) -> None:
    make_folder(tmp_path, {"model_type": "vit", "id2label": {"0": "cat"}})
    found = PretrainedFolder.open(tmp_path)
    assert found.config == {"model_type": "vit"}
    assert found.shapes == {"a.weight": (3, 2)}
    assert (found.n_values, found.processor) == (6, None)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "not valid JSON"),
        ("[" * 10_000 + "]" * 10_000, "not valid JSON|must contain an object"),
        ("[1]", "must contain an object"),
        ("[" * 30_000, "too many lists"),
        (" " * (5 << 20) + "{}", "larger than"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "code of its own"),
        ({"vision_config": {"auto_map": {"AutoModel": "evil.Model"}}}, "code of its own"),
        ({"quantization_config": {"bits": 4}}, "quantized"),
        ({"backbone": "resnet50", "use_pretrained_backbone": True}, "not in the folder"),
        ({"use_pretrained_backbone": True}, "not in the folder"),
        ({"hidden_size": 10**12}, "larger than any network"),
        ({"hidden_size": [1e40]}, "larger than any network"),
        ('{"layer_norm_eps": NaN}', "larger than any network"),
    ],
)
def test_hostile_configurations(config: Any, message: str, tmp_path: Path) -> None:
    make_folder(tmp_path, config)
    with pytest.raises(InvalidInputError, match=message):
        PretrainedFolder.open(tmp_path)


def test_only_safetensors_are_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not a folder"):
        PretrainedFolder.open(tmp_path / "missing")
    with pytest.raises(InvalidInputError, match=r"no config\.json"):
        PretrainedFolder.open(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"no model\.safetensors"):
        PretrainedFolder.open(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(InvalidInputError, match=r"'pytorch_model\.bin', which may contain code"):
        PretrainedFolder.open(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "weights.bin", "", 3, [], ".."],
)
def test_indexes_name_files_of_the_folder_only(name: Any, tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path.parent / "model.safetensors")
    table = {"weight_map": {"a.weight": name}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(table))
    with pytest.raises(InvalidInputError, match="weights must be files of the folder"):
        PretrainedFolder.open(tmp_path)


def test_indexes_of_missing_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    table: Any = {"weight_map": {"a.weight": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(table))
    with pytest.raises(InvalidInputError, match=r"lacks model-1\.safetensors"):
        PretrainedFolder.open(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(InvalidInputError, match="does not list its files"):
        PretrainedFolder.open(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 64, (1 << 40).to_bytes(8, "little"), b"\x02" + bytes(7) + b"{}x"]
)
def test_damaged_weights(content: bytes, tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"model\.safetensors"):
        PretrainedFolder.open(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_pipes_do_not_block(name: str, tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(InvalidInputError, match="not a regular file"):
        PretrainedFolder.open(tmp_path)


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder("vit", tmp_path_factory.mktemp("vit"))


def change(folder: Path, target: Path, entries: dict[str, Any]) -> Path:
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, **entries}))
    return target


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        # Four terabytes, or a million layers, are not even tried.
        ({"hidden_size": 1 << 20}, "does not fit the 40 tensors"),
        ({"num_hidden_layers": 1 << 20}, "does not fit the 40 tensors"),
        ({"intermediate_size": 1 << 20}, "does not fit the 40 tensors"),
        ({"hidden_size": 64}, "cannot be loaded"),
        ({"num_hidden_layers": 3}, "lacks weights: .*2"),
        ({"num_attention_heads": 0}, "the network in"),
        ({"patch_size": 0}, "the network in"),
        ({"hidden_act": "os.system"}, "transformers does not take"),
        ({"model_type": "no_such_type"}, "transformers .* does not have"),
        ({"model_type": "bert"}, "the network in"),
        ({"model_type": "llava"}, "the network in"),
        ({"model_type": {"a": 1}}, "the network in"),
    ],
)
def test_configurations_that_do_not_fit(
    entries: dict[str, Any], message: str, vit: Path, tmp_path: Path
) -> None:
    change(vit, tmp_path, entries)
    start = time.monotonic()
    with pytest.raises(InvalidInputError, match=message):
        Embedder.from_pretrained(tmp_path)
    assert time.monotonic() - start < 30


@pytest.mark.nightly
def test_images_that_are_too_large(tmp_path: Path) -> None:
    """DINOv2 takes images of any size: the memory of its attention grows by the fourth power."""
    folder = write_folder("dinov2", tmp_path)
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    for side, message in ((4200, "at most 2048"), (1400, "bytes")):
        sides = {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
        (folder / "preprocessor_config.json").write_text(json.dumps({**processor, **sides}))
        with pytest.raises(InvalidInputError, match=message):
            Embedder.from_pretrained(folder)


@pytest.mark.nightly
def test_weights_that_are_not_finite(vit: Path, tmp_path: Path) -> None:
    change(vit, tmp_path, {})
    tensors = load_file(vit / "model.safetensors")
    damaged = {name: np.full_like(one, np.nan) for name, one in tensors.items()}
    save_file(damaged, tmp_path / "model.safetensors")
    with pytest.raises(InvalidInputError, match="not finite"):
        Embedder.from_pretrained(tmp_path)


@pytest.mark.nightly
def test_a_folder_without_a_processor(vit: Path, tmp_path: Path) -> None:
    change(vit, tmp_path, {})
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(InvalidInputError, match=r"no preprocessor_config\.json; give"):
        Embedder.from_pretrained(tmp_path)
