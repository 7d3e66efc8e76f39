"""Studies in virtual time: the objective says what it cost, and gives itself up at its cutoff."""

import optuna
import pytest

from f2a_tune import cutoff_of
from f2a_tune.study.attributes import SECONDS

needs_constraints = pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="trials of this Optuna have none"
)


def run(study, n_trials, seconds, value, suggest=None):
    """``seconds`` and ``value`` are functions of the parameters."""
    for _ in range(n_trials):
        trial = study.ask()
        params = suggest(trial) if suggest else {"x": trial.suggest_float("x", 0, 1)}
        cutoff, took = cutoff_of(trial), seconds(params)
        trial.set_user_attr(SECONDS, min(took, cutoff))
        if took > cutoff:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, value(params))
    return study


def planned(study):
    """Of every trial: number, parameters, cutoff."""
    return [(t.number, t.params, cutoff_of(t)) for t in study.trials]
