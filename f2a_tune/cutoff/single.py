"""`run_with_cutoff`: one call with a cutoff, through a pool that this process keeps for it."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any

from f2a_tune.cutoff.pool import CutoffPool, checked_call
from f2a_tune.outcome import Outcome

# Workers are made when they are needed; this only bounds how many threads may call at once.
MOST_CALLS_AT_ONCE = 256

_lock = threading.Lock()
_pool: CutoffPool | None = None


def run_with_cutoff(
    function: Callable[..., Any],
    /,
    *args: Any,
    cutoff: float,
    memory: int | None = None,
    **kwargs: Any,
) -> Outcome:
    """Call ``function(*args, **kwargs)`` in a process of its own; end it after ``cutoff`` seconds.

    Whatever the function does (a loop in C, swallowing exceptions, crashing), this returns an
    `Outcome` and never raises on its behalf. Functions from notebooks and scripts work. The first
    call of a process takes a second or so to start the workers, later ones about a millisecond.

    Parameters
    ----------
    cutoff
        Seconds that the call may take.
    memory
        Bytes that the call may map beyond what its worker has (Linux).

    Examples
    --------
    >>> import time
    >>> run_with_cutoff(pow, 2, 10, cutoff=10).value
    1024
    >>> run_with_cutoff(time.sleep, 3600, cutoff=0.1).kind
    <Kind.GAVE_UP: 'gave_up'>
    """
    call = checked_call(function, args, kwargs, cutoff, memory)
    return _shared_pool().perform(call)


def _shared_pool() -> CutoffPool:
    global _pool
    with _lock:
        if _pool is None:
            _pool = CutoffPool(MOST_CALLS_AT_ONCE)
            # One call should be as fast as without a worker: threads are left as they are.
            _pool.threads_per_worker = None
            atexit.register(_close)
        return _pool


def _close() -> None:
    if _pool is not None:
        _pool.close()


def _unlock_in_child() -> None:
    """Another thread may have held the lock when this process was forked."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)
