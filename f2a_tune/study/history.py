"""Replays the trials of a study into a race.

The storage is the only memory, so a `StudyHistory` can be discarded at any time. Every finished
trial is one pull with its outcome, no matter which process ran it. A running trial with a plan is
a pull in flight until its cutoff and a grace period have passed; after that it counts as dead.
Configurations are identified by the parameters that a trial ended with, not by its plan.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import TrialState

from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.racing import Pull, Race
from f2a_tune.study import optuna_private, trial_clock
from f2a_tune.study.attributes import OUTCOME, SECONDS, configuration_key, number_or
from f2a_tune.study.limits import REPEATED_DRAWS, STALE_TRIAL_SECONDS
from f2a_tune.study.trial_plan import TrialPlan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Configuration:
    """A set of parameters that has been tried."""

    number: int
    """Number of the first trial that had these parameters."""
    params: dict[str, Any]


class StudyHistory:
    """Follows one study and keeps a race up to date with it."""

    def __init__(self, race: Race, player: str = "", first_free_row: int = 0) -> None:
        self.race = race
        self.player = player
        self.configurations: dict[int, Configuration] = {}
        """Configurations by row of the ledger."""
        self.has_strangers = False
        """Whether another player works, or has worked, on the study."""
        self._first_free_row = first_free_row
        self._rows: dict[str, int] = {}
        self._row_of_number: dict[int, int] = {}
        self._unfinished: set[int] = set()
        self._next = 0
        self._repetitions = 0
        self._values: dict[int, list[float]] = {}
        """By row: values of the completed evaluations."""
        self._shown: dict[int, FrozenTrial] = {}
        """By row: the trial that a base sampler sees, which is the first one with a value."""
        self._again: set[int] = set()
        """Numbers of trials that evaluate a configuration again."""
        self._merged: dict[int, FrozenTrial] = {}
        """By number of the first trial: all evaluations of a configuration as one trial."""

    def follow(
        self, study: Study, trials: Sequence[FrozenTrial], current: int | None = None
    ) -> None:
        """Update the race; ``current`` is the trial that asks and has no plan yet."""
        for number in sorted(self._unfinished):
            self._visit(study, trials[number], current)
        for trial in trials[self._next :]:
            self._visit(study, trial, current)
        self._next = len(trials)

    def configuration(self, number: int) -> Configuration | None:
        """Return the configuration whose first trial has this number, or None."""
        return self.configurations.get(self._row_of_number.get(number, -1))

    def as_seen_by_base(self, study: Study) -> Study:
        """Return the study with one trial per configuration, whose value is the mean.

        A base sampler must not count repeated evaluations as draws, because the best configuration
        would outnumber all others.
        """
        if not self._again:
            return study
        return optuna_private.study_with_trials(study, self._one_a_configuration)

    def _one_a_configuration(self, trials: list[FrozenTrial]) -> list[FrozenTrial]:
        return [
            self._merged.get(trial.number, trial)
            for trial in trials
            if trial.number not in self._again
        ]

    def free_arm(self, wanted: int) -> int | None:
        """Return ``wanted`` or another unused arm of the pool; None if there is none left."""
        places = [wanted, *range(self._first_free_row)]
        free = (p for p in places if p not in self.configurations and not self._is_pending(p))
        return next(free, None)

    def begin(self, number: int, plan: TrialPlan) -> None:
        """Start the pull of a trial that has this plan."""
        row = self._row_of_number.get(-1 if plan.again_of is None else plan.again_of)
        fresh = row is None
        if row is None:
            row = self._fresh_row(plan.arm)
        fold = self._fold(row, plan.evaluation)
        self.race.start(Pull(row, fold, plan.cutoff_seconds, fresh, plan.reason, number))

    def _visit(self, study: Study, trial: FrozenTrial, current: int | None) -> None:
        if trial.state.is_finished():
            self._unfinished.discard(trial.number)
            self._finish(trial)
            return
        self._unfinished.add(trial.number)
        if trial.state is not TrialState.RUNNING or trial.number == current:
            return
        plan = TrialPlan.of(trial)
        if plan is None or plan.player != self.player:
            self.has_strangers = True
        pull = self.race.in_flight.get(trial.number)
        if plan is not None and plan.again_of is not None:
            self._again.add(trial.number)
        if plan is not None and pull is None and not is_stale(study, trial, plan):
            self.begin(trial.number, plan)
        elif plan is not None and pull is not None and is_stale(study, trial, plan):
            self.race.withdraw(pull)

    def _finish(self, trial: FrozenTrial) -> None:
        plan = TrialPlan.of(trial)
        if plan is not None and plan.player != self.player:
            self.has_strangers = True
        key = configuration_key(trial.params)
        row = self._rows.get(key)
        repeated = row is not None
        pull = self.race.in_flight.get(trial.number)
        if pull is not None and self._is_other(pull, row):
            # The plan was different, due to a fixed parameter, a changed space or a repeated draw.
            self.race.withdraw(pull)
            pull = None
        if pull is None:
            row = self._fresh_row(None if plan is None else plan.arm) if row is None else row
            cutoff = math.inf if plan is None else plan.cutoff_seconds
            fold = self._fold(row, self._evaluation(plan, row))
            pull = Pull(row, fold, cutoff, number=trial.number)
            self.race.start(pull)
        if pull.configuration not in self.configurations:
            self._rows[key] = pull.configuration
            self._row_of_number[trial.number] = pull.configuration
            self.configurations[pull.configuration] = Configuration(trial.number, trial.params)
        if self._is_draw(trial, plan):
            self._note_draw(repeated)
        self.race.tell(pull, outcome_of(trial, plan))
        self._merge(trial, plan, pull.configuration)

    def _merge(self, trial: FrozenTrial, plan: TrialPlan | None, row: int) -> None:
        first = self.configurations[row].number
        # The trial may have evaluated another configuration than the planned one.
        self._again.discard(trial.number)
        if plan is not None and plan.again_of is not None and first != trial.number:
            self._again.add(trial.number)
        values = self._values.setdefault(row, [])
        if trial.state is TrialState.COMPLETE:
            values.append(float(trial.values[0]))
            self._shown.setdefault(row, trial)
        if values and trial.number in self._again:
            merged = copy.copy(self._shown[row])
            with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
                mean = float(np.mean(values))
            merged.number, merged.values = first, [values[0] if math.isnan(mean) else mean]
            self._merged[first] = merged

    def _is_draw(self, trial: FrozenTrial, plan: TrialPlan | None) -> bool:
        """Whether the base sampler drew all parameters of a trial."""
        if plan is None or plan.again_of is not None or plan.fixed or not trial.params:
            return False
        return trial.state is TrialState.COMPLETE and not self._first_free_row

    def _note_draw(self, repeated: bool) -> None:
        """Detect a finite space, where only configurations that were given up can be retried."""
        self._repetitions = self._repetitions + 1 if repeated else 0
        if not repeated:
            self.race.reopen()
        elif self._repetitions >= REPEATED_DRAWS and self.race.reservoir_open:
            self.race.exhausted()

    def _evaluation(self, plan: TrialPlan | None, row: int) -> int:
        """Return the planned evaluation, or 0 if the configuration is not the planned one."""
        if plan is None:
            return 0
        planned = row if plan.again_of is None else self._row_of_number.get(plan.again_of)
        return plan.evaluation if planned == row else 0

    def _is_other(self, pull: Pull, row: int | None) -> bool:
        if row is None:
            return pull.configuration in self.configurations
        return row != pull.configuration

    def _fresh_row(self, arm: int | None) -> int:
        taken = self.race.ledger.n
        if arm is not None and arm not in self.configurations and not self._is_pending(arm):
            return arm
        return max(taken, self._first_free_row)

    def _is_pending(self, row: int) -> bool:
        return row < self.race.ledger.n and bool(self.race.ledger.pending[row].any())

    def _fold(self, row: int, evaluation: int) -> int:
        """Return a free fold for one more evaluation; if there is none, one is overwritten."""
        ledger = self.race.ledger
        wanted = evaluation % ledger.n_folds
        if row >= ledger.n:
            return wanted
        free = np.isnan(ledger.scores[row]) & ~ledger.pending[row]
        if free[wanted] or not free.any():
            return wanted
        return int(np.flatnonzero(free)[0])


def is_stale(study: Study, trial: FrozenTrial, plan: TrialPlan) -> bool:
    """Whether a running trial of another process has exceeded its cutoff and the grace period.

    Its age counts from when this process first saw it, because the clocks of different machines
    cannot be compared.
    """
    if math.isinf(plan.cutoff_seconds) or trial_clock.find(study, trial) is not None:
        return False
    return trial_clock.seconds_seen(study, trial) > plan.cutoff_seconds + STALE_TRIAL_SECONDS


def seconds_of(trial: FrozenTrial) -> float:
    """Return the seconds of a trial, as measured by us or set by its objective, or by Optuna.

    NaN means unknown, as for a trial added by hand, which starts and ends at the same moment.
    """
    duration = trial.duration
    default = math.nan if duration is None else duration.total_seconds()
    return number_or(trial.user_attrs.get(SECONDS), default if default > 0 else math.nan)


def outcome_of(trial: FrozenTrial, plan: TrialPlan | None) -> Outcome:
    """Return the outcome of a finished trial."""
    seconds = seconds_of(trial)
    if trial.state is TrialState.COMPLETE and optuna_private.is_feasible(trial):
        return Outcome.finished(trial.value, seconds)
    if is_given_up(trial, plan):
        assert plan is not None
        return Outcome.gave_up(plan.cutoff_seconds, seconds)
    # A trial that was not pruned by its cutoff says nothing about how long to wait.
    return Outcome.failed(ErrorReport(trial.state.name, "no value"), seconds)


def is_given_up(trial: FrozenTrial, plan: TrialPlan | None) -> bool:
    """Whether a finished trial was stopped at its cutoff or at the end of the budget."""
    if trial.state is not TrialState.PRUNED or plan is None:
        return False
    # If the budget ended before the cutoff, the outcome says that the trial was given up.
    killed = trial.user_attrs.get(OUTCOME) == Kind.GAVE_UP.value
    return killed or seconds_of(trial) >= plan.cutoff_seconds * (1 - 1e-6)
