"""`WaitUCBSampler` in a real Optuna study that runs in virtual time.

The objective reports its seconds in an attribute, and the run's budget counts virtual seconds.
Everything else is as in a user's study under `f2a_tune.optimize`.
"""

from __future__ import annotations

from typing import Any

import optuna
from optuna.trial import Trial, TrialState

from f2a_tune import WaitUCBSampler, best_configuration, cutoff_of, evaluation_of
from f2a_tune.clock import Budget, VirtualClock
from f2a_tune.optuna_plugin import current_run
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.study.attributes import SECONDS
from replaying.engine import Job
from replaying.problem import OVERHEAD_SECONDS, Problem
from replaying.whole import N_STARTUP, Evaluation, OptunaSearch, suggest_all


class StreamTpe(optuna.samplers.TPESampler):
    """TPE whose startup configurations come from the stream that all methods share."""

    def __init__(self, problem: Problem, n_startup: int) -> None:
        super().__init__(n_startup_trials=n_startup, seed=problem.seed)
        self.problem, self.n_startup = problem, n_startup
        self.drawn: dict[int, dict[str, Any]] = {}

    def sample_relative(self, study, trial, search_space) -> dict[str, Any]:
        if len(self.drawn) < self.n_startup:
            row = self.problem.peek_random()
            self.drawn[trial.number] = {} if row is None else self.problem.configuration(row)
            return {}
        return super().sample_relative(study, trial, search_space)

    def sample_independent(self, study, trial, param_name, param_distribution) -> Any:
        values = self.drawn.get(trial.number, {})
        if param_name in values:
            return values[param_name]
        return super().sample_independent(study, trial, param_name, param_distribution)


def _give_sampler(search: OptunaSearch, n_evaluations: int) -> current_run.OptimizeRun:
    """Set our sampler, based on TPE, in the study, and return the run with a virtual budget."""
    base = StreamTpe(search.problem, N_STARTUP)
    search.study.sampler = WaitUCBSampler(
        base_sampler=base, evaluations_per_configuration=n_evaluations
    )
    return current_run.OptimizeRun("replay", Budget(search.problem.budget_seconds, VirtualClock()))


def _set_clock(run: current_run.OptimizeRun, now: float) -> None:
    run.budget.clock.advance(now - run.budget.clock())


class SamplerSearch(OptunaSearch):
    """TPE with learned cutoffs; all folds of a configuration run unless it is given up."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.run = _give_sampler(self, 1)
        self.spent: dict[int, float] = {}

    def ask(self, now: float, worker: int) -> Job | None:
        _set_clock(self.run, now)
        with current_run.inside(self.run):
            job = super().ask(now, worker)
        if job is None:
            return None
        trial = self.current[worker].handle
        left = cutoff_of(trial) - self.spent.setdefault(trial.number, 0.0)
        return Job(job.row, job.fold, max(left, 0.0))

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        evaluation = self.current[worker]
        trial = evaluation.handle
        self.spent[trial.number] += outcome.seconds + OVERHEAD_SECONDS
        last = len(evaluation.scores) + 1 == self.problem.n_folds
        if outcome.kind is not Kind.FINISHED or last:
            spent = max(self.spent[trial.number], 1e-6)
            if outcome.kind is Kind.GAVE_UP:
                spent = max(spent, cutoff_of(trial))
            trial.set_user_attr(SECONDS, spent)
        super().tell(job, outcome, worker)

    def report(self, evaluation: Evaluation) -> bool:
        evaluation.handle.report(evaluation.scores[-1], len(evaluation.scores))
        return False

    def fail(self, evaluation: Evaluation) -> None:
        # It was given up, but its reported values count.
        self.study.tell(evaluation.handle, state=TrialState.PRUNED)


class FoldSampler(OptunaSearch):
    """One trial is one fold; the sampler races configurations by evaluating them again."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.run = _give_sampler(self, problem.n_folds)
        self.rows: dict[str, int] = {}
        self.row_of_trial: dict[int, int] = {}

    def ask(self, now: float, worker: int) -> Job | None:
        _set_clock(self.run, now)
        if now >= self.problem.budget_seconds or not self.problem.n_unused:
            return None
        with current_run.inside(self.run):
            trial = self.study.ask()
        values = suggest_all(trial, self.problem)
        key = repr(values)
        if key not in self.rows:
            row = self.problem.take_configuration(values)
            if row is None:
                return None
            self.rows[key] = row
        self.row_of_trial[trial.number] = self.rows[key]
        return Job(self.rows[key], evaluation_of(trial), cutoff_of(trial), trial)

    def tell(self, job: Job, outcome: Outcome, worker: int) -> None:
        trial = job.token
        assert isinstance(trial, Trial)
        trial.set_user_attr(SECONDS, outcome.seconds)
        if outcome.ok:
            self.study.tell(trial, outcome.value)
        else:
            failed = outcome.kind is not Kind.GAVE_UP
            self.study.tell(trial, state=TrialState.FAIL if failed else TrialState.PRUNED)

    def recommend(self) -> int | None:
        try:
            best = best_configuration(self.study)
        except ValueError:  # nothing has finished
            return None
        return self.row_of_trial[best.trial_numbers[0]]
