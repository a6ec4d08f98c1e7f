"""A network in a folder of Hugging Face transformers or timm, as an ONNX model.

So it is run, cached, saved in model files and exported like any other ONNX model, and the libraries
are needed for the conversion alone. It runs with the limits of networks from model files: a network
that is accepted here can be loaded again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from evergrow.foundation.errors import InvalidInputError
from evergrow.vision.embedding.networks import OnnxModel, OnnxNetwork
from evergrow.vision.embedding.onnx_file import check_bounded
from evergrow.vision.embedding.preprocessing import Preprocessing
from evergrow.vision.embedding.pretrained.features import check_output, feature_module
from evergrow.vision.embedding.pretrained.folder import (
    PretrainedFolder,
    find_folder,
    import_library,
)
from evergrow.vision.embedding.pretrained.timm_model import load_timm, set_input_size
from evergrow.vision.embedding.pretrained.transformers_model import load_transformers

_MAX_SIDE = 2048
# The limit of protocol buffers, with room for the operators.
_MAX_WEIGHT_BYTES = 2**31 - (1 << 24)
# Largest difference between the module and the ONNX model, as a share of the largest feature.
_TOLERANCE = 1e-3
# The first version whose operators the exporter writes without converting them.
_OPSET = 20


def convert_folder(
    name: str | os.PathLike[str],
    preprocessing: Preprocessing | None,
    size: int | None,
    output: str,
) -> tuple[OnnxModel, Preprocessing]:
    """The network of a folder, and how images are prepared for it."""
    check_output(output)
    folder = PretrainedFolder.open(find_folder(name))
    load = load_timm if "architecture" in folder.config else load_transformers
    model, found, has_pooler = load(folder, preprocessing)
    prepared = found if size is None else dataclasses.replace(found, size=size)
    if prepared.layout != "nchw":
        raise InvalidInputError("preprocessing must have the layout 'nchw' for such a network")
    if max(prepared.height_and_width) > _MAX_SIDE:
        raise InvalidInputError(
            f"{folder.name} takes images of {prepared.size} pixels, at most {_MAX_SIDE} are "
            "supported"
        )
    n_bytes = sum(one.numel() * one.element_size() for one in model.state_dict().values())
    if n_bytes > _MAX_WEIGHT_BYTES:
        raise InvalidInputError(
            f"{folder.name} has {n_bytes} bytes of weights, an ONNX file holds "
            f"{_MAX_WEIGHT_BYTES}: use Embedder.from_torch, or a smaller network"
        )
    if prepared.size != found.size or preprocessing is not None:
        with folder.report(f"does not take images of {prepared.size} pixels"):
            set_input_size(model, prepared)
    module = feature_module(model, output, has_pooler=has_pooler)
    content = _export_bounded(folder, module, prepared)
    _compare(folder, module, content, prepared)
    return OnnxModel(content, bounded=True), prepared


def _export_bounded(folder: PretrainedFolder, module: Any, preprocessing: Preprocessing) -> bytes:
    """An ONNX file whose memory is known beforehand and limited."""
    batch = (1, *preprocessing.shape)
    content = _export(folder, module, preprocessing, any_batch=True)
    with contextlib.suppress(InvalidInputError):
        check_bounded(content, folder.name, batch)
        return content
    # Some sizes can be derived only if the number of images is fixed.
    content = _export(folder, module, preprocessing, any_batch=False)
    try:
        check_bounded(content, folder.name, batch)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"{error}: give a smaller size, or use Embedder.from_torch"
        ) from error
    return content


def _export(
    folder: PretrainedFolder, module: Any, preprocessing: Preprocessing, *, any_batch: bool
) -> bytes:
    """The module as an ONNX file, for batches of any length or for one image at a time."""
    torch = import_library("torch")
    import_library("onnxscript")
    images = torch.zeros((2 if any_batch else 1, *preprocessing.shape))
    n = torch.export.Dim("n", min=1, max=1 << 16)
    with folder.report("cannot be converted to ONNX"), _without_messages():
        program = torch.onnx.export(
            module,
            (images,),
            dynamo=True,
            input_names=["images"],
            output_names=["features"],
            dynamic_shapes=({0: n},) if any_batch else None,
            opset_version=_OPSET,
            verbose=False,
        )
        content: bytes = program.model_proto.SerializeToString(deterministic=True)
    return content


def _compare(
    folder: PretrainedFolder, module: Any, content: bytes, preprocessing: Preprocessing
) -> None:
    """Raise an error if the converted network computes something else."""
    torch = import_library("torch")
    network = OnnxNetwork(
        content, name=folder.name, preprocessing=preprocessing, n_threads=1, bounded=True
    )
    random = np.random.default_rng(0).standard_normal((3, *preprocessing.shape), dtype=np.float32)
    found = network.run(list(random))
    with torch.no_grad():
        expected = module(torch.from_numpy(random)).numpy()
    largest = float(np.abs(expected).max())
    if not np.abs(found - expected).max() <= _TOLERANCE * max(largest, 1e-6):
        raise InvalidInputError(
            f"{folder.name} computes other features as an ONNX model than in torch: use "
            "Embedder.from_torch"
        )


@contextmanager
def _without_messages() -> Iterator[None]:
    """The exporter reports operators that are not installed, and deprecations of its own."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
