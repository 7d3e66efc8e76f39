"""The rule that chooses the next pull of a race.

The race is Wait-UCB over {reservoir} ∪ {seen configurations}. An arm's index is the probability
that its next pull improves the recommendation, per second. For a fresh draw, this is the model's
probability that it becomes the leader, at least 1/(n+1); for another fold of a configuration, the
probability that it beats the leader; for another fold of the leader, that of its nearest rival.
So weak configurations get no more folds, a leader without rivals gets none either, and the more
configurations have been seen, the longer it is worth waiting for a slow but excellent one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from f2a_tune.outcome import Outcome
from f2a_tune.racing.contenders import Contenders, open_folds
from f2a_tune.racing.cutoffs import at_least, later_cutoff
from f2a_tune.racing.opening import last_call
from f2a_tune.racing.pull import Pull
from f2a_tune.racing.situation import Situation

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

# No pull is started with less time than this.
SHORTEST_PULL_SECONDS = 1e-4
# A baseline whose missing folds take at most this share of the budget is validated immediately.
EARLY_BASELINE_SHARE = 0.1


class Rule(Protocol):
    """Interface of objects that choose the next pull of a race."""

    def choose(self, situation: Situation) -> Pull | None:
        """Return the next pull, or None if there is nothing to do."""

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """Process an outcome; the ledger already contains it."""

    def close(self) -> None:
        """Process the information that no new configuration is left."""


@dataclass(frozen=True)
class Candidate:
    """A pull with its index: the probability of an improvement per second."""

    rate: float
    pull: Pull


class RacingRule:
    """The default rule. It keeps no state of its own; all data is in the ledger.

    Parameters
    ----------
    exploration : float, default=0.0
        Factor of Wait-UCB's confidence radius that is added to every index.
    """

    def __init__(self, exploration: float = 0.0) -> None:
        self.exploration = exploration

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """Do nothing: the ledger contains the outcome."""

    def close(self) -> None:
        """Do nothing: `Situation.reservoir_open` contains the information."""

    def choose(self, situation: Situation) -> Pull | None:
        """Return the pull with the largest index, after some pulls that have priority."""
        if not situation.ledger.n_scored:
            baseline = last_call(situation)
            if baseline is not None:
                return baseline
        due = due_pull(situation)
        if due is not None:
            return due
        # While there is time for a typical new configuration, reserved validations can wait.
        if situation.seconds_to_spare >= situation.first_pulls.median:
            found = [self._fresh(situation), self._continued(situation), retried(situation)]
            candidates = [candidate for candidate in found if candidate is not None]
            if candidates:
                return max(candidates, key=lambda candidate: candidate.rate).pull
        return reserved_or_leftover(situation)

    def _fresh(self, situation: Situation) -> Candidate | None:
        cutoff = situation.fresh_cutoff
        if not situation.reservoir_open or cutoff < SHORTEST_PULL_SECONDS:
            return None
        if situation.must_validate and cutoff < situation.first_pulls.quickest:
            return None
        finish, seconds = _forecast(situation)
        chance = 1.0 / (situation.ledger.n_scored + 1)
        if situation.offer is not None and situation.offer.chance is not None:
            chance = max(chance, situation.offer.chance)
        pulls = np.array([max(len(situation.first_pulls.seconds), 1)])
        rate = chance * finish / (seconds + situation.overhead_seconds)
        rate += float(self._radius(situation, pulls, cutoff)[0])
        reason = f"new configuration, {finish:.0%} chance to finish within {cutoff:.3g} s"
        if not math.isfinite(cutoff):
            reason = "new configuration, no cutoff yet"
        return Candidate(rate, Pull(situation.ledger.n, 0, cutoff, fresh=True, reason=reason))

    def _continued(self, situation: Situation) -> Candidate | None:
        contenders = situation.contenders
        if contenders is None:
            return None
        folds = situation.ledger.estimates().folds[contenders.rows]
        rates = contenders.chances / contenders.seconds + self._radius(situation, folds, 0.0)
        rates = np.where(contenders.free & of_use(situation, contenders), rates, 0.0)
        best = int(rates.argmax())
        if rates[best] <= 0:
            return None
        return Candidate(float(rates[best]), another_fold(best, situation, _why(best, contenders)))

    def _radius(self, situation: Situation, pulls: Counts, wait: float) -> Floats:
        """Return Wait-UCB's confidence radius (paper, section 3), in probability per second."""
        if self.exploration == 0:
            return np.zeros(len(pulls))
        fits = situation.first_pulls
        unit = float(fits.seconds.min()) if len(fits.seconds) else situation.fresh_cutoff
        ratio = max(wait / unit, 1.0) if unit > 0 else 1.0
        share = math.log(situation.ledger.n_pulls + 1) / np.asarray(pulls, dtype=np.float64)
        radius = 8 * (ratio - 1) / 3 * share
        radius = radius + math.sqrt(2) * (math.sqrt(ratio - 1) + 1) * np.sqrt(share)
        return np.asarray(self.exploration * radius / (unit + situation.overhead_seconds))


def due_pull(situation: Situation) -> Pull | None:
    """Return a pull that has priority over all others, if there is one."""
    return last_pulls(situation) or cheap_baseline(situation)


