"""What tests need to see of processes."""

import os
import time
from pathlib import Path

import pytest

# Machines are slow and noisy: this is patience, not a promise. The benchmark measures promptness.
PATIENCE_SECONDS = 10.0


def stat_fields(pid):
    """State, parent pid, … of a process; None if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def is_running(pid):
    """Whether a process is there and not a zombie."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] != "Z"


def descendants(pid):
    """All running processes below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat_fields(entry.name)) and fields[0] != "Z":
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return found


def zygotes_of(pid):
    """The zygotes that this process has started."""
    return [
        child
        for child in descendants(pid)
        if stat_fields(child)[1] == str(pid)
        and b"f2a_tune.cutoff.zygote" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def eventually(condition, message):
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(message)


def assert_all_end(pids):
    eventually(lambda: not any(map(is_running, pids)), f"still running: {pids}")


def assert_only_idle_workers(pool):
    """No call has left anything: below the zygote are at most the workers that wait for calls."""
    zygote = pool._engine._launcher._process.pid

    def tidy():
        below = descendants(zygote)
        direct = [pid for pid in below if (stat_fields(pid) or [0, 0])[1] == str(zygote)]
        return len(below) == len(direct) <= pool.n_workers + 1

    eventually(tidy, f"processes left: {descendants(zygote)}")


def open_files(pid=None):
    return len(os.listdir(f"/proc/{pid or os.getpid()}/fd"))


def resident_bytes(pid=None):
    pages = int(Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
