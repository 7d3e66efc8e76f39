"""`optimize`: a study and an objective go in, trials with hard cutoffs run, and it ends on time.

Each player is a thread that asks the study for a trial, runs the objective in a killable worker,
answers what the objective asks meanwhile, and tells the study how it ended. Only this process
touches the storage; nothing that finished is lost when a worker, or all of this, is killed.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from optuna.exceptions import ExperimentalWarning, TrialPruned, UpdateFinishedTrialError
from optuna.storages import fail_stale_trials
from optuna.trial import TrialState

from f2a_tune import _compat, clock
from f2a_tune.checks import positive_integer, positive_number, real_number
from f2a_tune.clock import Budget
from f2a_tune.cutoff import CutoffPool, Shared
from f2a_tune.cutoff.pool import checked_call, checked_memory
from f2a_tune.cutoff.shared import CloudPickled
from f2a_tune.interrupts import kept_interrupts
from f2a_tune.logging import get_logger
from f2a_tune.optuna_plugin import running
from f2a_tune.optuna_plugin.crew import Crew
from f2a_tune.optuna_plugin.dead import fail_dead_trials
from f2a_tune.optuna_plugin.elsewhere import play_elsewhere, shares
from f2a_tune.optuna_plugin.journal import mend_journal
from f2a_tune.optuna_plugin.plan import ERROR, OUTCOME, PLAN, SECONDS, Plan
from f2a_tune.optuna_plugin.progress import Progress
from f2a_tune.optuna_plugin.remote import TrialAnswers, call_objective
from f2a_tune.optuna_plugin.running import Run
from f2a_tune.optuna_plugin.runs import record_run
from f2a_tune.outcome import ErrorReport, Kind, Outcome

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

Callback = Callable[["Study", "FrozenTrial"], None]

# Less time than this is not worth a trial.
SHORTEST_TRIAL_SECONDS = 0.02
# What ending a trial takes: killing, telling, callbacks. The last cutoff leaves time for it.
CLOSING_SECONDS = 0.05
# How long players may take to close their trials when all is being ended.
CLOSING_PATIENCE_SECONDS = 10.0
# How often to look for trials of workers that are gone.
BURIAL_SECONDS = 10.0
# An error text beyond this is cut: some storages take 2,000 characters.
LONGEST_ERROR = 1000
# What objectives most often use: workers import it before they start, if this process has.
PRELOADED = ("sklearn", "optuna")

_logger = get_logger("f2a_tune.optimize")


def optimize(
    study: Study,
    objective: Callable[[Any], Any],
    *,
    time_budget: float | None = None,
    n_trials: int | None = None,
    n_jobs: int = 1,
    callbacks: Iterable[Callback] | None = (),
    catch: type[Exception] | Iterable[type[Exception]] = (),
    show_progress_bar: bool = False,
    memory: int | None = None,
) -> None:
    """Like ``study.optimize``, but every trial has a cutoff that is kept, and so has the whole.

    The objective runs in a worker process, which is killed at the trial's cutoff: the one that
    `WaitUCBSampler` chose, or with another sampler what remains of the budget. A trial that is
    given up is PRUNED, its user attributes say so, and what it reported before is kept. A worker
    that crashes or runs out of memory is a FAIL, and the search goes on.

    Parameters
    ----------
    study
        With any sampler and pruner; one objective.
    objective
        Called with a trial that has the public methods of Optuna's.
    time_budget
        Seconds after which this returns; None for no limit.
    n_trials
        At most so many trials; None for no limit.
    n_jobs
        Trials at a time; -1 is the number of cores. Under `joblib.parallel_config` with a backend
        of processes ("loky", "dask", "ray") they run there, and meet in the study's storage.
    callbacks
        Called with the study and each finished trial.
    catch
        Exceptions of the objective that do not end the search.
    show_progress_bar
        Whether to show one.
    memory
        Bytes that one trial may map (Linux).

    Examples
    --------
    >>> import optuna
    >>> from f2a_tune import WaitUCBSampler, optimize
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    >>> optimize(study, lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=5)
    >>> len(study.trials)
    5
    """
    total = math.inf if time_budget is None else positive_number("time_budget", time_budget)
    budget = Budget(total)
    limits = _Limits(n_trials=_checked_trials(n_trials), memory=checked_memory(memory))
    n_players = _checked_jobs(n_jobs)
    caught = _checked_catch(catch)
    if not callable(objective):
        raise TypeError(f"objective must be callable, got {objective!r}.")
    if _compat.is_multi_objective(study):
        raise ValueError("study has several objectives: f2a_tune.optimize knows how to do one.")
    watchers = _checked_callbacks(callbacks)
    packed = CloudPickled(f"objective={objective!r}", objective)
    if n_players > 1 and _compat.chosen_backend() is not None:
        play_elsewhere(
            optimize,
            shares(study, budget, limits.n_trials, n_players),
            objective=objective,
            callbacks=watchers,
            catch=caught,
            memory=memory,
        )
        return
    mend_journal(_compat.storage_of(study))
    run = Run(uuid.uuid4().hex[:12], budget)
    _compat.forget_stop(study)
    preload = tuple(name for name in PRELOADED if name in sys.modules)
    progress = Progress(show_progress_bar, total, n_trials)
    with (
        kept_interrupts(),
        _compat.optimize_loop(study),
        CutoffPool(n_players, preload=preload) as pool,
    ):
        table = _Table(study, pool, pool.share("objective", packed), run, limits)
        try:
            _play_here(_Player(table, watchers, caught, progress), pool, n_players)
        finally:
            progress.close()
            record_run(study, run.name, run.budget.spent_seconds, n_players)


def _play_here(player: _Player, pool: CutoffPool, n_players: int) -> None:
    try:
        play = player.play if n_players == 1 else player.play_in_thread
        player.crew.play(play, n_players)
    except BaseException:  # Ctrl-C while players are in threads: let them close their trials
        player.crew.end()
        pool.close()
        player.crew.wait_until_idle(CLOSING_PATIENCE_SECONDS)
        raise


@dataclass(frozen=True)
class _Limits:
    n_trials: int | None
    memory: int | None


@dataclass(frozen=True)
class _Table:
    """What all players share."""

    study: Study
    pool: CutoffPool
    objective: Shared
    run: Run
    limits: _Limits


class _Player:
    """Runs trials until the budget, the number of trials or somebody's patience ends."""

    def __init__(
        self,
        table: _Table,
        callbacks: Sequence[Callback],
        catch: tuple[type[Exception], ...],
        progress: Progress,
    ) -> None:
        self._table, self._callbacks, self._catch = table, callbacks, catch
        self._progress = progress
        self._counter, self._lock = itertools.count(), threading.Lock()
        self._next_burial = -math.inf
        self.crew = Crew()

    def play(self) -> None:
        """Run one trial after another."""
        with running.inside(self._table.run):
            while self._may_go_on():
                self._one_trial()
        _compat.release_session(self._table.study)

    def play_in_thread(self) -> None:
        """The same in a thread of its own."""
        with _compat.optimize_loop(self._table.study):
            self._table.study.sampler.reseed_rng()
            self.play()

    def _may_go_on(self) -> bool:
        remaining = self._table.run.budget.remaining_seconds
        if self.crew.ended or _compat.stop_requested(self._table.study):
            return False
        if remaining < SHORTEST_TRIAL_SECONDS + CLOSING_SECONDS:
            return False
        with self._lock:
            number = next(self._counter)
        return self._table.limits.n_trials is None or number < self._table.limits.n_trials

    def _one_trial(self) -> None:
        study = self._table.study
        self._bury_the_dead()
        trial = study.ask()
        plan = self._plan(trial)
        try:
            with _compat.heartbeat(study, trial):
                outcome = self._run(trial, plan)
        except BaseException as error:  # Ctrl-C, or the pool is gone: the trial must not stay open
            report = ErrorReport(type(error).__name__, str(error))
            _tell(study, trial, Outcome.failed(report, _seconds_so_far(study, trial)))
            raise
        finished = _tell(study, trial, outcome)
        _log(finished, outcome)
        self._raise_if_not_caught(outcome)
        for callback in self._callbacks:
            callback(study, finished)
        self._progress.update(self._table.run.budget.spent_seconds, study)

    def _bury_the_dead(self) -> None:
        """Now and then: it means to read all trials."""
        now = clock.monotonic_seconds()
        with self._lock:
            due = now >= self._next_burial
            if due:
                self._next_burial = now + BURIAL_SECONDS
        if due:
            fail_dead_trials(self._table.study)
            if _compat.has_heartbeat(self._table.study):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ExperimentalWarning)
                    fail_stale_trials(self._table.study)

    def _plan(self, trial: Trial) -> Plan:
        """The sampler's plan; with another sampler the cutoff is what remains."""
        known = running.find(self._table.study, trial)
        if known is not None:
            return known.plan
        remaining = self._table.run.budget.remaining_seconds - CLOSING_SECONDS
        plan = Plan(
            cutoff_seconds=max(remaining, SHORTEST_TRIAL_SECONDS),
            reason="what remains of the budget",
            run=self._table.run.name,
            hard=True,
            number=trial.number,
        )
        trial.set_user_attr(PLAN, plan.to_attribute())
        running.begin(self._table.study, trial, plan)
        return plan

    def _run(self, trial: Trial, plan: Plan) -> Outcome:
        remaining = self._table.run.budget.remaining_seconds - CLOSING_SECONDS
        cutoff = max(min(plan.cutoff_seconds, remaining), SHORTEST_TRIAL_SECONDS)
        args = (self._table.objective, trial.number)
        call = checked_call(call_objective, args, {}, cutoff, self._table.limits.memory)
        answer = TrialAnswers(trial, lambda: running.restart(self._table.study, trial))
        latest = clock.monotonic_seconds() + max(remaining, cutoff)
        return self._table.pool.perform(replace(call, answer=answer, latest=latest))

    def _raise_if_not_caught(self, outcome: Outcome) -> None:
        error = outcome.error
        if outcome.kind is not Kind.FAILED or error is None or error.is_a(TrialPruned):
            return
        if error.is_death or any(error.is_a(kind) for kind in self._catch):
            return  # a worker that died says nothing about the next trial
        outcome.unwrap()


