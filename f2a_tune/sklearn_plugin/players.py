"""The loop of a search: a race says which fit comes next, workers run it, the record keeps it.

In flow the race, proposals, a pool and a budget; out flow outcomes, into the race and the record,
one at a time under a lock. Each player is a thread that supervises a killable worker. It all ends
when the budget is spent but for the refit, nothing is left to do, or somebody asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from f2a_tune.clock import Budget, monotonic_seconds, sleep_seconds
from f2a_tune.cutoff import CutoffPool, Shared
from f2a_tune.cutoff.pool import checked_call
from f2a_tune.optuna_plugin.crew import Crew
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing import Offer, Proposals, Pull, Race
from f2a_tune.sklearn_plugin.account import Account
from f2a_tune.sklearn_plugin.fold import evaluate_fold
from f2a_tune.sklearn_plugin.others import Others
from f2a_tune.sklearn_plugin.pulls import PullRecord
from f2a_tune.sklearn_plugin.record import SearchRecord
from f2a_tune.sklearn_plugin.threads import one_blas_thread

# What ending the last pull takes: killing it, writing it down.
CLOSING_SECONDS = 0.03
# Of the budget, at most so much is kept for closing trials.
MOST_CLOSING = 0.25
# Less time than this is not worth a fit.
SHORTEST_PULL_SECONDS = 0.005
# How often a player without work looks whether there is some.
IDLE_SECONDS = 0.005


@dataclass(frozen=True)
class Work:
    """What all pulls share."""

    pool: CutoffPool
    data: Shared
    memory: int | None


class Refit(Protocol):
    """What refitting the winner will take."""

    def expected_seconds(self, changed: int | None = None) -> float:
        """Of the best so far, when one more fold of configuration ``changed`` has finished."""

    @property
    def seconds_per_second(self) -> float:
        """Of a fold's fit."""


@dataclass(frozen=True)
class Event:
    """One pull that has ended, for those who watch."""

    pull: Pull
    outcome: Outcome
    params: dict[str, Any]


class Players:
    """Runs pulls until there is no more to do."""

    def __init__(
        self,
        race: Race,
        proposals: Proposals,
        record: SearchRecord,
        others: Others,
        work: Work,
        budget: Budget,
        refit: Refit,
        most_configurations: float,
        *,
        account: Account,
        watchers: Sequence[Callable[[Event], bool]] = (),
        raise_errors: bool = False,
    ) -> None:
        self.race, self.proposals, self.record, self.work = race, proposals, record, work
        self.budget, self.most = budget, most_configurations
        self._refit, self._raise_errors = refit, raise_errors
        self._refit_seconds = refit.expected_seconds()
        self._others = others
        self._account, self._watchers = account, watchers
        self._lock = threading.Lock()
        self._offered: tuple[tuple[int, ...], Offer | None] | None = None
        """What to draw next, with how much was known when it was chosen."""
        self._n_players = 1
        self.crew = Crew()

    def play(self, n_players: int) -> None:
        """Until the end; an error of one ends all."""
        self._n_players = n_players
        with one_blas_thread():  # fits run elsewhere, and need the cores
            self.crew.play(self._one_player, n_players)

    def _one_player(self) -> None:
        while not self.crew.ended:
            with self._lock:
                pull = self._next()
                waiting = bool(self.race.in_flight) and pull is None
            if pull is not None:
                self._run(pull)
            elif waiting and self._seconds_left() > SHORTEST_PULL_SECONDS:
                sleep_seconds(IDLE_SECONDS)  # what others run now may give us something to do
            else:
                return

    def _seconds_left(self) -> float:
        closing = self.record.closing_seconds(self._n_players)
        closing = CLOSING_SECONDS + min(closing, MOST_CLOSING * self.budget.total_seconds)
        return self.budget.remaining_seconds - self._refit_seconds - closing

    def _longest_pull(self) -> float:
        """A fit after which there is no time to refit it is of no use."""
        to_share = self._seconds_left() + self._refit_seconds
        return min(self._seconds_left(), to_share / (1.0 + self._refit.seconds_per_second))

    def _now(self) -> float:
        """Seconds of the race's budget: what is kept for the refit is spent already."""
        return self.race.budget_seconds - max(self._seconds_left(), 0.0)

    def _next(self) -> Pull | None:
        if self.crew.ended or self._seconds_left() < SHORTEST_PULL_SECONDS:
            return None
        if self._others.follow(self._account):
            self._refit_seconds = self._refit.expected_seconds()
        if self._others.have_called_off:
            self.crew.end()
            return None
        now, offer = self._now(), None
        if self.race.reservoir_open:
            offer = self._offer(now)
            if offer is None:
                self.race.exhausted()
        pull = self.race.ask(now, offer)
        if pull is not None and pull.fresh:
            if offer is None:
                self.race.exhausted(pull)
                return self._next()
            place = self.record.begin(offer.unit)
            assert place == pull.configuration
        return pull

    def _offer(self, now: float) -> Offer | None:
        if len(self.record.configurations) >= self.most:
            return None
        # More folds of known configurations hardly change what to draw next, and a model is slow.
        ledger, units = self.race.ledger, self.record.units
        known = (len(units), ledger.n_scored, int((ledger.waited > 0).sum()))
        if self._offered is None or self._offered[0] != known:
            cutoff = max(self.race.fresh_cutoff(now), 1e-6)
            self._offered = known, self.proposals.offer(ledger, units, cutoff)
        return self._offered[1]

    def _run(self, pull: Pull) -> None:
        params = self.record.configurations[pull.configuration].params
        longest = max(self._longest_pull(), SHORTEST_PULL_SECONDS)
        cutoff = min(pull.cutoff_seconds, longest)
        arguments = (self.work.data, params, pull.fold)
        call = checked_call(evaluate_fold, arguments, {}, cutoff, self.work.memory)
        # A worker may have to be started first; the search ends on time all the same.
        call = replace(call, latest=monotonic_seconds() + longest)
        try:
            outcome = self.work.pool.perform(call)
        except BaseException:
            with self._lock:
                self.race.withdraw(pull)
            raise
        if not outcome.ok and self.work.pool.closed:  # ended with the search: no fault of the fit
            with self._lock:
                self.race.withdraw(pull)
            return
        with self._lock:
            spent = self.budget.spent_seconds
            kept = PullRecord.of(outcome, cutoff, spent, pull.reason)
            self.record.note(pull.configuration, pull.fold, kept)
            self.race.tell(pull, kept.outcome(self.record.metric))
            self._account.add(outcome.kind, outcome.seconds)
            if outcome.ok:
                self._refit_seconds = self._refit.expected_seconds(pull.configuration)
        self.record.store(pull.configuration, pull.fold)  # others may decide meanwhile
        with self._lock:
            if self._raise_errors and outcome.kind is not Kind.GAVE_UP:
                outcome.unwrap()
            for watcher in self._watchers:
                if watcher(Event(pull, outcome, params)):
                    self.crew.end()
                    self._others.call_off()
