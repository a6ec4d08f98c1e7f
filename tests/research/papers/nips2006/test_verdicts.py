"""The verdicts of each figure on made-up numbers."""

import pytest

from evergrow.research import Table
from evergrow.research.papers.nips2006 import fig2, fig4a, settings, sift, sweeps
from evergrow.research.papers.nips2006.fig4a import (
    BINARY,
    ERC,
    HIERARCHICAL,
    INFORMATION,
    KD_TREES,
    KMEANS,
    SHARES,
    SMALL,
    UNSUPERVISED,
    VOTES,
)
from tests.research.papers.checks import check_verdicts, find

SEEDS = range(3)


def of_seeds(rates):
    """The rate of each seed, where one number is that of all."""
    return rates if isinstance(rates, tuple) else tuple(rates for _ in SEEDS)


def by_trees(rates):
    return [
        {"seed": seed, "trees": n, "rate": rate}
        for n, found in rates.items()
        for seed, rate in enumerate(found)
    ]


TREES = {
    "five trees are better, steadier and enough": (
        {1: (70, 80, 74, 66, 78), 5: (90, 91, 90, 91, 90), 10: (90, 91, 90.5, 91, 90)},
        "+++",
    ),
    "one tree is best and steadiest, and ten are better than five": (
        {1: (90, 90.1, 90, 90.1, 90), 5: (70, 80, 74, 66, 78), 10: (80, 90, 84, 76, 88)},
        "---",
    ),
    "three seeds leave the spread open": (
        {1: (70, 80, 74), 5: (90, 91, 90), 10: (90, 91, 91)},
        ".?.",
    ),
    "noise may hide an improvement beyond five trees": (
        {1: (70, 80, 74), 5: (90, 91, 90), 10: (85, 96, 90)},
        "..?",
    ),
}


def by_leaves(rates):
    return [
        {"seed": seed, "leaves": n, "rate": rate}
        for n, found in rates.items()
        for seed, rate in enumerate(of_seeds(found))
    ]


LEAVES = {
    "a larger codebook adds half a point": ({10: 60, 1000: 90, "all": 90.5}, "+"),
    "a larger codebook adds five points": ({10: 60, 1000: 90, "all": 95}, "-"),
    "noise may hide what a larger codebook adds": ({10: 60, 1000: 90, "all": (80, 100, 90)}, "?"),
    "a smaller codebook is as good": ({10: 95, 1000: 90, "all": 90}, "+"),
}


def by_descriptors(best, whole=80.0):
    """Rates whose best pruned size is given for each number of descriptors, seed by seed."""
    return [
        {
            "seed": seed,
            "descriptors": n,
            "leaves": leaves,
            "words": 1 if leaves == "all" else leaves,
            "rate": rate,
        }
        for n, sizes in best.items()
        for seed, size in enumerate(sizes)
        for leaves, rate in (
            *((leaves, 70.0 + 5 * (leaves == size)) for leaves in (10, 30, 100, 300)),
            ("all", whole),
        )
    ]


GROWING = {1000: (30, 30, 30), 8000: (100, 100, 100)}
DESCRIPTORS = {
    "the best size grows slower than the descriptors": (GROWING, 80.0, "+.."),
    "the best size falls": ({1000: (100,) * 3, 8000: (30,) * 3}, 80.0, "-.."),
    "the best size grows faster than the descriptors": (
        {1000: (10,) * 3, 8000: (300,) * 3},
        80.0,
        "-..",
    ),
    "fully grown trees say nothing of the best size": (
        {1000: (30,) * 3, 8000: (30,) * 3},
        99.0,
        "-..",
    ),
    "seeds disagree on the best size": ({1000: (30, 30, 100), 8000: (100, 30, 30)}, 80.0, "?.."),
    "one seed decides no best size": ({1000: (30,), 8000: (100,)}, 80.0, "?.."),
    "fully grown trees are better than pruned ones": (GROWING, 80.0, ".++"),
    "fully grown trees are worse than pruned ones": (GROWING, 60.0, ".--"),
}


def codebooks(rates, slower):
    """Rates of codebooks and poolings with few windows and with many."""
    seconds = {KMEANS: slower}
    return [
        {
            "data": "made",
            "seed": seed,
            "codebook": codebook,
            "pooling": pooling,
            "windows": windows,
            "rate": rate,
            "filled": 50.0,
            **dict.fromkeys(sweeps.TIMED, seconds.get(codebook, 1.0)),
        }
        for (codebook, pooling), found in rates.items()
        for windows, of_each in zip((100, 1000), found, strict=True)
        for seed, rate in enumerate(of_seeds(of_each))
    ]


