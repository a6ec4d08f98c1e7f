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

    The method is that of [Camoriano2017 Alg. 1]: one column of weights per class, found by least
    squares from sums over the examples. So the time per example is constant, the result does not
    depend on the order of the examples, and examples can be forgotten and models merged exactly.
    *Recoding* weights classes by how rare they are, so that a class of three examples is not
    ignored next to classes of thousands.

    Parameters
    ----------
    regularization : float or "auto", default="auto"
        Penalty on the weights (lambda). Use more for few or noisy examples. ``"auto"`` selects the
        one that best predicts examples that are left out in turn, each time the number of examples
        has doubled. May change at any time.
    recoding : float in [0, 1] or "auto", default="auto"
        How much rare classes are favoured (alpha): 0 not at all, 1 in proportion to how rare they
        are. ``"auto"`` selects the largest of 0, 0.05, ... 1 with the best accuracy on left-out
        examples of classes with at least 30 examples, or at most one point less if there are
        classes with less than a quarter of the examples of the median class. May change at any
        time.
    scoring : {"cosine", "regression"}, default="cosine"
        What is learnt for each class and compared between them. ``"cosine"`` regresses the means
        of the classes, next to the scatter within classes, and compares cosines in that metric,
        which is more accurate with many classes. If a class has more than twice the examples of
        another, all examples are regressed if that predicts left-out examples better; this is
        decided together with the penalty. ``"regression"`` regresses all examples
        and compares the scores as they are, as in the paper. May change at any time.
    fit_intercept : bool, default=True
        Add a constant feature that is hardly penalised, so that an offset of the features has no
        effect.
    standardize : bool, default=False
        Centre each feature and divide it by its standard deviation over all examples so far;
        without an intercept only divide. This is exact, but weights have to be solved again after
        every update.
    n_random_features : int or "auto", default=0
        Replace the input by this many fixed random features; 0 uses the input itself. With a few
        thousand, least squares is as accurate as kernel methods; memory and time are quadratic in
        their number. ``"auto"`` uses the input, and random features next to it: none while all
        examples are stored (``max_stored``), later as many as leave-one-out shows to help, selected
        again each time the number of examples has doubled. Those that do not help yet are added up
        all the same, because they may help later.
    max_gram_memory : str or int, default="256MiB"
        With ``n_random_features="auto"``, how large the Gram matrix of all features may be: 8 bytes
        times the square of their number. Solving for the weights takes about three times as much.
        256 MiB are enough for 5792 features.
    feature_map : {"relu", "rff"} or feature map, default="relu"
        Nonlinearity of the random features: :class:`~evergrow.estimators.ReLU` or
        :class:`~evergrow.estimators.RFF`. It is applied to the input as it is: centre features
        whose mean is far from zero compared with their spread.
    blocks : sequence of int, default=None
        Widths of groups of columns, such as the blocks of :class:`~evergrow.Embedder`. The first
        block always takes part, the others if leave-one-out shows that they help. The sums are
        those over all columns, so the choice can be made again at any time, exactly. None uses all
        columns, and so do random features.
    selection : {"leave-one-out", "paper"}, default="leave-one-out"
        How ``"auto"`` parameters are judged. ``"leave-one-out"`` predicts each stored example by
        the model without it, which has a closed form, so that all examples train and a class with
        two examples can be judged. ``"paper"`` is the rule of [Camoriano2017 Sec. VI-C]: examples
        are held out, the penalty is the most accurate one for each recoding, and the recoding is
        the largest that is not less accurate than 0.
    max_stored : int, default=2000
        About how many examples are stored to judge ``"auto"`` parameters, of all classes together:
        a uniform sample per class, but two examples of each class in any case.
    validation_every : int, default=6
        With ``selection="paper"``, every n-th example of each class is held out.
    refit_held_out : bool, default=True
        With ``selection="paper"``, predict with weights that are learnt from held-out examples too.
        With False, as in the paper, they are never learnt, and weights are solved again after every
        update. May change at any time.
    keep_class_statistics : bool, default=False
        Keep sums per class, so that :meth:`forget` can remove a whole class without its examples.
        Needs memory: 8 bytes times the square of the number of features for each class.
    random_state : int, RandomState or None, default=None
        Seed of the random features and of the sample of stored examples. Models with random
        features need the same integer to be merged.
    verbose : int, default=0
        Show a progress bar when positive.
    device : str, default=None
        Where sums, weights and scores are computed: ``"cpu"``, ``"cuda"``, or a GPU by number such
        as ``"cuda:1"``. None is where the examples lie: a GPU for its tensors. May change at any
        time, and is not saved.
    precision : {"double", "tf32"}, default="double"
        On a GPU, how features are multiplied. ``"tf32"`` is three times as fast and keeps three
        digits of each feature. May change at any time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of :meth:`predict_proba`.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Weights after recoding; of the random features if there are any.
    regularization_, recoding_, temperature_ : float
        Penalty and recoding in use, and the number that scores are divided by for probabilities.
    regresses_means_ : bool
        Whether each class counts as one example, its mean; otherwise all examples do.
    used_blocks_ : tuple of int
        Numbers of the blocks that take part.
    n_random_features_ : int
        Number of random features that take part.
    class_counts_ : ndarray of shape (n_classes,)
        Number of examples learnt per class.
    n_stored_ : ndarray of shape (n_classes,)
        Number of stored examples per class.
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
