"""The loop of a worker process: tasks come in over a socket, their outcomes go out.

It runs in a child that may be killed at any moment, so it touches nothing that outlives it: no
storage, no lock of the parent's, no file but the shared data that it reads.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, cast

import cloudpickle

from f2a_tune import clock
from f2a_tune.cutoff.dialogue import open_line
from f2a_tune.cutoff.limits import memory_limit
from f2a_tune.cutoff.messages import Hello, Prepare, Reply, Task, error_texts
from f2a_tune.cutoff.shared import Shared, SharedReader
from f2a_tune.cutoff.stamp import Stamp
from f2a_tune.outcome import Kind

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# The exit code of a worker whose parent has hung up: nobody will ask how it ended.
HUNG_UP = 64
# When memory runs out, the kernel should take a worker rather than the parent.
OOM_SCORE_ADJUSTMENT = "500"


def become_worker(parent_pid: int) -> None:
    """Make this fresh process killable as a group, and make it die with its parent."""
    os.setsid()
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # Orphans of a call stay below its worker, and come to the zygote only when that is dead.
        library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if os.getppid() != parent_pid:  # it died before the line above could take effect
            os._exit(1)
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE_ADJUSTMENT)


def serve(connection: Connection) -> None:
    """Answer tasks until the parent hangs up."""
    _draw_own_random_numbers()
    # A process that a call forks must not hold, or answer on, the connection of its parent.
    os.register_at_fork(after_in_child=connection.close)
    connection.send(Hello(os.getpid()))
    performer: Performer | None = None
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        if isinstance(message, Prepare):
            performer = Performer(connection, message)
        else:
            assert performer is not None
            performer.perform(message)


class Performer:
    """Performs tasks one after another; prepares itself before the first."""

    def __init__(self, connection: Connection, message: Prepare) -> None:
        self._connection: Connection | Nowhere = Nowhere()
        self._stamp: Stamp | Nowhere = Nowhere()
        self._reader = SharedReader()
        self._context = message.context
        self._pid = os.getpid()
        # What fails now is reported with the task that needs it.
        with suppress(Exception):
            for path in message.shared_paths.values():
                self._reader.load(path)
            if message.last_payload is not None:
                cloudpickle.loads(message.last_payload)
        # A forked process copies a page of memory when it first writes to it, and a first call
        # writes to a thousand: a rehearsal takes that time now.
        with suppress(Exception):
            rehearsal = Task(cloudpickle.dumps((pow, (2, 3), {})), None, {}, None)
            self.perform(pickle.loads(pickle.dumps(rehearsal)))
        self._stamp = Stamp(message.stamp_path)
        self._connection = connection

    def perform(self, task: Task) -> None:
        """Run the call, stamp its begin and end, and reply."""
        started = clock.monotonic_seconds()
        value: Any = None
        failure: BaseException | None = None
        line = open_line(cast("Connection", self._connection))
        try:
            self._context = task.context or self._context
            self._context.apply()  # each time: the last call may have changed something
            function, args, kwargs = self._loaded(task)
            started = clock.monotonic_seconds()
            self._stamp.mark_started(started)
            with memory_limit(task.memory_bytes):
                value = function(*args, **kwargs)
        except BaseException as error:
            failure = error
        if os.getpid() != self._pid:  # the call has forked, and this is the child
            os._exit(0)
        ended = clock.monotonic_seconds()
        line.close()
        self._stamp.mark_ended(ended)
        _settle()
        seconds = ended - started
        reply, body = _success(value, seconds) if failure is None else _failure(failure, seconds)
        self._connection.send(reply)
        if body is not None:
            self._connection.send_bytes(body)

    def _loaded(self, task: Task) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        self._reader.keep_only(task.shared_paths.values())
        function, args, kwargs = cloudpickle.loads(task.payload)
        resolve = partial(self._resolved, task.shared_paths)
        return function, tuple(map(resolve, args)), {k: resolve(v) for k, v in kwargs.items()}

    def _resolved(self, paths: Mapping[str, str], value: Any) -> Any:
        return self._reader.load(paths[value.name]) if isinstance(value, Shared) else value


def _settle() -> None:
    """Leave nothing of a call that could end the next one, and show what it printed."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


class Nowhere:
    """Takes the messages and stamps of a rehearsal, and drops them."""

    def mark_started(self, now: float) -> None:
        """Drop."""

    def mark_ended(self, now: float) -> None:
        """Drop."""

    def send(self, message: Any) -> None:
        """Pickle and drop."""
        pickle.dumps(message)

    def send_bytes(self, body: bytes) -> None:
        """Drop."""


def _draw_own_random_numbers() -> None:
    """Forked twins start with the same generators; code that uses them unseeded must differ."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _success(value: Any, seconds: float) -> tuple[Reply, bytes | None]:
    try:
        return Reply(seconds, Kind.FINISHED, True), _pickled(value)
    except MemoryError as error:
        return Reply(seconds, Kind.OUT_OF_MEMORY, False, **error_texts(error)), None
    except Exception as error:
        texts = error_texts(error)
        texts["error_message"] = (
            f"the call finished, but its result of type {type(value).__name__} cannot be sent "
            f"back ({texts['error_message']}): return plain data."
        )
        return Reply(seconds, Kind.FAILED, False, **texts), None


def _failure(error: BaseException, seconds: float) -> tuple[Reply, bytes | None]:
    kind = Kind.OUT_OF_MEMORY if isinstance(error, MemoryError) else Kind.FAILED
    try:
        body: bytes | None = _pickled(error)
    except BaseException:  # its own methods ran: anything may have happened
        body = None
    return Reply(seconds, kind, body is not None, **error_texts(error)), body


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return bytes(cloudpickle.dumps(value))
