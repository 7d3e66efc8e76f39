"""Monotonic start times of the trials that run in this process.

Optuna stores the start of a trial as wall-clock time, which can jump. Samplers and pruners receive
a frozen trial from Optuna and look up its monotonic start here. The table is only a cache: without
it, times are read from the storage.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from f2a_tune import clock
from f2a_tune.study.optuna_private import storage_of, trial_id_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, Trial


@dataclass(frozen=True)
class TrialStart:
    """When a trial began."""

    monotonic_seconds: float
    copied_seconds: Any = None
    """Duration that was copied from an earlier trial together with its user attributes."""

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the trial began."""
        return clock.monotonic_seconds() - self.monotonic_seconds


_lock = threading.Lock()
_starts: WeakKeyDictionary[BaseStorage, dict[int, TrialStart]] = WeakKeyDictionary()
_first_seen: WeakKeyDictionary[BaseStorage, dict[int, float]] = WeakKeyDictionary()


def start(study: Study, trial: FrozenTrial | Trial, copied_seconds: Any = None) -> None:
    """Record that a trial begins now."""
    begun = TrialStart(clock.monotonic_seconds(), copied_seconds)
    with _lock:
        _starts.setdefault(storage_of(study), {})[trial_id_of(trial)] = begun


def restart(study: Study, trial: FrozenTrial | Trial) -> None:
    """Record that the objective of a trial begins only now, after imports and data loading."""
    with _lock:
        starts = _starts.get(storage_of(study), {})
        begun = starts.get(trial_id_of(trial))
        if begun is not None:
            now = clock.monotonic_seconds()
            starts[trial_id_of(trial)] = replace(begun, monotonic_seconds=now)


def find(study: Study, trial: FrozenTrial | Trial) -> TrialStart | None:
    """The start of a trial that runs in this process."""
    with _lock:
        return _starts.get(storage_of(study), {}).get(trial_id_of(trial))


def stop(study: Study, trial: FrozenTrial | Trial) -> TrialStart | None:
    """Forget a trial that has ended; returns its start."""
    with _lock:
        return _starts.get(storage_of(study), {}).pop(trial_id_of(trial), None)


def seconds_seen(study: Study, trial: FrozenTrial) -> float:
    """Seconds since this process first saw a running trial of another process."""
    now = clock.monotonic_seconds()
    with _lock:
        seen = _first_seen.setdefault(storage_of(study), {})
        return now - seen.setdefault(trial_id_of(trial), now)


def seconds_by_wall_clock(trial: FrozenTrial) -> float | None:
    """Seconds since the start that Optuna stored; None if it stored none."""
    if trial.datetime_start is None:
        return None
    return (clock.wall_clock() - trial.datetime_start).total_seconds()
