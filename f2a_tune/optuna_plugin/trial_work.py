"""The jobs of `optimize`: trials of a study, with the cutoffs given in their plans.

Only this process touches the storage. The objective runs in a worker, and its questions are
answered here while it runs. Nothing that finished is lost when a worker, or this process, is
killed.
"""

from __future__ import annotations

import logging
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import optuna
from optuna.exceptions import ExperimentalWarning, TrialPruned, UpdateFinishedTrialError
from optuna.storages import fail_stale_trials
from optuna.trial import TrialState

from f2a_tune import clock
from f2a_tune.cutoff.call import plain_call
from f2a_tune.logging import get_logger, is_verbosity_set
from f2a_tune.optuna_plugin import current_run
from f2a_tune.optuna_plugin.current_run import OptimizeRun
from f2a_tune.optuna_plugin.progress_bar import ProgressBar
from f2a_tune.optuna_plugin.remote_trial import TrialAnswers, call_objective
from f2a_tune.optuna_plugin.trial_limits import Preludes, TrialCounter
from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.runtime.limits import CLOSING_SECONDS, SHORTEST_PULL_SECONDS
from f2a_tune.runtime.loop import Job, NoJob
from f2a_tune.runtime.workers import Workers
from f2a_tune.study import optuna_private, trial_clock
from f2a_tune.study.attributes import ERROR, OUTCOME, PLAN, SECONDS
from f2a_tune.study.limits import LONGEST_ERROR, STALE_CHECK_SECONDS
from f2a_tune.study.stale_trials import close_stale_trials
from f2a_tune.study.storage_retry import STORAGE_ERRORS, StorageLostError, StorageRetry
from f2a_tune.study.trial_plan import TrialPlan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

Callback = Callable[["Study", "FrozenTrial"], None]

_logger = get_logger("f2a_tune.optimize")


@dataclass(frozen=True)
class PlannedTrial:
    """An open trial with its plan."""

    trial: Trial
    plan: TrialPlan


@dataclass(frozen=True)
class TrialLimits:
    """What the trials of a call of `optimize` may use."""

    n_players: int
    counter: TrialCounter
    memory: int | None
    catch: tuple[type[Exception], ...]


