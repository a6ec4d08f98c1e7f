"""Visual words, bags of them, and descriptors of images."""

from __future__ import annotations

from typing import Any

import numpy as np

import evergrow
import evergrow.vision
from evergrow.vision.descriptors.patches import patches_from_json
from evergrow.vision.words.bag.pooling import POOLINGS
from evergrow.vision.words.erc.fitted import MAX_TRIALS
from tests.reference.model_files.content import (
    LARGEST_DESCRIPTOR,
    READERS,
    Header,
    Model,
    Tensors,
    UndecidedError,
    array,
    built,
    check_names,
    inside,
    labels_of,
    parameters_of,
    whole,
)


def check_word_trees(tensors: Tensors) -> tuple[int, int]:
    """Check trees of words; the number of features and of words."""
    n_features = int(array(tensors, "n_features", "i8", 1)[0])
    assert n_features >= 1
    sizes = array(tensors, "n_nodes", "i8", None).tolist()
    assert sizes
    total = len(array(tensors, "child", "i4", None))
    assert sum(sizes) == total
    parts = [array(tensors, name, "i4", total).tolist() for name in ("child", "feature", "word")]
    array(tensors, "threshold", "f4", total)
    first = n_words = 0
    for size in sizes:
        assert size >= 1
        child, feature, word = (part[first : first + size] for part in parts)
        check_word_tree(child, feature, word, n_features)
        first += size
        n_words += (size + 1) // 2
    return n_features, n_words


def check_word_tree(child: list[int], feature: list[int], word: list[int], n: int) -> None:
    """Check one tree: children follow their parent in pairs, every leaf has a word of its own."""
    assert len(child) % 2 == 1
    children: list[int] = []
    words: list[int] = []
    for node, left in enumerate(child):
        if left == 0:
            words.append(word[node])
            continue
        assert node < left
        children += [left, left + 1]
        assert 0 <= feature[node] < n
        assert word[node] == -1
    assert sorted(children) == [*range(1, len(child))]
    assert sorted(words) == [*range(len(words))]


