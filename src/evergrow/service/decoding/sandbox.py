"""A sandbox for decoder processes: a seccomp filter that allows little more than computing.

An image that takes over a decoder can still compute and answer through the two pipes that are open.
It cannot open, create or delete files, open sockets, start processes, run programs, send signals or
make memory executable. Threads are allowed, because the decoder of HEIC needs one.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass

# System calls that decoding may use, with their numbers on x86_64 and aarch64. All others fail
# with EPERM, also ones that future kernels add.
ALLOWED_CALLS = {
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "brk": (12, 214),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrusage": (98, 165),
    "gettimeofday": (96, 169),
    "clock_gettime": (228, 113),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "restart_syscall": (219, 128),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
# Allowed only for memory that is not executable.
MEMORY_CALLS = {"mmap": (9, 222), "mprotect": (10, 226)}
# Allowed only for threads. Arguments of clone3 cannot be seen by a filter, so it does not exist;
# the C library then uses clone.
THREAD_CALLS = {"clone": (56, 220)}
ABSENT_CALLS = {"clone3": (435, 435)}
# Allowed only for the processor time (limit 0) of the process itself (id 0), to limit each image.
LIMIT_CALLS = {"prlimit64": (302, 261)}
INSTALL_CALL = {"seccomp": (317, 277)}

_PROT_EXEC = 4
_CLONE_THREAD = 0x00010000
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
# The filter applies to all threads of the process, should a library have started some.
_SECCOMP_FILTER_FLAG_TSYNC = 1
# What a call returns: its result, EPERM, ENOSYS; or the end of the process.
_ALLOW, _FAIL, _ABSENT, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38, 0x80000000

# Instructions of classic BPF: load a word, jump if equal, jump if any bit is set, return.
_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_INSTRUCTION = struct.Struct("=HBBI")
# Where the kernel's struct seccomp_data has the number of the call and the architecture.
_CALL, _ARCHITECTURE = 0, 4


class SandboxError(RuntimeError):
    """The system has no sandbox, or refused it; the text says why."""


@dataclass(frozen=True)
class Architecture:
    """A kind of processor: its number in the kernel, and its column in the tables of calls."""

    audit_number: int
    column: int


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, 0),
    "aarch64": Architecture(0xC00000B7, 1),
}


def enter_sandbox() -> None:
    """Restrict this process for the rest of its life; a ``SandboxError`` if that is impossible."""
    if sys.platform != "linux":
        raise SandboxError(f"{sys.platform} is not supported")
    found = ARCHITECTURES.get(platform.machine())
    if found is None or struct.calcsize("P") != 8:
        raise SandboxError(f"{platform.machine()} processors are not supported")
    libc = ctypes.CDLL(None, use_errno=True)
    _require(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    program = make_filter(found)
    size = _INSTRUCTION.size
    # struct sock_fprog: the number of instructions, and their address.
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // size, ctypes.addressof(instructions))
    _require(
        libc.syscall(
            INSTALL_CALL["seccomp"][found.column],
            _SECCOMP_SET_MODE_FILTER,
            _SECCOMP_FILTER_FLAG_TSYNC,
            header,
        )
    )
    _check_effect()


def make_filter(architecture: Architecture) -> bytes:
    """Return the filter as a program of the kernel's packet filter."""
    return b"".join(_instructions(architecture))


def _instructions(architecture: Architecture) -> Iterator[bytes]:
    column = architecture.column
    # A 32-bit call has other numbers: end the process.
    yield _instruction(_LOAD, _ARCHITECTURE)
    yield _instruction(_IF_EQUAL, architecture.audit_number, then=1)
    yield _instruction(_RETURN, _KILL)
    yield _instruction(_LOAD, _CALL)
    for numbers in ALLOWED_CALLS.values():
        yield _instruction(_IF_EQUAL, numbers[column], otherwise=1)
        yield _instruction(_RETURN, _ALLOW)
    for numbers in MEMORY_CALLS.values():
        yield from _decide(
            numbers[column], 2, _IF_ANY_BIT, _PROT_EXEC, then=_FAIL, otherwise=_ALLOW
        )
    for numbers in THREAD_CALLS.values():
        yield from _decide(numbers[column], 0, _IF_ANY_BIT, _CLONE_THREAD)
    for numbers in LIMIT_CALLS.values():
        yield _instruction(_IF_EQUAL, numbers[column], otherwise=6)
        yield _instruction(_LOAD, _low_word(0))
        yield _instruction(_IF_EQUAL, 0, otherwise=3)
        yield _instruction(_LOAD, _low_word(1))
        yield _instruction(_IF_EQUAL, 0, otherwise=1)
        yield _instruction(_RETURN, _ALLOW)
        yield _instruction(_RETURN, _FAIL)
    for numbers in ABSENT_CALLS.values():
        yield _instruction(_IF_EQUAL, numbers[column], otherwise=1)
        yield _instruction(_RETURN, _ABSENT)
    yield _instruction(_RETURN, _FAIL)


def _decide(
    number: int, argument: int, test: int, value: int, then: int = _ALLOW, otherwise: int = _FAIL
) -> Iterator[bytes]:
    """Decide a call by one of its arguments; another call goes on to the next instruction."""
    yield _instruction(_IF_EQUAL, number, otherwise=4)
    yield _instruction(_LOAD, _low_word(argument))
    yield _instruction(test, value, otherwise=1)
    yield _instruction(_RETURN, then)
    yield _instruction(_RETURN, otherwise)


def _instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, then, otherwise, value)


def _low_word(argument: int) -> int:
    # Both architectures are little-endian, and the kernel reads these arguments as 32 bits.
    return 16 + 8 * argument


def _require(result: int) -> None:
    if result != 0:
        raise SandboxError(f"the system refused it: {os.strerror(ctypes.get_errno())}")


def _check_effect() -> None:
    """Prove that a call fails that always works: an emulated kernel may ignore a filter."""
    try:
        os.close(os.dup(1))
    except PermissionError:
        return
    raise SandboxError("the system accepted the filter and does not apply it")
