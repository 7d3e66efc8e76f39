"""One process's part in a search: it reads the study, runs fits until the budget ends, and refits.

Other processes may work on the same search at the same time. They share nothing but the study.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any, Self

from f2a_tune.clock import Budget
from f2a_tune.cutoff.launcher import WorkerStartError
from f2a_tune.cutoff.warm_pools import WorkersNotReadyError, prestart_pool
from f2a_tune.interrupts import kept_interrupts
from f2a_tune.logging import get_logger
from f2a_tune.outcome import FAILED, Kind
from f2a_tune.runtime.blas_threads import one_blas_thread
from f2a_tune.runtime.event import Event
from f2a_tune.runtime.limits import INTERRUPT_SECONDS
from f2a_tune.runtime.loop import Loop
from f2a_tune.runtime.workers import Workers, open_workers
from f2a_tune.sklearn_plugin.failures import NothingFinishedError, why_nothing_finished
from f2a_tune.sklearn_plugin.fold import FoldData
from f2a_tune.sklearn_plugin.fold_work import FoldLimits, FoldWork, SearchState
from f2a_tune.sklearn_plugin.refit import (
    KeptModels,
    RefitForecast,
    Refitter,
    RefitWarning,
    mean_fit_seconds,
)
from f2a_tune.sklearn_plugin.search_space import SearchSpace
from f2a_tune.sklearn_plugin.settings import Settings
from f2a_tune.study.accounting import Account, BudgetSummary
from f2a_tune.study.heartbeat import Heartbeat
from f2a_tune.study.peer_sync import PeerSync
from f2a_tune.study.storage_retry import STORAGE_ERRORS, StorageLostError, StorageRetry
from f2a_tune.study.trial_store import TrialStore

if TYPE_CHECKING:
    from optuna import Study

_logger = get_logger("f2a_tune.search")


class StorageLostWarning(UserWarning):
    """The study's storage could not be reached before the search was over."""


class SearchInterruptedWarning(UserWarning):
    """The search was interrupted by the user; it is fitted with the best result so far."""


