"""A decoder that an image took over: it tries everything that a sandbox must prevent.

Run as a program with the argument ``free`` to try the same without the sandbox.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evergrow.service.decoding import worker
from evergrow.service.decoding.protocol import RefusedImageError

MARK = b"attack"
_libc = ctypes.CDLL(None, use_errno=True)
_decode = worker.prepare_image

# Numbers of system calls on x86_64; all of them exist in kernels of the last years.
_RAW_CALLS = {
    "openat2": (437, -100, b"/etc/passwd", bytes(24), 24),
    "openat by the x32 interface": (0x40000000 | 257, -100, b"/etc/passwd", 0, 0),
    "io_uring_setup": (425, 8, bytes(120)),
    "memfd_create": (319, b"x", 0),
    "ptrace": (101, 2, os.getpid(), 0, 0),
    "process_vm_readv of itself": (310, os.getpid(), 0, 0, 0, 0, 0),
    "unshare": (272, 0x10000000),
    "pidfd_open": (434, os.getppid(), 0),
    "userfaultfd": (323, 1),
    "keyctl": (250, 0, -3, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "inotify_init1": (294, 0),
    "eventfd2": (290, 0, 0),
    "setsid": (112,),
    "prctl": (157, 4, 1, 0, 0, 0),
    "umask": (95, 0),
    "clone without a thread": (56, 17, 0, 0, 0, 0),
    "clone of namespaces": (56, 0x10000000 | 17, 0, 0, 0, 0),
    "fork": (57,),
    "clone3": (435, bytes(88), 88),
    "chdir": (80, b"/"),
}


def attacks(folder: Path, service: int) -> dict[str, Callable[[], Any]]:
    """What is tried; each raises an ``OSError`` if it is prevented."""
    secret, own = folder / "tokens.json", folder / "own"
    return {
        "read the tokens": secret.read_bytes,
        "look for a file": lambda: os.stat(secret),
        "list a folder": lambda: os.listdir(folder),
        "create a file": lambda: os.open(own, os.O_CREAT | os.O_WRONLY),
        "truncate a file": lambda: os.truncate(folder / "lesson", 0),
        "rename a file": lambda: os.rename(folder / "picture", folder / "other"),
        "delete a file": lambda: os.unlink(folder / "database"),
        "make a folder": lambda: os.mkdir(folder / "made"),
        "link to a file": lambda: os.symlink("/etc/passwd", folder / "link"),
        "change rights": lambda: os.chmod(secret, 0o777),
        "read its own memory": lambda: os.open("/proc/self/mem", os.O_RDWR),
        "open a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "open a local socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "open a pair of sockets": socket.socketpair,
        "open a pipe": os.pipe,
        "start a process": _fork,
        "run a program": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
        "signal the service": lambda: os.kill(service, 0),
        "limit the service": lambda: resource.prlimit(service, resource.RLIMIT_CPU),
        "lift its limit of memory": lambda: resource.setrlimit(
            resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        ),
        "make executable memory": lambda: mmap.mmap(
            -1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        ),
        "make memory executable": _make_executable,
        "find files or sockets that are open": _find_open_files,
        **{f"call {name}": lambda a=arguments: _call(*a) for name, arguments in _RAW_CALLS.items()},
    }


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _make_executable() -> None:
    _call(10, ctypes.c_void_p(_page()), 4096, 7)


def _page() -> int:
    _libc.mmap.restype = ctypes.c_void_p
    return int(_libc.mmap(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0)))


def _find_open_files() -> None:
    for number in range(32):
        try:
            kind = os.fstat(number).st_mode
        except OSError:
            continue
        if not (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
            return
    raise OSError("only pipes and /dev/null are open")


def _call(number: int, *arguments: Any) -> None:
    process = os.getpid()
    result = _libc.syscall(ctypes.c_long(number), *arguments)
    if os.getpid() != process:
        # A child that should not exist.
        os._exit(0)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


def _attack(content: bytes, *arguments: Any, **options: Any) -> Any:
    if not content.startswith(MARK):
        return _decode(content, *arguments, **options)
    plan = json.loads(content[len(MARK) :])
    tried = list(attacks(Path(plan["folder"]), plan["service"]).items())
    name, attempt = tried[plan["number"]]
    succeeded = [name]
    try:
        attempt()
    # Python reports a limit that may not be raised as a ValueError.
    except (OSError, ValueError):
        succeeded = []
    raise RefusedImageError("damaged", json.dumps(succeeded))


if __name__ == "__main__":
    worker.prepare_image = _attack
    if sys.argv[1:] == ["free"]:
        worker.enter_sandbox = lambda: None
    worker.main()
