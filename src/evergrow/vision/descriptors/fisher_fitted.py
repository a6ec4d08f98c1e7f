"""What Fisher vectors have learnt: a mixture, with the local features that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evergrow.foundation.errors import BadImage, ModelFileError
from evergrow.foundation.progress import progress_bar
from evergrow.foundation.ragged import RaggedArray
from evergrow.vision.descriptors.kinds import check_descriptors
from evergrow.vision.descriptors.local_features import LocalFeatures
from evergrow.vision.descriptors.mixture import Mixture, normalize
from evergrow.vision.descriptors.serialization import features_from_json, features_to_json
from evergrow.vision.images.results import Extraction, warn_about

Rows = npt.NDArray[np.float32]


def iterate_descriptors(
    features: LocalFeatures | None,
    X: Any,
    *,
    on_error: str,
    verbose: int,
    n_patches: int | None = None,
) -> Iterator[tuple[int, Rows | BadImage]]:
    """Yield the descriptors of each image; without features, the input is descriptors."""
    if features is None:
        yield from enumerate(RaggedArray.of(X))
        return
    total = len(X) if isinstance(X, Sized) else 0
    with progress_bar("Describing images", total, verbose) as show:
        for index, rows in features.iterate(X, n_patches=n_patches, on_error=on_error):
            yield index, rows
            if show is not None:
                show(index + 1)


@dataclass(frozen=True, eq=False)
class FittedFisher:
    """Everything that is learnt, as one immutable value."""

    mixture: Mixture
    features: LocalFeatures | None

    def extract(self, X: Any, *, on_error: str, verbose: int) -> Extraction:
        """Compute the vectors of the images that can be read."""
        vectors, kept, problems = [], [], []
        options: dict[str, Any] = {"on_error": on_error, "verbose": verbose}
        for index, rows in iterate_descriptors(self.features, X, **options):
            if isinstance(rows, BadImage):
                problems.append(rows)
            else:
                vectors.append(self.mixture.fisher_vector(check_descriptors(rows)))
                kept.append(index)
        warn_about(problems)
        matrix = np.array(vectors).reshape(len(vectors), self.mixture.n_features_out)
        places = np.array(kept, dtype=np.int64)
        return Extraction(normalize(matrix).astype(np.float32), places, tuple(problems))

    def parameters(self) -> dict[str, Any]:
        """The parameters that were used in fitting, for a model file.

        The estimator's own may have been changed for the next fit.
        """
        n_components, n_kept = self.mixture.means.shape
        return {
            "n_components": n_components,
            "n_pca": None if self.mixture.pca_components is None else n_kept,
            "features": None if self.features is None else features_to_json(self.features),
        }

    @classmethod
    def from_file(cls, parameters: dict[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Self:
        """Rebuild from an untrusted file; a ``ModelFileError`` if anything is inconsistent."""
        mixture, features = Mixture.from_arrays(tensors), None
        if parameters.get("features") is not None:
            features = features_from_json(LocalFeatures, parameters["features"])
            if features.n_features_out_ != mixture.n_features:
                raise ModelFileError(
                    "the model file is inconsistent: its features have another size"
                )
        fitted = cls(mixture, features)
        expected = fitted.parameters()
        if any(parameters.get(name) != expected[name] for name in ("n_components", "n_pca")):
            raise ModelFileError("the model file is inconsistent: its mixture has another size")
        return fitted