def _seconds_so_far(study: Study, trial: Trial) -> float:
    known = running.find(study, trial)
    return 0.0 if known is None else clock.monotonic_seconds() - known.started


def _tell(study: Study, trial: Trial, outcome: Outcome) -> FrozenTrial:
    """Write down how a trial ended, whatever the objective has returned."""
    pruned = outcome.error is not None and outcome.error.is_a(TrialPruned)
    value, state = outcome.value, None
    known = running.end(study, trial)
    out_of_time = pruned and known is not None and _has_passed(known)
    if outcome.kind is Kind.GAVE_UP or pruned:
        value, state = None, TrialState.PRUNED
    elif outcome.kind is not Kind.FINISHED:
        value, state = None, TrialState.FAIL
    copied = None if known is None else known.copied_seconds
    with suppress(UpdateFinishedTrialError):  # somebody took it for dead, and closed it
        if trial.user_attrs.get(SECONDS) in (None, copied):
            trial.set_user_attr(SECONDS, outcome.seconds)
        if out_of_time:
            trial.set_user_attr(OUTCOME, Kind.GAVE_UP.value)
        elif outcome.kind is not Kind.FINISHED and not pruned:
            trial.set_user_attr(OUTCOME, outcome.kind.value)
        if outcome.error is not None and not pruned:
            trial.set_user_attr(ERROR, str(outcome.error)[:LONGEST_ERROR])
    try:
        return study.tell(trial, value, state=state, skip_if_finished=True)
    except (TypeError, ValueError, OverflowError):  # a value that is no number at all
        return study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)


