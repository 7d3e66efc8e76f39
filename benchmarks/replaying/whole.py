"""Peers that evaluate every configuration on all folds, unless a pruner of their own stops it.

Each proposes a configuration, hears its mean at the end, and recommends the best that it has
completed. None of them knows a cutoff.
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


@dataclass
class Evaluation:
    """A configuration on its way through the folds."""

    row: int
    handle: Any
    scores: list[float] = field(default_factory=list)


class WholeEvaluations(ABC):
    """One configuration a worker, fold after fold."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.current: dict[int, Evaluation] = {}
        self.done: list[tuple[float, int]] = []

    @abstractmethod
    def propose(self) -> tuple[int, Any] | None:
        """A fresh row and what the tuner calls it."""

    def report(self, evaluation: Evaluation) -> bool:
        """Hear of one more fold; True gives the configuration up."""
        return False

    def complete(self, evaluation: Evaluation, mean: float) -> None:
        """Hear of the last fold."""

    def fail(self, evaluation: Evaluation) -> None:
        """Hear of a fit that failed."""

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
    """Random configurations, all folds."""

    def propose(self) -> tuple[int, Any] | None:
        row = self.problem.take_random()
        return None if row is None else (row, None)


class OptunaSearch(WholeEvaluations):
    """Optuna's TPE as it comes, with or without one of its pruners.

    Its start-up trials are the shared stream's configurations.
    """

    n_startup = 10

    def __init__(self, problem: Problem, pruner: optuna.pruners.BasePruner | None = None) -> None:
        super().__init__(problem)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self.pruner = pruner
        self.study = optuna.create_study(
            study_name="replay",  # Hyperband draws its brackets from the name
            direction="maximize",
            sampler=optuna.samplers.TPESampler(n_startup_trials=self.n_startup, seed=problem.seed),
            pruner=pruner or optuna.pruners.NopPruner(),
        )

    def propose(self) -> tuple[int, Any] | None:
        if len(self.study.trials) < self.n_startup:
            row = self.problem.take_random()
            if row is None:
                return None
            self.study.enqueue_trial(self.problem.configuration(row))
            trial = self.study.ask()
            suggest_all(trial, self.problem)
            return row, trial
        trial = self.study.ask()
        row = self.problem.take_configuration(suggest_all(trial, self.problem))
        return None if row is None else (row, trial)

    def report(self, evaluation: Evaluation) -> bool:
        if self.pruner is None:
            return False
        trial, step = evaluation.handle, len(evaluation.scores)
        trial.report(evaluation.scores[-1], step)
        if step < self.problem.n_folds and trial.should_prune():
            self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return True
        return False

    def complete(self, evaluation: Evaluation, mean: float) -> None:
        self.study.tell(evaluation.handle, mean)

    def fail(self, evaluation: Evaluation) -> None:
        self.study.tell(evaluation.handle, state=optuna.trial.TrialState.FAIL)


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