def reserved_or_leftover(situation: Situation) -> Pull | None:
    """Return a pull that uses reserved time, or time for which there is nothing better to do."""
    return _reserved(situation) or _leftover(situation)


def last_pulls(situation: Situation) -> Pull | None:
    """Return another fold of the best contender if the last pulls are needed to validate it."""
    contenders, left = situation.contenders, situation.pulls_left
    if contenders is None or left is None:
        return None
    possible = np.flatnonzero((contenders.unstarted <= left) & ~contenders.hopeless)
    if not len(possible):
        return None
    best = int(possible[0])
    if contenders.unstarted[best] < left or not contenders.free[best]:
        return None
    return another_fold(best, situation, "the last pulls are reserved for validating it")


def cheap_baseline(situation: Situation) -> Pull | None:
    """Return another fold of a baseline whose missing folds take little time.

    Validating it early guarantees that there is a fully validated result.
    """
    contenders = situation.contenders
    if contenders is None or contenders.baseline is None:
        return None
    base = contenders.baseline
    affordable = EARLY_BASELINE_SHARE * situation.budget_seconds
    if not contenders.free[base] or contenders.needed[base] > affordable:
        return None
    if contenders.needed[base] > situation.seconds_left:
        return None
    return another_fold(base, situation, "the baseline is cheap to validate")


def _reserved(situation: Situation) -> Pull | None:
    """Return another fold of a contender for which time is reserved."""
    if situation.contenders is None:
        return None
    for reservation in situation.reservations:
        if situation.contenders.free[reservation.index]:
            reason = "the remaining time is reserved for validating it"
            return another_fold(reservation.index, situation, reason)
    return None


def of_use(situation: Situation, contenders: Contenders) -> NDArray[np.bool_]:
    """Return which contenders have enough time left for their next fold.

    If only full validation is useful, there must be enough time for all missing folds.
    """
    allowed = np.full(len(contenders.rows), situation.seconds_to_spare)
    for reservation in situation.reservations:
        allowed[reservation.index] = situation.allowed_seconds(reservation.index)
    needed = contenders.needed if situation.must_validate else contenders.seconds
    return np.asarray(needed <= allowed)


def _forecast(situation: Situation) -> tuple[float, float]:
    """Return the probability that the next draw finishes by its cutoff, and its expected cost."""
    offer = situation.offer
    if offer is not None and offer.finish is not None and offer.seconds is not None:
        return offer.finish, min(offer.seconds, situation.fresh_cutoff)
    return situation.first_pulls.forecast(situation.fresh_cutoff)


def _why(index: int, contenders: Contenders) -> str:
    chance = contenders.chances[index]
    if index == 0:
        return f"leader, a rival has a {chance:.0%} chance to beat it"
    return f"{chance:.0%} chance to beat the leader"


def another_fold(index: int, situation: Situation, reason: str) -> Pull:
    """Return a pull of the next fold of a contender."""
    assert situation.contenders is not None
    row = int(situation.contenders.rows[index])
    return _fold_pull(row, situation, situation.allowed_seconds(index), reason)


def _fold_pull(row: int, situation: Situation, allowed_seconds: float, reason: str) -> Pull:
    ledger = situation.ledger
    free = np.flatnonzero(open_folds(ledger, np.array([row]), situation.timeouts)[0])
    # Prefer folds that were never given up.
    fold = int(free[ledger.fold_waited[row, free].argmin()])
    estimates = ledger.estimates()
    waited = float(ledger.fold_waited[row, fold])
    cutoff = later_cutoff(
        float(estimates.seconds[row]),
        waited,
        situation.timeouts,
        situation.shortest_cutoff_seconds,
    )
    if not estimates.seconds[row] > 0:
        cutoff = max(cutoff, situation.learned_cutoff)
    return Pull(
        configuration=row,
        fold=fold,
        cutoff_seconds=min(cutoff, allowed_seconds),
        reason=f"fold {int(estimates.folds[row]) + 1} of {ledger.n_folds}: {reason}",
    )


def retried(situation: Situation) -> Candidate | None:
    """Return a retry, with twice the wait, of a given-up configuration if no new one is left."""
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
        return None  # it did not finish within this time before
    chance = pulls.finish_later(waited, cutoff) / (ledger.n_scored + 1)
    reason = f"retry after giving up at {waited:.3g} s, no new configuration is left"
    rate = chance / (cutoff + situation.overhead_seconds)
    return Candidate(rate, Pull(row, 0, cutoff, reason=reason))


def _leftover(situation: Situation) -> Pull | None:
    """Return a fold of the best incomplete configuration that can be completed in time.

    This is the choice when there is nothing better to do.
    """
    ledger, estimates = situation.ledger, situation.ledger.estimates()
    scored, spare = estimates.scored, situation.seconds_to_spare
    usable = open_folds(ledger, scored, situation.timeouts)
    fits_in_a_row = 1
    if situation.must_validate:
        fits_in_a_row = -(-usable.sum(axis=1) // situation.n_workers)
    in_time = estimates.seconds[scored] * fits_in_a_row <= spare
    rows = scored[usable.any(axis=1) & in_time]
    if not len(rows) or spare < SHORTEST_PULL_SECONDS:
        return None
    return _fold_pull(int(rows[0]), situation, spare, "nothing else is left to try")
