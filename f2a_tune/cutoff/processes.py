"""Helper functions that inspect and kill processes by their process id.

They read ``/proc``, so some of them work only on Linux.
"""

from __future__ import annotations

import hashlib
import os
import platform
import signal
from contextlib import suppress
from pathlib import Path

# How often to search for marked processes: new ones may be started during a search.
MARKED_ROUNDS = 10


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists; a zombie counts as existing."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def start_stamp(pid: int) -> str:
    """Return the start time of a process in clock ticks; "0" if unknown.

    It distinguishes the process from a later one with the same id.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "0"
    return fields[19]


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process, including zombies (Linux only, else empty)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.parent.name))
    return found


def has_ended(pid: int) -> bool:
    """Return whether a process has ended; a zombie counts as ended."""
    return _state(pid) in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal or a debugger (Linux only, else False)."""
    return _state(pid) in ("T", "t")


def _state(pid: int) -> str:
    """Return the state letter of a process in ``/proc``; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def machine_tag() -> str:
    """Return an identifier of this machine or container, within which process ids are unique."""
    space = boot = ""
    with suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return hashlib.sha256(f"{platform.node()} {space} {boot}".encode()).hexdigest()[:8]


def kill_marked(variable: str, value: str) -> None:
    """Kill all processes with this environment variable, whatever their parents (Linux only).

    This finds processes that user code has left behind after the zygote has died.
    """
    wanted = f"{variable}={value}".encode()
    for _ in range(MARKED_ROUNDS):
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


def stop_group(pid: int) -> None:
    """Stop all processes of the group that this process leads, until `continue_group`."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGSTOP)


def continue_group(pid: int) -> None:
    """Continue the processes that `stop_group` has stopped."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGCONT)


def private_bytes(pid: int) -> int:
    """Return the memory that would be free if this process ended (Linux only, else 0)."""
    total = 0
    with suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Private_"):
                total += 1024 * int(line.split()[1])
    return total


def available_bytes() -> int:
    """Return the memory that is free or can be freed (Linux only, else 0)."""
    with suppress(OSError, ValueError), open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return 0


def kill_group(pid: int) -> None:
    """Kill the process group that this process leads, and the process itself."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError, OSError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