def read_clustering(header: Header, tensors: Tensors) -> Model:
    """Check a forest of words that were learnt with classes."""
    estimator = built(evergrow.ERCForest, parameters_of(header))
    classes = None if header.get("classes") is None else labels_of(header["classes"])
    n_classes = 0 if classes is None else len(classes)
    entry = header["forest"]
    whole(entry["seed"], 0, 2**63 - 1)
    whole(entry["n_updates"], 0, 2**63 - 1)
    whole(entry["max_trials"], 1, MAX_TRIALS)
    first = whole(entry["n_first_classes"], min(1, n_classes), n_classes)
    assert first <= 2**31 - 1
    n_features, n_words = check_word_trees(tensors)
    columns = array(tensors, "columns", "i8", n_words).tolist()
    assert sorted(columns) == [*range(n_words)]
    counts = array(tensors, "counts", "i8", n_words, n_classes)
    if n_classes:
        assert ((counts >= 0) & (counts <= 2**53 // n_classes)).all()
        assert counts.any(axis=1).all()
    if "descriptors" in tensors:
        rows = array(tensors, "descriptors", "f4", None, n_features)
        codes = array(tensors, "descriptor_classes", "i4", len(rows))
        assert ((codes >= 0) & (codes < max(1, n_classes))).all()
    assert estimator.n_estimators == len(tensors["n_nodes"])
    check_names(header, n_features)
    return Model("codebook", n_features, n_words, classes, transforms=True, n_words=n_words)


def read_codebook(header: Header, tensors: Tensors) -> Model:
    """Check a codebook that was learnt without classes."""
    name = header["estimator"]
    built(getattr(evergrow.vision, name), parameters_of(header))
    if name == "RandomKDTrees":
        n_features, n_words = check_word_trees(tensors)
    else:
        part = {"KMeansCodebook": "centres", "HierarchicalKMeans": "centre"}[name]
        centres = array(tensors, part, "f4", None, None)
        assert centres.size
        assert (np.abs(centres) <= LARGEST_DESCRIPTOR).all()
        n_features, n_words = centres.shape[1], centres.shape[0]
        if part == "centre":
            n_words = check_centre_tree(tensors, len(centres))
    check_names(header, n_features)
    return Model("codebook", n_features, n_words, transforms=True, n_words=n_words)


def check_centre_tree(tensors: Tensors, n_nodes: int) -> int:
    """Check a tree of centres; the number of its leaves."""
    child = array(tensors, "child", "i4", n_nodes).tolist()
    sizes = array(tensors, "n_children", "i4", n_nodes).tolist()
    children: list[int] = []
    for node, (first, size) in enumerate(zip(child, sizes, strict=True)):
        assert (first == 0) == (size == 0)
        if first:
            assert first > node
            assert 2 <= size <= n_nodes
            children += range(first, first + size)
    assert sorted(children) == [*range(1, n_nodes)]
    return int(child.count(0))


def read_bag(header: Header, tensors: Tensors) -> Model:
    """Check a bag of words with its codebook and features."""
    pooling = POOLINGS[header["pooling"]]
    codebook = inside(header["codebook"], tensors, "codebook.")
    assert codebook.kind == "codebook"
    if header.get("features") is not None:
        features = inside(header["features"], tensors, "features.")
        assert features.kind == "local features"
        assert features.n_outputs == codebook.n_inputs
    if pooling.learns:
        assert (array(tensors, "thresholds", "i4", codebook.n_words) >= 1).all()
    parameters = parameters_of(header)
    assert not {"codebook", "features"} & set(parameters)
    built(evergrow.vision.BagOfWords, parameters)
    return Model("images", None, codebook.n_words, transforms=True)


def read_local_features(header: Header, tensors: Tensors) -> Model:
    """Check local features."""
    return local_features(parameters_of(header))


def local_features(parameters: Any) -> Model:
    """Check the parameters of local features."""
    assert isinstance(parameters, dict)
    assert isinstance(parameters["descriptor"], str)
    patches = patches_from_json(parameters["patches"])
    estimator = built(evergrow.vision.LocalFeatures, {**parameters, "patches": patches})
    return Model("local features", None, estimator.n_features_out_, transforms=True)


def read_fisher(header: Header, tensors: Tensors) -> Model:
    """Check a mixture and its projection."""
    parameters = parameters_of(header)
    means = array(tensors, "means", "f8", None, None)
    assert means.size
    assert (np.abs(means) <= 1e3 * LARGEST_DESCRIPTOR).all()
    weights = array(tensors, "weights", "f8", len(means))
    assert (weights > 0).all()
    assert abs(weights.sum() - 1) <= 1e-6
    variances = array(tensors, "covariances", "f8", *means.shape)
    assert ((variances >= 1e-30) & (variances <= (1e3 * LARGEST_DESCRIPTOR) ** 2)).all()
    n_inputs, n_kept = means.shape[1], None
    if "pca_components" in tensors or "pca_mean" in tensors:
        components = array(tensors, "pca_components", "f8", n_inputs, None)
        assert components.size
        assert (np.abs(components) <= 1 + 1e-6).all()
        n_kept, n_inputs = components.shape
        assert (
            np.abs(array(tensors, "pca_mean", "f8", n_inputs)) <= 1e3 * LARGEST_DESCRIPTOR
        ).all()
    features = None
    if parameters.get("features") is not None:
        features = evergrow.vision.LocalFeatures()
        assert local_features(parameters["features"]).n_outputs == n_inputs
    assert parameters.get("n_components") == len(means)
    assert parameters.get("n_pca") == n_kept
    built(evergrow.vision.FisherVectors, {**parameters, "features": features})
    return Model("images", None, len(means) * (2 * means.shape[1] + 1), transforms=True)


def read_embedder(header: Header, tensors: Tensors) -> Model:
    """An embedder: its network has no twin."""
    del header, tensors
    raise UndecidedError


READERS.update(
    dict.fromkeys(("KMeansCodebook", "HierarchicalKMeans", "RandomKDTrees"), read_codebook)
)
READERS.update(
    {
        "BagOfWords": read_bag,
        "ERCForest": read_clustering,
        "Embedder": read_embedder,
        "FisherVectors": read_fisher,
        "LocalFeatures": read_local_features,
    }
)
