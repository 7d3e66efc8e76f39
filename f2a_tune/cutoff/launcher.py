"""Launchers, which start worker processes, kill them and read their exit codes.

On Linux, a `ForkLauncher` asks the zygote to fork, which takes milliseconds. On other platforms,
or if the environment variable F2A_TUNE_START_METHOD is ``spawn``, a `SpawnLauncher` starts a new
interpreter for each worker, which takes about a second.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import struct
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

from f2a_tune import clock
from f2a_tune.cutoff import zygote
from f2a_tune.cutoff.context import MARK, THREAD_VARIABLES
from f2a_tune.cutoff.processes import has_ended, kill_group, kill_marked

# Environment variable that selects the launcher: "fork" or "spawn".
START_METHOD = "F2A_TUNE_START_METHOD"
# How long the zygote may take to start, imports included, and how often a start is attempted.
START_SECONDS = 120.0
START_TRIES = 3
# How long to wait for a process that was told to exit or killed.
END_SECONDS = 5.0
# How long to wait for the zygote's report of an exit code.
STATUS_SECONDS = 1.0
# How long a worker that closed its connection may take to be dead.
DYING_SECONDS = 1.0
# How long a worker may stop reading or writing in the middle of a message.
TRANSFER_SECONDS = 60.0
# The same limit after the deadline of a call: a message may already be on its way.
LEAST_TRANSFER_SECONDS = 0.2
NO_ANSWER = b"no answer from the zygote process, which forks them"


class WorkerStartError(RuntimeError):
    """No worker process can be started; the message contains the reason."""


class Launcher(Protocol):
    """Interface through which a pool starts and kills worker processes."""

    generation: int
    """Number of the current zygote; when a zygote dies, all its workers die with it."""

    def launch(self) -> tuple[Connection, int]:
        """Start a worker, which will send `Hello`; return its connection and generation."""

    def kill(self, pid: int, generation: int) -> None:
        """Kill a worker and all processes it started; do nothing if it is already dead."""

    def exit_code(self, pid: int, generation: int) -> int | None:
        """Return the exit code or negative signal number of a dead worker; None if unknown."""

    def wait_until_ready(self, latest: float) -> bool:
        """Wait until workers can start, at most until this time on the monotonic clock."""

    def close(self) -> None:
        """Kill all workers and the zygote."""


def make_launcher(
    preload: Sequence[str], folder: str, threads: int | None, latest: float = math.inf
) -> Launcher:
    """Return the launcher for this platform.

    This returns at ``latest`` on the monotonic clock even if the launcher is not ready yet;
    use `Launcher.wait_until_ready` to check.
    """
    method = os.environ.get(START_METHOD, "fork" if sys.platform == "linux" else "spawn")
    if method not in ("fork", "spawn"):
        raise ValueError(
            f"{START_METHOD} must be 'fork' or 'spawn', got {method!r}. Correct or unset this "
            "environment variable."
        )
    modules = _loaded_modules(preload)
    environment = _environment(threads)
    if method == "fork":
        return ForkLauncher(modules, folder, environment, latest)
    return SpawnLauncher(modules, environment)


class ForkLauncher:
    """Starts workers through a zygote process; a zygote that was killed is replaced."""

    def __init__(
        self,
        preload: Sequence[str],
        folder: str,
        environment: dict[str, str],
        latest: float = math.inf,
    ) -> None:
        self._settings = {"preload": list(preload), "folder": folder, "parent_pid": os.getpid()}
        self._mark = uuid.uuid4().hex
        self._environment = environment | {MARK: self._mark}
        self._lock = threading.Lock()
        self._closed = False
        self._is_starting = False
        """Whether the zygote was started and has not reported that it is ready."""
        self.generation = 0
        self._control, self._process = self._begin()
        self._is_starting = True
        self.wait_until_ready(latest)

    def wait_until_ready(self, latest: float) -> bool:
        """Wait until the zygote is ready; start another one if it was killed during its start."""
        give_up_at = min(latest, clock.monotonic_seconds() + START_SECONDS)
        answer = b""
        for _ in range(START_TRIES):
            if not self._is_starting:
                return True
            answer = _message(self._control, max(give_up_at - clock.monotonic_seconds(), 0.0))
            if answer == zygote.READY:
                self._is_starting = False
                return True
            if answer == NO_ANSWER and give_up_at == latest:
                return False
            self._kill_zygote(self._control, self._process)
            if answer:
                break  # the answer is an error message
            self._control, self._process = self._begin()
        raise _cannot_start(answer or b"the zygote process, which forks them, died at its start")

    def _begin(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        """Start a zygote without waiting; requests are queued until it is ready."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = _interpreter("zygote", self._settings, self._environment, theirs.fileno())
        return ours, process

    def _kill_zygote(self, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
        """Kill a zygote and all processes of its workers, which only their mark identifies now."""
        control.close()
        process.kill()
        process.wait()
        kill_marked(MARK, self._mark)

    def launch(self) -> tuple[Connection, int]:
        """Send one end of a new socket to the zygote, which passes it to the worker."""
        ours, theirs = socket.socketpair()
        with ours, theirs, self._lock:
            if self._closed:
                raise _cannot_start(b"the pool is closed")
            for _ in range(START_TRIES):
                try:
                    socket.send_fds(self._control, [zygote.FORK], [theirs.fileno()])
                    return _connection(ours), self.generation
                except OSError:
                    said = _message(self._control, 0.0)
                    self._kill_zygote(self._control, self._process)
                    self.generation += 1
                    if said not in (b"", NO_ANSWER, zygote.READY):
                        raise _cannot_start(said) from None
                    # Do not wait for the new zygote here: the user of the worker waits for it, up
                    # to its own deadline.
                    self._control, self._process = self._begin()
                    self._is_starting = True
            raise _cannot_start(b"the zygote process, which forks them, was killed repeatedly")

    def kill(self, pid: int, generation: int) -> None:
        """Kill the process group; its id cannot be reused before the zygote has reaped it."""
        self._kill_group(pid, generation)
        with self._lock, contextlib.suppress(OSError):
            if generation == self.generation:
                self._control.send(b"%s %d" % (zygote.REAP, pid))

    def exit_code(self, pid: int, generation: int) -> int | None:
        """Ask the zygote, the worker's parent; None if the worker did not end by itself."""
        if generation != self.generation:
            return None
        ended = _ends_soon(pid)
        # Processes that the worker started live on in its group, whose leader is a zombie now.
        self._kill_group(pid, generation)
        with self._lock:
            if generation != self.generation:
                return None  # its zygote is dead, and the next one may need seconds to start
            try:
                self._control.settimeout(STATUS_SECONDS)
                self._control.send(b"%s %d" % (zygote.STATUS, pid))
                while True:  # skip old answers that were never read
                    answer = self._control.recv(64)
                    if answer == zygote.READY:
                        self._is_starting = False
                        continue
                    whose, _, code = answer.partition(b" ")
                    if not whose or int(whose) == pid:
                        return int(code) if ended else None
            except (OSError, ValueError):
                return None

    def _kill_group(self, pid: int, generation: int) -> None:
        # A worker dies with its zygote, and then its process id may be reused.
        if generation == self.generation and self._process.poll() is None:
            kill_group(pid)

    def close(self) -> None:
        """Close the connection; the zygote then kills all workers and exits."""
        with self._lock:
            self._closed = True
            if self._is_starting and _message(self._control, 0.0) != zygote.READY:
                self._process.kill()  # it would notice only after all imports
            # A shutdown works even if a forked copy of this process holds the socket open.
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode != 0:  # it could not kill the processes it had started
            kill_marked(MARK, self._mark)


class SpawnLauncher:
    """Starts a new interpreter for every worker."""

    def __init__(self, preload: Sequence[str], environment: dict[str, str]) -> None:
        self._settings = {"preload": list(preload)}
        self._environment = environment
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.generation = 0

    def launch(self) -> tuple[Connection, int]:
        """Start an interpreter that is connected by a new socket."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = _interpreter(
                "spawned_worker", self._settings, self._environment, theirs.fileno()
            )
            self._processes[process.pid] = process
            return _connection(ours), self.generation

    def kill(self, pid: int, generation: int = 0) -> None:
        """Kill the process group and wait for its leader, which dies immediately."""
        del generation
        process = self._processes.pop(pid, None)
        if process is not None:
            kill_group(pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)

    def exit_code(self, pid: int, generation: int = 0) -> int | None:
        """Return the exit code; None if the worker did not end by itself."""
        del generation
        process = self._processes.get(pid)
        ended = process is not None and _ends_soon(pid)
        self.kill(pid)
        return process.returncode if process is not None and ended else None

    def wait_until_ready(self, latest: float) -> bool:
        """Return True: this launcher needs no preparation."""
        del latest
        return True

    def close(self) -> None:
        """Kill all workers."""
        for pid in list(self._processes):
            self.kill(pid)


def _cannot_start(reason: bytes) -> WorkerStartError:
    return WorkerStartError(f"worker processes cannot start: {reason.decode(errors='replace')}")


def _message(control: socket.socket, seconds: float) -> bytes:
    """Return the next message of the zygote; empty if the zygote is dead."""
    try:
        control.settimeout(seconds if math.isfinite(seconds) else None)
        return control.recv(1024)
    except (BlockingIOError, TimeoutError):
        return NO_ANSWER
    except OSError:
        return b""


def _connection(ours: socket.socket) -> Connection:
    """Return the parent's end of a connection, with timeouts for reads and writes."""
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        ours.setsockopt(socket.SOL_SOCKET, option, _time_value(TRANSFER_SECONDS))
    return Connection(ours.detach())


def limit_reading(connection: Connection, seconds: float) -> None:
    """Set the time after which a read without data raises BlockingIOError."""
    seconds = min(max(seconds, LEAST_TRANSFER_SECONDS), TRANSFER_SECONDS)
    file = os.dup(connection.fileno())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=file) as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _time_value(seconds))


