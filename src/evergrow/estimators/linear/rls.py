"""Incremental regularised least squares as an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from evergrow.estimators.linear import teach
from evergrow.estimators.linear.estimator import RULES, LeastSquaresClassifier
from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.linear.fitted import FittedRLS
from evergrow.estimators.sums.batches import Batch
from evergrow.estimators.sums.examples import weighted
from evergrow.estimators.sums.forgetting import check_forget_arguments
from evergrow.foundation.labels import as_classes
from evergrow.foundation.params import Choice, Flag, Number, Rule
from evergrow.foundation.turns import one_at_a_time

__all__ = ["RLSClassifier"]


class RLSClassifier(LeastSquaresClassifier):
    """Regularised least squares that learns one example at a time, new classes included.

    One column of weights per class, found by least squares on the examples' features. What is kept
    of the examples are sums, so an example costs the same however many came before, the answer does
    not depend on their order, examples can be forgotten exactly and models merged exactly.
    *Recoding* weighs classes by how rare they are, so that a class of three examples is not ignored
    beside others of thousands.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights (lambda). More for few or noisy examples. ``"auto"`` chooses by the
        accuracy on held-out examples, each time the number of examples has doubled. May change at
        any time.
    recoding : float in [0, 1] or "auto", default="auto"
        How much rare classes are favoured (alpha): 0 not at all, 1 in proportion to how rare they
        are. ``"auto"`` is the largest of 0, 0.1, ... 1 that does not measurably cost accuracy on
        held-out examples of classes with at least 30 others. May change at any time.
    fit_intercept : bool, default=True
        Add a constant feature, which is hardly penalised: an offset of all features changes
        nothing.
    standardize : bool, default=False
        Centre each feature and divide it by its standard deviation, those of all examples so far;
        without an intercept only divide. Exact, but weights then have to be solved anew after
        every update.
    n_random_features : int, default=0
        Replace the input by this many fixed random features; 0 takes it as it is. A few thousand
        make least squares as accurate as kernel methods, for a cost that grows with their square.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features: :class:`~evergrow.estimators.ReLU` or
        :class:`~evergrow.estimators.RFF`.
    validation_every : int, default=6
        With ``"auto"``, every so many-th example of each class is held out to choose by.
    max_held_out : int, default=2000
        Held-out examples kept at most, of all classes together: a uniform choice per class.
    refit_held_out : bool, default=True
        Predict with weights that have learnt held-out examples too; choices are made without them
        all the same. False is the paper's way: they are never learnt, and weights are solved anew
        after every update. May change at any time.
    keep_class_statistics : bool, default=False
        Keep sums per class, so that :meth:`forget` can take out a whole class without its examples.
        Costs memory: 8 bytes times the square of the number of features for each class.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the choice of held-out examples. Models that are to be
        merged need the same integer if they have random features.
    verbose : int, default=0
        Show a progress bar when positive.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Weights after recoding; of the random features if there are any.
    regularization_, recoding_, temperature_ : float
        Penalty and recoding in use, and what scores are divided by for probabilities.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples learnt per class.
    n_held_out_ : ndarray of shape (n_classes,)
        Number of examples per class that are held out to choose by.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from evergrow import RLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RLSClassifier(random_state=0).fit(X[y < 8][:800], y[y < 8][:800])
    >>> for example, label in zip(X[y >= 8][:40], y[y >= 8][:40]):  # two new classes
    ...     model = model.partial_fit([example], [label])
    >>> model.classes_
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> bool(model.score(X[-400:], y[-400:]) > 0.8)
    True
    """

    _rules: ClassVar[dict[str, list[Rule]]] = {
        **RULES,
        "recoding": [Number(0.0, 1.0), Choice(("auto",))],
        "keep_class_statistics": [Flag()],
    }

    def __init__(
        self,
        *,
        regularization: float | Literal["auto"] = "auto",
        recoding: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        standardize: bool = False,
        n_random_features: int = 0,
        feature_map: Literal["relu", "rff"] | ReLU | RFF = "relu",
        validation_every: int = 6,
        max_held_out: int = 2000,
        refit_held_out: bool = True,
        keep_class_statistics: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.recoding = recoding
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.n_random_features = n_random_features
        self.feature_map = feature_map
        self.validation_every = validation_every
        self.max_held_out = max_held_out
        self.refit_held_out = refit_held_out
        self.keep_class_statistics = keep_class_statistics
        self.random_state = random_state
        self.verbose = verbose

    @one_at_a_time
    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train on examples and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: floating point or integers of any size, in any memory order; a DataFrame;
            a memory-mapped or read-only array; :class:`evergrow.Shards`, which are read once, a
            block at a time.
        y : array-like of shape (n_samples,)
            Classes: integers or strings.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at least 0. A weight of 2 is as if the example came twice, one of 0 as if it
            did not come.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> model = RLSClassifier(regularization=1.0, recoding=0.0)
        >>> model.fit([[0], [1], [8], [9]], ["a", "a", "b", "b"]).predict([[7]])
        array(['b'], dtype='<U1')
        """
        return self._first_examples(X, y, sample_weight, None)

    @one_at_a_time
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add examples, of known classes and of new ones.

        Old classes keep their columns; new ones get the next, sorted within the call. The cost does
        not depend on how many examples were learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples,)
            Classes, of the same kind (numbers or strings) as the known ones.
        classes : array-like, default=None
            Never needed. Classes to give a column now, before any example of them is seen; they are
            not predicted until then.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, as in :meth:`fit`.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted it stays as it was.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> model = RLSClassifier(regularization=0.1, recoding=0.5)
        >>> model = model.partial_fit([[0, 0], [9, 9]], ["b", "c"]).partial_fit([[0, 9]], ["a"])
        >>> model.classes_, model.predict([[1, 9]])
        (array(['b', 'c', 'a'], dtype='<U1'), array(['a'], dtype='<U1'))
        """
        if not self.__sklearn_is_fitted__():
            return self._first_examples(X, y, sample_weight, classes)
        self._check_parameters()
        known = self._learnt("model to update")
        X, y = self._checked_more(X, y)
        self._check_can_learn(known, "update")
        X, y, weights = weighted(X, y, sample_weight)
        labels, codes = known.labels.extend_with(y, as_classes(classes))
        self._replace(teach.extend(known, labels, Batch(X, codes, weights), self._recipe()))
        return self

    @one_at_a_time
    def forget(
        self,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Take examples or whole classes out again, as if they had never been learnt.

        Parameters
        ----------
        X, y : array-like of shape (n_samples, n_features) and (n_samples,), default=None
            Examples that were learnt, and their classes.
        classes : array-like, default=None
            Classes to forget, with their columns. Needs ``keep_class_statistics=True``, unless all
            examples of the class were forgotten before.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights the examples were learnt with.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed. More examples of a class than were learnt
            are refused, and examples that cannot have been among them, where the sums show it.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> model = RLSClassifier(regularization=0.1, recoding=0.0, keep_class_statistics=True)
        >>> model = model.fit([[0], [1], [5], [6], [8], [9]], ["a", "a", "b", "b", "c", "c"])
        >>> model.forget([[0]], ["a"]).class_counts_
        array([1, 2, 2])
        >>> model.forget(classes=["b"]).classes_
        array(['a', 'c'], dtype='<U1')
        """
        self._check_parameters()
        known = self._learnt("examples to forget")
        self._check_can_learn(known, "forget")
        check_forget_arguments(X, y, classes, sample_weight)
        if X is not None and y is not None:
            X, y = self._checked_more(X, y)
            X, y, weights = weighted(X, y, sample_weight)
            codes = np.array(known.labels.columns_of(y.tolist()), dtype=np.int32)
            known = teach.forget(known, Batch(X, codes, weights), self._recipe())
        if classes is not None:
            columns = sorted(set(known.labels.columns_of(as_classes(classes).tolist())))
            known = teach.forget_classes(known, columns, self._recipe())
        self._replace(known)
        return self

    @one_at_a_time
    def merge(self, other: RLSClassifier) -> Self:
        """Take over all that another model has learnt, as if one had seen the examples of both.

        Parameters
        ----------
        other : RLSClassifier
            A fitted model with the same features, feature map and seed. Its classes may be others.

        Returns
        -------
        self : estimator
            The merged estimator, unchanged if anything failed. Its columns keep their places; new
            classes of the other are appended, sorted.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> here = RLSClassifier(regularization=0.1, recoding=0.0).fit([[0], [5]], ["a", "b"])
        >>> there = RLSClassifier(regularization=0.1, recoding=0.0).fit([[1], [9]], ["a", "c"])
        >>> here.merge(there).class_counts_
        array([2, 1, 1])
        """
        self._check_parameters()
        if not isinstance(other, RLSClassifier):
            raise TypeError(f"only another RLSClassifier can be merged, got {other!r}")
        known, theirs = self._learnt("model to merge into"), other._learnt("model to merge")
        self._check_can_learn(known, "merge")
        other._check_can_learn(theirs, "merge")
        differ = teach.differences(known, theirs)
        here, there = (getattr(model, "feature_names_in_", None) for model in (self, other))
        if here is not None and there is not None and here.tolist() != there.tolist():
            differ.append("the names of the features")
        if differ:
            raise ValueError(f"cannot merge models that differ in {', '.join(differ)}")
        self._replace(teach.merge(known, theirs, self._recipe()))
        return self

    @one_at_a_time
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Give classes other names; classes that get one name become one class.

        Parameters
        ----------
        names : mapping
            From old to new names. A class that takes the name of another one joins it; the joint
            class has the first of their columns.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import RLSClassifier
        >>> model = RLSClassifier(regularization=0.1, recoding=0.0)
        >>> model = model.fit([[0], [5], [9]], ["a", "b", "c"])
        >>> model.rename_classes({"a": "x", "c": "x"}).class_counts_
        array([2, 1])
        """
        self._check_parameters()
        known = self._learnt("classes to rename")
        self._check_can_learn(known, "rename")
        self._replace(teach.rename(known, names, self._recipe()))
        return self

    def _first_examples(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        classes: npt.ArrayLike | None,
    ) -> Self:
        self._check_parameters()
        X, y, names = self._checked_first(X, y, min_samples=1)
        X, y, weights = weighted(X, y, sample_weight)
        labels, codes = self._first_labels(y, classes)
        known = self._nothing_yet(X, weights, labels, per_class=bool(self.keep_class_statistics))
        fitted = teach.extend(known, labels, Batch(X, codes, weights), self._recipe())
        self._become(fitted, names)
        return self

    def _replace(self, fitted: FittedRLS) -> None:
        self._become(fitted, getattr(self, "feature_names_in_", None))

    def _check_can_learn(self, known: FittedRLS, what: str) -> None:
        if not known.can_learn:
            raise ValueError(
                f"cannot {what}: the model was saved with inference_only=True and has only weights"
            )
        self._check_structure(known)

    @property
    def _recoding(self) -> float | None:
        return None if self.recoding == "auto" else float(self.recoding)
