"""The main loop of a worker process, which receives tasks over a socket and sends replies.

The process may be killed at any moment. So it must not touch anything that outlives it: no
storage, no locks of the parent, and no files except the shared data, which it only reads.
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
from f2a_tune.cutoff.call_times import CallTimes
from f2a_tune.cutoff.callback_channel import open_channel
from f2a_tune.cutoff.limits import memory_limit
from f2a_tune.cutoff.messages import Hello, PackedError, Prepare, Reply, Task, error_texts
from f2a_tune.cutoff.shared import Shared, SharedReader
from f2a_tune.outcome import Kind

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# Exit code of a worker whose parent closed the connection and so will not ask for the exit code.
DISCONNECTED = 64
# When memory runs out, the kernel should kill a worker rather than the parent.
OOM_SCORE_ADJUSTMENT = "500"


def read_nothing() -> None:
    """Replace standard input, which contained the settings, by an empty one for later calls."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def become_worker(parent_pid: int) -> None:
    """Make this new process the leader of a group that can be killed, and die with its parent."""
    os.setsid()
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # Orphaned processes of a call become children of its worker, and of the zygote only when
        # the worker is dead.
        library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if os.getppid() != parent_pid:  # the parent died before PR_SET_PDEATHSIG took effect
            os._exit(1)
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE_ADJUSTMENT)


def serve(connection: Connection) -> None:
    """Run tasks until the parent closes the connection."""
    _draw_own_random_numbers()
    # A process forked by a call must neither keep the connection open nor send replies on it.
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
    """Runs tasks one after another, after warming up for the first one."""

    def __init__(self, connection: Connection, message: Prepare) -> None:
        self._connection: Connection | Nowhere = Nowhere()
        self._stamp: CallTimes | Nowhere = Nowhere()
        self._reader = SharedReader()
        self._context = message.context
        self._pid = os.getpid()
        # Errors are ignored here: they occur again, and are reported, in the task that needs it.
        with suppress(Exception):
            for path in message.shared_paths.values():
                self._reader.load(path)
            if message.last_payload is not None:
                cloudpickle.loads(message.last_payload)
        # A forked process copies each page of memory when it first writes to it, and the first
        # call writes to about a thousand pages. A rehearsal does this before the first real call.
        with suppress(Exception):
            rehearsal = Task(cloudpickle.dumps((pow, (2, 3), {})), None, {}, None)
            self.perform(pickle.loads(pickle.dumps(rehearsal)))
        self._stamp = CallTimes(message.stamp_path)
        self._connection = connection

    def perform(self, task: Task) -> None:
        """Run the call, record its start and end times, and send the reply."""
        started = clock.monotonic_seconds()
        value: Any = None
        failure: BaseException | None = None

        def running_seconds() -> float:
            return clock.monotonic_seconds() - started - self._stamp.paused_seconds

        line = open_channel(cast("Connection", self._connection), running_seconds)
        try:
            self._context = task.context or self._context
            self._context.apply()  # for every call: the last one may have changed settings
            function, args, kwargs = self._loaded(task)
            started = clock.monotonic_seconds()
            self._stamp.mark_started(started)
            with memory_limit(task.memory_bytes):
                value = function(*args, **kwargs)
        except BaseException as error:
            failure = error
        if os.getpid() != self._pid:  # the call has forked, and this is the child process
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)  # it could interrupt what follows
        ended = clock.monotonic_seconds()
        line.close()
        self._stamp.mark_ended(ended)
        _flush()
        seconds = ended - started - self._stamp.paused_seconds
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


def _flush() -> None:
    """Flush the output of the call."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


class Nowhere:
    """Replaces the connection and the call times during a rehearsal and discards everything."""

    paused_seconds = 0.0

    def mark_started(self, now: float) -> None:
        """Discard the time."""

    def mark_ended(self, now: float) -> None:
        """Discard the time."""

    def send(self, message: Any) -> None:
        """Pickle the message, as a connection does, and discard it."""
        pickle.dumps(message)

    def send_bytes(self, body: bytes) -> None:
        """Discard the bytes."""


def _draw_own_random_numbers() -> None:
    """Reseed the global random generators.

    Forked workers inherit the same state, but unseeded code must not draw the same numbers in all
    of them.
    """
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
            f"back ({texts['error_message']}). Return plain data."
        )
        return Reply(seconds, Kind.FAILED, False, result_lost=True, **texts), None


def _failure(error: BaseException, seconds: float) -> tuple[Reply, bytes | None]:
    kind = Kind.OUT_OF_MEMORY if isinstance(error, MemoryError) else Kind.FAILED
    body: bytes | None = None
    for packed in (error, PackedError(error)):
        try:
            body = _pickled(packed)
            pickle.loads(body)  # some exceptions can be pickled but not unpickled
            break
        except BaseException:  # pickling runs methods of the exception, which may raise anything
            body = None
    return Reply(seconds, kind, body is not None, **error_texts(error)), body


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return bytes(cloudpickle.dumps(value))
