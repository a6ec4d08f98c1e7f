"""The forest with coarse and fine classes of Ristin, Gall, Guillaumin and Van Gool (CVPR 2015).

Each call checks its input, asks :mod:`evergrow.estimators.subcategory.changes` for the next fitted
value and replaces the old one. A call that fails or is interrupted changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from evergrow.estimators.classifier.learner import validate_rows, validate_weights
from evergrow.estimators.forest.change.growth import check_growable, check_has_rows
from evergrow.estimators.forest.change.removal import as_ids, check_stored, refuse_examples
from evergrow.estimators.forest.cluster.driver_grow import resumed_seed
from evergrow.estimators.forest.forests import ForestParameters, complete_docstring
from evergrow.estimators.forest.request import FOREST_RULES, splits_rules
from evergrow.estimators.forest.splits import Regularised
from evergrow.estimators.forest.strategy import STRATEGY_RULES, Strategy
from evergrow.estimators.forest.value.fitted import ForestBatch
from evergrow.estimators.subcategory.changes import (
    REGROW_SHARE,
    UpdateResult,
    forget,
    learn_first,
    learn_more,
    refine,
)
from evergrow.estimators.subcategory.fitted import FittedSubcategories
from evergrow.estimators.subcategory.label_tree import Classes, Column, LabelTree
from evergrow.estimators.subcategory.labels import (
    check_labels,
    join_levels,
    read_labels,
    read_refined,
)
from evergrow.estimators.subcategory.methods import (
    METHOD_RULES,
    METHODS,
    Method,
    Stacked,
    SubcategoryRequest,
    method_of,
)
from evergrow.estimators.subcategory.predictor import SubcategoryPredictor
from evergrow.estimators.subcategory.samples import NewSamples, StoredSamples
from evergrow.estimators.subcategory.stacking import check_stack
from evergrow.foundation.errors import InvalidInputError
from evergrow.foundation.labels import as_classes
from evergrow.foundation.locks import exclusive
from evergrow.foundation.params import Nothing, Number, Rule, check_parameters


@dataclass(eq=False, repr=False, kw_only=True)
class SubcategoryParameters:
    """Parameters in addition to those that all forests have."""

    method: str | Method = "ridge-h"


@complete_docstring
@dataclass(eq=False, repr=False, kw_only=True)
class SubcategoryForestClassifier(ForestParameters, SubcategoryPredictor, SubcategoryParameters):
    """A forest that predicts fine classes and also learns from samples with only coarse labels.

    Every sample has a coarse class, such as "dog". Some samples also have a fine class, such as
    "beagle". If fine labels are scarce, samples without one still help: they show where the coarse
    classes are, and their fine class can be guessed. The parameter `method` decides how they are
    used. See :doc:`/subcategories`.

    Both levels can grow. :meth:`partial_fit` adds new coarse classes, new fine classes of known
    coarse classes, and samples with or without fine labels. :meth:`refine` gives fine labels to
    stored samples. A coarse class without fine classes is predicted as itself.

    Labels may have more than two levels, such as "animal", "dog" and "beagle", and a sample may be
    labelled on any of them. This extends the paper, and every method but ``"stacked"`` can do it.

    The trees are those of a regularised NCM forest: a node tries many subsets of the classes and
    weighs the information gain of a split against the number of means [Ristin2015 Eq. 5].

    Parameters
    ----------
    {n_estimators}
    method : {"ridge-h", "nn-h", "hierarchical", "nn", "joint", "stacked", "fine-only"} or method, \
