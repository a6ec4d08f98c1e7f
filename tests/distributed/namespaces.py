"""Machines in network namespaces: own addresses, and links that can be cut."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress


def why_no_namespaces():
    """Why this process cannot make network namespaces; None if it can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "needs root on Linux"
    if shutil.which("ip") is None or shutil.which("mount") is None:
        return "needs ip and mount"
    name = f"evergrow-{os.getpid()}-try"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"cannot make a network namespace: {done.stderr.strip()}"
    _ip("netns", "delete", name)
    return None


def _ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Network:
    """A bridge with an address of its own, and namespaces that are linked to it."""

    def __init__(self):
        self._cleanup = ExitStack()
        self._numbers = itertools.count(2)
        self._prefix = f"eg{os.getpid()}"
        _ip("link", "add", self._prefix, "type", "bridge")
        self._cleanup.callback(_ip, "link", "delete", self._prefix)
        self._subnet = self._take_subnet()
        self.address = f"{self._subnet}.1"
        _ip("link", "set", self._prefix, "up")

    def _take_subnet(self):
        """A subnet of which no address of this machine is part: other tests may run here."""
        shown = _ip("-4", "-o", "address")
        for third in range(os.getpid() % 256, os.getpid() % 256 + 256):
            subnet = f"10.213.{third % 256}"
            if f" {subnet}." not in shown:
                _ip("address", "add", f"{subnet}.1/24", "dev", self._prefix)
                return subnet
        raise RuntimeError("no subnet of 10.213.0.0/16 is free")

    def add_machine(self):
        """A namespace that is linked to the bridge."""
        return self._cleanup.enter_context(Machine(self._prefix, self._subnet, next(self._numbers)))

    def close(self):
        """Remove the namespaces and what runs in them."""
        self._cleanup.close()


class Machine:
    """A network namespace with one address, and the processes that run in it."""

    def __init__(self, bridge, subnet, number):
        self.name, self.link = f"{bridge}-{number}", f"{bridge}v{number}"
        self.address = f"{subnet}.{number}"
        self._programs = []
        self._folder = tempfile.TemporaryDirectory(prefix="eg")
        _ip("netns", "add", self.name)
        _ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", self.link, "master", bridge, "up")
        _ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self.name, "link", "set", device, "up")

    def __enter__(self):
        return self

    def start(self, *command):
        """Start a program whose folder for Ray's files is its own, as on another machine."""
        mount = 'mkdir -p /tmp/ray && mount --bind "$0" /tmp/ray && exec "$@"'
        inside = ["ip", "netns", "exec", self.name, "sh", "-c", mount, self._folder.name, *command]
        quiet = subprocess.DEVNULL
        self._programs.append(subprocess.Popen(inside, stdin=quiet, stdout=quiet, stderr=quiet))

    def pids(self):
        """All processes in the namespace."""
        return [int(pid) for pid in _ip("netns", "pids", self.name).split()]

    def cut(self):
        """Cut the link: packets are lost, and no side is told."""
        _ip("link", "set", self.link, "down")

    def kill(self):
        """Kill all processes, as if the power was cut."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for program in self._programs:
            program.wait()

    def __exit__(self, *_):
        self.kill()
        _ip("netns", "delete", self.name)
        self._folder.cleanup()
