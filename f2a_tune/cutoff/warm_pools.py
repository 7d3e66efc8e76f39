"""A cache of running pools, because starting a pool takes a second or more.

A pool is lent to one user at a time, so that closing it kills only this user's calls. Users that
run arbitrary functions ask for new workers, which have no state of earlier calls. A pool that is
not used for some minutes is closed.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from f2a_tune import clock
from f2a_tune.cutoff.context import THREAD_VARIABLES
from f2a_tune.cutoff.pool import CutoffPool

# How long an unused pool is kept; it uses some tens of megabytes.
IDLE_SECONDS = 300.0
# Time between two searches for pools that are unused for too long.
CHECK_SECONDS = 10.0


class WorkersNotReadyError(RuntimeError):
    """The deadline passed before worker processes could start."""


@dataclass(frozen=True)
class _Key:
    """The properties of a pool; pools with the same key are interchangeable."""

    n_workers: int
    preload: tuple[str, ...]
    process_id: int
    threads: tuple[str | None, ...]
    """Values of the thread variables: libraries read them only when they are loaded."""


@dataclass(frozen=True)
class _Idle:
    pool: CutoffPool
    since: float


_lock = threading.Lock()
_idle: dict[_Key, list[_Idle]] = {}
_sweeper: threading.Thread | None = None


def prestart_pool(n_workers: int, preload: Sequence[str]) -> None:
    """Start a pool for a later `lent_pool` without waiting until it is ready."""
    if _idle.get(_key(n_workers, preload)):
        return
    pool = CutoffPool(n_workers, preload=preload).start(latest=clock.monotonic_seconds())
    _give_back(_key(n_workers, preload), pool)


@contextmanager
def lent_pool(
    n_workers: int,
    preload: Sequence[str],
    latest: float = math.inf,
    *,
    new_workers: bool = False,
) -> Iterator[CutoffPool]:
    """Return a context manager that lends a pool; an error in its body closes the pool.

    Parameters
    ----------
    n_workers : int
        Number of calls that may run at the same time.
    preload : sequence of str
        Packages that workers import before their first call.
    latest : float, default=math.inf
        Time on the monotonic clock until which to wait for workers.
    new_workers : bool, default=False
        Whether calls must not run in workers that have run calls of earlier users.

    Raises
    ------
    WorkersNotReadyError
        If no worker can start by ``latest``. The pool continues to start, for the next user.
    """
    key = _key(n_workers, preload)
    pool = _taken(key) or CutoffPool(n_workers, preload=preload)
    if not pool.start(latest).is_ready(latest):
        _give_back(key, pool)
        raise WorkersNotReadyError("the worker processes were not ready before the deadline.")
    if new_workers:
        pool.renew()
    try:
        yield pool
    except GeneratorExit:
        if n_workers > 1:  # other calls may be running
            pool.close()
            raise
    except BaseException:
        pool.close()
        raise
    if not pool.closed:
        _give_back(key, pool)


def _key(n_workers: int, preload: Sequence[str]) -> _Key:
    threads = tuple(os.environ.get(name) for name in THREAD_VARIABLES)
    return _Key(n_workers, tuple(preload), os.getpid(), threads)


def _taken(key: _Key) -> CutoffPool | None:
    with _lock:
        pools = _idle.get(key)
        return pools.pop().pool if pools else None


def _give_back(key: _Key, pool: CutoffPool) -> None:
    global _sweeper
    with _lock:
        _idle.setdefault(key, []).append(_Idle(pool, clock.monotonic_seconds()))
        if _sweeper is None:
            _sweeper = threading.Thread(target=_sweep, name="f2a_tune-idle-pools", daemon=True)
            _sweeper.start()


def _sweep() -> None:
    """Close pools that are unused for too long; return when no pool is left."""
    global _sweeper
    while True:
        clock.sleep_seconds(CHECK_SECONDS)
        oldest = clock.monotonic_seconds() - IDLE_SECONDS
        with _lock:
            old = [one for pools in _idle.values() for one in pools if one.since <= oldest]
            for key, pools in list(_idle.items()):
                _idle[key] = [one for one in pools if one.since > oldest]
                if not _idle[key]:
                    del _idle[key]
            done = not _idle
            if done:
                _sweeper = None
        for one in old:
            one.pool.close()
        if done:
            return


def _forget_in_child() -> None:
    """Reset the cache in a forked process.

    The pools belong to its parent, and another thread may have held the lock.
    """
    global _lock, _sweeper
    _lock, _sweeper = threading.Lock(), None
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
