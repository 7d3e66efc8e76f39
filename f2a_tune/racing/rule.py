"""Which pull next: a situation goes in, a pull with its reason comes out.

The race is Wait-UCB over {reservoir} ∪ {seen configurations} with a reward that means "the best":
an arm's index is the chance that its next pull changes what is recommended for the better, per
second. A fresh draw leads with the model's chance, at least 1/(n+1); another fold of a
configuration is worth the chance that it beats the leader; another fold of the leader is worth the
same for its nearest rival. So weak configurations are never continued, a leader without rivals
costs nothing, and the more have been seen, the longer a slow but excellent one is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import Outcome
from f2a_tune.racing.contenders import OVERHEAD_SECONDS, Contenders, open_folds
from f2a_tune.racing.cutoffs import FirstPulls, at_least, later_cutoff
from f2a_tune.racing.ledger import Ledger
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.pull import Pull

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

SHORTEST_PULL_SECONDS = 1e-4  # less time than this is none


@dataclass(frozen=True)
class Situation:
    """All that a rule may look at."""

    ledger: Ledger
    first_pulls: FirstPulls
    learned_cutoff: float
    """How long a fresh pull is worth waiting for, whatever the time left."""
    seconds_left: float
    reservoir_open: bool
    timeouts: tuple[float, ...] | None
    in_flight: tuple[Pull, ...]
    offer: Offer | None
    contenders: Contenders | None
    """The best configurations; None while nothing has a score."""
    reserved_for: int | None
    """The contender for whose missing folds time is kept."""
    seconds_kept: float
    """Of the time left, what nobody else may use."""

    @property
    def seconds_to_spare(self) -> float:
        """What any pull may take."""
        return max(self.seconds_left - self.seconds_kept, 0.0)

    @property
    def fresh_cutoff(self) -> float:
        """How long a fresh pull is waited for now."""
        return min(self.learned_cutoff, self.seconds_to_spare)

    def allowed_seconds(self, contender: int) -> float:
        """What another fold of this contender may take."""
        return self.seconds_left if contender == self.reserved_for else self.seconds_to_spare


class Rule(Protocol):
    """Chooses pulls."""

    def choose(self, situation: Situation) -> Pull | None:
        """The next pull, or None."""

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """Hear of an outcome; the ledger knows it already."""

    def close(self) -> None:
        """There is nothing fresh to draw any more."""


@dataclass(frozen=True)
class Candidate:
    """A pull with its index: chances per second."""

    rate: float
    pull: Pull


class RacingRule:
    """The default rule; the ledger is its only memory."""

    def __init__(self, exploration: float = 0.0) -> None:
        self.exploration = exploration

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """Nothing to do: the ledger knows."""

    def close(self) -> None:
        """Nothing to do: every situation says so."""

    def choose(self, situation: Situation) -> Pull | None:
        """The pull of the largest index."""
        if _is_urgent(situation):
            assert situation.reserved_for is not None
            reason = "the time left is for validating the best"
            return _another_fold(situation.reserved_for, situation, reason)
        found = [self._fresh(situation), self._continued(situation), _again(situation)]
        candidates = [candidate for candidate in found if candidate is not None]
        if not candidates:
            return _leftover(situation)
        return max(candidates, key=lambda candidate: candidate.rate).pull

    def _fresh(self, situation: Situation) -> Candidate | None:
        cutoff = situation.fresh_cutoff
        if not situation.reservoir_open or cutoff < SHORTEST_PULL_SECONDS:
            return None
        finish, seconds = _forecast(situation)
        chance = 1.0 / (situation.ledger.n_scored + 1)
        if situation.offer is not None and situation.offer.chance is not None:
            chance = max(chance, situation.offer.chance)
        pulls = np.array([max(len(situation.first_pulls.seconds), 1)])
        rate = chance * finish / (seconds + OVERHEAD_SECONDS)
        rate += float(self._radius(situation, pulls, cutoff)[0])
        reason = f"fresh draw, {finish:.0%} to finish by {cutoff:.3g} s"
        return Candidate(rate, Pull(situation.ledger.n, 0, cutoff, fresh=True, reason=reason))

    def _continued(self, situation: Situation) -> Candidate | None:
        contenders = situation.contenders
        if contenders is None:
            return None
        allowed = np.full(len(contenders.rows), situation.seconds_to_spare)
        if situation.reserved_for is not None:
            allowed[situation.reserved_for] = situation.seconds_left
        folds = situation.ledger.estimates().folds[contenders.rows]
        rates = contenders.chances / contenders.seconds + self._radius(situation, folds, 0.0)
        # A fold that cannot finish in what it may take is of no use.
        rates = np.where(contenders.free & (contenders.seconds <= allowed), rates, 0.0)
        best = int(rates.argmax())
        if rates[best] <= 0:
            return None
        return Candidate(
            float(rates[best]), _another_fold(best, situation, _why(best, contenders))
        )

    def _radius(self, situation: Situation, pulls: Counts, wait: float) -> Floats:
        """Wait-UCB's confidence radius (paper, section 3), in chances per second."""
        if self.exploration == 0:
            return np.zeros(len(pulls))
        fits = situation.first_pulls
        unit = float(fits.seconds.min()) if len(fits.seconds) else situation.fresh_cutoff
        ratio = max(wait / unit, 1.0) if unit > 0 else 1.0
        share = math.log(situation.ledger.n_pulls + 1) / np.asarray(pulls, dtype=np.float64)
        radius = 8 * (ratio - 1) / 3 * share
        radius = radius + math.sqrt(2) * (math.sqrt(ratio - 1) + 1) * np.sqrt(share)
        return np.asarray(self.exploration * radius / (unit + OVERHEAD_SECONDS))


