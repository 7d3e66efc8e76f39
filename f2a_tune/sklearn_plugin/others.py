"""A race in step with other runs of the same search: what they write goes in, as if told here.

Folds of a configuration that another run has open count as in flight, so nobody else pulls them.
When that run is gone, one of those that are left takes its open trials over.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from f2a_tune import clock
from f2a_tune.outcome import Kind
from f2a_tune.racing import Pull, Race
from f2a_tune.sklearn_plugin.account import Account
from f2a_tune.sklearn_plugin.company import Company
from f2a_tune.sklearn_plugin.record import News, SearchRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

# How often to look, and how much of the time may go into it with a slow storage.
LOOK_SECONDS = 0.1
LOOK_SHARE = 0.1


class Others:
    """Follows the study on behalf of a race."""

    def __init__(self, race: Race, record: SearchRecord, company: Company) -> None:
        self._race, self._record, self._company = race, record, company
        self._held: dict[tuple[int, int], Pull] = {}
        """Pulls in flight elsewhere, by place and fold."""
        self._next_look = -math.inf

    def restore(self) -> None:
        """Take in all there is; what the dead have left open is ours at once, if nobody plays."""
        self._take_in(self._record.catch_up(), None)
        self._inherit()
        self._hold()

    def follow(self, account: Account) -> bool:
        """Now and then: take in what is new, and book it; returns whether there was something."""
        if not self._company.shared:
            return False
        begin = clock.monotonic_seconds()
        if begin < self._next_look:
            return False
        self._record.patiently(self._company.look_around)
        news = self._record.catch_up()
        self._take_in(news, account)
        self._inherit()
        self._hold()
        end = clock.monotonic_seconds()
        self._next_look = end + max(LOOK_SECONDS, (end - begin) / LOOK_SHARE)
        return bool(news)

    @property
    def have_called_off(self) -> bool:
        """Whether somebody has ended the search for all."""
        return self._company.is_called_off

    def call_off(self) -> None:
        """End it for all."""
        self._record.patiently(self._company.call_off)

    def leave(self, account: Account) -> None:
        """The end: take in the last news, close what is ours and what the dead have left open."""
        try:
            if self._company.shared:
                self._record.patiently(self._company.wait_for_others)
                self._record.patiently(self._company.look_around)
                self._take_in(self._record.catch_up(), account)
                self._inherit(anyway=True)
        finally:
            self._record.end()

    def _take_in(self, news: Iterable[News], account: Account | None) -> None:
        for one in news:
            outcome = one.pull.outcome(self._record.metric)
            pull = self._held.pop((one.place, one.fold), None)
            if pull is None:
                if self._race.ledger.n > one.place and self._is_running_here(one):
                    continue  # both have drawn the same; ours will be told when it ends
                pull = self._pull(one.place, one.fold, one.pull.cutoff_seconds)
                self._race.start(pull)
            self._race.tell(pull, outcome)
            if account is not None:
                account.add(one.pull.kind, one.pull.seconds)
                for seconds in one.missed_seconds:
                    account.add(Kind.GAVE_UP, seconds)

    def _is_running_here(self, news: News) -> bool:
        return bool(self._race.ledger.pending[news.place, news.fold])

    def _inherit(self, *, anyway: bool = False) -> None:
        if not (anyway or self._company.takes_over):
            return
        for place in self._record.places_of_others:
            if not self._company.is_alive(self._record.configurations[place].owner):
                self._record.claim(place)

    def _hold(self) -> None:
        """Folds that others have open are in flight, all others are not."""
        theirs = {
            (place, fold)
            for place in self._record.places_of_others
            for fold in range(self._record.n_folds)
            if self._record.configurations[place].finished(fold) is None
        }
        for key in self._held.keys() - theirs:
            self._race.release(self._held.pop(key))
        for place, fold in sorted(theirs - self._held.keys()):
            pull = self._pull(place, fold, math.inf)
            self._race.start(pull)
            self._held[place, fold] = pull
        for place in range(self._race.ledger.n, len(self._record.configurations)):
            pull = self._pull(place, 0, math.inf)  # opened and closed with nothing in it
            self._race.start(pull)
            self._race.release(pull)

    def _pull(self, place: int, fold: int, cutoff_seconds: float) -> Pull:
        return Pull(place, fold, cutoff_seconds, number=self._race.n_pulls)