def _has_passed(known: running.RunningTrial) -> bool:
    return clock.monotonic_seconds() - known.started >= known.plan.cutoff_seconds


def _log(trial: FrozenTrial, outcome: Outcome) -> None:
    seconds = f"{outcome.seconds:.3g} s"
    if trial.state is TrialState.COMPLETE:
        _logger.info(
            "Trial %d finished with value: %s and parameters: %s, %s.",
            trial.number,
            trial.value,
            trial.params,
            seconds,
        )
    elif outcome.kind is Kind.GAVE_UP:
        _logger.info("Trial %d given up at its cutoff, %s.", trial.number, seconds)
    elif trial.state is TrialState.PRUNED:
        _logger.info("Trial %d pruned. %s", trial.number, seconds)
    else:
        why = outcome.error or f"the value {outcome.value!r} is not acceptable"
        _logger.warning("Trial %d failed after %s: %s", trial.number, seconds, why)


def _checked_trials(n_trials: Any) -> int | None:
    if n_trials is None:
        return None
    number = real_number("n_trials", n_trials)
    if not math.isfinite(number) or number != math.floor(number) or number < 0:
        raise ValueError(f"n_trials must be a whole number or None, got {n_trials!r}.")
    return int(number)


def _checked_jobs(n_jobs: Any) -> int:
    return os.cpu_count() or 1 if n_jobs == -1 else positive_integer("n_jobs", n_jobs)


def _checked_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    found = callbacks if isinstance(callbacks, Iterable) else () if callbacks is None else None
    kept = None if found is None else tuple(found)
    if kept is None or not all(callable(one) for one in kept):
        raise TypeError(f"callbacks must be a list of functions or None, got {callbacks!r}.")
    return kept


def _checked_catch(catch: Any) -> tuple[type[Exception], ...]:
    kinds = tuple(catch) if isinstance(catch, Iterable) else (catch,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError(f"catch must be exception classes, got {kind!r}.")
    return kinds
