"""What training holds in memory besides the trees, and what a memory limit leaves for rows.

Rows that do not fit lie in a file. Those of large nodes are read there; what the limit leaves is
shared out to the threads, which copy the rows of small subtrees into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_MIB = 1 << 20

# Small arrays, interpreter objects, and what the allocator keeps of memory that was given back.
_SLACK = 24 * _MIB
_SLACK_PER_THREAD = 4 * _MIB

# What Python and its libraries hold before training counts too: copies of rows leave this much
# of the limit alone, or this part of it where that is less.
_PROCESS, _PROCESS_PART = 96 * _MIB, 6

# Least budget for rows of a thread: subtrees of fewer bytes are too small to be worth a copy.
_LEAST_ROWS = _MIB

# A budget that no row fits into, but a budget: trees are then grown without a copy of them.
_NO_COPIES = 1

# More at once makes a file no faster.
_MOST_CHUNK = 1 << 30

# Rows that the core unpacks at once from half precision, and how many do so.
_UNPACKED, _READERS = 512, 2

# Class and id of a sample.
SAMPLE_BYTES = 12
# In bytes per place of a row, removed ones too, once: class, id and place of the row; n ln n, twice
# as long after updates.
_SHARED_PER_PLACE = {"fit": SAMPLE_BYTES + 16 + 8, "update": SAMPLE_BYTES + 2 * 16 + 16}
# Per stored row: its number sorted by class and the space for sorting; codes, ids and places of the
# caller.
_SHARED_PER_ROW = 8 + 16
# In each thread: rows of the tree, drawn and on their way to a side; where a copy lies. An update
# also has the rows below a node, their nearest means, and marks of those that leave.
_THREAD_PER_ROW = {"fit": 8 + 8 + 4, "update": 8 + 8 + 4 + 24}
# Choosing samples to let go.
_EVICTED_PER_ROW = 120

# The part of a limit that rows may take on their way from one file to another.
_MOVING_PART = 4


@dataclass(frozen=True)
class MemoryDemand:
    """Training of one forest, by all that its memory depends on."""

    kind: str  # "fit" or "update"
    n_rows: int  # stored, those that come included
    n_new: int
    width: int  # numbers in a row
    half: bool
    n_classes: int
    n_threads: int
    rules: Mapping[str, Any]  # of splitting nodes
    evicts: bool
    n_removed: int = 0  # places of removed rows that stay free

    @property
    def row_bytes(self) -> int:
        """Bytes of a stored row."""
        return self.width * (2 if self.half else 4)

    @property
    def _most(self) -> str:
        """The kind of work that takes most: a fit that lets samples go ends with an update."""
        return "update" if self.evicts else self.kind

    @property
    def shared(self) -> int:
        """Bytes held once."""
        per_row = _SHARED_PER_ROW + (_EVICTED_PER_ROW if self.evicts else 0)
        n_places = self.n_rows + self.n_removed
        return _SLACK + self.n_rows * per_row + n_places * _SHARED_PER_PLACE[self._most]

    @property
    def per_thread(self) -> int:
        """Bytes held by each thread, copies of rows aside."""
        unpacked = _READERS * _UNPACKED * self.width * 4 if self.half else 0
        return (
            _SLACK_PER_THREAD
            + self.n_rows * _THREAD_PER_ROW[self._most]
            + unpacked
            + _PROPOSERS[self.rules["proposer"]](self)
        )

    @property
    def least(self) -> int:
        """Bytes without which it cannot be done."""
        return self.shared + self.n_threads * (self.per_thread + _LEAST_ROWS)


def _ncm(work: MemoryDemand) -> int:
    """Nearest mean and score of every row; means, and counts of every class at each."""
    k = int(work.rules["n_centroids"])
    tried = min(int(work.rules["n_candidates"]), 1 << 20)
    return 6 * work.n_rows + k * (6 * work.width + 4 * work.n_classes + tried)


def _regularised(work: MemoryDemand) -> int:
    """Means of all classes, their scores of some rows, and nearest ones in many sets."""
    scored = min(work.n_rows, int(work.rules["max_scoring_samples"]) or work.n_rows)
    nearest = 2 * min(scored * int(work.rules["n_subsets"]), max(1 << 24, scored))
    scores = 4 * max(1 << 18, 32 * work.n_classes)
    tried = 64 * int(work.rules["n_centroids"]) * min(int(work.rules["n_candidates"]), 1 << 20)
    return 14 * work.n_rows + nearest + scores + 6 * work.width * work.n_classes + tried


def _threshold(work: MemoryDemand) -> int:
    """Values of all rows for some candidates, one set of which is ranked."""
    values = min(work.n_rows * int(work.rules["n_candidates"]), max(1 << 22, work.n_rows))
    return 4 * values + 5 * work.n_rows + 12 * work.n_classes + 32 * 6 * work.width


def _svm(work: MemoryDemand) -> int:
    """The same, and the rows that planes are trained on."""
    return _threshold(work) + 2000 * (4 * work.width + 40)


_PROPOSERS: dict[str, Callable[[MemoryDemand], int]] = {
    "ncm": _ncm,
    "regularised": _regularised,
    "axis": _threshold,
    "linear": _threshold,
    "svm": _svm,
}


@dataclass(frozen=True)
class MemoryBudget:
    """Where new rows go, and how many bytes may be used for what.

    Attributes
    ----------
    in_file : bool
        New rows go to a file.
    spills : bool
        So do rows that are held in memory by now.
    row_budget : int
        Bytes of rows that each thread may copy; 0 without a limit.
    chunk_bytes : int
        Bytes of rows that are held at once on their way to a file.
    """

    in_file: bool = False
    spills: bool = False
    row_budget: int = 0
    chunk_bytes: int = 0


def copy_bytes(limit: int) -> int:
    """Bytes of rows that may be held at once while rows move to another file."""
    return min(_MOST_CHUNK, max(_LEAST_ROWS, limit // _MOVING_PART))


def _in_mib(n_bytes: int) -> str:
    # Rounded down: a limit that is refused must not read like the one that is asked for.
    tenths = n_bytes * 10 // _MIB
    return f"{n_bytes} bytes" if tenths == 0 else f"{tenths / 10:g}MiB"


def budget_for(
    work: MemoryDemand, limit: int | None, *, held: int = 0, mapped: bool = False
) -> MemoryBudget:
    """What a limit leaves; a ``ValueError`` if it is less than the work takes.

    Parameters
    ----------
    work : MemoryDemand
        What is to be done.
    limit : int or None
        Bytes that may be used besides the trees; None for no limit.
    held : int, default=0
        Bytes of rows that are in memory already.
    mapped : bool, default=False
        New rows go to a file that the caller named, whatever the limit.

    Returns
    -------
    budget : MemoryBudget
        All of it without a limit.
    """
    if limit is None:
        return MemoryBudget()
    if limit < work.least:
        raise ValueError(
            f"memory_limit must be at least {-(-work.least // _MIB)}MiB for {work.n_rows} samples "
            f"of {work.n_classes} classes in {work.n_threads} threads, got {_in_mib(limit)}; fewer "
            "threads (n_jobs) take less"
        )
    spills = work.least + held > limit
    usable = limit - min(_PROCESS, limit // _PROCESS_PART)
    left = usable - work.shared - work.n_threads * work.per_thread - (0 if spills else held)
    new = 0 if mapped else work.n_new * work.row_bytes
    in_file = not mapped and (spills or left < new + work.n_threads * _LEAST_ROWS)
    left -= 0 if in_file else new
    # Rows that are in memory need no copies near by.
    everywhere = not (mapped or in_file or spills) and (
        held >= (work.n_rows - work.n_new) * work.row_bytes
    )
    budget = _NO_COPIES if everywhere else max(_NO_COPIES, left // work.n_threads)
    chunk = min(_MOST_CHUNK, max(_LEAST_ROWS, usable - work.shared - (0 if spills else held)))
    return MemoryBudget(in_file, spills, budget, chunk)
