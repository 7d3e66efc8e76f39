"""What became of one call or fit: a value that says so, never an exception and never NaN.

In goes what a worker or a replay saw; out come frozen `Outcome` objects, which every other part
reads. Nothing is averaged or decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """How a call ended."""

    FINISHED = "finished"
    GAVE_UP = "gave_up"
    FAILED = "failed"
    OUT_OF_MEMORY = "out_of_memory"


FAILED = (Kind.FAILED, Kind.OUT_OF_MEMORY)
"""The kinds that say nothing about how long a call takes: it went wrong."""


class CutoffExceededError(TimeoutError):
    """A call did not finish by its cutoff; raised only by `Outcome.unwrap`."""


class WorkerDiedError(RuntimeError):
    """The process that ran a call ended before the call did; raised only by `Outcome.unwrap`."""


ExceptionClass = type[BaseException]


def full_name(kind: type) -> str:
    """The name of a class with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True)
class ErrorReport:
    """What a call raised: names and texts, and the exception itself where it could be sent."""

    type: str
    message: str
    traceback: str = ""
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    bases: tuple[str, ...] = ()
    """Full names of its class and what that derives from: the exception itself may not arrive."""

    @property
    def is_death(self) -> bool:
        """Whether it was the process that ended, and not the call that raised."""
        return self.type == WorkerDiedError.__name__ and not self.bases

    def is_a(self, kind: ExceptionClass) -> bool:
        """Whether what was raised is of this class."""
        if self.exception is not None:
            return isinstance(self.exception, kind)
        return full_name(kind) in self.bases

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Outcome:
    """How one call ended, with its value or its error, and the seconds that it took.

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

    @classmethod
    def finished(cls, value: Any, seconds: float) -> Outcome:
        """The call returned ``value``."""
        return cls(Kind.FINISHED, seconds, value=value)

    @classmethod
    def gave_up(cls, cutoff_seconds: float, seconds: float | None = None) -> Outcome:
        """The call was still running at its cutoff and was ended."""
        spent = cutoff_seconds if seconds is None else seconds
        return cls(Kind.GAVE_UP, spent, cutoff_seconds=cutoff_seconds)

    @classmethod
    def failed(cls, error: ErrorReport, seconds: float) -> Outcome:
        """The call raised, or its process died."""
        return cls(Kind.FAILED, seconds, error=error)

    @classmethod
    def out_of_memory(cls, error: ErrorReport, seconds: float) -> Outcome:
        """The call asked for more memory than it may have, or than there is."""
        return cls(Kind.OUT_OF_MEMORY, seconds, error=error)

    @property
    def ok(self) -> bool:
        """Whether the call finished."""
        return self.kind is Kind.FINISHED

    def unwrap(self) -> Any:
        """Return the value of a finished call; raise what stands in its way otherwise."""
        if self.kind is Kind.FINISHED:
            return self.value
        if self.kind is Kind.GAVE_UP:
            raise CutoffExceededError(f"the call did not finish within {self.cutoff_seconds:g} s")
        assert self.error is not None
        cause = WorkerDiedError(self.error.traceback or str(self.error))
        if self.error.exception is not None:
            raise self.error.exception from cause
        if self.kind is Kind.OUT_OF_MEMORY:
            raise MemoryError(str(self.error)) from cause
        raise WorkerDiedError(str(self.error)) from cause