class TrialWork:
    """Asks a study for trials, and tells it how they ended."""

    def __init__(
        self,
        study: Study,
        workers: Workers,
        run: OptimizeRun,
        limits: TrialLimits,
        callbacks: Sequence[Callback],
        progress: ProgressBar,
        retry: StorageRetry,
    ) -> None:
        self._study, self._workers, self._run, self._limits = study, workers, run, limits
        self._callbacks, self._progress = callbacks, progress
        self._retry = retry
        self._preludes, self._lock = Preludes(), threading.Lock()
        self._next_stale_check = -math.inf

    @contextmanager
    def player(self) -> Iterator[None]:
        """Let ``study.stop()`` work, and tell the sampler which run is asking."""
        try:
            if self._limits.n_players == 1:
                with current_run.inside(self._run):
                    yield
            else:
                with optuna_private.optimize_loop(self._study), current_run.inside(self._run):
                    self._study.sampler.reseed_rng()
                    yield
        finally:
            optuna_private.release_session(self._study)

    def next_job(self) -> Job[PlannedTrial] | NoJob:
        """The next trial of the study."""
        if optuna_private.stop_requested(self._study):
            return NoJob.DONE
        if self._remaining_seconds() < SHORTEST_PULL_SECONDS or not self._limits.counter.take():
            return NoJob.DONE
        self._close_stale_trials()
        trial = self._study.ask()
        return self._job(PlannedTrial(trial, self._plan(trial)))

    def _remaining_seconds(self) -> float:
        return self._run.budget.remaining_seconds - CLOSING_SECONDS

    def _plan(self, trial: Trial) -> TrialPlan:
        """The sampler's plan; with another sampler the cutoff is what remains of the budget."""
        plan = TrialPlan.of(trial)
        if plan is None:
            plan = TrialPlan(
                cutoff_seconds=max(self._remaining_seconds(), SHORTEST_PULL_SECONDS),
                reason="what remains of the budget",
                run=self._run.name,
                hard=True,
                number=trial.number,
            )
            trial.set_user_attr(PLAN, plan.to_attribute())
        if trial_clock.find(self._study, trial) is None:
            trial_clock.start(self._study, trial)
        return plan

    def _job(self, planned: PlannedTrial) -> Job[PlannedTrial]:
        trial, remaining = planned.trial, self._remaining_seconds()
        cutoff = max(min(planned.plan.cutoff_seconds, remaining), SHORTEST_PULL_SECONDS)
        arguments = (self._workers.data, trial.number, optuna_private.trial_id_of(trial))
        call = plain_call(call_objective, arguments, cutoff, self._limits.memory)
        answers = TrialAnswers(trial, lambda: trial_clock.restart(self._study, trial))
        call = replace(
            call,
            answer=answers,
            more_seconds=answers.more_seconds,
            latest=clock.monotonic_seconds() + max(remaining, cutoff),
            # A new process first loads data and imports modules, which the trial is not charged.
            prelude_cutoff_seconds=self._preludes.cutoff(cutoff, remaining),
        )
        return Job(call, planned, optuna_private.heartbeat(self._study, trial))

    def record(self, job: Job[PlannedTrial], outcome: Outcome) -> None:
        """Tell the study, and call the callbacks."""
        if outcome.prelude_seconds > 0:  # else the worker died, or did not start the call
            self._preludes.add(outcome.prelude_seconds)
        finished = self._tell(job.subject, outcome)
        _log(finished, outcome)
        self._raise_if_not_caught(outcome)
        for callback in self._callbacks:
            callback(self._study, finished)
        self._progress.update(self._run.budget.spent_seconds, self._study)

    def withdraw(self, job: Job[PlannedTrial], error: BaseException) -> None:
        """Close the trial as failed: Ctrl-C was pressed, or the workers are gone."""
        if not isinstance(error, Exception):
            self._retry.stop()
        start = trial_clock.find(self._study, job.subject.trial)
        seconds = 0.0 if start is None else start.elapsed_seconds
        report = ErrorReport(type(error).__name__, str(error) or "the study was interrupted")
        try:
            self._tell(job.subject, Outcome.failed(report, seconds))
        except (StorageLostError, *STORAGE_ERRORS) as trouble:  # must not hide the first error
            _logger.warning("Trial %d could not be closed: %s", job.subject.trial.number, trouble)

    def _tell(self, planned: PlannedTrial, outcome: Outcome) -> FrozenTrial:
        """Write how a trial ended, whatever the objective has returned."""
        study, trial = self._study, planned.trial
        pruned = outcome.error is not None and outcome.error.is_a(TrialPruned)
        start = trial_clock.stop(study, trial)
        at_cutoff = start is not None and start.elapsed_seconds >= planned.plan.cutoff_seconds
        value, state = outcome.value, None
        if outcome.kind is Kind.GAVE_UP or pruned:
            value, state = None, TrialState.PRUNED
        elif outcome.kind is not Kind.FINISHED:
            value, state = None, TrialState.FAIL
        attributes: dict[str, object] = {}
        copied_seconds = None if start is None else start.copied_seconds
        if trial.user_attrs.get(SECONDS) in (None, copied_seconds):
            attributes[SECONDS] = outcome.seconds
        if pruned and at_cutoff:
            attributes[OUTCOME] = Kind.GAVE_UP.value
        elif outcome.kind is not Kind.FINISHED and not pruned:
            attributes[OUTCOME] = outcome.kind.value
        if outcome.error is not None and not pruned:
            attributes[ERROR] = str(outcome.error)[:LONGEST_ERROR]
        return _told(study, trial, attributes, value, state)

    def _close_stale_trials(self) -> None:
        now = clock.monotonic_seconds()
        with self._lock:
            due = now >= self._next_stale_check
            if due:
                self._next_stale_check = now + STALE_CHECK_SECONDS
        if due:
            close_stale_trials(self._study)
            if optuna_private.has_heartbeat(self._study):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ExperimentalWarning)
                    fail_stale_trials(self._study)

    def _raise_if_not_caught(self, outcome: Outcome) -> None:
        error = outcome.error
        if outcome.kind is not Kind.FAILED or error is None or error.is_a(TrialPruned):
            return
        if error.is_death or any(error.is_a(kind) for kind in self._limits.catch):
            return  # a worker that died says nothing about the next trial
        outcome.unwrap()


def _told(
    study: Study,
    trial: Trial,
    attributes: dict[str, object],
    value: object,
    state: TrialState | None,
) -> FrozenTrial:
    with suppress(UpdateFinishedTrialError):  # another process believed it stale, and closed it
        for name, content in attributes.items():
            trial.set_user_attr(name, content)
    try:
        return study.tell(trial, value, state=state, skip_if_finished=True)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):  # the value is not a number
        return study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)


def _log(trial: FrozenTrial, outcome: Outcome) -> None:
    seconds = f"{outcome.seconds:.3g} s"
    silent = optuna.logging.get_verbosity() > logging.INFO and not is_verbosity_set()
    if silent and trial.state is not TrialState.FAIL:
        return  # users who silence Optuna's lines about trials do not want ours either
    if trial.state is TrialState.COMPLETE:
        _logger.info(
            "Trial %d finished with value: %s and parameters: %s, %s.",
            trial.number,
            trial.value,
            trial.params,
            seconds,
        )
    elif outcome.kind is Kind.GAVE_UP and outcome.seconds == 0:
        waited = outcome.prelude_seconds
        text = "Trial %d given up after %.3g s, before it used the trial object."
        _logger.info(text, trial.number, waited)
    elif outcome.kind is Kind.GAVE_UP:
        _logger.info("Trial %d given up at its cutoff, %s.", trial.number, seconds)
    elif trial.state is TrialState.PRUNED:
        _logger.info("Trial %d pruned. %s", trial.number, seconds)
    elif outcome.ok and trial.user_attrs.get(OUTCOME) == Kind.FAILED.value:
        text = "Trial %d finished, but another process had closed it as stale."
        _logger.warning(text, trial.number)
    else:
        why = outcome.error or f"the value {outcome.value!r} is not acceptable"
        _logger.warning("Trial %d failed after %s: %s", trial.number, seconds, why)
