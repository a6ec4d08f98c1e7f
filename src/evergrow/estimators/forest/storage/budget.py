"""How much memory training needs in addition to the trees, and what a memory limit allows.

Rows that exceed the limit go to a scratch file. Large nodes read their rows from the file; small
subtrees copy theirs into memory, for which each thread gets an equal part of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from evergrow import _core
from evergrow.foundation.errors import InvalidInputError

_MIB = 1 << 20

# Small arrays, interpreter objects, and freed memory that the allocator retains.
_SLACK = 24 * _MIB
_SLACK_PER_THREAD = 4 * _MIB

# Python and its libraries also take memory before training: copies of rows leave this much of the
# limit free, or this fraction of it if that is less.
_PROCESS_BYTES, _PROCESS_FRACTION = 96 * _MIB, 6

# Fewest bytes of rows per thread: smaller subtrees are not worth a copy.
_LEAST_ROWS = _MIB

# A budget that no row fits into: trees are grown without copies of rows.
_NO_COPIES = 1

# Larger chunks do not make writing a file faster.
_MOST_CHUNK = 1 << 30

# Class and id of a sample.
SAMPLE_BYTES = 12
# Bytes held once per row slot, free slots included: class, id and position of the row, and the
# table of n ln n, which is twice as long after updates.
_SHARED_PER_PLACE = {"fit": SAMPLE_BYTES + 16 + 8, "update": SAMPLE_BYTES + 2 * 16 + 16}
# Bytes held once per stored row: its number sorted by class and space for sorting; codes, ids and
# positions of the caller.
_SHARED_PER_ROW = 8 + 16
# Bytes held per row in each thread: rows drawn for the tree, rows being partitioned, positions of
# copies. An update also holds the rows below a node, their nearest means and marks of removed rows.
_THREAD_PER_ROW = {"fit": 8 + 8 + 4, "update": 8 + 8 + 4 + 24}
# Bytes per row for choosing the samples to evict.
_EVICTED_PER_ROW = 120

# The fraction of the limit that rows may take while they are copied from one file to another.
_COPY_FRACTION = 4


@dataclass(frozen=True)
class MemoryDemand:
    """Memory that training of one forest needs, and all it depends on."""

    kind: str  # "fit" or "update"
    n_rows: int  # stored rows, new ones included
    n_new: int
    width: int  # values in a row, with padding
    half: bool
    n_classes: int
    n_threads: int
    rules: _core.SplitRules
    evicts: bool
    n_removed: int = 0  # free slots of removed rows

    @property
    def row_bytes(self) -> int:
        """Bytes of a stored row."""
        return self.width * (2 if self.half else 4)

    @property
    def _peak_kind(self) -> str:
        """The kind that needs most memory: a fit that evicts samples ends with an update."""
        return "update" if self.evicts else self.kind

    @property
    def shared(self) -> int:
        """Bytes held once."""
        per_row = _SHARED_PER_ROW + (_EVICTED_PER_ROW if self.evicts else 0)
        n_places = self.n_rows + self.n_removed
        return _SLACK + self.n_rows * per_row + n_places * _SHARED_PER_PLACE[self._peak_kind]

    @property
    def per_thread(self) -> int:
        """Bytes held by each thread, without copies of rows."""
        per_row = _THREAD_PER_ROW[self._peak_kind]
        return _SLACK_PER_THREAD + self.n_rows * per_row + _scratch_bytes(self)

    @property
    def least(self) -> int:
        """The smallest possible memory limit, in bytes."""
        return self.shared + self.n_threads * (self.per_thread + _LEAST_ROWS)


def _scratch_bytes(demand: MemoryDemand) -> int:
    return _core.scratch_bytes(
        rules=demand.rules,
        n_rows=demand.n_rows,
        width=demand.width,
        n_classes=demand.n_classes,
        half=demand.half,
    )


@dataclass(frozen=True)
class MemoryBudget:
    """Where new rows are stored, and how many bytes of rows may be held in memory.

    Attributes
    ----------
    in_file : bool
        New rows go to a scratch file.
    spills : bool
        Rows that are in memory so far go to a scratch file too.
    row_budget : int
        Bytes of rows that each thread may copy; 0 without a limit.
    chunk_bytes : int
        Bytes of rows that are held at once while writing a file.
    """

    in_file: bool = False
    spills: bool = False
    row_budget: int = 0
    chunk_bytes: int = 0


def copy_bytes(limit: int) -> int:
    """Bytes of rows that may be held at once while copying to another file."""
    return min(_MOST_CHUNK, max(_LEAST_ROWS, limit // _COPY_FRACTION))


def _in_mib(n_bytes: int) -> str:
    # Rounded down, so that a limit that is too small is not shown as the required one.
    tenths = n_bytes * 10 // _MIB
    return f"{n_bytes} bytes" if tenths == 0 else f"{tenths / 10:g}MiB"


def budget_for(
    demand: MemoryDemand, limit: int | None, *, held: int = 0, mapped: bool = False
) -> MemoryBudget:
    """What a memory limit allows; a ``ValueError`` if it is less than training needs.

    ``limit`` is the number of bytes that may be used in addition to the trees, None for no limit;
    ``held`` bytes of rows are in memory already. With ``mapped``, new rows go to a file that the
    caller named, whatever the limit.
    """
    if limit is None:
        return MemoryBudget()
    if limit < demand.least:
        raise InvalidInputError(
            f"memory_limit must be at least {-(-demand.least // _MIB)}MiB for {demand.n_rows} "
            f"samples of {demand.n_classes} classes in {demand.n_threads} threads, got "
            f"{_in_mib(limit)}; fewer threads (n_jobs) need less"
        )
    n_threads = demand.n_threads
    spills = demand.least + held > limit
    in_memory = 0 if spills else held
    usable = limit - min(_PROCESS_BYTES, limit // _PROCESS_FRACTION)
    left = usable - demand.shared - n_threads * demand.per_thread - in_memory
    new = 0 if mapped else demand.n_new * demand.row_bytes
    in_file = not mapped and (spills or left < new + n_threads * _LEAST_ROWS)
    left -= 0 if in_file else new
    # If all rows are in memory, copies of them gain nothing.
    all_in_memory = not (mapped or in_file or spills) and (
        held >= (demand.n_rows - demand.n_new) * demand.row_bytes
    )
    row_budget = _NO_COPIES if all_in_memory else max(_NO_COPIES, left // n_threads)
    chunk_bytes = min(_MOST_CHUNK, max(_LEAST_ROWS, usable - demand.shared - in_memory))
    return MemoryBudget(in_file, spills, row_budget, chunk_bytes)
