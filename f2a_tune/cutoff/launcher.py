"""How workers come to be: a launcher hands out connections to fresh workers and buries dead ones.

On Linux a `ForkLauncher` asks the zygote to fork (milliseconds). Elsewhere, or if the environment
variable F2A_TUNE_START_METHOD is ``spawn``, a `SpawnLauncher` starts an interpreter for each
worker (a second or so).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Protocol

from f2a_tune.cutoff import zygote
from f2a_tune.cutoff.processes import kill_group

START_METHOD = "F2A_TUNE_START_METHOD"
START_SECONDS = 120.0
END_SECONDS = 5.0
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


class WorkerStartError(RuntimeError):
    """No worker process can be had; the message says why."""


class Launcher(Protocol):
    """What the pool needs to know of how workers start."""

    def launch(self) -> Connection:
        """A connection to a worker that is starting; it will send `Hello`."""

    def kill(self, pid: int) -> None:
        """End a worker and what it started, at once, and forget it."""

    def exit_code(self, pid: int) -> int | None:
        """How a worker that has died ended: its exit code, or minus the signal."""

    def close(self) -> None:
        """End everything."""


def make_launcher(preload: Sequence[str], folder: str, threads: int | None) -> Launcher:
    """The launcher that suits this platform."""
    method = os.environ.get(START_METHOD, "fork" if sys.platform == "linux" else "spawn")
    if method not in ("fork", "spawn"):
        raise ValueError(f"{START_METHOD} must be 'fork' or 'spawn', got {method!r}.")
    modules = _loaded_modules(preload)
    environment = _environment(threads)
    if method == "fork":
        return ForkLauncher(modules, folder, environment)
    return SpawnLauncher(modules, environment)


class ForkLauncher:
    """Asks a zygote; if the zygote was killed, a new one takes its place."""

    def __init__(self, preload: Sequence[str], folder: str, environment: dict[str, str]) -> None:
        self._settings = {"preload": list(preload), "folder": folder, "parent_pid": os.getpid()}
        self._environment = environment
        self._lock = threading.Lock()
        self._closed = False
        self._control, self._process = self._start()

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = _interpreter(
                f"from f2a_tune.cutoff.zygote import main; main({theirs.fileno()}, sys.argv[2])",
                json.dumps(self._settings),
                self._environment,
                theirs.fileno(),
            )
        ours.settimeout(START_SECONDS)
        try:
            answer = ours.recv(1024)
        except TimeoutError:
            answer = b"no answer from the process that starts them"
        if answer != zygote.READY:
            ours.close()
            process.kill()
            process.wait()
            reason = answer.decode(errors="replace") or "the process that starts them died"
            raise WorkerStartError(f"worker processes cannot start: {reason}")
        return ours, process

    def launch(self) -> Connection:
        """Send the zygote one end of a new socket; the worker will sit at it."""
        ours, theirs = socket.socketpair()
        with ours, theirs, self._lock:
            if self._closed:
                raise WorkerStartError("worker processes cannot start: the pool is closed")
            try:
                socket.send_fds(self._control, [zygote.FORK], [theirs.fileno()])
            except OSError:
                self._control.close()
                self._process.wait()
                self._control, self._process = self._start()
                socket.send_fds(self._control, [zygote.FORK], [theirs.fileno()])
            return Connection(ours.detach())

    def kill(self, pid: int) -> None:
        """Kill the group now; no process can get its number before the zygote has reaped it."""
        kill_group(pid)
        with self._lock, contextlib.suppress(OSError):
            self._control.send(b"%s %d" % (zygote.REAP, pid))

    def exit_code(self, pid: int) -> int | None:
        """Ask the zygote, whose child it is."""
        # What the dead worker had started lives on in its group, which a zombie still leads.
        kill_group(pid)
        with self._lock:
            try:
                self._control.settimeout(END_SECONDS)
                self._control.send(b"%s %d" % (zygote.STATUS, pid))
                return int(self._control.recv(64))
            except (OSError, ValueError):
                return None

    def close(self) -> None:
        """Hang up; the zygote then ends everything."""
        with self._lock:
            self._closed = True
            self._control.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class SpawnLauncher:
    """Starts a new interpreter for every worker."""

    def __init__(self, preload: Sequence[str], environment: dict[str, str]) -> None:
        self._settings = {"preload": list(preload)}
        self._environment = environment
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def launch(self) -> Connection:
        """Start an interpreter that sits at the other end of a new socket."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = _interpreter(
                f"from f2a_tune.cutoff.spawned import main; main({theirs.fileno()}, sys.argv[2])",
                json.dumps(self._settings),
                self._environment,
                theirs.fileno(),
            )
            self._processes[process.pid] = process
            return Connection(ours.detach())

    def kill(self, pid: int) -> None:
        """Kill the group and wait for its leader, which dies at once."""
        kill_group(pid)
        self.exit_code(pid)

    def exit_code(self, pid: int) -> int | None:
        """How it ended."""
        process = self._processes.pop(pid, None)
        try:
            return None if process is None else process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Kill all workers."""
        for pid in list(self._processes):
            self.kill(pid)


def _interpreter(
    code: str, settings: str, environment: dict[str, str], file: int
) -> subprocess.Popen[bytes]:
    """A Python process of our own module, in a session of its own so that Ctrl-C passes it by."""
    bootstrap = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    return subprocess.Popen(
        [sys.executable, "-c", bootstrap + code, json.dumps(sys.path), settings],
        stdin=subprocess.DEVNULL,
        pass_fds=[file],
        start_new_session=True,
        env=environment,
    )


def _loaded_modules(preload: Sequence[str]) -> list[str]:
    """The packages asked for, and those of their modules that this process uses already."""
    wanted = list(preload)
    for name in sorted(sys.modules):
        if name.split(".")[0] in preload and _is_plain_module(name):
            wanted.append(name)
    return list(dict.fromkeys(wanted))


def _is_plain_module(name: str) -> bool:
    # Modules without a spec were put there by hand; tests and their helpers do not belong.
    module = sys.modules[name]
    return getattr(module, "__spec__", None) is not None and ".tests" not in name


def _environment(threads: int | None) -> dict[str, str]:
    """The parent's environment, with BLAS and OpenMP told how many threads a worker may have."""
    environment = dict(os.environ)
    if threads is not None:
        for variable in THREAD_VARIABLES:
            environment.setdefault(variable, str(threads))
    return environment
