"""Training a forest of coarse and fine classes: at once, with more samples, with finer labels."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from evergrow.estimators.classifier.learner import checked_rows
from evergrow.estimators.forest.change.removal import as_ids, check_stored
from evergrow.estimators.forest.cluster.driver_grow import resumed_seed
from evergrow.estimators.forest.request import check_growable, check_has_rows
from evergrow.estimators.subcategory.answering import AnsweringForest
from evergrow.estimators.subcategory.fitted import FittedSubcategories
from evergrow.estimators.subcategory.forgetting import forget
from evergrow.estimators.subcategory.given import GivenLabels, read_labels
from evergrow.estimators.subcategory.hierarchy import CodedLabels, LabelTree
from evergrow.estimators.subcategory.label_columns import Column, label_columns, listed, read_column
from evergrow.estimators.subcategory.learning import Lesson, Plan, learn_first, learn_more, refine
from evergrow.estimators.subcategory.methods import METHODS
from evergrow.estimators.subcategory.unconfirmed import StoredSamples
from evergrow.foundation.labels import as_classes
from evergrow.foundation.turns import one_at_a_time

__all__ = ["GrowingSubcategories"]


class GrowingSubcategories(AnsweringForest):
    """Training and updating; subclasses add parameters."""

    method: str
    random_state: int | np.random.RandomState | None

    @abstractmethod
    def _plan(self, seed: int) -> Plan:
        """How to learn with the parameters as they are now."""

    @one_at_a_time
    def fit(self, X: npt.ArrayLike, y: Any, hierarchy: Any = None) -> Self:
        """Train on samples and their classes, forgetting whatever was learnt before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, of any real type.
        y : array-like of shape (n_samples, 2), (n_samples, 1) or (n_samples,)
            Coarse and fine classes: integers or strings, each level its own kind; lists, an array
            or a DataFrame. A missing fine label is None, NaN, pandas' NA, or -1 where no fine class
            is known to be called -1. One column of shape (n_samples, 1) holds coarse classes alone;
            flat labels are the finest class that is known of each sample and need ``hierarchy``.
            For cross-validation of labels with None give ``cv=KFold()``: scikit-learn cannot
            stratify them.
        hierarchy : mapping, default=None
            Coarse class by fine class. Needed for flat labels; with two columns it fills in missing
            coarse labels and is checked against the others.

        Returns
        -------
        self : estimator
            The fitted estimator. If training fails or is interrupted it stays as it was.

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
        self._start(X, y, hierarchy, min_samples=2)
        return self

    @one_at_a_time
    def partial_fit(self, X: npt.ArrayLike, y: Any, hierarchy: Any = None) -> Self:
        """Add samples of known and new, coarse and fine classes, by the strategy ``update``.

        The first call on a new estimator trains it. Where samples with fine labels come, stored
        samples of their coarse class that have none are guessed again; a coarse class that gets
        fine classes it did not have is refined as by :meth:`refine`. Old classes keep their
        columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as in :meth:`fit`.
        y : array-like of shape (n_samples, 2), (n_samples, 1) or (n_samples,)
            Classes as in :meth:`fit`, of the same kinds as the known ones.
        hierarchy : mapping, default=None
            Coarse class by fine class, of fine classes that are not known yet.

        Returns
        -------
        self : estimator
            The updated estimator. If the update fails or is interrupted it stays as it was.

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
            self._start(X, y, hierarchy, min_samples=1)
            return self
        known: FittedSubcategories = self._fitted
        checked = checked_rows(self, X, reset=False)
        tree, labels = known.tree.grow(self._checked_labels(checked, y, hierarchy, known.tree))
        plan = self._checked_plan(known, "update")
        check_growable(known.forest, plan.recipe(tree))
        first = known.forest.history.n_seen
        lesson = learn_more(known, checked, tree, labels, plan)
        ids = first + np.arange(checked.shape[0], dtype=np.int64)
        self._learn(lesson, ids, getattr(self, "feature_names_in_", None))
        return self

    @one_at_a_time
    def refine(self, ids: npt.ArrayLike, fine_labels: Any) -> Self:
        """Give stored samples their fine labels: new fine classes, or known ones.

        Parts of the trees that hold many samples of these coarse classes grow again. Other samples
        of these coarse classes whose fine label nobody gave are guessed again.

        Parameters
        ----------
        ids : array-like of int
            Ids of stored samples, from ``sample_ids_``, ``stored_ids_`` or :meth:`guesses`.
        fine_labels : array-like
            The fine class of each, a new one or a known one of the sample's own coarse class.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

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
        known: FittedSubcategories = self._learnt("samples to refine")
        plan = self._checked_plan(known, "refine")
        check_has_rows(known.forest, "refine")
        given = np.atleast_1d(np.asarray(ids))
        chosen = as_ids(given, "ids")
        if len(chosen) != len(given):
            raise ValueError("ids must not name a sample twice")
        check_stored(chosen, known.forest.stored_ids, "refine")
        tree, labels = _refined_tree(known, given.astype(np.int64), fine_labels)
        check_growable(known.forest, plan.recipe(tree))
        lesson = refine(known, given.astype(np.int64), tree, labels.fine, plan)
        names = getattr(self, "feature_names_in_", None)
        self._learn(lesson, getattr(self, "sample_ids_", None), names)
        return self

    @one_at_a_time
    def forget(
        self,
        *,
        classes: npt.ArrayLike | None = None,
        coarse: npt.ArrayLike | None = None,
        samples: npt.ArrayLike | None = None,
    ) -> Self:
        """Take classes or single samples out of the forest.

        Samples whose fine class was only guessed to be one that goes stay and are guessed again.

        Parameters
        ----------
        classes : array-like, default=None
            Classes of ``classes_`` to forget. A coarse class that loses all its fine ones is
            predicted as itself again.
        coarse : array-like, default=None
            Coarse classes to forget, with all their fine ones.
        samples : array-like of int, default=None
            Ids of samples to forget.

        Returns
        -------
        self : estimator
            The estimator, unchanged if anything failed.

        Examples
        --------
        >>> from evergrow import SubcategoryForestClassifier
        >>> X = [[0], [1], [4], [5], [18], [19]]
        >>> Y = [["a", "a1"], ["a", "a1"], ["a", "a2"], ["a", "a2"], ["b", "b1"], ["b", "b1"]]
        >>> forest = SubcategoryForestClassifier(5, min_samples_leaf=1, random_state=0).fit(X, Y)
        >>> forest.forget(classes=["a1"]).classes_, forest.forget(coarse=["b"]).hierarchy_
        (array(['a2', 'b1'], dtype='<U2'), {'a2': 'a'})
        """
        self._check_parameters()
        known: FittedSubcategories = self._learnt("samples to forget")
        if classes is None and coarse is None and samples is None:
            raise ValueError("forget needs classes, coarse classes or samples")
        plan = self._checked_plan(known, "forget")
        check_has_rows(known.forest, "forget")
        gone = known.tree.numbers_of(as_classes(classes).tolist(), as_classes(coarse).tolist())
        lesson = forget(known, gone, as_ids([] if samples is None else samples), plan)
        latest = getattr(self, "sample_ids_", None)
        if latest is not None:
            latest = latest[np.isin(latest, lesson.fitted.forest.stored_ids)]
        self._learn(lesson, latest, getattr(self, "feature_names_in_", None))
        return self

    def _start(self, X: npt.ArrayLike, y: Any, hierarchy: Any, *, min_samples: int) -> None:
        # Validation writes on the estimator it is given: not on this one before all went well.
        learner = clone(self)
        checked = checked_rows(learner, X, ensure_min_samples=min_samples, ensure_min_features=1)
        empty = LabelTree.empty()
        tree, labels = empty.grow(self._checked_labels(checked, y, hierarchy, empty))
        self._check_something_fine(tree)
        seed = int(check_random_state(self.random_state).randint(2**63 - 1, dtype=np.int64))
        if self.random_state is None:
            codes = np.stack([labels.coarse, labels.fine]).astype(np.int32)
            recipe = self._plan(seed).recipe(tree)
            seed = resumed_seed(seed, checked, codes, recipe, len(tree.core_labels))
        lesson = learn_first(checked, tree, labels, seed, self._plan(seed), few=min_samples == 1)
        ids = np.arange(checked.shape[0], dtype=np.int64)
        self._learn(lesson, ids, getattr(learner, "feature_names_in_", None))

    def _checked_labels(
        self, X: npt.NDArray[Any], y: Any, hierarchy: Any, tree: LabelTree
    ) -> GivenLabels:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        check_consistent_length(X, y)
        return read_labels(y, hierarchy, tree)

    def _check_something_fine(self, tree: LabelTree) -> None:
        able = [name for name, method in METHODS.items() if method.keeps_coarse_only]
        able = [name for name in able if METHODS[name].guesser is None]
        if tree.fine is None and self.method not in able:
            raise ValueError(
                f"method={self.method!r} needs fine labels, and all are missing; "
                f"{' or '.join(f'method={name!r}' for name in able)} learns the coarse classes, "
                "which refine and partial_fit can divide later"
            )

    def _checked_plan(self, known: FittedSubcategories, what: str) -> Plan:
        method = METHODS[self.method]
        able = [name for name, other in METHODS.items() if not other.is_stacked]
        if METHODS[known.method].is_stacked:
            raise ValueError(
                f"method='stacked' cannot {what}: its second forest was grown from the answers of "
                f"the first; fit again with one of {able}"
            )
        if not method.shares_forest_with(METHODS[known.method]):
            same = [
                name
                for name, other in METHODS.items()
                if other.shares_forest_with(METHODS[known.method])
            ]
            raise ValueError(
                f"method is {self.method!r} but the forest was trained by {known.method!r}: go on "
                f"with one of {same}, or fit again"
            )
        if what == "refine" and not method.can_refine:
            able = [name for name, other in METHODS.items() if other.can_refine]
            raise ValueError(
                f"method={self.method!r} keeps no samples without fine labels, so that there is "
                f"nothing to refine; one of {able} does"
            )
        return self._plan(known.forest.history.seed)

    def _learn(
        self, lesson: Lesson, ids: npt.NDArray[np.int64] | None, names: npt.NDArray[Any] | None
    ) -> None:
        self._become(
            lesson.fitted,
            names,
            sample_ids_=ids,
            update_report_=lesson.report,
            guess_report_=lesson.guesses,
        )


def _refined_tree(
    known: FittedSubcategories, ids: npt.NDArray[np.int64], fine_labels: Any
) -> tuple[LabelTree, CodedLabels]:
    """The tree with the fine labels that stored samples get, and their numbers."""
    columns = label_columns(fine_labels)
    named = frozenset(known.tree.hierarchy)
    fine = read_column(columns[0], named=named, fine=True)
    if len(columns) != 1:
        raise ValueError(
            f"fine_labels must be a flat list of one fine label for each id, got {len(columns)} "
            "columns; the coarse classes are known"
        )
    if len(fine.present) != len(ids):
        raise ValueError(
            f"fine_labels must be a list of {len(ids)} labels, one for each id, "
            f"got {len(fine.present)}"
        )
    if not fine.present.all():
        raise ValueError(
            f"fine_labels must not be missing, as they are for the samples "
            f"{listed(ids[~fine.present].tolist())}"
        )
    stored = StoredSamples.of(known.forest, known.unconfirmed, known.tree)
    owners = stored.coarse[np.searchsorted(stored.ids, ids)]
    places = np.searchsorted(known.tree.coarse_ids, owners)
    given = GivenLabels(known.tree.coarse_classes[places], Column(fine.present, fine.labels))
    return known.tree.grow(given)
