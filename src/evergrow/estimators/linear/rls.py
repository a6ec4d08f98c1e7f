"""Incremental regularised least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from evergrow.estimators.linear.equations import SCORINGS
from evergrow.estimators.linear.feature_map import RFF, ReLU
from evergrow.estimators.linear.predictor import RULES, RLSPredictor
from evergrow.estimators.sums.learner import SumsLearner
from evergrow.foundation.device import DEVICE_RULES, PRECISION_RULES, Precision
from evergrow.foundation.params import Choice, Flag, MemorySize, Number, Rule


@dataclass(eq=False, repr=False, kw_only=True)
class RLSClassifier(RLSPredictor, SumsLearner):
    """Regularised least squares that learns one example at a time, new classes included.

    The model is ridge regression with one column of weights per class [Camoriano2017 Alg. 1]. It
    learns from sums over the examples, so the time per example is constant, and :meth:`forget` and
    :meth:`merge` are exact. The sums take 8 bytes times the square of the number of features, and
    the update of the weights needs as much again. Up to about `max_stored` examples are also
    stored, but only to select the parameters that are ``"auto"`` and the `blocks`.

    *Recoding* raises the scores of rare classes, so that a class of three examples is not ignored
    next to classes of thousands. This is the default learner of :class:`~evergrow.ImageClassifier`
    and of workspaces.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights (lambda), above 0. Use a larger one for few or noisy examples.
        ``"auto"`` selects the penalty that predicts left-out examples best. The selection is
        repeated whenever the number of examples has doubled. Can be changed at any time.
    recoding : float in [0, 1] or "auto", default="auto"
        How much rare classes are favoured (alpha): 0 not at all, 1 in proportion to how rare they
        are. ``"auto"`` selects the largest value with the best accuracy on left-out examples of
        classes with at least 30 examples. If no class has so many, the classes with at least half
        the weight of the largest decide. If the smallest class has less than a quarter of the
        examples of the median class, the value may cost one point of this accuracy, or one standard
        error if that is more. The selection is repeated whenever one percent of the classes, and at
        least one, are new or have doubled their number of examples. Can be changed at any time.
    scoring : {"cosine", "regression"}, default="cosine"
        How the scores of the classes are computed:

        - ``"cosine"``: the regression is fitted to the class means, one example per class, and the
          score of a class is the cosine between the example and its class mean, in the metric of
          the regression. It is more accurate with many classes. If the largest class has more than
          twice the examples of the smallest, the regression is fitted to all examples instead when
          left-out examples are then predicted better. This needs stored examples and
          ``selection="leave-one-out"``;
        - ``"regression"``: the regression is fitted to all examples, and the scores are compared as
          they are, as in the paper.

        Can be changed at any time.
    fit_intercept : bool, default=True
        Whether to add a constant feature, which is hardly penalised. With it, an offset of the
        features has no effect.
    standardize : bool, default=False
        Whether to centre each feature and divide it by its standard deviation over all examples so
        far. Without an intercept, features are divided but not centred. With True, the weights are
        computed from scratch after every update, which takes longer.
    n_random_features : int or "auto", default=0
        Number of random nonlinear features that replace the input; 0 uses the input itself. With a
        few thousand, least squares is about as accurate as kernel methods. Memory and time are
        quadratic in their number. ``"auto"`` adds random features to the input once there are more
        than `max_stored` examples, as many as leave-one-out predictions show to help. The selection
        is repeated whenever the number of examples has doubled.
    max_gram_memory : str or int, default="256MiB"
        Only with ``n_random_features="auto"``: maximum size of the Gram matrix, which takes 8 bytes
        times the square of the number of features, random ones included. 256 MiB are enough for
        5792 features. Computing the weights takes about three times as much memory.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features: :class:`~evergrow.estimators.ReLU` or
        :class:`~evergrow.estimators.RFF`. The input is not centred, so centre features whose mean
        is far from zero compared with their spread.
    blocks : sequence of int, default=None
        Widths of groups of columns, such as the blocks of :class:`~evergrow.Embedder`. The first
        block is always used, the others only if leave-one-out predictions show that they help. The
        selection is repeated whenever the number of examples has doubled. None uses all columns.
        Ignored if `n_random_features` is a number above 0.
    selection : {"leave-one-out", "paper"}, default="leave-one-out"
        How the values of ``"auto"`` parameters are selected:

        - ``"leave-one-out"``: by predictions for each stored example, made by the model without
          this example. They have a closed form, so all examples are used for training;
        - ``"paper"``: by the rule of [Camoriano2017 Sec. VI-C]. Some examples are held out. The
          penalty with the highest accuracy on them is selected, and the largest recoding that is
          not less accurate on them than a recoding of 0.
    max_stored : int, default=2000
        Approximate number of examples that are stored to select ``"auto"`` parameters and blocks: a
        uniform sample of each class, and at least two examples per class. If nothing is to be
        selected, no examples are stored.
    validation_every : int, default=6
        Only with ``selection="paper"``: every n-th example of each class is held out.
    refit_held_out : bool, default=True
        Only with ``selection="paper"``: whether the held-out examples are learnt too, after the
        selection. With False, as in the paper, they are never learnt. Can be changed at any time.
    keep_class_statistics : bool, default=False
        Whether to keep sums for each class, so that :meth:`forget` can remove a class without its
        examples. They take 8 bytes times the square of the number of features, for each class.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the sample of stored examples. Models with random
        features can be merged only if they have the same integer.
    verbose : int, default=0
        Show a progress bar if positive.
    device : str, default=None
        Where to compute: ``"cpu"``, ``"cuda"``, or a GPU by number such as ``"cuda:1"``. None
        computes where the examples are: on a GPU for tensors on it, otherwise on the CPU. Can be
        changed at any time; model files do not store it. See :doc:`/gpu`.
    precision : {"double", "tf32"}, default="double"
        How features are multiplied on a GPU. ``"tf32"`` is three times as fast and keeps three
        digits of each feature. Can be changed at any time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the features after recoding. Random features have columns in place of the input,
        or after it with ``n_random_features="auto"``. Features that are not used have zeros.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts after recoding.
    regularization_ : float
        The penalty in use.
    recoding_ : float
        The recoding in use.
    temperature_ : float
        The number by which scores are divided before the softmax of :meth:`predict_proba`.
    regresses_means_ : bool
        Whether the regression is fitted to the class means. Otherwise it is fitted to all examples.
    used_blocks_ : tuple of int
        Indices of the blocks in use.
    n_random_features_ : int
        Number of random features in use.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples learnt per class.
    n_stored_ : ndarray of shape (n_classes,)
        Number of stored examples per class.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the training data had any.

    See Also
    --------
    NCMClassifier : The nearest class mean; faster, with one mean per class.
    NCMForestClassifier : A forest, for classes that a linear model does not separate.
    RejectingClassifier : Adds the answer "unknown".

    References
    ----------
    R. Camoriano, G. Pasquale, C. Ciliberto, L. Natale, L. Rosasco, G. Metta: *Incremental Robot
    Learning of New Objects with Fixed Update Time*, ICRA 2017. See :doc:`/papers`.

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
        "n_random_features": [*RULES["n_random_features"], Choice(("auto",))],
        "max_gram_memory": [MemorySize()],
        "recoding": [Number(0.0, 1.0), Choice(("auto",))],
        "scoring": [Choice(SCORINGS)],
        "keep_class_statistics": [Flag()],
        "device": DEVICE_RULES,
        "precision": PRECISION_RULES,
    }

    regularization: float | Literal["auto"] = "auto"
    recoding: float | Literal["auto"] = "auto"
    scoring: Literal["cosine", "regression"] = "cosine"
    fit_intercept: bool = True
    standardize: bool = False
    n_random_features: int | Literal["auto"] = 0
    max_gram_memory: str | int = "256MiB"
    feature_map: Literal["relu", "rff"] | ReLU | RFF = "relu"
    blocks: Sequence[int] | None = None
    selection: Literal["leave-one-out", "paper"] = "leave-one-out"
    max_stored: int = 2000
    validation_every: int = 6
    refit_held_out: bool = True
    keep_class_statistics: bool = False
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    device: str | None = None
    precision: Precision = "double"
