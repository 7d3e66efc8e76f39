"""Closes trials of crashed workers as failed.

Only trials with a hard cutoff can be judged, because their worker would have ended them by then.
Trials of a plain ``study.optimize`` may run for any length of time. A trial without a plan, in a
study where all others have one, was created by a process that was killed before it wrote the plan.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from f2a_tune.outcome import Kind
from f2a_tune.study import optuna_private, trial_clock
from f2a_tune.study.attributes import CONTINUES, ERROR, OUTCOME, SECONDS
from f2a_tune.study.history import is_stale
from f2a_tune.study.limits import STALE_TRIAL_SECONDS
from f2a_tune.study.trial_plan import TrialPlan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


def close_stale_trials(study: Study) -> list[int]:
    """Close trials that no process can finish any more, and return their numbers."""
    found = []
    for trial in optuna_private.open_trials(study):
        plan = TrialPlan.of(trial)
        gone = _is_unplanned(study, trial) if plan is None else _is_overdue(study, trial, plan)
        seconds = 0.0 if plan is None else plan.cutoff_seconds
        if gone and _close(study, trial, seconds, "its worker crashed"):
            found.append(trial.number)
            _call_storage_callback(study, trial)
    return found


def close_trials_of_run(study: Study, run: str) -> list[int]:
    """Close the trials that a run left open, because it was interrupted in ``study.ask()``."""
    found = []
    for trial in optuna_private.open_trials(study):
        plan = TrialPlan.of(trial)
        if plan is not None and plan.run == run:
            trial_clock.stop(study, trial)
            if _close(study, trial, 0.0, "the study was interrupted"):
                found.append(trial.number)
    return found


def _is_overdue(study: Study, trial: FrozenTrial, plan: TrialPlan) -> bool:
    return plan.hard and is_stale(study, trial, plan)


def _is_unplanned(study: Study, trial: FrozenTrial) -> bool:
    """Whether a trial has had no plan for too long, although all finished trials have one."""
    if trial_clock.find(study, trial) is not None:
        return False
    if trial_clock.seconds_seen(study, trial) < STALE_TRIAL_SECONDS:
        return False
    others = [one for one in optuna_private.all_trials(study) if one.number != trial.number]
    done = [one for one in others if one.state.is_finished()]
    return bool(done) and all(TrialPlan.of(one) is not None for one in done)


def _close(study: Study, trial: FrozenTrial, seconds: float, error: str) -> bool:
    """Close a trial as failed; returns False if another process closed it first."""
    storage, trial_id = optuna_private.storage_of(study), optuna_private.trial_id_of(trial)
    try:
        storage.set_trial_user_attr(trial_id, OUTCOME, Kind.FAILED.value)
        storage.set_trial_user_attr(trial_id, SECONDS, seconds)
        storage.set_trial_user_attr(trial_id, ERROR, error)
        return bool(storage.set_trial_state_values(trial_id, TrialState.FAIL))
    except UpdateFinishedTrialError:
        return False


def _call_storage_callback(study: Study, trial: FrozenTrial) -> None:
    """Storages may have a callback for stale trials, such as one that retries them."""
    callback = optuna_private.stale_trial_callback(study)
    if callback is not None:
        closed = optuna_private.storage_of(study).get_trial(optuna_private.trial_id_of(trial))
        callback(study, copy.deepcopy(closed))


def predecessors(trials: list[FrozenTrial], trial: FrozenTrial) -> Iterator[FrozenTrial]:
    """The trial, and the open ones that it continues, if a run crashed before it closed them."""
    by_number = {one.number: one for one in trials}
    found: FrozenTrial | None = trial
    while found is not None:
        yield found
        before = found.user_attrs.get(CONTINUES)
        is_valid = isinstance(before, int) and before < found.number
        found = by_number.get(before) if is_valid and before is not None else None
