"""Matrix functions of SciPy's BLAS and LAPACK, called without holding Python's lock (the GIL).

``scipy.linalg.blas`` and ``scipy.linalg.lapack`` hold it: a thread that factorises a large matrix
stops all others, for example those of a service. These are the same functions with the same
results. Matrices are in row order; a matrix that is changed must be contiguous.

Tensors of torch are computed where they lie; all arguments must lie there.
"""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cython_blas, cython_lapack

from evergrow.foundation.device import Device, import_torch, is_tensor

Floats = npt.NDArray[np.float64]


def add_gram(gram: Floats, rows: Floats, sign: float) -> None:
    """Add ``sign * rows' rows`` to the upper triangle of a matrix, in place."""
    n = _order(gram, rows)
    if is_tensor(gram):
        gram.addmm_(rows.T, rows, alpha=float(sign))  # type: ignore[attr-defined]
        return
    rows = np.ascontiguousarray(rows)
    # The upper triangle in row order is the lower triangle in the column order of BLAS.
    sizes = (n, len(rows))
    _call("dsyrk", b"L", b"N", *sizes, float(sign), rows, n, 1.0, _changed(gram), n)


def cholesky(matrix: Floats) -> bool:
    """Replace the upper triangle of ``A = R'R`` by ``R``, in place; False if it is not definite.

    >>> matrix = np.array([[4.0, 2.0], [0.0, 5.0]])
    >>> cholesky(matrix), matrix.tolist()
    (True, [[2.0, 1.0], [0.0, 2.0]])
    """
    n, info = _order(matrix, matrix), ctypes.c_int()
    if is_tensor(matrix):
        with _reporting_full(matrix):
            factor, failed = import_torch().linalg.cholesky_ex(matrix, upper=True)
        matrix.copy_(factor)  # type: ignore[attr-defined]
        return not bool(failed)
    _call("dpotrf", b"L", n, _changed(matrix), n, info)
    return info.value == 0


def solve_both(factor: Floats, rows: Floats) -> None:
    """Replace each row ``b`` by the solution of ``R'R x = b``, in place."""
    n = _order(factor, rows)
    if is_tensor(factor):
        solved = import_torch().cholesky_solve(rows.T, factor, upper=True)
        rows.copy_(solved.T)  # type: ignore[attr-defined]
        return
    _call("dpotrs", b"L", n, len(rows), factor, n, _changed(rows), n, ctypes.c_int())


def solve_transposed(factor: Floats, rows: Floats) -> None:
    """Replace each row ``b`` by the solution of ``R'x = b``, in place."""
    n = _order(factor, rows)
    if is_tensor(factor):
        solved = import_torch().linalg.solve_triangular(factor.T, rows.T, upper=False)
        rows.copy_(solved.T)  # type: ignore[attr-defined]
        return
    if len(rows) == 1:
        # For one row it took 0.55 ms, dtrsm 0.97 ms, of order 1281 and not in a cache.
        _call("dtrsv", b"L", b"N", b"N", n, factor, n, _changed(rows), 1)
        return
    kind = (b"L", b"L", b"N", b"N")
    _call("dtrsm", *kind, n, len(rows), 1.0, factor, n, _changed(rows), n)


def solve_plain(factor: Floats, row: Floats) -> None:
    """Replace one row ``b`` by the solution of ``R x = b``, in place.

    >>> row = np.array([[4.0, 2.0]])
    >>> solve_plain(np.array([[2.0, 1.0], [0.0, 2.0]]), row)
    >>> row.tolist()
    [[1.5, 1.0]]
    """
    n = _order(factor, row)
    if len(row) != 1:
        raise ValueError(f"expected one row, got {len(row)}")
    _call("dtrsv", b"L", b"T", b"N", n, factor, n, _changed(row), 1)


def _reporting_full(matrix: Any) -> AbstractContextManager[None]:
    advice = f"factorising a matrix of {len(matrix)} features needs three times its memory"
    return Device(str(matrix.device)).report_full(advice)


def _order(matrix: Floats, rows: Floats) -> int:
    """The number of rows of a square matrix; a ``ValueError`` if the rows do not fit it."""
    n = len(matrix)
    if matrix.shape != (n, n) or rows.ndim != 2 or rows.shape[1] != n:
        raise ValueError(f"shapes {matrix.shape} and {rows.shape} do not fit")
    return n


def _changed(array: Floats) -> Floats:
    """An array that is written to; a ``ValueError`` if it cannot be."""
    if not array.flags.writeable:
        raise ValueError("the array is read-only")
    return array


def _call(name: str, *arguments: Any) -> None:
    """Call a function with pointers to all arguments, as Fortran does."""
    if all(not isinstance(one, np.ndarray) or one.size for one in arguments):
        _function(name)(*(_pointer(one) for one in arguments))


def _pointer(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        if argument.dtype != np.float64 or not argument.flags.c_contiguous:
            raise ValueError("arrays must be contiguous and of 64-bit numbers")
        return argument.ctypes.data_as(ctypes.c_void_p)
    if isinstance(argument, bytes):
        return ctypes.c_char_p(argument)
    if isinstance(argument, int):
        argument = ctypes.c_int(argument)
    elif isinstance(argument, float):
        argument = ctypes.c_double(argument)
    return ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p)


@cache
def _function(name: str) -> Any:
    """A function by its name; calls through ctypes release Python's lock."""
    return ctypes.CFUNCTYPE(None)(function_address(name))


@cache
def function_address(name: str) -> int:
    """Return the address of a function of BLAS or LAPACK, such as "dgemm", for the core."""
    functions = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = functions[name]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))
