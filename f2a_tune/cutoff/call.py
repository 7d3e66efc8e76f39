"""A function call with its limits, checked and pickled, as pools and workers take it."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from f2a_tune.checks import positive_integer, real_number
from f2a_tune.cutoff import limits
from f2a_tune.cutoff.context import Context
from f2a_tune.cutoff.shared import cloud_bytes

if TYPE_CHECKING:
    from f2a_tune.cutoff.paused_call import PausedCall


class MemoryLimitWarning(UserWarning):
    """This platform cannot limit the memory of a call."""


class Pause:
    """The type of `PAUSE`."""


PAUSE = Pause()
"""What ``Call.answer`` returns to pause the call; it gets the answer True when it continues."""


def nobody(content: Any) -> Any:
    """Refuse to answer; this is the default for calls without an ``answer`` function."""
    raise RuntimeError(f"this call has no function that answers its question {content!r}.")


@dataclass(frozen=True)
class Call:
    """A pickled function call with the settings of its caller and its limits."""

    payload: bytes
    """The cloudpickled (function, args, kwargs)."""
    context: Context
    """Settings of the caller, which the worker applies before the call."""
    memory_bytes: int | None
    """Memory limit of the call; None means the default of the pool."""
    cutoff_seconds: float
    """Seconds after which the call is given up."""
    answer: Callable[[Any], Any] = nobody
    """Function that answers the questions of the running call."""
    latest: float = math.inf
    """Time on the monotonic clock at which the call is given up, even if it has not started."""
    more_seconds: Callable[[], float] | None = None
    """Function that is called at the cutoff and returns how much longer the call may run.

    The call is given up if it returns 0.
    """
    prelude_cutoff_seconds: float | None = None
    """Cutoff of the prelude; None means that the call has no prelude.

    The prelude is the part of the call before its first question, such as imports and loading
    data. The cutoff of the call then counts from the first question. The call is not given up
    before it has run as long as its prelude, because the next worker would need that time again.
    """
    pausable: bool = False
    """Whether the call is paused at its cutoff, instead of given up, unless it is ``latest``."""
    continues: PausedCall | None = None
    """The paused call to continue, instead of starting a new one. ``payload`` is ignored."""


def checked_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    cutoff: float,
    memory: int | None,
) -> Call:
    """Check the arguments of a call and pickle it, before any process is involved."""
    return Call(
        payload=_packed(function, args, kwargs),
        context=Context.current(),
        memory_bytes=checked_memory(memory),
        cutoff_seconds=_checked_cutoff(cutoff),
    )


def plain_call(
    function: Callable[..., Any], args: tuple[Any, ...], cutoff: float, memory: int | None
) -> Call:
    """Pickle a call of our own function with plain arguments, ten times as fast as cloudpickle."""
    return Call(
        payload=pickle.dumps((function, args, {}), protocol=pickle.HIGHEST_PROTOCOL),
        context=Context.current(),
        memory_bytes=memory,
        cutoff_seconds=cutoff,
    )


def _packed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    if not callable(function):
        raise TypeError(f"function must be callable, got {function!r}.")
    return cloud_bytes(f"function={function!r} with its arguments", (function, args, kwargs))


def _checked_cutoff(cutoff: Any) -> float:
    """Return the cutoff as a positive number of seconds; infinity means no cutoff."""
    seconds = real_number("cutoff", cutoff)
    if math.isnan(seconds) or seconds <= 0:
        raise ValueError(f"cutoff must be a number of seconds above 0, got {cutoff!r}.")
    return seconds


def checked_memory(memory: Any) -> int | None:
    """Return the limit as a positive number of bytes or None; warn if it is not supported."""
    if memory is None:
        return None
    count = positive_integer("memory", memory)
    if not limits.SUPPORTED:
        warnings.warn(
            f"memory={memory!r} is ignored: this platform cannot limit the memory of a call.",
            MemoryLimitWarning,
            stacklevel=4,
        )
        return None
    return count
