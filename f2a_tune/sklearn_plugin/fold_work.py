"""The jobs of a search: fits of folds, chosen by a race and recorded in the study.

Outcomes go into the race and the store one at a time, under a lock. There is nothing left to do
when only the time for the refit remains, when every configuration of a finite space is done, when
the first fits all fail alike, or when a callback asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from f2a_tune.clock import Budget, monotonic_seconds
from f2a_tune.cutoff.call import checked_call
from f2a_tune.growth.ladder import Ladder
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing import CurveProposals, Offer, Proposals, Pull, Race
from f2a_tune.racing.contenders import OVERHEAD_SECONDS
from f2a_tune.racing.opening import LAST_CALL_SHARE
from f2a_tune.racing.space import Floats
from f2a_tune.runtime.event import Event
from f2a_tune.runtime.limits import CLOSING_SECONDS, SHORTEST_PULL_SECONDS
from f2a_tune.runtime.loop import Job, NoJob
from f2a_tune.runtime.workers import Workers
from f2a_tune.sklearn_plugin.failures import Failures
from f2a_tune.sklearn_plugin.fold import KeepModel, evaluate_fold
from f2a_tune.sklearn_plugin.growing_fits import GrowingFits, Leg
from f2a_tune.sklearn_plugin.growing_fold import grow_fold
from f2a_tune.sklearn_plugin.refit import KeptModels, RefitForecast
from f2a_tune.study.accounting import Account
from f2a_tune.study.fold_record import FoldRecord, metric_of
from f2a_tune.study.peer_sync import PeerSync
from f2a_tune.study.trial_store import TrialStore

# At most this share of the budget is kept for closing trials.
LARGEST_CLOSING_SHARE = 0.25
# Weight of the last pull in the moving average of the overhead.
OVERHEAD_WEIGHT = 0.2


@dataclass(frozen=True)
class SearchState:
    """What a run knows about its search. Race and store can be rebuilt from the study."""

    budget: Budget
    race: Race
    store: TrialStore
    sync: PeerSync
    account: Account
    forecast: RefitForecast
    kept_models: KeptModels


@dataclass(frozen=True)
class FoldLimits:
    """What the fits of a search may use."""

    n_players: int
    most_configurations: float
    memory: int | None
    refit: bool
    """Whether the winner is refitted, so that models of folds are kept for it."""
    raise_errors: bool = False
    baseline: Floats | None = None
    """The point of the configuration to beat."""
    fallback: Floats | None = None
    """The point to try if nothing else finishes."""
    ladder: Ladder | None = None
    """The levels of fits that grow; None if all fits are whole."""


@dataclass(frozen=True)
class FoldFit:
    """A pull that runs."""

    pull: Pull
    params: dict[str, object]
    cutoff_seconds: float
    keep: KeepModel
    begin: float
    leg: Leg | None = None
    """The growing fit; None for a whole one."""


class FoldWork:
    """Chooses the next fit of a fold, and takes its outcome."""

    def __init__(
        self,
        state: SearchState,
        workers: Workers,
        proposals: Proposals | CurveProposals,
        limits: FoldLimits,
        callbacks: Sequence[Callable[[Event], bool]] = (),
    ) -> None:
        self._state, self._workers, self._proposals = state, workers, proposals
        self._limits, self._callbacks = limits, callbacks
        self._fallback = limits.fallback
        self._failures = Failures()
        self._overhead = Overhead()
        self._refit_seconds = state.forecast.expected_seconds()
        self._lock = threading.Lock()
        self._growing: GrowingFits | None = None
        if limits.ladder is not None:
            self._growing = GrowingFits(state.race, limits.ladder)
        self._stopped = False
        self._n_first_folds = 0
        """Number of pulls of first folds that have ended here."""
        self._offered: tuple[tuple[int, ...], Offer | None] | None = None
        """The next proposal, with how much was known when it was made."""
        state.race.has_last_resort = self._fallback is not None
        self._find_baseline()

    def player(self) -> AbstractContextManager[None]:
        """Players of a search need no context."""
        return nullcontext()

    def next_job(self) -> Job[FoldFit] | NoJob:
        """The fit that the race chooses."""
        with self._lock:
            pull = self._next_pull()
            if pull is not None:
                return self._job(pull)
            may_follow = bool(self._state.race.in_flight) and not self._stopped
            waits = may_follow and self._seconds_left() > SHORTEST_PULL_SECONDS
            return NoJob.WAIT if waits else NoJob.DONE

    def record(self, job: Job[FoldFit], outcome: Outcome) -> None:
        """Tell the race, write to the study, and call the callbacks."""
        pull = job.subject.pull
        with self._lock:
            outcome = self._tell(job.subject, outcome)
        self._state.store.store(
            pull.configuration, pull.fold
        )  # other players may decide meanwhile
        with self._lock:
            if self._limits.raise_errors and outcome.kind is not Kind.GAVE_UP:
                outcome.unwrap()
            event = Event(pull, outcome, job.subject.params)
            stops = [callback(event) for callback in self._callbacks]
            if any(stops) or (self._failures.are_alike and not self._baseline_runs()):
                self._stopped = True
                self._state.sync.stop_session()

    def _baseline_runs(self) -> bool:
        """Whether the configuration to beat may still finish."""
        race = self._state.race
        return any(pull.configuration == race.baseline for pull in race.in_flight.values())

    def withdraw(self, job: Job[FoldFit], error: BaseException) -> None:
        """Forget a fit that was interrupted."""
        del error
        with self._lock:
            self._state.race.withdraw(job.subject.pull)
            if self._growing is not None and job.subject.leg is not None:
                self._growing.forget(job.subject.pull)

    def close(self) -> None:
        """Drop all paused fits."""
        with self._lock:
            if self._growing is not None:
                self._growing.clear()

    def _tell(self, fit: FoldFit, outcome: Outcome) -> Outcome:
        """Tell race and store; returns the outcome of the pull."""
        state, pull = self._state, fit.pull
        cutoff = max(fit.cutoff_seconds, outcome.cutoff_seconds or 0.0)
        now, metric = state.budget.spent_seconds, state.store.metric
        if fit.leg is None or self._growing is None:
            record = FoldRecord.of(outcome, cutoff, now, pull.reason)
            state.race.tell(pull, record.outcome(metric))
        else:
            ended, record = outcome, fit.leg.record(outcome, cutoff, now)
            outcome = fit.leg.outcome(ended)
            told = replace(outcome, value=_score_of(outcome, metric)) if outcome.ok else outcome
            state.race.tell(pull, told, record.looks(metric))
            self._growing.keep(pull, ended)
        earlier = state.store.record_of(pull.configuration, pull.fold)
        state.store.add(pull.configuration, pull.fold, record)
        self._n_first_folds += pull.fold == 0
        self._account(earlier, record, pull)
        if record.kind is Kind.FINISHED:
            state.kept_models.add(pull.configuration, pull.fold, fit.keep.path)
        self._failures.add(outcome)
        self._overhead.add(monotonic_seconds() - fit.begin - outcome.seconds)
        state.race.overhead_seconds = self._overhead.mean_seconds
        state.forecast.start_seconds = self._overhead.largest_seconds
        self._refit_seconds = state.forecast.expected_seconds(pull.configuration)
        return outcome

    def _account(self, earlier: FoldRecord | None, record: FoldRecord, pull: Pull) -> None:
        """Count a whole fit, or all pulls of a growing one together."""
        account = self._state.account
        now = self._state.store.record_of(pull.configuration, pull.fold)
        if record.grows and earlier is not None and earlier.grows and now is not None:
            account.replace(earlier.kind, earlier.seconds, now.kind, now.seconds)
        else:
            account.add(record.kind, record.seconds)

    def _next_pull(self) -> Pull | None:
        if self._stopped or self._seconds_left() < SHORTEST_PULL_SECONDS:
            return None
        state, race = self._state, self._state.race
        if state.sync.sync(state.account):
            self._refit_seconds = state.forecast.expected_seconds()
            self._find_baseline()
        if state.sync.is_stopped:
            self._stopped = True
            return None
        now = self._now()
        offer = self._offer(now)
        pull = race.ask(now, offer)
        if pull is not None and pull.fresh:
            if offer is None:
                race.exhausted(pull)
                return self._next_pull()
            index = state.store.begin(offer.unit)
            assert index == pull.configuration
            if offer.unit is self._fallback:
                self._fallback, race.has_last_resort = None, False
            self._find_baseline()
        return pull

    def _offer(self, now: float) -> Offer | None:
        """A new configuration for the race to choose, if there is one."""
        race = self._state.race
        if self._fallback is not None and self._is_known(self._fallback):
            self._fallback, race.has_last_resort = None, False
        if self._fallback is not None and self._nothing_finishes(now):
            return Offer(self._fallback, least_share=1.0)
        if not race.reservoir_open:
            return None
        offer = self._proposal(now)
        if offer is None:
            race.exhausted()
        return offer

    def _proposal(self, now: float) -> Offer | None:
        state, ledger = self._state, self._state.race.ledger
        if len(state.store.configurations) >= self._limits.most_configurations:
            return None
        # More folds of known configurations hardly change the proposal, and a model is slow.
        known: tuple[int, ...] = len(state.store.units), ledger.n_scored
        known = (*known, int((ledger.waited > 0).sum()))
        if ledger.curves is not None:  # only first folds are grown
            known = (*known, self._n_first_folds)
        if self._offered is None or self._offered[0] != known:
            self._offered = known, self._new_offer(now)
        return self._offered[1]

    def _new_offer(self, now: float) -> Offer | None:
        race, units = self._state.race, self._state.store.units
        if isinstance(self._proposals, CurveProposals):
            return self._proposals.offer(race.ledger, units, race.time_left(now))
        return self._proposals.offer(race.ledger, units, max(race.fresh_cutoff(now), 1e-6))

    def _is_known(self, unit: Floats) -> bool:
        return any(unit.tobytes() == one.tobytes() for one in self._state.store.units)

    def _nothing_finishes(self, now: float) -> bool:
        """Whether it is time for the fallback, which lies outside the space."""
        race = self._state.race
        tried = bool((race.ledger.waited > 0).any()) or not race.reservoir_open
        remaining = race.budget_seconds - now
        is_late = remaining < LAST_CALL_SHARE * race.budget_seconds
        return tried and is_late and not race.ledger.n_scored

    def _find_baseline(self) -> None:
        """Tell the race which configuration is the one to beat, once it has been drawn."""
        race, baseline = self._state.race, self._limits.baseline
        if baseline is not None and race.baseline is None:
            for index, unit in enumerate(self._state.store.units[: race.ledger.n]):
                if unit.tobytes() == baseline.tobytes():
                    race.set_baseline(index)

    def _job(self, pull: Pull) -> Job[FoldFit]:
        state, limits = self._state, self._limits
        params = state.store.configurations[pull.configuration].params
        longest = max(self._longest_pull(pull), SHORTEST_PULL_SECONDS)
        cutoff = min(pull.cutoff_seconds, longest)
        keep = state.kept_models.place_for(
            self._workers.pool, pull.configuration, pull.fold, state.forecast.kept_from_seconds
        )
        begin = monotonic_seconds()
        kept = keep if limits.refit else None
        arguments: tuple[Any, ...] = (self._workers.data, params, pull.fold, kept)
        rounds = state.store.space.rounds_of(state.store.units[pull.configuration])
        if self._growing is None or rounds is None or pull.level is None:
            call = checked_call(evaluate_fold, arguments, {}, cutoff, limits.memory)
            # A worker may have to start first; the search ends on time all the same.
            more = partial(self._more_seconds, pull)
            call = replace(call, latest=begin + longest, more_seconds=more)
            return Job(call, FoldFit(pull, params, cutoff, keep, begin))
        leg = self._growing.leg(pull, rounds)
        arguments = (*arguments[:3], tuple(sorted(set(leg.rounds))), kept)
        call = checked_call(grow_fold, arguments, {}, cutoff, limits.memory)
        call = self._growing.call(leg, replace(call, latest=begin + longest))
        return Job(call, FoldFit(pull, params, cutoff, keep, begin, leg))

    def _more_seconds(self, pull: Pull) -> float:
        """How much longer a fit that has reached its cutoff may run."""
        left = self._seconds_left()
        return min(self._state.race.more_seconds(pull, self._now()), left) if left > 0 else 0.0

    def _seconds_left(self) -> float:
        """Seconds for fits, without those for the refit and for closing trials."""
        budget = self._state.budget
        closing = self._state.store.closing_seconds(self._limits.n_players)
        closing = min(closing, LARGEST_CLOSING_SHARE * budget.total_seconds) + CLOSING_SECONDS
        return budget.remaining_seconds - self._refit_seconds - closing

    def _longest_pull(self, pull: Pull) -> float:
        """A fit that leaves no time for its refit is useless, unless nothing else has finished.

        A fit that grows is part of a longer one, and the seconds of its refit are known.
        """
        left = self._seconds_left()
        if not self._state.race.ledger.n_scored or pull.level is not None:
            return left
        shared = left + self._refit_seconds
        return min(left, shared / (1.0 + self._state.forecast.seconds_per_second))

    def _now(self) -> float:
        """The race's clock: what is kept for the refit counts as spent."""
        return self._state.race.budget_seconds - max(self._seconds_left(), 0.0)


def _score_of(outcome: Outcome, metric: str | None) -> float:
    return metric_of(outcome.value.test_scores, metric)


class Overhead:
    """Measures the seconds that a pull takes in addition to its fit."""

    def __init__(self) -> None:
        self.mean_seconds = OVERHEAD_SECONDS
        self.largest_seconds = 0.0
        """That of a pull in a new worker, which first loads data and imports modules."""

    def add(self, seconds: float) -> None:
        """Update the moving average with one more pull."""
        self.largest_seconds = max(self.largest_seconds, seconds)
        self.mean_seconds += OVERHEAD_WEIGHT * (max(seconds, 0.0) - self.mean_seconds)