AS_IN_THE_PAPER = {
    (ERC, BINARY): (80.0, 95.0),
    (ERC, INFORMATION): (80.0, 94.0),
    (ERC, SHARES): (80.0, 90.0),
    (KMEANS, BINARY): (75.0, 85.0),
    (UNSUPERVISED, BINARY): (75.0, 60.0),
    # With few windows, above k-means: other poolings than binary ones are not asked.
    (UNSUPERVISED, INFORMATION): (90.0, 80.0),
    (SMALL, BINARY): (75.0, 60.0),
    (SMALL, INFORMATION): (75.0, 70.0),
    (ERC, VOTES): (75.0, 85.0),
    (KD_TREES, BINARY): (75.0, 60.0),
    (HIERARCHICAL, BINARY): (75.0, 80.0),
}
OPPOSITE = {
    (ERC, BINARY): (80.0, 70.0),
    (ERC, INFORMATION): (80.0, 85.0),
    (ERC, SHARES): (80.0, 60.0),
    (KMEANS, BINARY): (85.0, 90.0),
    (UNSUPERVISED, BINARY): (70.0, 90.0),
    (UNSUPERVISED, INFORMATION): (90.0, 80.0),
    (SMALL, BINARY): (70.0, 90.0),
    (SMALL, INFORMATION): (70.0, 80.0),
    (ERC, VOTES): (80.0, 90.0),
    (KD_TREES, BINARY): (75.0, 90.0),
    (HIERARCHICAL, BINARY): (75.0, 95.0),
}
NOISY = {(ERC, SHARES): (80.0, (85.0, 105.0, 90.0)), (KMEANS, BINARY): ((65.0, 85.0, 75.0), 85.0)}
CODEBOOKS = {
    "codebooks as in the paper": (AS_IN_THE_PAPER, 10.0, "+++++++++++"),
    "codebooks the other way round": (OPPOSITE, 0.1, "-----------"),
    "a little better and a little faster": (
        {**AS_IN_THE_PAPER, (UNSUPERVISED, INFORMATION): (75.0, 93.0)},
        1.5,
        ".....-....-",
    ),
    "codebooks that noise hides are not as good": (AS_IN_THE_PAPER | NOISY, 10.0, "..?....?..."),
}


def test_trees_are_judged_on_further_data_too():
    again = [
        {**row, "data": "drawn"}
        for row in codebooks(OPPOSITE, 1.0)
        if row["codebook"] in (ERC, UNSUPERVISED)
    ]
    table = Table([*codebooks(AS_IN_THE_PAPER, 10.0), *again])
    findings = fig4a.EXPERIMENT.judge(table)
    assert [f.agrees for f in findings] == [True] * 11 + [False] * 4
    assert all(f.claim.endswith("; on drawn.") and f.reason for f in findings[11:])


def test_rates_with_few_windows_are_those_of_binary_codes():
    finding = fig4a.EXPERIMENT.judge(Table(codebooks(AS_IN_THE_PAPER, 10.0)))[2]
    assert "k-means reaches 75.0 % and they 75.0 %" in finding.here


def leaf(n_seeds=3, **found):
    where = {"data": "made", "object": "bike", "on_object_images": 90.0} | found
    rules = (fig2.ALL_UNMIXED, fig2.UNMIXED, fig2.SURPLUS)
    return [
        {
            "all_on_object_images": 50.0,
            "background_plain": 10.0,
            **where,
            "seed": seed,
            "leaf": rule,
        }
        for seed in range(n_seeds)
        for rule in rules
    ]


LEAF = {
    "patches on the object": (leaf(on_object=60.0, all_on_object=20.0), "+"),
    "patches next to the object, however pure": (leaf(on_object=30.0, all_on_object=20.0), "-"),
    "one seed decides nothing": (leaf(1, on_object=60.0, all_on_object=20.0), "?"),
    # Seven of ten are on it, but only seven of ten are of its images.
    "patches of other images": (
        leaf(on_object_images=70.0, on_object=70.0, all_on_object=20.0),
        "-",
    ),
    "patches are on the object everywhere": (
        leaf(on_object=60.0, all_on_object_images=90.0, all_on_object=60.0),
        "-",
    ),
    "without outlines, bare patches": (leaf(plain=80.0, all_plain=30.0), "-"),
    "without outlines, few bare patches": (leaf(plain=10.0, all_plain=30.0), "+"),
}


