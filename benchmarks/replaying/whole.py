"""Methods that evaluate every configuration on all folds, unless their own pruner stops it.

Each proposes a configuration, gets its mean score at the end, and recommends the best completed
one. None of them uses cutoffs.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optuna

from f2a_tune.outcome import Outcome
from replaying.engine import Job
from replaying.problem import Problem

# Trials before TPE's own proposals, its default.
N_STARTUP = 10


@dataclass
class Evaluation:
    """A configuration whose folds are being evaluated."""

    row: int
    handle: Any
    scores: list[float] = field(default_factory=list)


class WholeEvaluations(ABC):
    """Each worker evaluates the folds of one configuration one after another."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.current: dict[int, Evaluation] = {}
        self.done: list[tuple[float, int]] = []

    @abstractmethod
    def propose(self) -> tuple[int, Any] | None:
        """Return an unused row and the tuner's own object for it."""

    def report(self, evaluation: Evaluation) -> bool:
        """Report one more fold; return True to prune the configuration."""
        return False

    def complete(self, evaluation: Evaluation, mean: float) -> None:
        """Report the mean after the last fold."""

    def fail(self, evaluation: Evaluation) -> None:
        """Report a failed fit."""

    def ask(self, now: float, worker: int) -> Job | None:
        if worker not in self.current:
            proposal = self.propose()
            if proposal is None:
                return None
            self.current[worker] = Evaluation(*proposal)
        evaluation = self.current[worker]
        return Job(evaluation.row, len(evaluation.scores))

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        evaluation = self.current[worker]
        if not outcome.ok:
            self.fail(self.current.pop(worker))
            return
        evaluation.scores.append(outcome.value)
        last = len(evaluation.scores) == self.problem.n_folds
        stopped = self.report(evaluation) and not last
        if last:
            mean = float(np.mean(evaluation.scores))
            self.complete(evaluation, mean)
            self.done.append((mean, evaluation.row))
        if last or stopped:
            del self.current[worker]

    def recommend(self) -> int | None:
        return max(self.done)[1] if self.done else None


class RandomSearch(WholeEvaluations):
    """Random configurations on all folds."""

    def propose(self) -> tuple[int, Any] | None:
        row = self.problem.take_random()
        return None if row is None else (row, None)


class OptunaTrials:
    """The trials of an Optuna study with TPE, or with random configurations, and a pruner.

    The first trials, or all with ``random``, come from the shared stream.
    """

    def __init__(
        self, problem: Problem, pruner: optuna.pruners.BasePruner | None, *, random: bool = False
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self.problem, self.pruner = problem, pruner
        self.n_startup = 10**9 if random else N_STARTUP
        self.study = optuna.create_study(
            study_name="replay",  # Hyperband draws its brackets from the name
            direction="maximize",
            sampler=optuna.samplers.TPESampler(n_startup_trials=N_STARTUP, seed=problem.seed),
            pruner=pruner or optuna.pruners.NopPruner(),
        )
        self._n_asked = 0

    def ask(self) -> tuple[int, optuna.Trial] | None:
        """Return an unused row and its trial."""
        self._n_asked += 1
        if self._n_asked <= self.n_startup:
            row = self.problem.take_random()
            if row is None:
                return None
            self.study.enqueue_trial(self.problem.configuration(row))
            trial = self.study.ask()
            suggest_all(trial, self.problem)
            return row, trial
        trial = self.study.ask()
        found = self.problem.take_configuration(suggest_all(trial, self.problem))
        return None if found is None else (found, trial)

    def prune(self, trial: optuna.Trial, value: float, step: int) -> bool:
        """Report a value; if the pruner says so, close the trial and return True."""
        if self.pruner is None:
            return False
        trial.report(value, step)
        if trial.should_prune():
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return True
        return False

    def complete(self, trial: optuna.Trial, value: float) -> None:
        self.study.tell(trial, value)

    def fail(self, trial: optuna.Trial) -> None:
        self.study.tell(trial, state=optuna.trial.TrialState.FAIL)


class OptunaSearch(WholeEvaluations):
    """Optuna's TPE with default settings, with or without one of its pruners."""

    def __init__(self, problem: Problem, pruner: optuna.pruners.BasePruner | None = None) -> None:
        super().__init__(problem)
        self.trials = OptunaTrials(problem, pruner)
        self.study = self.trials.study

    def propose(self) -> tuple[int, Any] | None:
        return self.trials.ask()

    def report(self, evaluation: Evaluation) -> bool:
        step = len(evaluation.scores)
        if step == self.problem.n_folds:
            return False
        return self.trials.prune(evaluation.handle, evaluation.scores[-1], step)

    def complete(self, evaluation: Evaluation, mean: float) -> None:
        self.trials.complete(evaluation.handle, mean)

    def fail(self, evaluation: Evaluation) -> None:
        self.trials.fail(evaluation.handle)


def suggest_all(trial: optuna.trial.Trial, problem: Problem) -> dict[str, Any]:
    """Ask a trial for every active parameter of the problem's space."""
    values: dict[str, Any] = {}
    for parameter in problem.space.parameters:
        if all(values.get(parent) in allowed for parent, allowed in parameter.active_if):
            values[parameter.name] = _suggest(trial, parameter)
    return values


def _suggest(trial: optuna.trial.Trial, parameter: Any) -> Any:
    if parameter.kind == "categorical":
        return trial.suggest_categorical(parameter.name, parameter.choices)
    if parameter.kind == "int":
        return trial.suggest_int(
            parameter.name, int(parameter.low), int(parameter.high), log=parameter.log
        )
    return trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log)
