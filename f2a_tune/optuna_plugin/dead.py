"""Trials whose worker is gone: running ones go in, those past their time are closed as failed.

Only trials under a hard cutoff can be judged: their worker would have ended them by then. Trials
of a plain ``study.optimize`` may run on for as long as they like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from f2a_tune import _compat
from f2a_tune.optuna_plugin.history import is_dead
from f2a_tune.optuna_plugin.plan import ERROR, OUTCOME, SECONDS, Plan

if TYPE_CHECKING:
    from optuna import Study


def fail_dead_trials(study: Study) -> list[int]:
    """Close what nobody can finish any more; returns the numbers of those trials."""
    found, storage = [], _compat.storage_of(study)
    for trial in _compat.open_trials(study):
        plan = Plan.of(trial)
        if plan is None or not plan.hard or not is_dead(study, trial, plan):
            continue
        trial_id = _compat.trial_id_of(trial)
        try:
            storage.set_trial_user_attr(trial_id, OUTCOME, "failed")
            storage.set_trial_user_attr(trial_id, SECONDS, plan.cutoff_seconds)
            storage.set_trial_user_attr(trial_id, ERROR, "its worker is gone")
            if storage.set_trial_state_values(trial_id, TrialState.FAIL):
                found.append(trial.number)
        except UpdateFinishedTrialError:  # another worker was quicker
            continue
    return found
