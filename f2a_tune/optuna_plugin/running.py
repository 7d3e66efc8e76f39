"""Trials that run in this process: when each began, and its plan. A cache, lost with the process.

Optuna stores the start of a trial as wall-clock time; what is measured here is monotonic. The
ambient `Run` tells a sampler, through whatever wraps it, which call of `optimize` is asking.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from f2a_tune import _compat, clock
from f2a_tune.clock import Budget
from f2a_tune.optuna_plugin.plan import Plan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, Trial


@dataclass(frozen=True)
class Run:
    """One call of `optimize`."""

    name: str
    budget: Budget


@dataclass(frozen=True)
class RunningTrial:
    """A trial between `ask` and `tell`."""

    plan: Plan
    started: float
    copied_seconds: Any = None
    """What an earlier trial, of which this one is a copy, is said to have taken."""


_run: ContextVar[Run | None] = ContextVar("f2a_tune_run", default=None)
_lock = threading.Lock()
_trials: WeakKeyDictionary[BaseStorage, dict[int, RunningTrial]] = WeakKeyDictionary()
_seen: WeakKeyDictionary[BaseStorage, dict[int, float]] = WeakKeyDictionary()


@contextmanager
def inside(run: Run) -> Iterator[None]:
    """Everything within belongs to this run."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


def current_run() -> Run | None:
    """The run that is asking, if it is one of ours."""
    return _run.get()


def begin(
    study: Study, trial: FrozenTrial | Trial, plan: Plan, copied_seconds: Any = None
) -> None:
    """A trial has got its plan and is about to run."""
    entry = RunningTrial(plan, clock.monotonic_seconds(), copied_seconds)
    with _lock:
        _trials.setdefault(_compat.storage_of(study), {})[_compat.trial_id_of(trial)] = entry


def restart(study: Study, trial: FrozenTrial | Trial) -> None:
    """Its objective begins only now."""
    with _lock:
        trials = _trials.get(_compat.storage_of(study), {})
        known = trials.get(_compat.trial_id_of(trial))
        if known is not None:
            trials[_compat.trial_id_of(trial)] = replace(known, started=clock.monotonic_seconds())


def seconds_seen(study: Study, trial: FrozenTrial) -> float:
    """Since this process first saw a trial of another one running."""
    now = clock.monotonic_seconds()
    with _lock:
        seen = _seen.setdefault(_compat.storage_of(study), {})
        return now - seen.setdefault(_compat.trial_id_of(trial), now)


def seconds_by_wall_clock(trial: FrozenTrial) -> float | None:
    """Since Optuna says that a trial began; None if it does not say."""
    if trial.datetime_start is None:
        return None
    return (clock.wall_clock() - trial.datetime_start).total_seconds()


def find(study: Study, trial: FrozenTrial | Trial) -> RunningTrial | None:
    """What is known of a trial that began here."""
    with _lock:
        return _trials.get(_compat.storage_of(study), {}).get(_compat.trial_id_of(trial))


def end(study: Study, trial: FrozenTrial | Trial) -> RunningTrial | None:
    """Forget a trial, and say what was known."""
    with _lock:
        return _trials.get(_compat.storage_of(study), {}).pop(_compat.trial_id_of(trial), None)
