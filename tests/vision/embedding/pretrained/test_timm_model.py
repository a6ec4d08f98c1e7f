"""Networks of timm: embeddings are those of the library itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import Embedder
from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.pretrained.timm_model import timm_preprocessing
from tests.vision.embedding.pretrained.folders import import_timm, pictures, quiet

# Networks of the families, made small by their own arguments.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": {"embed_dim": 48, "depth": 2, "num_heads": 3, "img_size": 64},
    "vit_small_patch14_reg4_dinov2": {
        "embed_dim": 48,
        "depth": 2,
        "num_heads": 3,
        "img_size": 56,
    },
    "vit_base_patch16_siglip_224": {"embed_dim": 48, "depth": 2, "num_heads": 3, "img_size": 64},
    "convnext_atto": {"depths": [1, 1, 1, 1], "dims": [8, 16, 24, 32]},
    "resnet18": {"layers": [1, 1, 1, 1]},
}


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    timm, made = import_timm(), {}

    def find(architecture: str) -> Path:
        if architecture not in made:
            import torch

            torch.manual_seed(0)
            folder = tmp_path_factory.mktemp(architecture)
            with quiet():
                # With a head, as most networks on the Hub.
                model = timm.create_model(
                    architecture, num_classes=7, **ARCHITECTURES[architecture]
                )
                timm.models._hub.save_for_hf(model, folder, safe_serialization=True)
            made[architecture] = folder
        return made[architecture]

    return find


def of_library(folder: Path, images: list[Any]) -> np.ndarray[Any, Any]:
    """Embeddings by the transforms and the model of the library, from the folder."""
    import torch
    from PIL import Image

    timm = import_timm()
    with quiet():
        model = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0).eval()
        config = timm.data.resolve_data_config({}, model=model)
        prepare = timm.data.create_transform(**config)
        batch = torch.stack([prepare(Image.fromarray(image)) for image in images])
        with torch.no_grad():
            array: np.ndarray[Any, Any] = model(batch).numpy()
    return array


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_embeddings_are_those_of_the_library(architecture: str, library_folder: Any) -> None:
    folder, images = library_folder(architecture), pictures()
    found = Embedder.from_pretrained(folder, cache=False).transform(images)
    expected = of_library(folder, images)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * np.abs(expected).max())


def test_outputs_can_be_chosen(library_folder: Any) -> None:
    import torch

    timm, folder = import_timm(), library_folder("vit_small_patch14_reg4_dinov2")
    with quiet():
        model = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    for output, rows in (("class_token", slice(0, 1)), ("mean", slice(5, None))):
        embedder = Embedder.from_pretrained(folder, output=output, cache=False)  # type: ignore[arg-type]
        pixels = np.stack([embedder.preprocessing(one) for one in pictures()])  # type: ignore[operator]
        with torch.no_grad():
            states = model.forward_features(torch.from_numpy(pixels))
        np.testing.assert_allclose(
            embedder.transform(pictures()), states[:, rows].mean(1), atol=1e-4
        )
        by_module = Embedder.from_torch(model, output=output)  # type: ignore[arg-type]
        np.testing.assert_allclose(
            by_module.transform(pictures()), embedder.transform(pictures()), atol=1e-4
        )


def test_images_of_another_size(library_folder: Any) -> None:
    folder = library_folder("vit_small_patch14_reg4_dinov2")
    embedder = Embedder.from_pretrained(folder, size=28, cache=False)
    assert embedder.transform(pictures()).shape == (5, 48)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "no_such_network"}, "which timm .* does not have"),
        ({"architecture": "../../etc/passwd"}, "which timm .* does not have"),
        ({"model_args": {"embed_dim": 1 << 16, "num_heads": 16}}, "does not fit the"),
        ({"model_args": {"depth": 1 << 20}}, "does not fit the"),
        ({"model_args": {"checkpoint_path": "/etc/passwd"}}, "which a folder may not"),
        ({"model_args": {"pretrained_cfg_overlay": {"file": "x.pth"}}}, "which a folder may not"),
        ({"model_args": {"no_such_argument": 3}}, "timm does not take"),
        ({"model_args": {"embed_dim": 24, "depth": 2, "num_heads": 3, "img_size": 64}}, "loaded"),
        ({"pretrained_cfg": {"input_size": [3, 64, 64], "crop_mode": "border"}}, "crop_mode"),
    ],
)
def test_hostile_folders(
    change: dict[str, Any], message: str, library_folder: Any, tmp_path: Path
) -> None:
    folder = library_folder("vit_tiny_patch16_224")
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    with pytest.raises(InvalidInputError, match=message):
        Embedder.from_pretrained(tmp_path)


def test_files_and_addresses_in_a_configuration_are_ignored(
    library_folder: Any, tmp_path: Path
) -> None:
    folder = library_folder("vit_tiny_patch16_224")
    config = json.loads((folder / "config.json").read_text())
    config["pretrained_cfg"] |= {
        "file": "/etc/passwd",
        "url": "http://127.0.0.1:9/x",
        "source": "x",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").symlink_to(folder / "model.safetensors")
    assert Embedder.from_pretrained(tmp_path, cache=False).n_features_out_ == 48


def test_crops_of_any_kind() -> None:
    values = {"input_size": (3, 64, 64), "mean": (0.5,) * 3, "std": (0.5,) * 3}
    usual = {**values, "interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "center"}
    assert timm_preprocessing(usual).crop_share == 64 / 71
    squashed = {**usual, "crop_pct": 1.0, "crop_mode": "squash"}
    assert timm_preprocessing(squashed).resize == "stretch"
    with pytest.raises(InvalidInputError, match="crop_pct"):
        timm_preprocessing({**usual, "crop_pct": 1.5})
    with pytest.raises(InvalidInputError, match="channels"):
        timm_preprocessing({**usual, "input_size": (1, 64, 64)})
