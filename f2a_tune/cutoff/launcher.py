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
import struct
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Protocol

from f2a_tune import clock
from f2a_tune.cutoff import zygote
from f2a_tune.cutoff.processes import has_ended, kill_group, kill_marked

START_METHOD = "F2A_TUNE_START_METHOD"
MARK = "F2A_TUNE_POOL"  # in the environment of all that a pool has started
START_SECONDS = 120.0
START_TRIES = 3
END_SECONDS = 5.0
STATUS_SECONDS = 1.0
DYING_SECONDS = 1.0
# How long a worker may stop reading or writing in the middle of a message.
TRANSFER_SECONDS = 60.0
# The same when the time is up: it may be on its way.
LEAST_TRANSFER_SECONDS = 0.2
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

    generation: int
    """Changes when all workers so far have died with what had started them."""

    def launch(self) -> tuple[Connection, int]:
        """A connection to a worker that is starting and will send `Hello`; its generation."""

    def kill(self, pid: int, generation: int) -> None:
        """End a worker and what it started, at once, and forget it; the dead stay untouched."""

    def exit_code(self, pid: int, generation: int) -> int | None:
        """How a worker that has died ended: its exit code, minus the signal, or nobody knows."""

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
        self._mark = uuid.uuid4().hex
        self._environment = environment | {MARK: self._mark}
        self._lock = threading.Lock()
        self._closed = False
        self._is_starting = False
        """Whether it was begun, and has not been heard of yet."""
        self.generation = 0
        self._control, self._process = self._start()

    def _start(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        """A zygote that is ready; one that was killed while it started is started again."""
        answer = b""
        for _ in range(START_TRIES):
            control, process = self._begin()
            answer = _message(control, START_SECONDS)
            if answer == zygote.READY:
                return control, process
            self._bury(control, process)
            if answer:
                break  # it has said what is wrong
        raise _cannot_start(answer or b"the process that starts them died")

    def _begin(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        """A zygote that may not be ready yet; it will find what it is asked for."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = _interpreter(
                f"from f2a_tune.cutoff.zygote import main; main({theirs.fileno()}, sys.argv[2])",
                json.dumps(self._settings),
                self._environment,
                theirs.fileno(),
            )
        return ours, process

    def _bury(self, control: socket.socket, process: subprocess.Popen[bytes]) -> None:
        """End a zygote, and what its workers have started, which nobody else can find any more."""
        control.close()
        process.kill()
        process.wait()
        kill_marked(MARK, self._mark)

    def launch(self) -> tuple[Connection, int]:
        """Send the zygote one end of a new socket; the worker will sit at it."""
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
                    self._bury(self._control, self._process)
                    self.generation += 1
                    if said not in (b"", zygote.READY):
                        raise _cannot_start(said) from None
                    # Whoever wants the worker waits for it, as long as there is time.
                    self._control, self._process = self._begin()
                    self._is_starting = True
            raise _cannot_start(b"what starts them is killed again and again")

    def kill(self, pid: int, generation: int) -> None:
        """Kill the group now; no process can get its number before the zygote has reaped it."""
        self._kill_group(pid, generation)
        with self._lock, contextlib.suppress(OSError):
            if generation == self.generation:
                self._control.send(b"%s %d" % (zygote.REAP, pid))

    def exit_code(self, pid: int, generation: int) -> int | None:
        """Ask the zygote, whose child it is; None if it did not end by itself."""
        if generation != self.generation:
            return None
        ended = _ends_soon(pid)
        # What it had started lives on in its group, which a zombie leads.
        self._kill_group(pid, generation)
        with self._lock:
            if generation != self.generation:
                return None  # its zygote is gone, and the next one may take seconds to be there
            try:
                self._control.settimeout(STATUS_SECONDS)
                self._control.send(b"%s %d" % (zygote.STATUS, pid))
                while True:  # an answer that nobody waited for may still be there
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
        # A worker dies with its zygote, and then its number may be somebody else's.
        if generation == self.generation and self._process.poll() is None:
            kill_group(pid)

    def close(self) -> None:
        """Hang up; the zygote then ends everything."""
        with self._lock:
            self._closed = True
            if self._is_starting and _message(self._control, 0.0) != zygote.READY:
                self._process.kill()  # it would hear of it only when all is imported
            # Also if a forked twin of this process holds the socket too.
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode != 0:  # it could not end what it had started
            kill_marked(MARK, self._mark)


class SpawnLauncher:
    """Starts a new interpreter for every worker."""

    def __init__(self, preload: Sequence[str], environment: dict[str, str]) -> None:
        self._settings = {"preload": list(preload)}
        self._environment = environment
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.generation = 0

    def launch(self) -> tuple[Connection, int]:
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
            return _connection(ours), self.generation

    def kill(self, pid: int, generation: int = 0) -> None:
        """Kill the group and wait for its leader, which dies at once."""
        del generation
        process = self._processes.pop(pid, None)
        if process is not None:
            kill_group(pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)

    def exit_code(self, pid: int, generation: int = 0) -> int | None:
        """How it ended; None if it did not end by itself."""
        del generation
        process = self._processes.get(pid)
        ended = process is not None and _ends_soon(pid)
        self.kill(pid)
        return process.returncode if process is not None and ended else None

    def close(self) -> None:
        """Kill all workers."""
        for pid in list(self._processes):
            self.kill(pid)


def _cannot_start(reason: bytes) -> WorkerStartError:
    return WorkerStartError(f"worker processes cannot start: {reason.decode(errors='replace')}")


def _message(control: socket.socket, seconds: float) -> bytes:
    """What the zygote says next; nothing if it is gone."""
    try:
        control.settimeout(seconds)
        return control.recv(1024)
    except BlockingIOError:
        return b""
    except TimeoutError:
        return b"no answer from the process that starts them"
    except OSError:
        return b""


def _connection(ours: socket.socket) -> Connection:
    """The parent's end, on which no read or write can block for ever."""
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        ours.setsockopt(socket.SOL_SOCKET, option, _time_value(TRANSFER_SECONDS))
    return Connection(ours.detach())


def limit_reading(connection: Connection, seconds: float) -> None:
    """From now on a read fails (BlockingIOError) when nothing has come for so long."""
    seconds = min(max(seconds, LEAST_TRANSFER_SECONDS), TRANSFER_SECONDS)
    file = os.dup(connection.fileno())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=file) as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _time_value(seconds))


def _time_value(seconds: float) -> bytes:
    """The system's ``struct timeval``."""
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


def _ends_soon(pid: int) -> bool:
    """A dying process closes its files first: whether it is dead a moment after it hung up."""
    deadline = clock.monotonic_seconds() + DYING_SECONDS
    while not has_ended(pid):
        if clock.monotonic_seconds() > deadline:
            return False
        clock.sleep_seconds(0.001)
    return True


def _interpreter(
    code: str, settings: str, environment: dict[str, str], file: int
) -> subprocess.Popen[bytes]:
    """A Python process of our own module, in a session of its own so that Ctrl-C passes it by."""
    paths = [entry for entry in sys.path if isinstance(entry, str)]
    bootstrap = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    return subprocess.Popen(
        [sys.executable, "-c", bootstrap + code, json.dumps(paths), settings],
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
