"""Pools of workers that are kept from one search to the next: starting one takes a second.

A pool is lent to one user at a time, so that what is left undone can be ended with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from f2a_tune.cutoff import CutoffPool

# What a fit needs, and no more: every module here delays the first fit of a program.
PRELOAD = ("sklearn", "f2a_tune.sklearn_plugin.fold")

_idle: dict[int, list[CutoffPool]] = {}


@contextmanager
def lent_pool(n_workers: int) -> Iterator[CutoffPool]:
    """A pool with so many workers, for the time being; an error ends it with all it runs."""
    try:
        pool = _idle.setdefault(n_workers, []).pop()
    except IndexError:
        pool = CutoffPool(n_workers, preload=PRELOAD)
    try:
        yield pool.start()
    except GeneratorExit:
        if n_workers > 1:  # other calls may be running
            pool.close()
            raise
    except BaseException:
        pool.close()
        raise
    if not pool.closed:
        _idle[n_workers].append(pool)
