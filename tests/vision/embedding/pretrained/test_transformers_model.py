"""Networks of transformers: embeddings are those of the library itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evergrow import Embedder, ImageClassifier, load
from evergrow.foundation.errors import InvalidInputError
from evergrow.vision import Preprocessing
from evergrow.vision.embedding.pretrained.transformers_model import processor_preprocessing
from tests.vision.embedding.pretrained.folders import (
    FAMILIES,
    import_transformers,
    pictures,
    quiet,
    write_folder,
)


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import_transformers()
    made: dict[str, Path] = {}

    def find(family: str) -> Path:
        if family not in made:
            made[family] = write_folder(family, tmp_path_factory.mktemp(family))
        return made[family]

    return find


@pytest.fixture(scope="module")
def embedder_of(library_folder: Any) -> Any:
    made: dict[str, Embedder] = {}

    def find(family: str) -> Embedder:
        if family not in made:
            made[family] = Embedder.from_pretrained(library_folder(family), cache=False)
        return made[family]

    return find


def of_library(family: str, folder: Path, images: list[Any]) -> np.ndarray[Any, Any]:
    """Embeddings by the image processor and the model of the library."""
    import torch

    library = import_transformers()
    with quiet():
        # The default is torchvision where it is installed; Pillow resizes as Evergrow does.
        processor = library.AutoImageProcessor.from_pretrained(folder, backend="pil")
        pixels = processor(images=images, return_tensors="pt")["pixel_values"]
        kind = {"clip": library.CLIPModel, "siglip": library.SiglipModel}.get(family)
        model = (kind or library.AutoModel).from_pretrained(folder).eval()
        with torch.no_grad():
            if kind is not None:
                found = model.get_image_features(pixel_values=pixels)
                found = getattr(found, "pooler_output", found)
            elif family == "vit_classifier":
                found = model(pixel_values=pixels).last_hidden_state[:, 0]
            else:
                found = model(pixel_values=pixels).pooler_output.flatten(1)
    array: np.ndarray[Any, Any] = found.numpy()
    return array


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_are_those_of_the_library(
    family: str, library_folder: Any, embedder_of: Any
) -> None:
    images = pictures()
    found, expected = (
        embedder_of(family).transform(images),
        of_library(family, library_folder(family), images),
    )
    assert found.shape == expected.shape
    # A pixel in a thousand differs by a level where the library resizes more than it keeps; all
    # else is rounding.
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * np.abs(expected).max())
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1)
    np.testing.assert_allclose(cosines / np.linalg.norm(expected, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("family", ["dinov2", "clip", "convnext", "resnet", "vit"])
def test_prepared_images_differ_by_at_most_two_levels(
    family: str, library_folder: Any, embedder_of: Any
) -> None:
    library = import_transformers()
    with quiet():
        processor = library.AutoImageProcessor.from_pretrained(
            library_folder(family), backend="pil"
        )
        expected = processor(images=pictures(), return_tensors="np")["pixel_values"]
    prepare = embedder_of(family).preprocessing
    found = np.stack([prepare(image) for image in pictures()])
    levels = np.abs(found - expected) * np.reshape(prepare.scale, (-1, 1, 1))
    # Resizing rounds twice, once for each side of the image.
    assert levels.max() < 2.01
    assert (levels > 0.01).mean() < 5e-3


def test_what_a_model_file_contains(library_folder: Any, embedder_of: Any, tmp_path: Path) -> None:
    """The network itself, so that neither the folder nor its library is needed again."""
    images, labels = pictures()[:4], ["a", "a", "b", "b"]
    model = ImageClassifier(embedder_of("dinov2"), random_state=0).fit(images, labels)
    path = tmp_path / "model.evergrow"
    model.save(path)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))
    with pytest.raises(ValueError, match="networks=False"):
        load(path, networks=False)


def test_the_same_folder_gives_the_same_network(library_folder: Any, embedder_of: Any) -> None:
    """Else nothing that was cached or sharded would be known again."""
    again = Embedder.from_pretrained(library_folder("vit"), cache=False)
    assert again.network().key == embedder_of("vit").network().key


def test_outputs_can_be_chosen(library_folder: Any) -> None:
    import torch

    library, images = import_transformers(), pictures()
    embedder = Embedder.from_pretrained(library_folder("dinov2"), output="mean", cache=False)
    with quiet():
        model = library.AutoModel.from_pretrained(library_folder("dinov2")).eval()
    pixels = np.stack([embedder.preprocessing(image) for image in images])  # type: ignore[operator]
    with torch.no_grad():
        states = model(pixel_values=torch.from_numpy(pixels)).last_hidden_state
    np.testing.assert_allclose(embedder.transform(images), states[:, 1:].mean(1), atol=1e-5)
    by_module = Embedder.from_torch(model, embedder.preprocessing, output="class_token")
    np.testing.assert_allclose(by_module.transform(images), states[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("family", "output", "message"),
    [
        ("vit_classifier", "pooler_output", "no weights for it"),
        ("vit", "image_embeds", "has none"),
        ("resnet", "class_token", "feature maps, not tokens"),
        ("vit", "best", "output must be"),
    ],
)
def test_outputs_that_a_network_lacks(
    family: str, output: Any, message: str, library_folder: Any
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Embedder.from_pretrained(library_folder(family), output=output)


def test_images_of_another_size(library_folder: Any, embedder_of: Any) -> None:
    smaller = Embedder.from_pretrained(library_folder("dinov2"), size=28, cache=False)
    assert smaller.preprocessing.size == 28  # type: ignore[union-attr]
    usual = embedder_of("dinov2").transform(pictures())
    assert not np.allclose(smaller.transform(pictures()), usual, atol=1e-3)
    with pytest.raises(InvalidInputError, match="cannot be converted"):
        Embedder.from_pretrained(library_folder("vit"), size=48)


def test_modules_in_memory(library_folder: Any, embedder_of: Any) -> None:
    library, folder = import_transformers(), library_folder("clip")
    with quiet():
        module = library.CLIPVisionModelWithProjection.from_pretrained(folder, projection_dim=24)
        processor = library.AutoImageProcessor.from_pretrained(folder, backend="pil")
        whole = library.CLIPModel.from_pretrained(folder)
    embedder = Embedder.from_torch(module, processor)
    expected = embedder_of("clip").transform(pictures())
    np.testing.assert_allclose(embedder.transform(pictures()), expected, atol=1e-4)
    with pytest.raises(InvalidInputError, match="does not take images alone"):
        Embedder.from_torch(whole, processor)
    with pytest.raises(InvalidInputError, match="preprocessing must be given"):
        Embedder.from_torch(module)
    with pytest.raises(TypeError, match="must be a torch module"):
        Embedder.from_torch(len)


def test_a_name_in_the_cache_of_the_hub(
    library_folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    cached = tmp_path / "hub/models--someone--vit"
    revision = "a" * 40
    (cached / "refs").mkdir(parents=True)
    (cached / "refs/main").write_text(revision)
    (cached / "snapshots").mkdir()
    (cached / "snapshots" / revision).symlink_to(library_folder("vit"))
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert Embedder.from_pretrained("someone/vit", cache=False).n_features_out_ == 32
    with pytest.raises(InvalidInputError, match="hf download someone/other"):
        Embedder.from_pretrained("someone/other")


def test_known_names_need_no_library() -> None:
    assert Embedder.from_pretrained("efficientnet-lite0").model == "efficientnet-lite0"


def test_weights_in_several_files(library_folder: Any, embedder_of: Any, tmp_path: Path) -> None:
    library = import_transformers()
    with quiet():
        model = library.AutoModel.from_pretrained(library_folder("vit"))
        model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    config = json.loads((library_folder("vit") / "preprocessor_config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    found = Embedder.from_pretrained(tmp_path, cache=False)
    assert found.network().key == embedder_of("vit").network().key


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        # Of files from before sizes were objects.
        (
            {"size": 224, "do_center_crop": True, "crop_size": 224, "resample": 3},
            Preprocessing(resize="transformers", crop_share=1.0, interpolation="bicubic"),
        ),
        ({"size": 224, "resample": 2}, Preprocessing(size=(224, 224), resize="stretch")),
        (
            {
                "size": {"shortest_edge": 384},
                "resample": 2,
                "image_processor_type": "ConvNextImageProcessor",
            },
            Preprocessing(size=384, resize="stretch"),
        ),
    ],
)
def test_processors_of_earlier_versions(entries: dict[str, Any], expected: Preprocessing) -> None:
    means = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    found = processor_preprocessing({**entries, **means})
    np.testing.assert_allclose(found.mean, expected.mean)
    np.testing.assert_allclose(found.scale, expected.scale)
    names = ("size", "resize", "interpolation")
    assert [getattr(found, one) for one in names] == [getattr(expected, one) for one in names]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"size": {"shortest_edge": 20}}, "do_center_crop is off"),
        ({"size": {"longest_edge": 20}}, "shortest_edge, or height and width"),
        ({"size": 20, "do_pad": True}, "do_pad"),
        ({"size": 20, "resample": 9}, "from 0 to 5"),
        ({"size": 20, "do_resize": False}, "to resize images"),
        ({"size": 20, "do_center_crop": True, "crop_size": 30}, "larger than the resized"),
        ({"size": -1}, "size must be"),
    ],
)
def test_processors_that_are_not_supported(entries: dict[str, Any], message: str) -> None:
    values = {"resample": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, **entries}
    with pytest.raises(InvalidInputError, match=message):
        processor_preprocessing(values)
