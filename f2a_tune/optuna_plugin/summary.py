"""Reading a study: its best configuration, where its seconds went, the cutoff of a trial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import TrialState

from f2a_tune import _compat
from f2a_tune.optuna_plugin.history import StudyHistory, is_given_up, seconds_of
from f2a_tune.optuna_plugin.plan import Plan, configuration_key
from f2a_tune.optuna_plugin.runs import recorded_runs
from f2a_tune.racing import Race

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import BaseTrial, FrozenTrial


@dataclass(frozen=True)
class BestConfiguration:
    """The configuration to use."""

    params: dict[str, Any]
    mean: float
    """Over all of its evaluations."""
    spread: float
    """Standard deviation of its evaluations; 0 with a single one."""
    n_evaluations: int
    trial_numbers: tuple[int, ...]


@dataclass(frozen=True)
class BudgetSummary:
    """Where the seconds of a study went; the parts add up to the total.

    Seconds of several workers at a time are counted for each.
    """

    finished_seconds: float
    given_up_seconds: float
    failed_seconds: float
    """Of trials that raised, crashed, or were pruned by something else than their cutoff."""
    overhead_seconds: float
    """Sampling, storage, starting workers, waiting."""
    n_finished: int
    n_given_up: int
    n_failed: int

    @property
    def total_seconds(self) -> float:
        """All of it."""
        trials = self.finished_seconds + self.given_up_seconds + self.failed_seconds
        return trials + self.overhead_seconds

    def __str__(self) -> str:
        return (
            f"{self.total_seconds:.2f} s: "
            f"{self.finished_seconds:.2f} s in {self.n_finished} finished, "
            f"{self.given_up_seconds:.2f} s in {self.n_given_up} given up, "
            f"{self.failed_seconds:.2f} s in {self.n_failed} failed, "
            f"{self.overhead_seconds:.2f} s overhead"
        )


def cutoff_of(trial: BaseTrial) -> float:
    """Seconds that this trial may take; ``math.inf`` if nobody has set a limit.

    Works in an objective, on finished trials, and on fixed ones (which have no limit).
    """
    plan = Plan.from_attributes(trial.user_attrs)
    return math.inf if plan is None else plan.cutoff_seconds


def evaluation_of(trial: BaseTrial) -> int:
    """The how-manieth evaluation of its configuration this trial is: 0, 1, 2 and so on.

    An objective may take it as the fold to validate on, or as the seed: then configurations are
    compared on the same data, and a weak one is given up after its first fold.
    """
    plan = Plan.from_attributes(trial.user_attrs)
    return 0 if plan is None else plan.evaluation


def best_configuration(study: Study) -> BestConfiguration:
    """The best configuration by the mean of its evaluations, never by a lucky single one.

    Where configurations are evaluated several times, those with all their evaluations go first; a
    mean over fewer is marked down by its standard error. With one evaluation each this is
    Optuna's ``study.best_trial``.
    """
    if _compat.is_multi_objective(study):
        raise ValueError("study has several objectives: there is no single best configuration.")
    done = _completed(study)
    if not done:
        raise ValueError(
            "study has no finished trial that keeps its constraints: no configuration is best."
        )
    most = max(len(trials) for trials in done.values())
    race = Race(most, math.inf, maximize=_maximizes(study), paired=False)
    history = StudyHistory(race)
    history.follow(study, [trial for trials in done.values() for trial in trials])
    found = race.recommend()
    if found is None:  # values are infinite, all of them
        trials = next(iter(done.values()))
    else:
        trials = done[configuration_key(history.configurations[found.configuration].params)]
    values = [float(trial.values[0]) for trial in trials]
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1))
    return BestConfiguration(
        params=dict(trials[0].params),
        mean=mean,
        spread=spread,
        n_evaluations=len(values),
        trial_numbers=tuple(trial.number for trial in trials),
    )


def _maximizes(study: Study) -> bool:
    return study.direction is StudyDirection.MAXIMIZE


def _completed(study: Study) -> dict[str, list[FrozenTrial]]:
    """Finished trials by configuration; only those with all evaluations, if there are any."""
    done: dict[str, list[FrozenTrial]] = {}
    wanted = 1
    for trial in _compat.all_trials(study):
        if trial.state is TrialState.COMPLETE and _compat.is_feasible(trial):
            done.setdefault(configuration_key(trial.params), []).append(trial)
            plan = Plan.of(trial)
            wanted = max(wanted, 1 if plan is None else plan.evaluations)
    full = {key: trials for key, trials in done.items() if len(trials) >= wanted}
    return full or done


def budget_summary(study: Study) -> BudgetSummary:
    """Where the seconds went.

    Overhead is what `optimize` took beyond its trials, and for trials of a plain
    ``study.optimize`` the part of their duration that was not measured as theirs.
    """
    seconds = {"finished": 0.0, "given_up": 0.0, "failed": 0.0}
    counts = dict.fromkeys(seconds, 0)
    runs = recorded_runs(study)
    overhead = sum(runs.values())
    for trial in _compat.all_trials(study):
        if not trial.state.is_finished():
            continue
        plan, spent = Plan.of(trial), float(np.nan_to_num(seconds_of(trial)))
        kind = _kind(trial, plan)
        seconds[kind] += spent
        counts[kind] += 1
        if plan is not None and plan.run in runs:
            overhead -= spent
        elif trial.duration is not None:
            overhead += max(trial.duration.total_seconds() - spent, 0.0)
    return BudgetSummary(
        finished_seconds=seconds["finished"],
        given_up_seconds=seconds["given_up"],
        failed_seconds=seconds["failed"],
        overhead_seconds=max(overhead, 0.0),
        n_finished=counts["finished"],
        n_given_up=counts["given_up"],
        n_failed=counts["failed"],
    )


def _kind(trial: FrozenTrial, plan: Plan | None) -> str:
    if trial.state is TrialState.COMPLETE:
        return "finished"
    return "given_up" if is_given_up(trial, plan) else "failed"
