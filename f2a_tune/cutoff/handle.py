"""The parent's end of one worker: a task goes in, an `Outcome` comes out, on time."""

from __future__ import annotations

import math
import pickle
import signal
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from f2a_tune import clock
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.launcher import Launcher, WorkerStartError
from f2a_tune.cutoff.messages import Ended, Hello, Prepare, Reply, Started, Task
from f2a_tune.outcome import ErrorReport, Kind, Outcome

# A worker that does not come up by then never will.
HELLO_SECONDS = 60.0
# How long a worker may take, beyond the cutoff, to unpickle a call before it begins.
LOADING_SECONDS = 10.0
# How long a finished call may take to send its result.
RESULT_SECONDS = 60.0


class NotStartedError(Exception):
    """The worker was gone before it began the call: another one may try."""


class WorkerHandle:
    """One worker process, seen from the parent; used by one thread at a time."""

    def __init__(
        self,
        launcher: Launcher,
        context: Context,
        shared_paths: Mapping[str, str],
        last_payload: bytes | None,
    ) -> None:
        self._launcher = launcher
        self._connection: Connection = launcher.launch()
        self._pid: int | None = None
        self._context = context
        # Sent before the worker exists: it finds the message when it is up, and so warms itself.
        self._connection.send(Prepare(context, dict(shared_paths), last_payload))
        self.alive = True

    def perform(
        self,
        payload: bytes,
        context: Context,
        shared_paths: Mapping[str, str],
        memory_bytes: int | None,
        cutoff_seconds: float,
    ) -> Outcome:
        """Run one call to its end or to its cutoff."""
        self._meet()
        changed = context if context != self._context else None
        self._context = context
        sent = clock.monotonic_seconds()
        try:
            self._connection.send(Task(payload, changed, dict(shared_paths), memory_bytes))
            started = self._receive(Started, sent + cutoff_seconds + LOADING_SECONDS)
        except (EOFError, OSError):
            self.kill()
            raise NotStartedError from None
        if started is None:
            self.kill()
            return Outcome.gave_up(cutoff_seconds, clock.monotonic_seconds() - sent)
        try:
            return self._await_end(started.at, cutoff_seconds)
        except (EOFError, OSError):
            return self._death(clock.monotonic_seconds() - started.at)

    def kill(self) -> None:
        """End the worker and everything it started."""
        self.alive = False
        if self._pid is not None:
            self._launcher.kill(self._pid)
        # A worker that has not said hello yet finds nobody there and leaves.
        self._connection.close()

    def _meet(self) -> None:
        if self._pid is not None:
            return
        try:
            hello = self._receive(Hello, clock.monotonic_seconds() + HELLO_SECONDS)
        except (EOFError, OSError):
            hello = None
        if hello is None:
            self.kill()
            raise WorkerStartError(
                "a worker process did not start: see its messages on standard error."
            )
        self._pid = hello.pid

    def _await_end(self, started_at: float, cutoff_seconds: float) -> Outcome:
        ended = self._receive(Ended, started_at + cutoff_seconds)
        if ended is None:
            self.kill()
            return Outcome.gave_up(cutoff_seconds, clock.monotonic_seconds() - started_at)
        deadline = clock.monotonic_seconds() + RESULT_SECONDS
        reply = self._receive(Reply, deadline)
        body = self._body(reply, deadline)
        if reply is None or (reply.has_body and body is None):
            self.kill()
            report = ErrorReport(
                "ResultTooSlow",
                f"the call finished in {ended.seconds:.3g} s, but its result did not arrive "
                f"within {RESULT_SECONDS:g} s more: return less data.",
            )
            return Outcome.failed(report, ended.seconds)
        if reply.kind is Kind.OUT_OF_MEMORY:
            self.kill()  # what the call had built is still there, in pieces
        return _outcome(reply, body, ended.seconds)

    def _receive(self, expected: type[Any], deadline: float) -> Any:
        """The next message, or None if there is none by the deadline."""
        wait = max(deadline - clock.monotonic_seconds(), 0.0)
        if not self._connection.poll(None if math.isinf(wait) else wait):
            return None
        message = self._connection.recv()
        assert isinstance(message, expected), message
        return message

    def _body(self, reply: Reply | None, deadline: float) -> bytes | None:
        if reply is None or not reply.has_body:
            return None
        wait = max(deadline - clock.monotonic_seconds(), 0.0)
        return self._connection.recv_bytes() if self._connection.poll(wait) else None

    def _death(self, seconds: float) -> Outcome:
        """The worker died under the call: say how."""
        assert self._pid is not None
        self.alive = False
        code = self._launcher.exit_code(self._pid)
        self._connection.close()
        report = ErrorReport("WorkerDiedError", _cause_of_death(code))
        if code == -signal.SIGKILL:
            return Outcome.out_of_memory(report, seconds)
        return Outcome.failed(report, seconds)


def _outcome(reply: Reply, body: bytes | None, seconds: float) -> Outcome:
    if reply.kind is Kind.FINISHED:
        assert body is not None
        try:
            return Outcome.finished(pickle.loads(body), seconds)
        except Exception as error:
            message = f"the call finished, but its result cannot be read here: {error}"
            return Outcome.failed(ErrorReport(type(error).__name__, message), seconds)
    report = ErrorReport(
        reply.error_type, reply.error_message, reply.error_traceback, _exception(body)
    )
    return Outcome(reply.kind, seconds, error=report)


def _exception(body: bytes | None) -> BaseException | None:
    """The exception itself, if it survived the journey: some only pickle, but do not unpickle."""
    try:
        found = None if body is None else pickle.loads(body)
    except Exception:
        return None
    return found if isinstance(found, BaseException) else None


def _cause_of_death(code: int | None) -> str:
    if code is None:
        return "the worker process died"
    if code >= 0:
        return f"the worker process ended itself with exit code {code}"
    name = signal.Signals(-code).name
    if code == -signal.SIGKILL:
        return f"the worker process was killed ({name}), most likely for want of memory"
    return f"the worker process was killed by a signal ({name})"