class SearchRun:
    """A search as this process sees it.

    Parameters
    ----------
    session
        The name of the session to join, if it is known.
    shared
        Whether other processes can access the study.
    elsewhere
        Whether all players are in other processes.
    """

    def __init__(
        self,
        settings: Settings,
        study: Study,
        space: SearchSpace,
        data: FoldData,
        budget: Budget,
        *,
        shared: bool,
        elsewhere: bool = False,
        session: str | None = None,
    ) -> None:
        self.settings, self.space, self.data = settings, space, data
        n_here = 0 if elsewhere else settings.n_players
        self._heartbeat = Heartbeat(study, budget, n_here, shared=shared, session=session)
        if self._heartbeat.has_joined and settings.policy != "race":
            raise ValueError(
                f"policy={settings.policy!r} works in one process only. Use policy='race' to "
                "share a search between processes."
            )
        self.state = self._new_state(study, budget)
        self._callbacks: list[Callable[[Event], bool]] = [*settings.callbacks]
        self._played_seconds = 0.0
        self.interrupted = False
        self._workers: Workers | None = None
        self._resources = ExitStack()

    def _new_state(self, study: Study, budget: Budget) -> SearchState:
        settings, race = self.settings, self.settings.race()
        store = TrialStore(
            study,
            self.space,
            settings.n_folds,
            settings.metric,
            self._heartbeat.name,
            StorageRetry(budget),
        )
        forecast = RefitForecast(
            race,
            store,
            self.data,
            settings.time_budget,
            refit=settings.refit,
            grows=settings.growth is not None and all(settings.growth.dicts),
        )
        race.refit_fits = forecast.fits
        sync = PeerSync(race, store, self._heartbeat)
        return SearchState(budget, race, store, sync, Account(), forecast, KeptModels())

    @property
    def name(self) -> str:
        """The name of this run, which is also that of a session it starts."""
        return self._heartbeat.name

    def add_callback(self, callback: Callable[[Event], bool]) -> None:
        """Call this with each `Event` too."""
        self._callbacks.append(callback)

    def run(self) -> None:
        """Read the study, run fits here until the end, and close the trials."""
        with kept_interrupts(), self._heartbeat:
            try:
                self.state.sync.restore()
                self._play()
            except KeyboardInterrupt:
                self._warn_interrupted()
            except StorageLostError as error:
                if not self.state.store.results:
                    raise
                _warn_of_storage(error)  # finished fits are in memory
            except WorkersNotReadyError as error:
                _logger.warning("%s", error)
            except WorkerStartError as error:
                self._ended_by("The players", error)
            finally:
                self._close()

    def _play(self) -> None:
        """Run fits in workers of this process."""
        workers = self._workers = self._open_workers()
        begin = self.state.budget.spent_seconds
        try:
            # The fits need the cores.
            with one_blas_thread(), closing(self._work(workers)) as work:
                Loop(workers.pool, work).run(self.settings.n_players)
        finally:
            self._played_seconds = self.state.budget.spent_seconds - begin

    def watch(self, play: Callable[[], None]) -> None:
        """Let ``play`` start players in other processes, and read what they have done."""
        with kept_interrupts(), self._heartbeat:
            self.state.sync.restore()
            begin = self.state.budget.spent_seconds
            if self.settings.refit:  # its workers must have started by then
                prestart_pool(1, self.settings.preload)
            trouble: Exception | None = None
            try:
                play()
            except KeyboardInterrupt:
                self._stop_others()
                self._warn_interrupted()
            except Exception as error:  # one player was killed: the results of others are there
                self._stop_others()
                trouble = error
            self._played_seconds = self.state.budget.spent_seconds - begin
            self._close()
            if trouble is not None:
                self._ended_by("Players of the joblib backend", trouble)

    def refitted(self, index: int, params: dict[str, Any]) -> Any:
        """The winner fitted on all rows, or a model of one fold if time is short."""
        try:
            workers = self._workers
            if workers is None or workers.pool.closed:  # players were elsewhere, or interrupted
                self.state.kept_models.clear()  # deleted with the pool
                workers = self._open_workers()
            return self._refitted(workers, index, params)
        except (WorkersNotReadyError, WorkerStartError) as error:
            _warn(
                f"The refit runs in this process without a time limit, because {error}",
                RefitWarning,
            )
            return self.data.fit_on_all_rows(params)  # a late model is better than none

    def _refitted(self, workers: Workers, index: int, params: dict[str, Any]) -> Any:
        state = self.state
        one = state.store.configurations[index]
        folds = [fold for fold in range(self.settings.n_folds) if one.finished(fold)]
        budget = state.budget
        if not state.race.n_pulls or not folds or not state.account.n_pulls:
            budget = Budget()  # everything was in the study already, so there is no deadline
        memory = self.settings.memory
        refitter = Refitter(
            workers.pool, workers.data, self.data, budget, state.kept_models, memory
        )
        return refitter.refit(index, params, mean_fit_seconds(state.store, index), folds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        """Return the workers; after an error they are killed."""
        self.state.kept_models.clear()
        self._resources.__exit__(*error)

    def _open_workers(self) -> Workers:
        """Workers with the data, until the run is closed."""
        settings = self.settings
        return self._resources.enter_context(
            open_workers(
                self._heartbeat.n_players or 1,
                settings.preload,
                self.data.shareable(),
                self.state.budget,
            )
        )

    def _work(self, workers: Workers) -> FoldWork:
        settings, seed = self.settings, self.settings.seed
        if self._heartbeat.has_joined:
            seed = int(self.name, 16) % 2**31  # not what other runs draw
        limits = FoldLimits(
            n_players=settings.n_players,
            most_configurations=settings.most_configurations,
            memory=settings.memory,
            refit=settings.refit,
            raise_errors=settings.raise_errors,
            baseline=settings.start[0] if settings.start else None,
            fallback=settings.fallback,
            ladder=None if settings.growth is None else settings.growth.ladder,
        )
        proposals = settings.new_proposals(self.space, seed)
        return FoldWork(self.state, workers, proposals, limits, self._callbacks)

    def _ended_by(self, who: str, error: Exception) -> None:
        """Keep what finished before, unless the user wants every error raised."""
        if self.settings.raise_errors or not self.state.store.results:
            raise error
        _warn(
            f"{who} ended with {type(error).__name__}: {error}. The search is fitted with the "
            "results so far.",
            RuntimeWarning,
        )

    def _stop_others(self) -> None:
        """Some backends leave their workers running when nobody waits for them any more."""
        with suppress(StorageLostError, *STORAGE_ERRORS):
            self.state.sync.stop_session()
            self._heartbeat.wait_for_runs(INTERRUPT_SECONDS)

    def _warn_interrupted(self) -> None:
        self.interrupted = True
        if self.state.store.results:
            _warn(
                "The search was interrupted. It is fitted with the best result so far.",
                SearchInterruptedWarning,
            )

    def _close(self) -> None:
        """Close the trials; if the storage cannot be reached, the results are in memory."""
        try:
            self.state.sync.close(self.state.account)
        except (StorageLostError, *STORAGE_ERRORS) as error:
            _warn_of_storage(error)

    def budget_summary(self, refit_seconds: float) -> BudgetSummary:
        """Where the worker-seconds of all runs went."""
        heartbeat, account = self._heartbeat, self.state.account
        played = self._played_seconds * heartbeat.n_players + heartbeat.seconds_of_others
        other = heartbeat.own_seconds - self._played_seconds - refit_seconds
        overhead = max(played - account.pull_seconds, 0.0) + max(other, 0.0)
        return account.summary(overhead, refit_seconds)

    def best_partial(self, default: int) -> int:
        """The winner, if it does not have all folds; else ``default``.

        Then no configuration has all folds, or the baseline is clearly better than those that do.
        """
        found = self.state.race.recommend(final=True)
        partial = found is not None and not found.fully_validated
        return found.configuration if found is not None and partial else default

    @property
    def fits_to_validate(self) -> float:
        """Length of validating and refitting one configuration, in fits."""
        rounds = -(-self.settings.n_folds // max(self.settings.n_players, 1))
        return rounds + self.state.forecast.fits

    def why_nothing(self) -> NothingFinishedError:
        """The error of a search without a single score."""
        return why_nothing_finished(
            self.state.store.records,
            self.settings.time_budget,
            self.state.account.counts[Kind.GAVE_UP],
            self.fits_to_validate,
        )


def describe(state: SearchState, event: Event) -> str:
    """The state of a search in one line: the best score, counts, and the last cutoff."""
    counts, best = state.account.counts, state.race.recommend(final=True)
    found = "nothing yet" if best is None else f"{best.mean:.4f} ± {best.spread:.4f}"
    n_failed = sum(counts[kind] for kind in FAILED)
    failed = f", {n_failed} failed" if n_failed else ""
    return (
        f"best {found}, {len(state.store.configurations)} configurations, "
        f"{counts[Kind.FINISHED]} folds finished, {counts[Kind.GAVE_UP]} given up{failed}, "
        f"cutoff {event.pull.cutoff_seconds:.3g} s"
    )


def _warn_of_storage(error: Exception) -> None:
    _warn(
        f"The study's storage could not be reached ({error}). The search is fitted with all "
        "results, but some of them are not in the study.",
        StorageLostWarning,
    )


def _warn(message: str, kind: type[Warning]) -> None:
    warnings.warn(message, kind, stacklevel=6)
