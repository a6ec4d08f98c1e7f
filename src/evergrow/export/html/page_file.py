"""Puts one HTML file together: markup, styles, scripts, network, runtime, and what was learnt."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from evergrow.export.html.bundle import bundle
from evergrow.export.html.head import Head, read_head
from evergrow.export.html.runtime import WebRuntime, load_runtime
from evergrow.export.networks import NetworkFile, network_files
from evergrow.export.onnx.weights import WEIGHTS, Weights, store_weights
from evergrow.foundation.errors import InvalidInputError, InvalidTypeError
from evergrow.foundation.extras import __version__
from evergrow.foundation.files import atomic_write
from evergrow.foundation.params import Choice, check_parameters
from evergrow.vision.classifier import ImageClassifier
from evergrow.vision.embedding import Embedder
from evergrow.vision.embedding.preprocessing import can_be_vertical_first

_HERE = files("evergrow.export.html")
_OWN = _HERE / "page"
_SHARED = files("evergrow") / "page"
# Modules of the same name differ between the pages; those of this page count.
_FOLDERS = (_OWN, _SHARED)
_STYLESHEET = re.compile(r' *<link rel="stylesheet" href="static/([\w.]+)">\n')
_SCRIPT = re.compile(r' *<script type="module" src="static/main\.js"></script>\n')
# Nothing is loaded from anywhere. Scripts are those of this file: the page by its hash, threads as
# blobs that it makes itself. WebAssembly counts as evaluation of code.
_POLICY = (
    "default-src 'none'",
    "script-src {script} 'wasm-unsafe-eval' blob:",
    "worker-src blob:",
    "style-src {style}",
    "img-src blob: data:",
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
)


def to_html(model: ImageClassifier, *, weights: Weights = "float16", name: str = "model") -> bytes:
    """Return an image classifier as the content of an HTML page that predicts and learns.

    Parameters
    ----------
    model : ImageClassifier
        The model, as in :func:`save_html`.
    weights : {"float32", "float16", "int8"}, default="float16"
        How the weights of the network are stored, as in :func:`save_html`.
    name : str, default="model"
        The title of the page.

    Returns
    -------
    content : bytes
        What :func:`save_html` writes to a file.
    """
    check_parameters({"weights": weights}, {"weights": [Choice(WEIGHTS)]})
    if not isinstance(model, ImageClassifier):
        raise InvalidTypeError(
            f"an HTML page needs an ImageClassifier, got {type(model).__name__}: it would have no "
            "pictures to answer"
        )
    fitted = model._require_fitted("export")
    head, network = read_head(fitted.learner), _only_network(fitted.features)
    runtime = load_runtime()
    settings = {
        # Names of files may have bytes that are not text.
        "name": name.encode(errors="replace").decode(),
        "version": __version__,
        "runtime": runtime.title,
        "weights": weights,
        "network": _run_settings(network, head),
    }
    content = store_weights(network.content, weights)
    return _assemble(settings, _model_tensors(head, content), content, runtime, network)


def save_html(
    model: ImageClassifier,
    path: str | os.PathLike[str],
    *,
    weights: Weights = "float16",
    name: str | None = None,
) -> None:
    """Write an image classifier as one HTML file that predicts and learns in a browser.

    The file works without a service and without the internet. Open it with a double click. It
    learns new classes and corrections with the same equations as the library, and keeps the
    hyperparameters of the model. See :doc:`/export_page`.

    Parameters
    ----------
    model : ImageClassifier
        A fitted model with the features of one network (``features="auto"`` or ``"embed"``) and
        least squares (``learner="rls"``), alone or in a :class:`~evergrow.RejectingClassifier`.
    path : path
        File to write. An existing file is replaced.
    weights : {"float32", "float16", "int8"}, default="float16"
        How the weights of the network are stored. ``"float16"`` changes almost no prediction.
        ``"int8"`` makes the file smaller again and predictions slightly less accurate.
    name : str, default=None
        The title of the page. None uses the name of the file.

    Raises
    ------
    TypeError
        If the model cannot be exported as a page.
    ValueError
        If the parameters of the model cannot be exported as a page.
    evergrow.export.html.runtime.RuntimeMissingError
        If this installation lacks the browser runtime.

    Examples
    --------
    >>> import evergrow
    >>> from evergrow.export import save_html
    >>> model = evergrow.load("model.evergrow")  # doctest: +SKIP
    >>> save_html(model, "model.html", weights="int8")  # doctest: +SKIP
    """
    title = Path(path).stem if name is None else name
    content = to_html(model, weights=weights, name=title)
    with atomic_write(path) as file:
        file.write(content)


def _only_network(features: Any) -> NetworkFile:
    if not isinstance(features, Embedder):
        raise InvalidTypeError(
            f"an HTML page needs the features of a network, not of {type(features).__name__}: fit "
            "with features='auto' or 'embed'"
        )
    found = network_files(features)
    if len(found) != 1:
        raise InvalidInputError(f"an HTML page holds one network, this model has {len(found)}")
    return found[0]


def _run_settings(network: NetworkFile, head: Head) -> dict[str, Any]:
    """Return what the page has to know to run the network."""
    used, first = [], 0
    for name, width in network.blocks:
        # Blocks take part as a whole.
        if first in head.places:
            used.append({"name": name, "width": width})
        first += width
    described = network.describe()
    # Which pass of resizing comes first depends on the version of Pillow.
    described["preprocessing"]["vertical_first"] = can_be_vertical_first()
    return {
        **described,
        "input": network.model.images.name,
        "batch": network.model.images.shape[0] or 1,
        "outputs": used,
        # With stages, every block is scaled to length one.
        "unit_length": len(network.blocks) > 1,
    }


def _model_tensors(head: Head, network: bytes) -> bytes:
    """Return what was learnt, with an id by which browsers store what they are taught."""
    digest = hashlib.sha256(json.dumps(head.settings, sort_keys=True).encode())
    for name, array in sorted(head.tensors.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    digest.update(network)
    facts = {"head": head.settings, "page": digest.hexdigest()[:32]}
    # One entry: the order of several differs from run to run.
    return save(head.tensors, metadata={"facts": json.dumps(facts)})


def _assemble(
    settings: Mapping[str, Any],
    model: bytes,
    network: bytes,
    runtime: WebRuntime,
    described: NetworkFile,
) -> bytes:
    script, style = bundle("main.js", _FOLDERS), _join_styles()
    policy = "; ".join(_POLICY).format(script=_source_hash(script), style=_source_hash(style))
    head = [
        f'  <meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n',
        f"  <style>{style}</style>\n",
    ]
    blocks = [
        _text_block("settings", "application/json", _escape_json(settings)),
        _text_block("licences", "text/plain", _licences(described)),
        *(
            _text_block(f"{name}-worker", "text/plain", bundle(f"{name}_worker.js", _FOLDERS))
            for name in ("head", "network")
        ),
        _packed_block("runtime-script", _pack_once(runtime.script)),
        _packed_block("runtime-glue", _pack_once(runtime.glue)),
        _packed_block("runtime-wasm", _pack_once(runtime.wasm)),
        _packed_block("network", _pack(network)),
        _packed_block("model", _pack(model)),
        f"<script>{script}</script>\n",
    ]
    page = (_SHARED / "index.html").read_text(encoding="utf-8")
    page = _replace(page, '<body class="outside">', '<body class="outside standalone">')
    page = _STYLESHEET.sub("", _SCRIPT.sub("", page))
    icon = b64encode((_SHARED / "icon.svg").read_bytes()).decode()
    page = page.replace('"static/icon.svg"', f'"data:image/svg+xml;base64,{icon}"')
    if "static/" in page:
        raise AssertionError("the markup of the page refers to a file")
    # After this check: a name may be any text.
    page = _replace(
        page, "<title>Evergrow</title>", f"<title>{html.escape(settings['name'])}</title>"
    )
    page = _replace(page, '<meta charset="utf-8">\n', f'<meta charset="utf-8">\n{head[0]}')
    page = _replace(page, "</head>\n", f"{head[1]}</head>\n")
    return _replace(page, "</body>\n", f"{''.join(blocks)}</body>\n").encode()


def _replace(page: str, old: str, new: str) -> str:
    before, found, after = page.partition(old)
    if not found:
        raise AssertionError(f"the markup of the page lacks {old}")
    return before + new + after


def _join_styles() -> str:
    """Return all stylesheets, in the order of the page."""
    page = (_SHARED / "index.html").read_text(encoding="utf-8")
    parts = [(_SHARED / name).read_text(encoding="utf-8") for name in _STYLESHEET.findall(page)]
    style = "\n".join(parts)
    if "</style" in style.lower():
        raise AssertionError("the styles contain text that would end them")
    return style


def _source_hash(source: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _text_block(name: str, media_type: str, text: str) -> str:
    if "</script" in text.lower() or "<!--" in text:
        raise AssertionError(f"the block {name} contains text that would end it")
    return f'<script type="{media_type}" id="{name}">{text}</script>\n'


def _packed_block(name: str, packed: str) -> str:
    return f'<script type="application/gzip" id="{name}">{packed}</script>\n'


def _pack(content: bytes) -> str:
    # Without a time, so that equal models give equal files.
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()


# The three files of the runtime are the same in every page, and take longest.
_pack_once = lru_cache(maxsize=3)(_pack)


def _escape_json(value: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the element that contains it, whatever its texts are."""
    return json.dumps(value).replace("<", "\\u003c")


def _licences(network: NetworkFile) -> str:
    texts: Sequence[tuple[str, str]] = (
        ("Evergrow", _own_licence()),
        ("ONNX Runtime Web", _licence_file("onnxruntime-web.licence.txt")),
        (f"The weights of {network.name}", network.licence or "The licence is not known."),
        # Last, because they are long.
        ("Third-party notices of ONNX Runtime", _licence_file("onnxruntime-web.notices.txt")),
    )
    return "\n\n".join(f"{title}\n\n{text.strip()}" for title, text in texts) + "\n"


def _licence_file(name: str) -> str:
    """Read a licence; a checkout has it next to this file, a wheel only among its licences."""
    if (_HERE / name).is_file():
        return (_HERE / name).read_text(encoding="utf-8")
    found = distribution("evergrow").read_text(f"licenses/src/evergrow/export/html/{name}")
    if found is None:
        raise AssertionError(f"this installation of Evergrow lacks {name}")
    return found


def _own_licence() -> str:
    try:
        found = distribution("evergrow").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        # A source tree that was not installed.
        found = None
    return found or "BSD-3-Clause"
