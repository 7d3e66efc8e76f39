"""Worker processes with the data of one search or study, for as long as it runs."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from f2a_tune.clock import Budget, monotonic_seconds
from f2a_tune.cutoff import CutoffPool, Shared
from f2a_tune.cutoff.warm_pools import lent_pool


@dataclass(frozen=True)
class Workers:
    """A pool of workers that have loaded ``data`` once."""

    pool: CutoffPool
    data: Shared


@contextmanager
def open_workers(
    n_workers: int,
    preload: Sequence[str],
    data: Any,
    budget: Budget | None = None,
    *,
    new_workers: bool = False,
) -> Iterator[Workers]:
    """Borrow a warm pool, or start one, and share ``data`` with its workers.

    Raises `WorkersNotReadyError` if the workers have not started when the budget is spent.
    """
    latest = math.inf
    if budget is not None:
        latest = monotonic_seconds() + budget.remaining_seconds
    with lent_pool(n_workers, preload, latest, new_workers=new_workers) as pool:
        shared = pool.share(f"data-{uuid.uuid4().hex}", data)
        try:
            yield Workers(pool, shared)
        finally:
            if not pool.closed:
                pool.forget(shared)
