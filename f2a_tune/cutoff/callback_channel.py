"""The channel through which a running call asks questions to the parent process.

The parent answers while it waits for the call to end, and this time counts towards the call's
cutoff. Only the worker process itself can ask; processes that the call starts have no channel to
the parent.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from f2a_tune.cutoff.messages import Answer, Question, quick_bytes


class NoParentError(RuntimeError):
    """There is no caller to ask: outside a call, after it, or in a process that it started."""


class CallbackChannel:
    """The channel of one call; it is closed when the call ends.

    A separate thread sends and receives the messages. Signal handlers run in the main thread, and
    a handler that raises there, such as one for a timeout, could otherwise leave half a message in
    the channel.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pid = os.getpid()
        self._lock, self._wire = threading.Lock(), threading.Lock()
        self._open = True

    def ask(self, content: Any) -> Any:
        """Send a question, wait for the answer, and return or raise it.

        Questions of several threads are processed one after another.
        """
        if os.getpid() != self._pid:
            raise NoParentError(
                "a process started by the call cannot ask the caller. Ask from the worker process "
                "itself."
            )
        payload = quick_bytes(Question(content))
        with self._lock:
            if not self._open:
                raise NoParentError(
                    "the call has ended, so one of its threads that is still running cannot ask."
                )
            future = _talker().submit(self._exchange, payload)
        answer = future.result()
        if answer.error is not None:
            raise answer.error
        return answer.value

    def close(self) -> None:
        """Refuse further questions and wait for an exchange that is in progress."""
        with self._lock:
            self._open = False
        with self._wire:
            pass

    def _exchange(self, payload: bytes) -> Answer:
        # The lock is needed because an executor that is interrupted at the wrong moment may start
        # more than its one thread.
        with self._wire:
            if not self._open:
                raise NoParentError("the call has ended.")
            self._connection.send_bytes(payload)
            answer: Answer = self._connection.recv()
            return answer


_channel: CallbackChannel | None = None
_thread: ThreadPoolExecutor | None = None
_thread_pid = 0


def _talker() -> ThreadPoolExecutor:
    """Return the thread that talks for all calls of a worker.

    A forked child process does not inherit the thread and creates a new one.
    """
    global _thread, _thread_pid
    if _thread is None or _thread_pid != os.getpid():
        _thread, _thread_pid = ThreadPoolExecutor(1, "f2a_tune-line"), os.getpid()
    return _thread


def open_channel(connection: Connection) -> CallbackChannel:
    """Open the channel of a new call."""
    global _channel
    _channel = CallbackChannel(connection)
    return _channel


def current_channel() -> CallbackChannel:
    """Return the channel of the call that this worker process is running."""
    if _channel is None:
        raise NoParentError(
            "this is not a worker process of f2a_tune, so there is no caller to ask."
        )
    return _channel


def in_worker() -> bool:
    """Return whether this process is a worker process, whose calls already have a cutoff."""
    return _channel is not None
