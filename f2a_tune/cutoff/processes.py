"""Questions about processes, and their end: pids in, facts and SIGKILL out."""

from __future__ import annotations

import hashlib
import os
import platform
import signal
from contextlib import suppress
from pathlib import Path

MARKED_ROUNDS = 10


def is_alive(pid: int) -> bool:
    """Whether a process of this number exists (a zombie does)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start_stamp(pid: int) -> str:
    """When the process started, in the system's ticks: tells it from a later one of its number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "0"
    return fields[19]


def children_of(pid: int) -> list[int]:
    """The direct children of a process, zombies included (Linux; elsewhere none are known)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.parent.name))
    return found


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or a zombie that waits to be buried."""
    return _state(pid) in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped it, by a signal or a debugger (Linux; elsewhere unknown)."""
    return _state(pid) in ("T", "t")


def _state(pid: int) -> str:
    """One letter of the system's; nothing if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def machine_tag() -> str:
    """Tells machines, and containers of one machine, apart: a pid means something in one only."""
    space = boot = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(f"{platform.node()} {space} {boot}".encode()).hexdigest()[:8]


def kill_marked(variable: str, value: str) -> None:
    """SIGKILL to all that were started with this in their environment, whoever their parents are.

    For what user code has left behind when those who looked after it are gone (Linux only).
    """
    wanted = f"{variable}={value}".encode()
    for _ in range(MARKED_ROUNDS):  # some are born while we look
        found = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if wanted in entry.read_bytes().split(b"\0"):
                    found.append(int(entry.parent.name))
        alive = [pid for pid in found if pid != os.getpid() and not has_ended(pid)]
        if not alive:
            return
        for pid in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """SIGKILL to the process group that this process leads, and to the process itself."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError, OSError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
