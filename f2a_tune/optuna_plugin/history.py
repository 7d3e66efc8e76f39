"""A study as a race: trials flow in, in whatever state they are, and the race knows of all pulls.

The storage is the memory; this is a view of it that can be thrown away. Every trial that has
finished is one pull with its outcome, whoever ran it; a running trial with a plan is a pull in
flight until its cutoff and some grace have passed, then it counts as dead. Configurations are told
apart by the parameters that a trial ended with, not by what it was planned to be.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import TrialState

from f2a_tune import _compat
from f2a_tune.optuna_plugin import running
from f2a_tune.optuna_plugin.plan import OUTCOME, SECONDS, Plan, configuration_key, number_or
from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.racing import Pull, Race

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

# How long after its cutoff a trial may be alive: storages are slow.
GRACE_SECONDS = 30.0
# After so many draws in a row that were none, the base sampler has nothing fresh to offer.
REPETITIONS = 10


@dataclass(frozen=True)
class Configuration:
    """Parameters that have been tried."""

    number: int
    """Of the first trial that had them."""
    params: dict[str, Any]


class StudyHistory:
    """Follows one study and keeps a race in step with it."""

    def __init__(self, race: Race, player: str = "", first_free_row: int = 0) -> None:
        self.race = race
        self.player = player
        self.configurations: dict[int, Configuration] = {}
        """By row of the ledger."""
        self.has_strangers = False
        """Whether another player works, or has worked, on the study."""
        self._first_free_row = first_free_row
        self._rows: dict[str, int] = {}
        self._row_of_number: dict[int, int] = {}
        self._unfinished: set[int] = set()
        self._next = 0
        self._repetitions = 0
        self._values: dict[int, list[float]] = {}
        """Of every row, what its evaluations came to."""
        self._shown: dict[int, FrozenTrial] = {}
        """Of every row, the trial that a base sampler sees: its first that has a value."""
        self._again: set[int] = set()
        """Trials that evaluate a configuration again."""
        self._merged: dict[int, FrozenTrial] = {}
        """By the number of its first trial: a configuration that was evaluated again, as one."""

    def follow(
        self, study: Study, trials: Sequence[FrozenTrial], current: int | None = None
    ) -> None:
        """Take in what has changed; ``current`` is the trial that asks and has no plan yet."""
        for number in sorted(self._unfinished):
            self._visit(study, trials[number], current)
        for trial in trials[self._next :]:
            self._visit(study, trial, current)
        self._next = len(trials)

    def configuration(self, number: int) -> Configuration | None:
        """The configuration that this trial was the first to have."""
        return self.configurations.get(self._row_of_number.get(number, -1))

    def as_seen_by_base(self, study: Study) -> Study:
        """The study with one trial for every configuration, worth the mean of its evaluations.

        To a base sampler, evaluations are not draws: the best would crowd out all else.
        """
        if not self._again:
            return study
        return _compat.study_with_trials(study, self._one_a_configuration)

    def _one_a_configuration(self, trials: list[FrozenTrial]) -> list[FrozenTrial]:
        return [
            self._merged.get(trial.number, trial)
            for trial in trials
            if trial.number not in self._again
        ]

    def free_arm(self, wanted: int) -> int | None:
        """An arm of the pool that nobody has drawn or is drawing; None if there is none left."""
        places = [wanted, *range(self._first_free_row)]
        free = (p for p in places if p not in self.configurations and not self._is_pending(p))
        return next(free, None)

    def begin(self, number: int, plan: Plan) -> None:
        """A trial has been given this plan."""
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
        plan = Plan.of(trial)
        if plan is None or plan.player != self.player:
            self.has_strangers = True
        pull = self.race.in_flight.get(trial.number)
        if plan is not None and plan.again_of is not None:
            self._again.add(trial.number)
        if plan is not None and pull is None and not is_dead(study, trial, plan):
            self.begin(trial.number, plan)
        elif plan is not None and pull is not None and is_dead(study, trial, plan):
            self.race.withdraw(pull)

    def _finish(self, trial: FrozenTrial) -> None:
        plan = Plan.of(trial)
        if plan is not None and plan.player != self.player:
            self.has_strangers = True
        key = configuration_key(trial.params)
        row = self._rows.get(key)
        repeated = row is not None
        pull = self.race.in_flight.get(trial.number)
        if pull is not None and self._is_other(pull, row):
            # It was to be another one, or fresh: a fixed parameter, a changed space, a repetition.
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

    def _merge(self, trial: FrozenTrial, plan: Plan | None, row: int) -> None:
        first = self.configurations[row].number
        # It may have become another configuration than it was planned to be.
        self._again.discard(trial.number)
        if plan is not None and plan.again_of is not None and first != trial.number:
            self._again.add(trial.number)
        values = self._values.setdefault(row, [])
        if trial.state is TrialState.COMPLETE:
            values.append(float(trial.values[0]))
            self._shown.setdefault(row, trial)
        if values and trial.number in self._again:
            merged = copy.copy(self._shown[row])
            with np.errstate(invalid="ignore"):  # of infinities of both signs there is no mean
                mean = float(np.mean(values))
            merged.number, merged.values = first, [values[0] if math.isnan(mean) else mean]
            self._merged[first] = merged

    def _is_draw(self, trial: FrozenTrial, plan: Plan | None) -> bool:
        """Whether the base sampler has drawn all of its parameters."""
        if plan is None or plan.again_of is not None or plan.fixed or not trial.params:
            return False
        return trial.state is TrialState.COMPLETE and not self._first_free_row

    def _note_draw(self, repeated: bool) -> None:
        """A space may be finite: then waiting longer for what was given up is all that is left."""
        self._repetitions = self._repetitions + 1 if repeated else 0
        if not repeated:
            self.race.reopen()
        elif self._repetitions >= REPETITIONS and self.race.reservoir_open:
            self.race.exhausted()

    def _evaluation(self, plan: Plan | None, row: int) -> int:
        """The planned one, if the trial was what it was planned to be."""
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
        """A place in the ledger for one more evaluation; beyond the last the first is renewed."""
        ledger = self.race.ledger
        wanted = evaluation % ledger.n_folds
        if row >= ledger.n:
            return wanted
        free = np.isnan(ledger.scores[row]) & ~ledger.pending[row]
        if free[wanted] or not free.any():
            return wanted
        return int(np.flatnonzero(free)[0])


def is_dead(study: Study, trial: FrozenTrial, plan: Plan) -> bool:
    """Whether a running trial of another process has run for longer than it would let it.

    Its age counts from when this process first saw it: clocks of machines cannot be compared.
    """
    if math.isinf(plan.cutoff_seconds) or running.find(study, trial) is not None:
        return False
    return running.seconds_seen(study, trial) > plan.cutoff_seconds + GRACE_SECONDS


def seconds_of(trial: FrozenTrial) -> float:
    """What a trial took: as measured by us or said by its objective, else by Optuna's clock.

    NaN if nobody knows: a trial that was added by hand begins and ends at the same moment.
    """
    duration = trial.duration
    default = math.nan if duration is None else duration.total_seconds()
    return number_or(trial.user_attrs.get(SECONDS), default if default > 0 else math.nan)


def outcome_of(trial: FrozenTrial, plan: Plan | None) -> Outcome:
    """What became of a finished trial."""
    seconds = seconds_of(trial)
    if trial.state is TrialState.COMPLETE and _compat.is_feasible(trial):
        return Outcome.finished(trial.value, seconds)
    if is_given_up(trial, plan):
        assert plan is not None
        return Outcome.gave_up(plan.cutoff_seconds, seconds)
    # Pruned by something else than its cutoff, it says nothing about how long to wait.
    return Outcome.failed(ErrorReport(trial.state.name, "no value"), seconds)


def is_given_up(trial: FrozenTrial, plan: Plan | None) -> bool:
    """Whether a finished trial came to its cutoff, or was ended with the budget."""
    if trial.state is not TrialState.PRUNED or plan is None:
        return False
    # The end of the budget may have come first: then it is written down that it was given up.
    killed = trial.user_attrs.get(OUTCOME) == Kind.GAVE_UP.value
    return killed or seconds_of(trial) >= plan.cutoff_seconds * (1 - 1e-6)
