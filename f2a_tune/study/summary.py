"""What a user asks about a study: its best configuration, and where its seconds went."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from f2a_tune.study import optuna_private
from f2a_tune.study.accounting import BudgetSummary
from f2a_tune.study.reader import read_study, study_of

if TYPE_CHECKING:
    from optuna import Study


@dataclass(frozen=True)
class BestConfiguration:
    """The configuration to use."""

    params: dict[str, Any]
    mean: float
    """Mean over all its evaluations."""
    spread: float
    """Standard deviation of its evaluations; 0 with a single one."""
    n_evaluations: int
    trial_numbers: tuple[int, ...]


def best_configuration(study: Study) -> BestConfiguration:
    """The best configuration of a study by the mean of its evaluations.

    If configurations are evaluated several times, those with all their evaluations come first, and
    a mean over fewer is penalized by its standard error. With one evaluation each, this is
    Optuna's ``study.best_trial``.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective: of `optimize`, of ``study.optimize`` with any sampler, or
        ``study_`` of a fitted `F2ASearchCV`.

    Returns
    -------
    BestConfiguration
        Parameters, mean, spread, and the numbers of the trials.

    Raises
    ------
    ValueError
        If no trial has finished, or the study has several objectives.
    """
    study = study_of(study)
    if optuna_private.is_multi_objective(study):
        raise ValueError("study has several objectives. Use study.best_trials instead.")
    found = read_study(study).winner
    if found is None:
        raise ValueError("study has no finished trial that satisfies its constraints.")
    return BestConfiguration(
        params=dict(found.params),
        mean=found.mean,
        spread=0.0 if math.isnan(found.spread) else found.spread,
        n_evaluations=len(found.scores),
        trial_numbers=found.trial_numbers,
    )


def budget_summary(study: Study) -> BudgetSummary:
    """Where the seconds of a study went.

    Parameters
    ----------
    study : optuna.Study
        Any study with one objective, running or finished.

    Returns
    -------
    BudgetSummary
        Worker-seconds of finished, given-up, pruned and failed trials (of folds, for the study of
        an `F2ASearchCV`), of the refit, and overhead. ``print`` shows them in one line.
    """
    return read_study(study).budget
