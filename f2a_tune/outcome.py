"""The result of one call or fit as a value, so that giving up is neither an exception nor NaN.

Workers and replays create the frozen `Outcome` objects, and all other modules read them. Keep
this module free of decisions and statistics: it only describes what happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """How a call ended."""

    FINISHED = "finished"
    """The call returned a value."""
    GAVE_UP = "gave_up"
    """The call was still running at its cutoff and was killed."""
    FAILED = "failed"
    """The call raised an exception, or its worker process died."""
    OUT_OF_MEMORY = "out_of_memory"
    """The call exceeded its memory limit, or the machine ran out of memory."""
    PAUSED = "paused"
    """The call was stopped and can be continued; only for calls that allow it."""


FAILED = (Kind.FAILED, Kind.OUT_OF_MEMORY)
"""The kinds of calls that went wrong; their seconds do not show how long a call takes."""


class CutoffExceededError(TimeoutError):
    """The call did not finish by its cutoff; raised only by `Outcome.unwrap`."""


class WorkerTracebackError(Exception):
    """Holds the traceback of the worker process; the cause of the exception `unwrap` raises."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}" if self.args else ""


class WorkerDiedError(RuntimeError):
    """The worker process died before the call ended; raised only by `Outcome.unwrap`."""


ExceptionClass = type[BaseException]


def full_name(kind: type) -> str:
    """Return the name of a class including its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True)
class ErrorReport:
    """Description of the exception that a call raised.

    Parameters
    ----------
    type : str
        Name of the exception class.
    message : str
        Text of the exception.
    traceback : str, default=""
        Traceback in the worker process, as text.
    exception : BaseException, default=None
        The exception itself, or None if it could not be sent from the worker process.
    """

    type: str
    message: str
    traceback: str = ""
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    bases: tuple[str, ...] = ()
    """Full names of the exception class and its base classes, for when ``exception`` is None."""
    result_lost: bool = False
    """Whether the call succeeded, but its result could not be sent or read."""

    @property
    def is_death(self) -> bool:
        """Whether the worker process died, as opposed to the call raising an exception."""
        return self.type == WorkerDiedError.__name__ and not self.bases

    def is_a(self, kind: ExceptionClass) -> bool:
        """Return whether the exception is an instance of this class."""
        if self.exception is not None:
            return isinstance(self.exception, kind)
        return full_name(kind) in self.bases

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Outcome:
    """How one call ended, with its value or its error and the seconds it took.

    Parameters
    ----------
    kind : Kind
        Whether the call finished, was given up, failed or ran out of memory.
    seconds : float
        Seconds that the call took. For a call that was given up, the seconds it was run.
    value : object, default=None
        Return value of a finished call.
    error : ErrorReport, default=None
        Description of the exception if the call failed or ran out of memory.
    cutoff_seconds : float, default=None
        The cutoff, if the call was given up.

    Examples
    --------
    >>> Outcome.finished(0.9, seconds=0.2).unwrap()
    0.9
    >>> Outcome.gave_up(cutoff_seconds=5.0).kind
    <Kind.GAVE_UP: 'gave_up'>
    """

    kind: Kind
    seconds: float
    value: Any = None
    error: ErrorReport | None = None
    cutoff_seconds: float | None = None
    prelude_seconds: float = 0.0
    """Seconds of preparation, such as loading data, which ``seconds`` does not include."""

    @classmethod
    def finished(cls, value: Any, seconds: float) -> Outcome:
        """Return the outcome of a call that returned ``value``."""
        return cls(Kind.FINISHED, seconds, value=value)

    @classmethod
    def gave_up(cls, cutoff_seconds: float, seconds: float | None = None) -> Outcome:
        """Return the outcome of a call that was still running at its cutoff and was killed."""
        spent = cutoff_seconds if seconds is None else seconds
        return cls(Kind.GAVE_UP, spent, cutoff_seconds=cutoff_seconds)

    @classmethod
    def failed(cls, error: ErrorReport, seconds: float) -> Outcome:
        """Return the outcome of a call that raised an exception or whose worker process died."""
        return cls(Kind.FAILED, seconds, error=error)

    @classmethod
    def out_of_memory(cls, error: ErrorReport, seconds: float) -> Outcome:
        """Return the outcome of a call that exceeded its memory limit or the available memory."""
        return cls(Kind.OUT_OF_MEMORY, seconds, error=error)

    @classmethod
    def paused(cls, call: Any, seconds: float) -> Outcome:
        """Return the outcome of a call that was stopped and can be continued; see `PausedCall`."""
        return cls(Kind.PAUSED, seconds, value=call)

    @property
    def ok(self) -> bool:
        """Whether the call finished."""
        return self.kind is Kind.FINISHED

    def unwrap(self) -> Any:
        """Return the value of a finished call, or raise.

        Raises
        ------
        CutoffExceededError
            If the call was given up or paused.
        MemoryError
            If the call ran out of memory.
        WorkerDiedError
            If the worker process died, or the exception could not be sent to this process.
        Exception
            The exception that the call raised, with the worker's traceback as its cause.
        """
        if self.kind is Kind.FINISHED:
            return self.value
        if self.kind is Kind.PAUSED:
            raise CutoffExceededError("the call was paused and has not finished")
        if self.kind is Kind.GAVE_UP:
            raise CutoffExceededError(f"the call did not finish within {self.cutoff_seconds:g} s")
        assert self.error is not None
        cause = WorkerTracebackError(self.error.traceback) if self.error.traceback else None
        if self.error.exception is not None:
            raise self.error.exception from cause
        if self.kind is Kind.OUT_OF_MEMORY:
            raise MemoryError(str(self.error)) from cause
        raise WorkerDiedError(str(self.error)) from cause


Scores = float | dict[str, float]


@dataclass(frozen=True)
class FoldResult:
    """Scores and times of one fitted fold; with several metrics, scores are a dict by metric."""

    test_scores: Scores
    fit_seconds: float
    score_seconds: float
    train_scores: Scores | None = None
