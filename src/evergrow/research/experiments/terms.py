"""What the words of result pages mean; a page explains those that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word of pages with its meaning; ``also`` has other words that need this explanation."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()

    def is_used(self, text: str) -> bool:
        """Whether a text has the word, and not as a part of another, as NN in NN-H."""
        return any(
            re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
            for name in (self.name, *self.also)
        )


def format_terms(terms: Iterable[Term], text: str) -> str:
    """The terms that a text uses as a Markdown list; those that explain others come with them."""
    used = _used([*terms], text)
    return "\n".join(f"- **{term.name}**: {term.meaning}." for term in used)


def _used(terms: Sequence[Term], text: str) -> list[Term]:
    found: list[Term] = []
    while True:
        told = " ".join([text, *(term.meaning for term in found)])
        more = [term for term in terms if term.is_used(told)]
        if len(more) == len(found):
            return more
        found = more


_STRATEGIES = (
    Term("ULS", "only updates the counts in the leaves when classes are added"),
    Term("IGT", "updates the counts and splits leaves further"),
)
_RETRAINED = Term("retrained", "the whole forest is trained again", ("Retrained", "retraining"))

TERMS: dict[str, tuple[Term, ...]] = {
    "guide": (
        Term("least squares", "`RLSClassifier()`", ("Least squares",)),
        Term(
            "random features",
            "least squares on random functions of the input (`n_random_features`)",
        ),
        Term(
            "choices fixed",
            "penalty and recoding are given, so that an update does not choose them again",
        ),
        Term(
            "best fixed penalty in hindsight",
            "least squares with the one penalty that is best on the test images, which no learner "
            "can know",
        ),
        Term("choices of the paper", "least squares that chooses its parameters as the paper did"),
        Term("the default", "the same as least squares"),
        Term(
            "earlier stages",
            'averages of earlier layers of the network (EfficientNet-Lite0): `features="auto"` '
            'uses them next to its output, both scaled to length one, `features="embed"` uses the '
            "output alone",
        ),
        Term("class means", "`NCMClassifier()`, the nearest class mean", ("Class means",)),
        Term("streaming LDA", '`NCMClassifier(metric="mahalanobis")`'),
        Term(
            "forest",
            "`NCMForestClassifier()`, which splits leaves further for new classes and grows trees "
            "again that fall behind",
            ("Forest", "forests"),
        ),
        Term(
            "IGT without refresh",
            "the forest only splits leaves further, and grows no tree again "
            '(`update="igt", refresh=0.0`)',
        ),
        Term("RTST", 'the forest grows chosen subtrees again (`update="rtst"`)'),
        Term(
            'standardize="auto"',
            "the forest divides features by their deviation (`scale`), whitens them (`whiten`) or "
            "leaves them as they are (`none`), whichever it finds best",
        ),
        Term("a learnt metric in front", "`NCMMetric()`, then the forest"),
        Term(
            "forest, retrained",
            "a forest that is trained again on all samples at every update",
            ("retrained", "Retrained", "retraining"),
        ),
        Term("RanPAC", "least squares on random features, of another paper"),
        Term("Fly-CL", "ridge regression on sparse random features, of another paper"),
        Term("KLDA", "linear discriminant analysis on random features, of another paper"),
    ),
    "cvpr2014": (
        Term(
            "NCMF",
            "an NCM forest: every node compares a sample with class means and sends it on with "
            "the nearest",
        ),
        Term("NCM", "nearest class mean"),
        *_STRATEGIES,
        Term("RUST", "like IGT, and puts means of the new classes into chosen nodes"),
        Term("RTST", "like IGT, and trains chosen subtrees again"),
        _RETRAINED,
        Term(
            "MET + NCM",
            "nearest class means with a learnt metric, which stays as the initial classes gave it",
        ),
        Term("kNN", "the nearest neighbours among all training samples"),
        Term("RF", "a forest that splits by random thresholds of single features"),
        Term("SVM", "a linear support vector machine for many classes", ("multi-class SVM",)),
        Term("test time", "counted as the distances computed per tree and image"),
    ),
    "report": (
        Term("NCM forest", "splits by class means (nearest class mean)", ("NCM",)),
        Term("SVM forest", "splits by linear SVMs", ("SVM",)),
        *_STRATEGIES,
        Term("RTST", "like IGT, and trains randomly chosen subtrees again"),
        Term("RTSTQ", "like RTST, but chooses subtrees that separate the classes badly"),
        _RETRAINED,
        Term("relative accuracy", "the share of the retrained accuracy", ("% of retraining",)),
    ),
    "icra2017": (
        Term("naive", "plain least squares: every example counts the same", ("Naive",)),
        Term(
            "rebalanced",
            "the examples are weighted by how rare their class is; every update needs all of them "
            "again",
        ),
        Term(
            "recoded",
            "the targets of the classes are weighted, not the examples, and an update takes "
            "constant time; "
            "recoding 0 is none and recoding 1 is full",
            ("recoding",),
        ),
        Term("Bayes", "the exact boundary, from the known distributions"),
    ),
    "nips2006": (
        Term(
            "word",
            "a group of similar local patches (windows) of images; an image is described by the "
            "words that occur in it, and a linear SVM classifies it",
            ("words", "codebook"),
        ),
        Term(
            "ERC forest",
            "a codebook of randomised trees, trained with class labels; its leaves are the words",
            ("ERC forests",),
        ),
        Term("unsupervised trees", "randomised trees that are trained without class labels"),
        Term("k-means", "a codebook of the centres that k-means finds"),
        Term(
            "rate at equal error",
            "the accuracy at the threshold where both kinds of errors are equally frequent",
        ),
        Term("binary codes", "whether a word occurs, not how often", ("binary",)),
        Term(
            "thresholds by information",
            "a word counts as present from the number of occurrences that tells the classes apart "
            "best",
            ("mutual_information", "mutual information"),
        ),
        Term(
            "roots of shares",
            "square roots of the shares of the words among the patches",
        ),
        Term("votes", "the trees classify each patch, and the patches of an image vote"),
        Term("posterior", "the probability of a class in the leaves that a patch reaches"),
        Term("T_max", "the most trials of a split at a node"),
        Term("S_min", "the score at which a split is accepted"),
        Term("hsl", "raw colours of the patch", ("raw colours",)),
        Term("haar", "wavelets of the patch's colours", ("colour wavelets",)),
    ),
    "cvpr2015": (
        Term(
            "NCMF",
            "a plain NCM forest (nearest class mean): every node splits by the nearest class mean",
            ("plain one",),
        ),
        Term(
            "RNCMF",
            "a regularised NCM forest: a node compares many subsets of classes, and prefers small "
            "ones",
            ("regularised forest",),
        ),
        Term("NCM", "nearest class mean"),
        Term("c", "the bound on the size of a subset, in square roots of the number of classes"),
        Term("5-NN", "the five nearest neighbours", ("5 neighbours",)),
        Term(
            "fine label",
            "every sample has a coarse label, and some have one of the fine classes within it too",
            ("fine labels",),
        ),
        Term("fine part", "the samples with fine labels"),
        Term("coarse part", "the samples with coarse labels only"),
        Term("baseline", "a forest that learns only the samples with fine labels", ("fine only",)),
        Term(
            "NN",
            "guesses missing fine labels by the nearest neighbour that has one, within the coarse "
            "class",
        ),
        Term("H", "(hierarchical) chooses splits that also separate coarse classes"),
        Term("NN-H", "guesses as NN does, and splits as H does"),
        Term("ridge-H", "(ours) NN-H with guesses by ridge regression"),
        Term(
            "any neighbour",
            "guesses a missing fine label by the nearest neighbour that has one, whatever its "
            "coarse class",
        ),
        Term(
            "neighbour, discarded",
            "like any neighbour, but guesses that contradict the coarse class are left out",
        ),
        Term(
            "neighbour within",
            "guesses by the nearest neighbour of the same coarse class, as in NN",
        ),
        Term("ridge (ours)", "guesses by ridge regression, among the classes of the coarse class"),
        Term("J", "(joint) learns coarse classes as a second task"),
        Term(
            "stacked",
            "adds the class probabilities of a forest on coarse labels to the features",
            ("stacking", "Stacked"),
        ),
        Term("all fine", "a forest that gets the fine label of every sample"),
        Term("coarse forest", "a forest that learns coarse labels only"),
    ),
}
