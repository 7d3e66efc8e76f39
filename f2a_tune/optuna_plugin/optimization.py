"""`optimize`: runs the trials of a study with hard cutoffs, and ends on time."""

from __future__ import annotations

import math
import os
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from f2a_tune.checks import duration, positive_integer, real_number
from f2a_tune.clock import Budget
from f2a_tune.cutoff.call import checked_memory
from f2a_tune.cutoff.warm_pools import WorkersNotReadyError
from f2a_tune.interrupts import kept_interrupts
from f2a_tune.logging import get_logger
from f2a_tune.optuna_plugin.current_run import OptimizeRun
from f2a_tune.optuna_plugin.joblib_trials import run_elsewhere
from f2a_tune.optuna_plugin.packing import PackedObjective
from f2a_tune.optuna_plugin.progress_bar import ProgressBar
from f2a_tune.optuna_plugin.remote_trial import call_objective
from f2a_tune.optuna_plugin.trial_limits import TrialCounter
from f2a_tune.optuna_plugin.trial_work import Callback, TrialLimits, TrialWork
from f2a_tune.runtime.joblib_backend import chosen_backend
from f2a_tune.runtime.loop import Loop
from f2a_tune.runtime.workers import open_workers
from f2a_tune.study import optuna_private
from f2a_tune.study.journal import repair_journal
from f2a_tune.study.run_records import write_run
from f2a_tune.study.stale_trials import close_trials_of_run
from f2a_tune.study.storage_retry import (
    STORAGE_ERRORS,
    StorageLostError,
    StorageRetry,
    retried_storage,
)

if TYPE_CHECKING:
    from optuna import Study

_logger = get_logger("f2a_tune.optimize")

# Objectives often use these: workers import them before they start, if this process has.
PRELOADED = ("sklearn", "optuna")


def optimize(
    study: Study,
    objective: Callable[[Any], Any],
    *,
    time_budget: float | str | None = None,
    n_trials: int | None = None,
    n_jobs: int = 1,
    callbacks: Iterable[Callback] | None = (),
    catch: type[Exception] | Iterable[type[Exception]] = (),
    show_progress_bar: bool = False,
    memory: int | None = None,
) -> None:
    """Run trials like ``study.optimize``, with enforced cutoffs and a time budget.

    The objective runs in a worker process, which is killed at the trial's cutoff. The cutoff is
    the one that `WaitUCBSampler` chose; with another sampler it is what remains of the budget. A
    trial that is given up becomes PRUNED, its user attributes say so, and the values it reported
    are kept. If a worker crashes or runs out of memory, its trial becomes FAIL and the study
    continues.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective and any sampler and pruner. Use `WaitUCBSampler` to learn
        cutoffs.
    objective : callable
        Called with a trial that has the public methods of `optuna.Trial`. It is sent to worker
        processes, so changes to global variables stay there.
    time_budget : float or str, optional
        Seconds after which the call returns, or a text such as "90s", "5m" or "1h30m". By default
        there is no limit; then set ``n_trials``.
    n_trials : int, optional
        Maximum number of trials. None means no limit.
    n_jobs : int, default=1
        Number of trials to run at the same time; -1 uses all cores. If each trial uses several
        threads, choose fewer. Under `joblib.parallel_config` with a backend of processes ("loky",
        "dask", "ray") the trials run there and meet in the study's storage.
    callbacks : list of callable, optional
        Called with the study and each finished trial, in this process.
    catch : exception class or tuple of them, default=()
        Exceptions of the objective that do not end the call. By default every exception does.
    show_progress_bar : bool, default=False
        Whether to show a progress bar. Ignored with a joblib backend of processes.
    memory : int, optional
        Maximum number of bytes that one trial may map (Linux only). None means no limit.

    Raises
    ------
    StorageLostError
        If the study's storage cannot be reached for a minute, or until the budget ends.

    Warns
    -----
    NoTrialWarning
        If the budget was spent before the worker processes had started.

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
    total = math.inf if time_budget is None else duration("time_budget", time_budget)
    budget = Budget(total)
    counter = TrialCounter(_checked_trials(n_trials))
    limits = TrialLimits(
        _checked_jobs(n_jobs), counter, checked_memory(memory), _checked_catch(catch)
    )
    if not callable(objective):
        raise TypeError(f"objective must be callable, got {objective!r}.")
    if optuna_private.is_multi_objective(study):
        raise ValueError("study has several objectives. f2a_tune.optimize supports only one.")
    after_trial = _checked_callbacks(callbacks)
    packed = PackedObjective(objective, study)
    if limits.n_players > 1 and chosen_backend() is not None:
        options = {
            "objective": objective,
            "callbacks": after_trial,
            "catch": limits.catch,
            "memory": memory,
        }
        run_elsewhere(optimize, study, budget, counter.limit, limits.n_players, options)
        return
    repair_journal(optuna_private.storage_of(study))
    optuna_private.forget_stop(study)
    run = OptimizeRun(uuid.uuid4().hex[:12], budget, counter.remaining)
    progress = ProgressBar(show_progress_bar, total, n_trials)
    try:
        _run_here(study, packed, run, limits, after_trial, progress)
    except WorkersNotReadyError:
        warnings.warn(
            f"time_budget={total:g} was spent before the worker processes had started, so no "
            "trial was run. The first call in a program takes a few seconds to start them. "
            "Increase time_budget.",
            NoTrialWarning,
            stacklevel=2,
        )
    finally:
        progress.close()


class NoTrialWarning(UserWarning):
    """The time budget was spent before the first trial could run."""


def _run_here(
    study: Study,
    objective: PackedObjective,
    run: OptimizeRun,
    limits: TrialLimits,
    callbacks: tuple[Callback, ...],
    progress: ProgressBar,
) -> None:
    preload = (*(name for name in PRELOADED if name in sys.modules), call_objective.__module__)
    retry = StorageRetry(run.budget)
    with (
        kept_interrupts(),
        optuna_private.optimize_loop(study),
        retried_storage(study, retry),
        # New workers: a module of the user may have changed since the last call.
        open_workers(
            limits.n_players, preload, objective, run.budget, new_workers=True
        ) as workers,
    ):
        work = TrialWork(study, workers, run, limits, callbacks, progress, retry)
        try:
            Loop(workers.pool, work).run(limits.n_players)
        finally:
            _close_run(study, run, limits.n_players)


def _close_run(study: Study, run: OptimizeRun, n_players: int) -> None:
    """Record the seconds of the run, and close trials that an interrupt left open."""
    try:
        close_trials_of_run(study, run.name)
        write_run(study, run.name, run.budget.spent_seconds, n_players)
    except (StorageLostError, *STORAGE_ERRORS) as error:  # must not hide why the run ended
        _logger.warning("The study's storage could not be reached at the end: %s", error)


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
