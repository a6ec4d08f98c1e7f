"""The verdicts of each figure on made-up numbers."""

from __future__ import annotations

from typing import Any

from evergrow.research import Experiment, Table
from evergrow.research.papers.nips2006 import fig2, fig3, fig4a, fig4b, fig4c, fig4d, sweeps

Rates = float | tuple[float, ...]

SEEDS = range(3)


def verdicts(experiment: Experiment, rows: list[dict[str, Any]]) -> list[str]:
    return [finding.verdict for finding in experiment.judge(Table(rows))]


def of_seeds(rates: Rates) -> tuple[float, ...]:
    """The rate of each seed, where one number is that of all."""
    return rates if isinstance(rates, tuple) else tuple(rates for _ in SEEDS)


def by_trees(rates: dict[int, tuple[float, ...]]) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "trees": n, "rate": rate}
        for n, found in rates.items()
        for seed, rate in enumerate(found)
    ]


def test_trees_agree_where_five_are_better_steadier_and_enough() -> None:
    rows = by_trees({1: (70, 80, 74, 66, 78), 5: (90, 91, 90, 91, 90), 10: (90, 91, 91, 91, 90)})
    assert verdicts(fig4d.EXPERIMENT, rows) == ["agrees", "agrees", "agrees"]


def test_trees_differ_where_one_is_best_and_steadiest_and_ten_are_better_than_five() -> None:
    rows = by_trees({1: (90, 91, 90, 91, 90), 5: (70, 80, 74, 66, 78), 10: (80, 90, 84, 76, 88)})
    assert verdicts(fig4d.EXPERIMENT, rows) == ["differs", "differs", "differs"]


def test_too_few_seeds_leave_the_spread_open() -> None:
    rows = by_trees({1: (70, 80, 74), 5: (90, 91, 90), 10: (90, 91, 91)})
    assert verdicts(fig4d.EXPERIMENT, rows)[1] == "open"


def test_no_improvement_that_noise_may_hide_is_left_open() -> None:
    rows = by_trees({1: (70, 80, 74), 5: (90, 91, 90), 10: (85, 96, 90)})
    assert verdicts(fig4d.EXPERIMENT, rows)[2] == "open"


def by_leaves(rates: dict[Any, Rates]) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "leaves": n, "rate": rate}
        for n, found in rates.items()
        for seed, rate in enumerate(of_seeds(found))
    ]


def test_a_codebook_is_large_enough_where_larger_ones_add_a_point_at_most() -> None:
    experiment = fig4b.EXPERIMENT
    assert verdicts(experiment, by_leaves({10: 60, 1000: 90, "all": 90.5})) == ["agrees"]
    assert verdicts(experiment, by_leaves({10: 60, 1000: 90, "all": 95})) == ["differs"]
    hidden = by_leaves({10: 60, 1000: 90, "all": (80, 100, 90)})
    assert verdicts(experiment, hidden) == ["open"]


def test_a_smaller_codebook_that_is_as_good_does_not_speak_against_enough() -> None:
    rows = by_leaves({10: 95, 1000: 90, "all": 90})
    assert verdicts(fig4b.EXPERIMENT, rows) == ["agrees"]


def by_descriptors(best: dict[int, tuple[int, ...]], whole: float = 80.0) -> list[dict[str, Any]]:
    """Rates whose best pruned size is given for each number of descriptors, seed by seed."""
    return [
        {"seed": seed, "descriptors": n, "leaves": leaves, "words": 1, "rate": rate}
        for n, sizes in best.items()
        for seed, size in enumerate(sizes)
        for leaves, rate in (
            *((leaves, 70.0 + 5 * (leaves == size)) for leaves in (10, 30, 100, 300)),
            ("all", whole),
        )
    ]


def test_the_best_size_grows_slightly_where_it_grows_slower_than_the_descriptors() -> None:
    slightly = by_descriptors({1000: (30, 30, 30), 8000: (100, 100, 100)})
    assert verdicts(fig4c.EXPERIMENT, slightly)[0] == "agrees"
    falls = by_descriptors({1000: (100, 100, 100), 8000: (30, 30, 30)})
    assert verdicts(fig4c.EXPERIMENT, falls)[0] == "differs"
    fast = by_descriptors({1000: (10, 10, 10), 8000: (100, 100, 100)})
    assert verdicts(fig4c.EXPERIMENT, fast)[0] == "differs"


def test_fully_grown_trees_say_nothing_of_the_best_size() -> None:
    same = by_descriptors({1000: (30, 30, 30), 8000: (30, 30, 30)}, whole=99.0)
    assert verdicts(fig4c.EXPERIMENT, same)[0] == "open"


def test_the_best_size_is_open_where_seeds_disagree_or_are_few_or_sizes_end() -> None:
    for best in (
        {1000: (30, 30, 100), 8000: (100, 30, 30)},
        {1000: (30,), 8000: (100,)},
        {1000: (100, 100, 100), 8000: (300, 300, 300)},
    ):
        assert verdicts(fig4c.EXPERIMENT, by_descriptors(best))[0] == "open"


def test_pruning_is_judged_by_trees_grown_fully() -> None:
    best = {1000: (30, 30, 30), 8000: (100, 100, 100)}
    assert verdicts(fig4c.EXPERIMENT, by_descriptors(best, 80.0))[1:] == ["agrees", "agrees"]
    assert verdicts(fig4c.EXPERIMENT, by_descriptors(best, 60.0))[1:] == ["differs", "differs"]