def maps(**found):
    where = {"data": "made", "object": "bike", "plain": 30.0}
    each = [{**where, "seed": seed} for seed in SEEDS for _ in range(4)]
    mine = [{**row, "class": "bike", "unmixed": 9.0, **found} for row in each]
    return [*mine, *({**row, "class": "background", "unmixed": 1.0} for row in each)]


MAPS = {
    "words on a known object": (maps(on_object=0.7, beside_object=0.4), "+"),
    "words next to a known object": (maps(on_object=0.4, beside_object=0.7), "-"),
    "words on bare patches": (maps(on_plain=0.7, on_structure=0.4), "-"),
    "words on other patches": (maps(on_plain=0.4, on_structure=0.7), "+"),
}


def of_settings(masks=0.0, score=0.0, trials=5.0, cars=-5.0, raw=-5.0):
    """Rates of 80 %, and what the settings add to them."""
    of_masks = {
        settings.WHOLE: 80.0,
        settings.MORE: 80.0,
        settings.OBJECT: 80.0 + masks,
        settings.OBJECT_TOO: 80.0,
    }
    parts = [
        *((settings.MASKS, thing, of_masks) for thing in ("bicycle", "car")),
        (settings.SCORE, "bike", {0.0: 60.0, 0.5: 80.0, 1.0: 80.0 + score}),
        (settings.TRIALS, "bike", {1: 80.0 - trials, 50: 80.0}),
        *(
            (
                settings.CATEGORY,
                thing,
                {settings.HAAR: rate, settings.HSL: rate + raw, settings.GREY: 70.0},
            )
            for thing, rate in (("bike", 80.0), ("cars", 80.0 + cars))
        ),
    ]
    return [
        {"object": thing, "seed": seed, "part": part, "value": value, "rate": rate}
        for part, thing, rates in parts
        for value, rate in rates.items()
        for seed in SEEDS
    ]


SETTINGS = {
    "settings as in the paper": (of_settings(), "++++++"),
    "settings the other way round": (of_settings(5.0, 5.0, -5.0, 5.0, 5.0), "------"),
}


def of_sift(forest, kmeans, best=None, wavelets=(60.0, 99.0)):
    """Rates of two categories: the paper's forest, k-means, a better forest, and wavelets."""
    other = "20 trees of a quarter"
    return [
        {
            "object": thing,
            "seed": seed,
            "descriptor": descriptor,
            "codebook": codebook,
            "pooling": pooling,
            "rate": rate,
            "trials": 12,
        }
        for thing, haar in zip(("bike", "watch"), wavelets, strict=True)
        for codebook, descriptor, rate in (
            (sift.PAPER, sift.SIFT, forest),
            (other, sift.SIFT, best or forest),
            (sift.KMEANS, sift.SIFT, kmeans),
            (sift.PAPER, sift.HAAR, haar),
        )
        for pooling in (sift.BINARY, sift.ROOTS, sift.INFORMATION)
        for seed in SEEDS
    ]


OF_SIFT = {
    "the forest is better, and each descriptor once": (of_sift(80.0, 70.0), "+++++"),
    "k-means is better, SIFT always": (of_sift(70.0, 80.0, None, (60.0, 60.0)), "-----"),
    "another forest is better": (of_sift(70.0, 75.0, 80.0), "--+++"),
}

CASES = {
    **{f"fig4d: {name}": (by_trees(rates), signs) for name, (rates, signs) in TREES.items()},
    **{f"fig4b: {name}": (by_leaves(rates), signs) for name, (rates, signs) in LEAVES.items()},
    **{
        f"fig4c: {name}": (by_descriptors(*case), sign)
        for name, (*case, sign) in DESCRIPTORS.items()
    },
    **{f"fig4a: {name}": (codebooks(*case), signs) for name, (*case, signs) in CODEBOOKS.items()},
    **{f"fig2: {name}": case for name, case in LEAF.items()},
    **{f"settings: {name}": case for name, case in SETTINGS.items()},
    **{f"sift: {name}": case for name, case in OF_SIFT.items()},
    **{f"fig3: {name}": case for name, case in MAPS.items()},
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts(case):
    check_verdicts(find(f"nips2006-{case.partition(':')[0]}"), *CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_claims_that_differ_have_a_reason(case):
    rows, _ = CASES[case]
    findings = find(f"nips2006-{case.partition(':')[0]}").judge(Table(rows))
    assert [f.claim for f in findings if f.agrees is False and not f.reason] == []