def _is_urgent(situation: Situation) -> bool:
    """Whether what is to spare is too little for a typical draw, and validating is not done."""
    if situation.reserved_for is None or situation.contenders is None:
        return False
    free = bool(situation.contenders.free[situation.reserved_for])
    return free and situation.seconds_to_spare < situation.first_pulls.median


def _forecast(situation: Situation) -> tuple[float, float]:
    """Chance that the next draw finishes in time, and what it costs."""
    offer = situation.offer
    if offer is not None and offer.finish is not None and offer.seconds is not None:
        return offer.finish, min(offer.seconds, situation.fresh_cutoff)
    return situation.first_pulls.forecast(situation.fresh_cutoff)


def _why(index: int, contenders: Contenders) -> str:
    chance = contenders.chances[index]
    if index == 0:
        return f"leader, a rival has {chance:.0%} to beat it"
    return f"{chance:.0%} to beat the leader"


def _another_fold(index: int, situation: Situation, reason: str) -> Pull:
    assert situation.contenders is not None
    row = int(situation.contenders.rows[index])
    return _fold_pull(row, situation, situation.allowed_seconds(index), reason)


def _fold_pull(row: int, situation: Situation, allowed_seconds: float, reason: str) -> Pull:
    ledger = situation.ledger
    free = np.flatnonzero(open_folds(ledger, np.array([row]), situation.timeouts)[0])
    # Folds that were never given up come first.
    fold = int(free[ledger.fold_waited[row, free].argmin()])
    estimates = ledger.estimates()
    waited = float(ledger.fold_waited[row, fold])
    cutoff = later_cutoff(float(estimates.seconds[row]), waited, situation.timeouts)
    if not estimates.seconds[row] > 0:
        cutoff = max(cutoff, situation.learned_cutoff)
    return Pull(
        configuration=row,
        fold=fold,
        cutoff_seconds=min(cutoff, allowed_seconds),
        reason=f"fold {int(estimates.folds[row]) + 1} of {ledger.n_folds}: {reason}",
    )


def _again(situation: Situation) -> Candidate | None:
    """With nothing fresh to draw: a configuration that was given up, with twice the wait."""
    ledger, pulls = situation.ledger, situation.first_pulls
    if situation.reservoir_open:
        return None
    unfinished = np.isnan(ledger.first_seconds) & (ledger.waited > 0)
    waiting = np.flatnonzero(unfinished & ~ledger.failed & ~ledger.pending.any(axis=1))
    if situation.timeouts is not None:
        waiting = waiting[ledger.waited[waiting] < situation.timeouts[-1] * (1 - 1e-3)]
    if not len(waiting):
        return None
    row = int(waiting[ledger.waited[waiting].argmin()])
    waited = float(ledger.waited[row])
    wanted = at_least(max(2.0 * waited, situation.learned_cutoff), situation.timeouts)
    cutoff = min(wanted, situation.seconds_to_spare)
    if cutoff <= waited:
        return None  # it has been waited for so long in vain
    chance = pulls.finish_later(waited, cutoff) / (ledger.n_scored + 1)
    reason = f"given up at {waited:.3g} s, nothing fresh is left"
    return Candidate(chance / (cutoff + OVERHEAD_SECONDS), Pull(row, 0, cutoff, reason=reason))


def _leftover(situation: Situation) -> Pull | None:
    """With nothing better to do: the best configuration that still lacks a fold."""
    ledger = situation.ledger
    scored, estimates = ledger.estimates().scored, ledger.estimates()
    lacking = open_folds(ledger, scored, situation.timeouts).any(axis=1)
    in_time = estimates.seconds[scored] <= situation.seconds_to_spare
    rows = scored[lacking & in_time]
    if not len(rows) or situation.seconds_to_spare < SHORTEST_PULL_SECONDS:
        return None
    reason = "nothing else is left to try"
    return _fold_pull(int(rows[0]), situation, situation.seconds_to_spare, reason)
