"""Keeps a race in step with the other runs of the same search.

Outcomes that other runs write to the study are told to the race as if they came from here. Folds
of a configuration that another run evaluates count as in flight, so nobody else pulls them. When
that run is gone, one of the remaining runs takes its open trials over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from f2a_tune import clock
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing import Pull, Race
from f2a_tune.study.accounting import Account
from f2a_tune.study.configuration_record import News
from f2a_tune.study.heartbeat import Heartbeat
from f2a_tune.study.limits import SYNC_SECONDS, SYNC_SHARE
from f2a_tune.study.trial_store import TrialStore


class PeerSync:
    """Reads the study on behalf of a race."""

    def __init__(self, race: Race, store: TrialStore, heartbeat: Heartbeat) -> None:
        self._race, self._store, self._heartbeat = race, store, heartbeat
        self._held: dict[tuple[int, int], Pull] = {}
        """Pulls in flight in other runs, by configuration and fold."""
        self._next_sync = -math.inf

    def restore(self) -> None:
        """Replay the study into the race, and take over trials of runs that are gone."""
        self._tell(self._store.read_news(), None)
        self._take_over(None)
        self._hold()

    def sync(self, account: Account) -> bool:
        """Now and then, read and account for what is new; returns whether something was."""
        if not self._heartbeat.shared:
            return False
        begin = clock.monotonic_seconds()
        if begin < self._next_sync:
            return False
        self._store.retry(self._heartbeat.read)
        news = self._store.read_news()
        self._tell(news, account)
        self._take_over(account)
        self._hold()
        end = clock.monotonic_seconds()
        self._next_sync = end + max(SYNC_SECONDS, (end - begin) / SYNC_SHARE)
        return bool(news)

    @property
    def is_stopped(self) -> bool:
        """Whether a run has stopped the search for all."""
        return self._heartbeat.is_stopped

    def stop_session(self) -> None:
        """Stop the search for all runs."""
        self._store.retry(self._heartbeat.stop_session)

    def close(self, account: Account) -> None:
        """Read the last news, then close our trials and those of runs that are gone."""
        try:
            if self._heartbeat.shared:
                self._store.retry(self._heartbeat.wait_for_runs)
                self._store.retry(self._heartbeat.read)
                self._tell(self._store.read_news(), account)
                self._take_over(account, at_end=True)
        finally:
            self._store.close()

    def _tell(self, news: Iterable[News], account: Account | None) -> None:
        for one in news:
            held = self._held.pop((one.configuration, one.fold), None)
            if held is not None:
                self._race.release(held)
            elif self._race.ledger.n > one.configuration and self._runs_here(one):
                continue  # both runs drew the same; ours will be told when it ends
            self._tell_race(one)
            if account is not None:
                _add(account, one)
                for seconds in one.missed_seconds:
                    account.add(Kind.GAVE_UP, seconds)

    def _tell_race(self, news: News) -> None:
        record, metric = news.record, self._store.metric
        looks, outcome = record.looks(metric), record.outcome(metric)
        pull = self._pull(news.configuration, news.fold, record.cutoff_seconds)
        if not record.grows:
            pull = replace(pull, fresh=news.configuration >= self._race.ledger.n)
        elif looks:
            last = self._race.last_level if record.stopped_itself else looks[-1].level
            pull = replace(pull, level=last)
        else:
            outcome = Outcome.gave_up(record.cutoff_seconds, record.seconds)
            pull = replace(pull, level=0)
        self._race.start(pull)
        self._race.tell(pull, outcome, looks)
        if record.grows:  # its process is not ours to continue
            self._race.lose(news.configuration, news.fold)

    def _runs_here(self, news: News) -> bool:
        return bool(self._race.ledger.pending[news.configuration, news.fold])

    def _take_over(self, account: Account | None, *, at_end: bool = False) -> None:
        if not (at_end or self._heartbeat.takes_over):
            return
        won = [
            self._store.claim(index)
            for index in self._store.open_elsewhere
            if not self._heartbeat.is_alive(self._store.configurations[index].owner)
        ]
        if not all(won):  # another run was faster: learn that it owns them now
            self._tell(self._store.read_news(), account)

    def _hold(self) -> None:
        """Make the folds that other runs evaluate, and no others, count as in flight."""
        theirs = {
            (index, fold)
            for index in self._store.open_elsewhere
            for fold in range(self._store.n_folds)
            if self._store.configurations[index].grows
            or self._store.configurations[index].finished(fold) is None
        }
        for key in self._held.keys() - theirs:
            self._race.release(self._held.pop(key))
        for index, fold in sorted(theirs - self._held.keys()):
            pull = self._pull(index, fold, math.inf)
            self._race.start(pull)
            self._held[index, fold] = pull
        for index in range(self._race.ledger.n, len(self._store.configurations)):
            pull = self._pull(index, 0, math.inf)  # its trial was closed without any fold
            self._race.start(pull)
            self._race.release(pull)

    def _pull(self, configuration: int, fold: int, cutoff_seconds: float) -> Pull:
        return Pull(configuration, fold, cutoff_seconds, number=self._race.n_pulls)


def _add(account: Account, news: News) -> None:
    """Count a whole fit, or all pulls of a growing one together."""
    record, earlier = news.record, news.earlier
    if record.grows and earlier is not None and earlier.grows:
        seconds = earlier.seconds + record.seconds
        account.replace(earlier.kind, earlier.seconds, record.kind, seconds)
    else:
        account.add(record.kind, record.seconds)
