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
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from f2a_tune import clock
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.limits import memory_limit
from f2a_tune.cutoff.messages import Ended, Hello, Prepare, Reply, Started, Task, error_texts
from f2a_tune.cutoff.shared import Shared, SharedReader
from f2a_tune.outcome import Kind

PR_SET_PDEATHSIG = 1
# When memory runs out, the kernel should take a worker rather than the parent.
OOM_SCORE_ADJUSTMENT = "500"


def become_worker(parent_pid: int) -> None:
    """Make this fresh process killable as a group, and make it die with its parent."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:  # it died before the line above could take effect
            os._exit(1)
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE_ADJUSTMENT)


def serve(connection: Connection) -> None:
    """Answer tasks until the parent hangs up."""
    _draw_own_random_numbers()
    reader = SharedReader()
    context: Context | None = None
    connection.send(Hello(os.getpid()))
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        context = message.context or context
        if isinstance(message, Prepare):
            # A failure here would come back with the first task, where it can be reported.
            with suppress(Exception):
                message.context.apply()
                for path in message.shared_paths.values():
                    reader.load(path)
                if message.last_payload is not None:
                    cloudpickle.loads(message.last_payload)
        else:
            _perform(message, context, reader, connection)


def _draw_own_random_numbers() -> None:
    """Forked twins start with the same generators; code that uses them unseeded must differ."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _perform(
    task: Task, context: Context | None, reader: SharedReader, connection: Connection
) -> None:
    try:
        if context is not None:  # also if it is not new: the last call may have changed something
            context.apply()
        function, args, kwargs = cloudpickle.loads(task.payload)
        args = tuple(_resolved(value, task.shared_paths, reader) for value in args)
        kwargs = {
            name: _resolved(value, task.shared_paths, reader) for name, value in kwargs.items()
        }
    except BaseException as error:
        connection.send(Started(clock.monotonic_seconds()))
        connection.send(Ended(0.0))
        _send(connection, *_failure(error))
        return
    started = clock.monotonic_seconds()
    connection.send(Started(started))
    failure, value = None, None
    try:
        with memory_limit(task.memory_bytes):
            value = function(*args, **kwargs)
    except BaseException as error:
        failure = error
    connection.send(Ended(clock.monotonic_seconds() - started))
    _send(connection, *(_success(value) if failure is None else _failure(failure)))


def _send(connection: Connection, reply: Reply, body: bytes | None) -> None:
    connection.send(reply)
    if body is not None:
        connection.send_bytes(body)


def _resolved(value: Any, paths: Mapping[str, str], reader: SharedReader) -> Any:
    return reader.load(paths[value.name]) if isinstance(value, Shared) else value


def _success(value: Any) -> tuple[Reply, bytes | None]:
    try:
        return Reply(Kind.FINISHED, True), _pickled(value)
    except MemoryError as error:
        return Reply(Kind.OUT_OF_MEMORY, False, **error_texts(error)), None
    except Exception as error:
        texts = error_texts(error)
        texts["error_message"] = (
            f"the call finished, but its result of type {type(value).__name__} cannot be sent "
            f"back ({texts['error_message']}): return plain data."
        )
        return Reply(Kind.FAILED, False, **texts), None


def _failure(error: BaseException) -> tuple[Reply, bytes | None]:
    kind = Kind.OUT_OF_MEMORY if isinstance(error, MemoryError) else Kind.FAILED
    try:
        body: bytes | None = _pickled(error)
    except BaseException:  # its own methods ran: anything may have happened
        body = None
    return Reply(kind, body is not None, **error_texts(error)), body


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return bytes(cloudpickle.dumps(value))