def _time_value(seconds: float) -> bytes:
    """Return the seconds as a C ``struct timeval``."""
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


def _ends_soon(pid: int) -> bool:
    """Return whether a process that closed its connection is dead within `DYING_SECONDS`.

    A dying process closes its files first, so it may need a moment.
    """
    deadline = clock.monotonic_seconds() + DYING_SECONDS
    while not has_ended(pid):
        if clock.monotonic_seconds() > deadline:
            return False
        clock.sleep_seconds(0.001)
    return True


def _interpreter(
    module: str, settings: dict[str, Any], environment: dict[str, str], file: int
) -> subprocess.Popen[bytes]:
    """Start a Python process that runs ``main`` of one of our modules.

    It runs in its own session, so that Ctrl-C does not reach it. The settings are passed through
    standard input, because a command line is visible to all users and limited in length.
    """
    paths = [entry for entry in sys.path if isinstance(entry, str)]
    code = (
        "import json, sys; content = json.loads(sys.stdin.readline()); "
        "sys.path[:] = content['path']; "
        f"from f2a_tune.cutoff.{module} import main; main({file}, content['settings'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        pass_fds=[file],
        start_new_session=True,
        env=environment,
    )
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it died immediately; the missing answer will show that
        # The reader expects one line, not the end of the file: a fork of this process may hold the
        # pipe open.
        process.stdin.write(json.dumps({"path": paths, "settings": settings}).encode() + b"\n")
    with contextlib.suppress(OSError):
        process.stdin.close()
    return process


def _loaded_modules(preload: Sequence[str]) -> list[str]:
    """Return the packages to preload and their modules that this process has imported."""
    wanted = list(preload)
    for name in sorted(sys.modules):
        if name.split(".")[0] in preload and _is_plain_module(name):
            wanted.append(name)
    return list(dict.fromkeys(wanted))


def _is_plain_module(name: str) -> bool:
    # Modules without a spec were inserted by hand. Tests and their helpers are not needed.
    module = sys.modules[name]
    return getattr(module, "__spec__", None) is not None and ".tests" not in name


def _environment(threads: int | None) -> dict[str, str]:
    """Return the parent's environment plus the number of BLAS and OpenMP threads of a worker."""
    environment = dict(os.environ)
    if threads is not None:
        for variable in THREAD_VARIABLES:
            environment.setdefault(variable, str(threads))
    return environment
