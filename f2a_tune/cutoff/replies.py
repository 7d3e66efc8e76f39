"""Outcomes from the replies of a worker, and the answers to its questions, as bytes."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cloudpickle

from f2a_tune.cutoff.call import PAUSE
from f2a_tune.cutoff.messages import Answer, Question, Reply, quick_bytes
from f2a_tune.outcome import ErrorReport, Kind, Outcome


def packed_answer(question: Question, answer: Callable[[Any], Any]) -> bytes | None:
    """Return the answer as bytes; None if the call is to be paused."""
    try:
        value = answer(question.content)
        return None if value is PAUSE else quick_bytes(Answer(value))
    except Exception as error:
        with suppress(Exception):
            packed = bytes(cloudpickle.dumps(Answer(error=error)))
            pickle.loads(packed)  # some exceptions can be pickled but not unpickled
            return packed
        text = f"{type(error).__name__}: {error}"
        return bytes(cloudpickle.dumps(Answer(error=RuntimeError(text))))


def result_too_slow(seconds: float) -> Outcome:
    """Return the outcome of a call whose result did not arrive."""
    report = ErrorReport(
        "ResultTooSlow",
        f"the call finished after {seconds:.3g} s, but its result did not arrive in time. Return "
        "less data.",
    )
    return Outcome.failed(report, seconds)


def outcome_of(reply: Reply, body: bytes | None) -> Outcome:
    """Return the outcome that a reply describes."""
    seconds = reply.seconds
    if reply.kind is Kind.FINISHED:
        assert body is not None
        try:
            return Outcome.finished(pickle.loads(body), seconds)
        except Exception as error:
            message = f"the call finished, but its result cannot be unpickled: {error}"
            report = ErrorReport(type(error).__name__, message, result_lost=True)
            return Outcome.failed(report, seconds)
    report = ErrorReport(
        reply.error_type,
        reply.error_message,
        reply.error_traceback,
        _exception(body),
        reply.error_bases,
        reply.result_lost,
    )
    return Outcome(reply.kind, seconds, error=report)


def _exception(body: bytes | None) -> BaseException | None:
    """Return the exception, or None: some exceptions can be pickled but not unpickled."""
    try:
        found = None if body is None else pickle.loads(body)
    except Exception:
        return None
    return found if isinstance(found, BaseException) else None


def cause_of_death(code: int | None) -> str:
    """Return why a worker process ended, given its exit code."""
    if code is None:
        return "the worker process lost its connection and was killed"
    if code >= 0:
        return f"the worker process exited with exit code {code}"
    known = -code in set(signal.Signals)
    name = signal.Signals(-code).name if known else f"signal {-code}"
    if code == -signal.SIGKILL:
        return f"the worker process was killed ({name}), most likely because memory ran out"
    return f"the worker process was killed by a signal ({name})"
