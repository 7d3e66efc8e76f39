"""Which call of `optimize` is asking: its name, budget and remaining number of trials.

`optimize` calls ``study.ask()``, and Optuna calls the sampler, possibly through a sampler that
wraps it. A context variable carries the run through these layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from f2a_tune.clock import Budget


@dataclass(frozen=True)
class OptimizeRun:
    """One call of `optimize`."""

    name: str
    budget: Budget
    trials_left: Callable[[], int | None] = lambda: None
    """Number of trials that may still run, including the current one; None for no limit."""


_current: ContextVar[OptimizeRun | None] = ContextVar("f2a_tune_run", default=None)


@contextmanager
def inside(run: OptimizeRun) -> Iterator[None]:
    """Make ``run`` the current one."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def current_run() -> OptimizeRun | None:
    """The current call of `optimize`; None under a plain ``study.optimize``."""
    return _current.get()