default="ridge-h"
        How samples without a fine label are used.

        - ``"fine-only"``: not at all.
        - ``"stacked"``: a first forest learns coarse classes from the samples without a fine label.
          Its probabilities become features of a second forest, which learns from the others.
        - ``"joint"``: splits separate the fine classes and also the coarse classes of samples
          without a fine label.
        - ``"hierarchical"``: splits separate the fine classes and the coarse classes of all
          samples, and leaves predict P(coarse) P(fine | coarse). The best method without guesses.
        - ``"nn"``: the fine class is guessed from the nearest neighbour of the same coarse class.
        - ``"nn-h"``: ``"hierarchical"`` with the guesses of ``"nn"``.
        - ``"ridge-h"``: ``"hierarchical"`` with guesses by ridge regression within the coarse
          class, which are right more often.

        ``"fine-only"`` and ``"nn"`` ignore new samples that have neither a given nor a guessed fine
        label. ``"hierarchical"``, ``"nn-h"`` and ``"ridge-h"`` build the same kind of forest, so
        you can change between them from one update to the next. A value such as
        ``Hierarchical(guess="ridge", smoothing=10.0)`` sets the options of a method:
        :class:`~evergrow.estimators.Hierarchical`, :class:`~evergrow.estimators.Joint`,
        :class:`~evergrow.estimators.Stacked` or :class:`~evergrow.estimators.FineOnly`.
    splits : "auto" or Regularised, default="auto"
        How nodes find their splits. ``"auto"`` is ``Regularised(scoring_samples=1024)``.
    {common parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The finest classes, in the order of the columns of :meth:`predict_proba`. A column never
        moves. In each call, coarse classes without fine ones come first, then fine classes, each
        sorted. A coarse class that later gets fine classes keeps its column, with probability 0.
    coarse_classes_ : ndarray of shape (n_coarse_classes,)
        The coarse classes, in the order of the columns of ``predict_proba(X, level="coarse")``.
    level_classes_ : list of ndarray
        The classes of each level from coarse to fine, in the order of the columns of
        ``predict_proba(X, level=k)``. A class without finer ones is also listed on the levels
        below it.
    hierarchy_ : dict
        The coarse class of each fine class. With more levels, the class above each class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.
    sample_ids_ : ndarray of shape (n_samples,)
        Ids of the samples of the last :meth:`fit` or :meth:`partial_fit`, including samples that
        the method does not use.
    stored_ids_ : ndarray of shape (n_stored,)
        Ids of all samples that the forest stores. With ``Storage.per_class``, samples without a
        given fine label are removed first.
    standardize_ : {"whiten", "scale", "none"}
        How the features were scaled.
    equal_lengths_ : bool
        Whether samples were scaled to nearly the same length.
    update_report_ : UpdateReport
        Statistics of the last call that trained or forgot.
    guess_report_ : GuessReport
        How many fine labels the last call guessed, and how often such guesses are right. Only
        present if the call guessed labels.

    See Also
    --------
    NCMForestClassifier : A forest for classes of one level.
    evergrow.estimators.guess_fine : Guess missing fine labels without a forest.

    References
    ----------
    M. Ristin, J. Gall, M. Guillaumin, L. Van Gool: *From Categories to Subcategories: Large-scale
    Image Classification with Partial Class Label Refinement*, CVPR 2015. See :doc:`/papers`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from evergrow import SubcategoryForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> coarse = np.where(y % 2, "odd", "even")
    >>> fine = np.where(np.arange(len(y)) % 5 == 0, y, -1)  # every fifth is known
    >>> Y = np.column_stack([coarse.astype(object), fine])
    >>> forest = SubcategoryForestClassifier(10, random_state=0).fit(X[:1000], Y[:1000])
    >>> bool(forest.score(X[1000:], np.column_stack([coarse.astype(object), y])[1000:]) > 0.85)
    True
    """

    _kinds = (Regularised,)
    _rules: ClassVar[dict[str, list[Rule]]] = {
        **FOREST_RULES,
        "splits": splits_rules(*_kinds),
        "update": [Nothing(), *STRATEGY_RULES],
        "method": METHOD_RULES,
    }

    update: str | Strategy | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        SubcategoryRequest.of(self, seed=0)

    @exclusive
    def fit(
        self,
        X: npt.ArrayLike,
        y: Any,
        hierarchy: Any = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Train on samples and their classes, replacing everything learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features: an array of floats or integers, a DataFrame, or :class:`evergrow.Shards`.
        y : array-like of shape (n_samples, n_levels), (n_samples, 1) or (n_samples,)
            Classes, as integers or strings, in one column per level from coarse to fine. A missing
            fine label is None, NaN, the NA of pandas, or -1 if no fine class has that name. A
            single column holds coarse classes. A flat list holds coarse classes too, or, with
            `hierarchy`, the finest known class of each sample. To cross-validate labels with None,
            pass ``cv=KFold()``, because scikit-learn cannot stratify them.
        hierarchy : mapping, default=None
            The coarse class of each fine class; with more levels, the class above each class.
            Needed for flat lists with fine classes. With columns, it fills in missing coarse labels
            and is checked against the others.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, relative to their mean. A tree uses a sample as often as its
            weight says: with weight 2.5, half of the trees use it twice and the others three times.
            Samples of weight 0 are left out.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [6], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["a", None], ["b", None]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest.fit(X, Y).classes_
        array(['b', 'a1', 'a2'], dtype='<U2')
        >>> y = ["a1", "a1", "a2", "a2", "a", "b"]
        >>> forest.fit(X, y, hierarchy={"a1": "a", "a2": "a", "b": "b"}).predict([[0], [5], [19]])
        array(['a1', 'a2', 'b'], dtype='<U2')
        """
        self._check_parameters()
        self._start(X, y, hierarchy, sample_weight, None, min_samples=2)
        return self

    @exclusive
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: Any,
        hierarchy: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        classes: npt.ArrayLike | None = None,
    ) -> Self:
        """Add samples of known and new classes on any level.

        The first call on a new estimator trains it. Later calls use the strategy of the parameter
        `update`. New fine labels also update the guesses for stored samples of the same coarse
        class. A coarse class that gets new fine classes is refined as by :meth:`refine`. Known
        classes keep their columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples, n_levels), (n_samples, 1) or (n_samples,)
            Classes, as in :meth:`fit` and of the same kinds (numbers or strings). New classes may
            be on any level, also below a class that had no finer ones.
        hierarchy : mapping, default=None
            The class above each new class. A new coarse class that is not among the labels must be
            given as ``{name: name}``; otherwise an unknown coarse class is an error, because the
            name may be misspelt.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, on the same scale as in the first call. None gives each sample
            the mean weight of the first call.
        classes : array-like, default=None
            Classes that get a column before their first sample, as a flat list of labels. Not
            needed, because new classes may come in any call.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted, it is unchanged.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0)
        >>> forest = forest.fit([[0], [1], [8], [9]], [[0, 5], [0, 5], [1, 6], [1, None]])
        >>> forest.partial_fit([[20], [21]], [[1, 7], [1, 7]]).predict([[0], [9], [21]])
        array([5, 6, 7])
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            self._start(X, y, hierarchy, sample_weight, classes, min_samples=1)
            return self
        known = self._fitted
        checked = validate_rows(self, X, reset=False)
        given = check_labels(self, checked, y, hierarchy, known.tree)
        tree, found = _grown_tree(known.tree, given, classes, hierarchy)
        self._check_depth(tree)
        new = _weighted_samples(checked, found, sample_weight)
        request = self._checked_request(known, "update")
        check_growable(known.forest, request.forest_request(tree))
        check_stack(known, tree, request)
        first = known.forest.history.n_seen
        result = learn_more(known, new, tree, request)
        ids = first + np.arange(len(new), dtype=np.int64)
        self._learn(result, ids, getattr(self, "feature_names_in_", None))
        return self

    @exclusive
    def refine(
        self,
        ids: npt.ArrayLike,
        fine_labels: Any,
        hierarchy: Any = None,
        *,
        share: float = REGROW_SHARE,
    ) -> Self:
        """Give fine labels to stored samples, of known or new fine classes.

        Subtrees with many samples of these coarse classes are grown again. For the other samples of
        these coarse classes, missing fine labels are guessed again. With more than two levels, the
        new labels may be on any level.

        Parameters
        ----------
        ids : array-like of int
            Ids of stored samples, from ``sample_ids_``, ``stored_ids_`` or :meth:`guesses`.
        fine_labels : array-like
            The fine class of each sample: a new one, or a known one of its coarse class.
        hierarchy : mapping, default=None
            The class above each new class. With two levels, None puts a new class below the coarse
            class of its samples. Needed with more levels, and for samples that already had a fine
            label.
        share : float, default=0.33
            A subtree is grown again if at least this share of its samples belongs to one refined
            coarse class. Lower values are more accurate and slower. Above 1, only leaves grow.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> forest = SubcategoryForestClassifier(
        ...     5, method="hierarchical", min_samples_leaf=1, random_state=0
        ... )
        >>> forest.fit(X, [["a"], ["a"], ["a"], ["a"], ["b"], ["b"]]).predict([[5]])
        array(['a'], dtype='<U1')
        >>> forest.refine([0, 1, 2, 3], ["a1", "a1", "a2", "a2"]).predict([[5]])
        array(['a2'], dtype='<U2')
        """
        self._check_parameters()
        check_parameters({"share": share}, {"share": [Number(0.0)]})
        known = self._value("samples to refine")
        request = self._checked_request(known, "refine")
        check_has_rows(known.forest, "refine")
        given = np.atleast_1d(np.asarray(ids))
        chosen = as_ids(given, "ids")
        if len(chosen) != len(given):
            raise InvalidInputError("ids must not name a sample twice")
        check_stored(chosen, known.forest.stored_ids, "refine")
        given = given.astype(np.int64)
        owners = StoredSamples.of(known.forest, known.unconfirmed, known.tree).given_classes(given)
        levels = read_refined(fine_labels, owners, given, hierarchy, known.tree)
        tree, classes = known.tree.grow(levels)
        check_growable(known.forest, request.forest_request(tree))
        result = refine(known, given, tree, classes, request, float(share))
        names = getattr(self, "feature_names_in_", None)
        self._learn(result, getattr(self, "sample_ids_", None), names)
        return self

    @exclusive
    def forget(
        self,
        *examples: object,
        classes: npt.ArrayLike | None = None,
        coarse: npt.ArrayLike | None = None,
        samples: npt.ArrayLike | None = None,
    ) -> Self:
        """Remove classes or single samples from the forest.

        If the fine class of a sample was only guessed and this class is removed, the sample stays
        and its fine class is guessed again.

        Parameters
        ----------
        *examples : object
            Nothing: a forest cannot forget examples that are given as `X` and `y`, and says so.
        classes : array-like, default=None
            Classes of ``classes_`` to remove. A coarse class that loses all its fine classes is
            predicted as itself again.
        coarse : array-like, default=None
            Classes of any level to remove together with all their finer classes.
        samples : array-like of int, default=None
            Ids of the samples to remove, from ``sample_ids_`` or ``stored_ids_``.

        Returns
        -------
        self : estimator
            The estimator; unchanged if an error is raised.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", "b1"], ["b", "b1"]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, Y)
        >>> forest.forget(classes=["a1"]).classes_, forest.forget(coarse=["b"]).hierarchy_
        (array(['a2', 'b1'], dtype='<U2'), {'a2': 'a'})
        """
        refuse_examples(self, examples)
        self._check_parameters()
        known = self._value("samples to forget")
        if classes is None and coarse is None and samples is None:
            raise InvalidInputError(
                "forget needs classes, coarse classes or samples; got none of them"
            )
        request = self._checked_request(known, "forget")
        check_has_rows(known.forest, "forget")
        gone = known.tree.numbers_of(as_classes(classes).tolist(), as_classes(coarse).tolist())
        result = forget(known, gone, as_ids([] if samples is None else samples), request)
        latest = getattr(self, "sample_ids_", None)
        if latest is not None:
            latest = latest[np.isin(latest, result.fitted.stored_ids)]
        self._learn(result, latest, getattr(self, "feature_names_in_", None))
        return self

    def _start(
        self,
        X: npt.ArrayLike,
        y: Any,
        hierarchy: Any,
        sample_weight: npt.ArrayLike | None,
        classes: npt.ArrayLike | None,
        *,
        min_samples: int,
    ) -> None:
        # Validation sets attributes on the estimator, and this one must not change on failure.
        learner = clone(self)
        checked = validate_rows(learner, X, ensure_min_samples=min_samples, ensure_min_features=1)
        empty = LabelTree.empty()
        given = check_labels(self, checked, y, hierarchy, empty)
        tree, found = _grown_tree(empty, given, classes, hierarchy)
        self._check_tree(tree)
        new = _weighted_samples(checked, found, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        if self.random_state is None:
            codes = tree.paths[new.known].T.astype(np.int32)
            forest_request = SubcategoryRequest.of(self, seed).forest_request(tree)
            batch = ForestBatch(new.X, codes, np.arange(len(new)), new.weights)
            seed = resumed_seed(seed, batch, forest_request, tree.core_labels)
        request = SubcategoryRequest.of(self, seed)
        result = learn_first(new, tree, seed, request, few=min_samples == 1)
        ids = np.arange(len(new), dtype=np.int64)
        self._learn(result, ids, getattr(learner, "feature_names_in_", None))

    def _check_tree(self, tree: LabelTree) -> None:
        """Raise a ``ValueError`` if the method cannot learn these classes."""
        self._check_depth(tree)
        method = method_of(self.method)
        if len(tree.levels) < 2 and (method._guess or not method._keeps_coarse_only):
            able = [n for n, m in METHODS.items() if m._keeps_coarse_only and not m._guess]
            raise InvalidInputError(
                f"method={self.method!r} needs fine labels, but all are missing: give two columns, "
                "coarse and fine, or hierarchy={fine: coarse}; "
                f"{' or '.join(f'method={name!r}' for name in able)} learns the coarse classes "
                "alone, which refine and partial_fit can divide later"
            )

    def _check_depth(self, tree: LabelTree) -> None:
        if tree.n_levels > 2 and isinstance(method_of(self.method), Stacked):
            able = [name for name, method in METHODS.items() if not isinstance(method, Stacked)]
            raise InvalidInputError(
                f"method='stacked' has two levels, a forest for each, but the classes have "
                f"{tree.n_levels}; use one of {able}, or labels of two levels"
            )

    def _checked_request(self, known: FittedSubcategories, what: str) -> SubcategoryRequest:
        method, old = method_of(self.method), METHODS[known.method]
        if not method._shares_forest_with(old):
            same = [name for name, other in METHODS.items() if other._shares_forest_with(old)]
            raise InvalidInputError(
                f"method is {self.method!r} but the forest was trained by {known.method!r}: use "
                f"one of {same}, or fit again"
            )
        if what == "refine" and isinstance(method, Stacked):
            raise InvalidInputError(
                "method='stacked' cannot refine: its second forest does not store samples without "
                "fine labels; forget these samples and pass them to partial_fit with their labels"
            )
        if what == "refine" and not method._can_refine:
            able = [name for name, other in METHODS.items() if other._can_refine]
            raise InvalidInputError(
                f"method={self.method!r} stores no samples without fine labels, so there is "
                f"nothing to refine; use one of {able}"
            )
        return SubcategoryRequest.of(self, known.forest.history.seed)

    def _learn(
        self,
        result: UpdateResult,
        ids: npt.NDArray[np.int64] | None,
        names: npt.NDArray[Any] | None,
    ) -> None:
        self._set_fitted(
            result.fitted,
            names,
            sample_ids_=ids,
            update_report_=result.report,
            guess_report_=result.guesses,
        )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a label is a path of classes, but that there is one prediction."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        return tags


def _grown_tree(
    tree: LabelTree, given: list[Column], classes: npt.ArrayLike | None, hierarchy: Any
) -> tuple[LabelTree, Classes]:
    """The tree with the classes of new samples and further ones, and the samples' classes."""
    grown, found = tree.grow(given)
    further = [name for name in as_classes(classes).tolist() if name not in grown.numbers_by_name]
    if not further:
        return grown, found
    more = read_labels(further, hierarchy, grown)
    # Fails if these are numbers and those are strings, which NumPy would join as strings.
    grown.grow(more)
    grown, everything = tree.grow(join_levels(given, more))
    return grown, everything[: len(found)]


def _weighted_samples(
    X: npt.NDArray[Any], classes: Classes, sample_weight: npt.ArrayLike | None
) -> NewSamples:
    """The samples of one call, without those of weight 0."""
    X, kept, weights = validate_weights(X, np.arange(X.shape[0]), sample_weight)
    return NewSamples(X, classes[kept], weights)
