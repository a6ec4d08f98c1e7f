"""Training and model files of a bag of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import replace_fitted
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import (
    Choice,
    Flag,
    Integer,
    Nothing,
    RandomState,
    Rule,
)
from evergrow.storage.modelfile import (
    Build,
    check_saveable,
    common_header,
    parameters_of,
    plain_parameters,
)
from evergrow.vision.descriptors.local_features import IS_LOCAL_FEATURES
from evergrow.vision.images.parameters import JOBS, VERBOSE
from evergrow.vision.images.transformer import FittedTransformer
from evergrow.vision.words.bag.fitted import IS_CODEBOOK, FittedBag
from evergrow.vision.words.bag.pooling import POOLINGS
from evergrow.vision.words.bag.training_set import class_codes, draw_descriptors, image_labels
from evergrow.vision.words.erc.erc_forest import ERCForest

# A bag is never updated, so its codebook does not need the training descriptors.
_DEFAULT_CODEBOOK = ERCForest(keep_descriptors=False)
# Parameters that are models; their files are included in the file of the bag.
_MODEL_PARAMETERS = ("codebook", "features")


class BagLearner(FittedTransformer[FittedBag]):
    """Training and model files of a bag of words; the subclass adds the public methods."""

    _rules: ClassVar[dict[str, list[Rule]]] = {
        "codebook": [Nothing(), IS_CODEBOOK],
        "features": [Nothing(), IS_LOCAL_FEATURES],
        "pooling": [Choice(tuple(POOLINGS))],
        "n_training_descriptors": [Integer(1, 1 << 40)],
        "sparse_output": [Flag()],
        "random_state": [Nothing(), RandomState()],
        "n_jobs": JOBS,
        "verbose": VERBOSE,
    }

    def _to_file(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Header and arrays of a model file, or of a part of another model's file."""
        fitted = self._require_fitted()
        # Otherwise the file could not be loaded.
        self._check_parameters()
        check_saveable(type(self))
        parameters = plain_parameters(self.get_params(deep=False))
        for name in _MODEL_PARAMETERS:
            del parameters[name]
        learnt, tensors = fitted.to_file()
        return {**common_header(self, parameters, None), **learnt}, tensors

    @classmethod
    def _from_file(
        cls, header: dict[str, Any], tensors: dict[str, npt.NDArray[Any]], build: Build
    ) -> Self:
        fitted = FittedBag.from_file(header, tensors, build)
        features = None if fitted.features is None else clone(fitted.features)
        # Another codebook among the parameters is an error, because the file includes one.
        bag = cls(clone(fitted.codebook), features=features, **parameters_of(header))
        bag._check_parameters()
        replace_fitted(bag, {"_fitted": fitted})
        return bag

    @exclusive
    def _learn(
        self, images: Sequence[Any], y: npt.ArrayLike | None, masks: Sequence[Any] | None
    ) -> tuple[FittedBag, sparse.csr_array | None]:
        """Fit the codebook and the pooling; return counts of the images if they were needed."""
        self._check_parameters()
        pooling = POOLINGS[self.pooling]
        labels = image_labels(images, y)
        codes = class_codes(labels) if pooling.learns else None
        features = None if self.features is None else clone(self.features)
        random = check_random_state(self.random_state)
        total = int(self.n_training_descriptors)
        drawn, places = draw_descriptors(features, images, total, random, masks=masks)
        codebook = self._make_codebook(random)
        codebook.fit(drawn, None if labels is None else labels[places])
        fitted, counts = FittedBag(codebook, features, self.pooling), None
        if codes is not None:
            counts = fitted.count(images, n_jobs=self.n_jobs, verbose=self.verbose).counts
            fitted = fitted.with_thresholds(counts, codes)
        replace_fitted(self, {"_fitted": fitted})
        return fitted, counts

    def _make_codebook(self, random: np.random.RandomState) -> Any:
        codebook: Any = clone(_DEFAULT_CODEBOOK if self.codebook is None else self.codebook)
        if codebook.get_params(deep=False).get("random_state", 0) is None:
            codebook.set_params(random_state=int(random.randint(np.iinfo(np.int32).max)))
        return codebook

    def _to_output(self, vectors: sparse.csr_array) -> sparse.csr_array | npt.NDArray[np.float32]:
        return vectors if self.sparse_output else vectors.toarray()

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that the output type does not depend on the input type."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