def codebooks(rates: dict[tuple[str, str], tuple[Rates, Rates]], slower: float) -> list[Any]:
    """Rates of codebooks and poolings with few windows and with many."""
    seconds = {fig4a.KMEANS: slower}
    return [
        {
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


AS_IN_THE_PAPER: dict[tuple[str, str], tuple[Rates, Rates]] = {
    (fig4a.ERC, fig4a.BINARY): (80.0, 95.0),
    (fig4a.ERC, fig4a.INFORMATION): (80.0, 94.0),
    (fig4a.ERC, fig4a.SHARES): (80.0, 90.0),
    (fig4a.KMEANS, fig4a.BINARY): (75.0, 85.0),
    (fig4a.UNSUPERVISED, fig4a.BINARY): (75.0, 60.0),
    # With few windows, above k-means: other poolings than binary ones are not asked.
    (fig4a.UNSUPERVISED, fig4a.INFORMATION): (90.0, 80.0),
}


def test_codebooks_agree_where_they_are_as_in_the_paper() -> None:
    assert verdicts(fig4a.EXPERIMENT, codebooks(AS_IN_THE_PAPER, 10.0)) == ["agrees"] * 8


def test_rates_with_few_windows_are_those_of_binary_codes() -> None:
    finding = fig4a.EXPERIMENT.judge(Table(codebooks(AS_IN_THE_PAPER, 10.0)))[2]
    assert "k-means reaches 75.0 % and they 75.0 %" in finding.here


def test_codebooks_differ_where_all_is_the_other_way_round() -> None:
    rates: dict[tuple[str, str], tuple[Rates, Rates]] = {
        (fig4a.ERC, fig4a.BINARY): (80.0, 70.0),
        (fig4a.ERC, fig4a.INFORMATION): (80.0, 85.0),
        (fig4a.ERC, fig4a.SHARES): (80.0, 60.0),
        (fig4a.KMEANS, fig4a.BINARY): (85.0, 90.0),
        (fig4a.UNSUPERVISED, fig4a.BINARY): (70.0, 90.0),
        (fig4a.UNSUPERVISED, fig4a.INFORMATION): (90.0, 80.0),
    }
    assert verdicts(fig4a.EXPERIMENT, codebooks(rates, 0.1)) == ["differs"] * 8


def test_far_better_and_much_faster_are_more_than_a_little() -> None:
    near = {**AS_IN_THE_PAPER, (fig4a.UNSUPERVISED, fig4a.INFORMATION): (75.0, 93.0)}
    found = verdicts(fig4a.EXPERIMENT, codebooks(near, 1.5))
    assert (found[5], found[7]) == ("differs", "differs")


def test_codebooks_that_noise_hides_are_not_as_good() -> None:
    noisy: dict[tuple[str, str], tuple[Rates, Rates]] = {
        **AS_IN_THE_PAPER,
        (fig4a.ERC, fig4a.SHARES): (80.0, (85.0, 105.0, 90.0)),
        (fig4a.KMEANS, fig4a.BINARY): ((65.0, 85.0, 75.0), 85.0),
    }
    found = verdicts(fig4a.EXPERIMENT, codebooks(noisy, 10.0))
    assert (found[2], found[6]) == ("open", "open")


def leaf(n_seeds: int = 3, **found: Any) -> list[dict[str, Any]]:
    where = {"data": "made", "object": "bike", "on_object_images": 90.0} | found
    rules = (fig2.ALL_UNMIXED, fig2.UNMIXED, fig2.SURPLUS)
    return [
        {"all_on_object_images": 50.0, **where, "seed": seed, "leaf": rule}
        for seed in range(n_seeds)
        for rule in rules
    ]


def test_a_leaf_of_patches_beside_the_object_does_not_agree_however_pure_it_is() -> None:
    experiment = fig2.EXPERIMENT
    assert verdicts(experiment, leaf(on_object=60.0, all_on_object=20.0)) == ["agrees"]
    assert verdicts(experiment, leaf(on_object=30.0, all_on_object=20.0)) == ["differs"]
    assert verdicts(experiment, leaf(1, on_object=60.0, all_on_object=20.0)) == ["open"]


def test_patches_of_other_images_are_no_parts_of_the_object() -> None:
    # Seven of ten on it, but of seven of ten alone that are of its images.
    rows = leaf(on_object_images=70.0, on_object=70.0, all_on_object=20.0)
    assert verdicts(fig2.EXPERIMENT, rows) == ["differs"]


def test_most_patches_on_the_object_say_nothing_where_they_are_so_everywhere() -> None:
    rows = leaf(on_object=60.0, all_on_object_images=90.0, all_on_object=60.0)
    assert verdicts(fig2.EXPERIMENT, rows) == ["open"]


def test_without_outlines_a_leaf_can_only_differ_or_stay_open() -> None:
    experiment = fig2.EXPERIMENT
    assert verdicts(experiment, leaf(plain=80.0, all_plain=30.0)) == ["differs"]
    assert verdicts(experiment, leaf(plain=10.0, all_plain=30.0)) == ["open"]


def maps(**found: Any) -> list[dict[str, Any]]:
    where = {"data": "made", "object": "bike", "seed": 0, "plain": 30.0}
    mine = [{**where, "class": "bike", "unmixed": 9.0, **found} for _ in range(4)]
    return [*mine, *({**where, "class": "background", "unmixed": 1.0} for _ in range(4))]


def test_words_agree_only_where_they_lie_on_a_known_object() -> None:
    experiment = fig3.EXPERIMENT
    assert verdicts(experiment, maps(on_object=0.7, beside_object=0.4)) == ["agrees"]
    assert verdicts(experiment, maps(on_object=0.4, beside_object=0.7)) == ["differs"]


def test_words_that_speak_from_bare_patches_differ() -> None:
    experiment = fig3.EXPERIMENT
    assert verdicts(experiment, maps(on_plain=0.7, on_structure=0.4)) == ["differs"]
    assert verdicts(experiment, maps(on_plain=0.4, on_structure=0.7)) == ["open"]
