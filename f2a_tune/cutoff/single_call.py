"""`run_with_cutoff`, which runs one call with a cutoff in a pool that this process keeps.

The pool is created by the first call and closed at the exit of the process.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any

from f2a_tune.cutoff.pool import CutoffPool
from f2a_tune.outcome import Outcome

# Workers are started when needed; this only limits the number of threads that call concurrently.
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
    """Call ``function(*args, **kwargs)`` in a worker process and kill it at the cutoff.

    The cutoff also works for functions that loop in C code, swallow exceptions or start processes.
    An exception or a crash of the function is reported in the returned `Outcome` and not raised.
    The first call takes about a second to start the worker processes; later calls have an overhead
    of about a millisecond. To choose the number of workers or to share large data between calls,
    use `CutoffPool`.

    Parameters
    ----------
    function : callable
        The function to call. Functions defined in scripts and notebooks work.
    *args, **kwargs
        Its arguments, which must be picklable (cloudpickle is used).
    cutoff : float
        Seconds after which the call is killed, counted from the start of the call. The start of
        the worker process does not count. ``math.inf`` means no cutoff.
    memory : int, default=None
        Memory limit in bytes, in addition to what the worker process uses before the call. None
        means no limit. Set it if the function could use up the memory of the machine. Only Linux
        supports it; other platforms warn and ignore it.

    Returns
    -------
    Outcome
        How the call ended. ``outcome.unwrap()`` returns the value or raises the error.

    Examples
    --------
    >>> import time
    >>> run_with_cutoff(pow, 2, 10, cutoff=10).value
    1024
    >>> run_with_cutoff(time.sleep, 3600, cutoff=0.1).kind
    <Kind.GAVE_UP: 'gave_up'>
    """
    return _shared_pool().run(function, *args, cutoff=cutoff, memory=memory, **kwargs)


def _shared_pool() -> CutoffPool:
    global _pool
    with _lock:
        if _pool is None:
            _pool = CutoffPool(MOST_CALLS_AT_ONCE)
            # A call should be as fast as in this process, so the number of threads is not limited.
            _pool.threads_per_worker = None
            atexit.register(_close)
        return _pool


def _close() -> None:
    if _pool is not None:
        _pool.close()


def _unlock_in_child() -> None:
    """Replace the lock, which another thread may have held when this process was forked."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)
