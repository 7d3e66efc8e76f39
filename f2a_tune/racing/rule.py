"""Which pull next: a situation goes in, a pull with its reason comes out.

The race is Wait-UCB over {reservoir} ∪ {seen configurations} with a reward that means "the best":
an arm's index is the chance that its next pull changes what is recommended for the better, per
second. A fresh draw leads with the model's chance, or 1/(n+1) without one; another fold of a
configuration is worth the chance that it beats the leader; another fold of the leader is worth the
same for its nearest rival. So weak configurations are never continued, a leader without rivals
costs nothing, and the more have been seen, the longer a slow but excellent one is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from f2a_tune.outcome import Outcome
from f2a_tune.racing.cutoffs import FirstPulls, at_least, later_cutoff
from f2a_tune.racing.ledger import Estimates, Ledger
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.pull import Pull

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

CONTENDERS = 64  # best configurations that may be continued; the others have no chance
OVERHEAD_SECONDS = 0.005  # of any pull: without it a rate of very fast fits means nothing
VALIDATION_MARGIN = 1.5  # of the predicted seconds, kept for the leader's missing folds


@dataclass(frozen=True)
class Situation:
    """All that a rule may look at."""

    ledger: Ledger
    first_pulls: FirstPulls
    learned_cutoff: float
    """How long a fresh pull is worth waiting for, whatever the time left."""
    seconds_left: float
    n_workers: int
    reservoir_open: bool
    timeouts: tuple[float, ...] | None
    in_flight: tuple[Pull, ...]
    offer: Offer | None
    seconds_kept: float = 0.0
    """Of the time left, what nobody but the leader may use."""

    @property
    def seconds_to_spare(self) -> float:
        """What any pull may take."""
        return max(self.seconds_left - self.seconds_kept, 0.0)

    @property
    def fresh_cutoff(self) -> float:
        """How long a fresh pull is waited for now."""
        return min(self.learned_cutoff, self.seconds_to_spare)


class Rule(Protocol):
    """Chooses pulls."""

    def choose(self, situation: Situation) -> Pull | None:
        """The next pull, or None."""

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """Hear of an outcome; the ledger knows it already."""


@dataclass(frozen=True)
class Contenders:
    """The best configurations, the leader first, and what another fold of each is worth."""

    rows: NDArray[np.intp]
    chances: Floats
    """That it is better than the leader; for the leader, that its nearest rival is."""
    seconds: Floats
    """What another fold is expected to take."""
    free: NDArray[np.bool_]
    """Whether a fold is neither done nor running."""
    missing: Counts
    """Folds not done."""

    @classmethod
    def of(cls, ledger: Ledger, estimates: Estimates) -> Contenders:
        """Read them from a ledger."""
        rows = estimates.scored[:CONTENDERS]
        folds = estimates.folds[rows]
        # A fold that was given up once will take at least as long again.
        seconds = np.maximum(estimates.seconds[rows], ledger.waited[rows]) + OVERHEAD_SECONDS
        return cls(
            rows=rows,
            chances=_chances(estimates.value[rows], folds, estimates.noise, ledger.n_folds),
            seconds=seconds,
            free=folds + ledger.pending[rows].sum(axis=1) < ledger.n_folds,
            missing=ledger.n_folds - folds,
        )


class RacingRule:
    """The default rule."""

    def __init__(self, exploration: float = 0.0) -> None:
        self.exploration = exploration

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """The ledger is all that it needs."""

    def choose(self, situation: Situation) -> Pull | None:
        """The pull of the largest index."""
        ledger = situation.ledger
        estimates = ledger.estimates()
        contenders = Contenders.of(ledger, estimates) if len(estimates.scored) else None
        if contenders is None:
            return self._fresh(situation) if situation.reservoir_open else _again(situation)
        unvalidated, kept = _reserve(contenders, situation)
        situation = replace(situation, seconds_kept=kept)
        # What is to spare is of use only if a typical draw fits into it.
        if unvalidated is not None and situation.seconds_to_spare < situation.first_pulls.median:
            situation = replace(situation, seconds_kept=0.0)
            reason = "the time left is for validating the best"
            return _another_fold(unvalidated, contenders, situation, reason)
        rates = contenders.chances / contenders.seconds
        rates = rates + self._radius(situation, estimates.folds[contenders.rows], 0.0)
        rates = np.where(contenders.free, rates, 0.0)
        best = int(rates.argmax())
        if situation.reservoir_open and self._fresh_rate(situation) >= rates[best]:
            return self._fresh(situation)
        if rates[best] > 0:
            return _another_fold(best, contenders, situation, _why(best, contenders))
        return _again(situation) or _leftover(contenders, situation)

    def _fresh_rate(self, situation: Situation) -> float:
        n = len(situation.ledger.estimates().scored)
        chance, (finish, seconds) = 1.0 / (n + 1), self._forecast(situation)
        if situation.offer is not None and situation.offer.chance is not None:
            chance = max(chance, situation.offer.chance)
        rate = chance * finish / (seconds + OVERHEAD_SECONDS)
        pulls = np.array([max(len(situation.first_pulls.seconds), 1)])
        return rate + float(self._radius(situation, pulls, situation.fresh_cutoff)[0])

    def _forecast(self, situation: Situation) -> tuple[float, float]:
        """Chance that the next draw finishes in time, and what it costs."""
        offer = situation.offer
        if situation.fresh_cutoff <= 0:
            return 0.0, OVERHEAD_SECONDS
        if offer is not None and offer.finish is not None and offer.seconds is not None:
            return offer.finish, min(offer.seconds, situation.fresh_cutoff)
        return situation.first_pulls.forecast(situation.fresh_cutoff)

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

    def _fresh(self, situation: Situation) -> Pull:
        finish, _ = self._forecast(situation)
        cutoff = situation.fresh_cutoff
        return Pull(
            configuration=situation.ledger.n,
            fold=0,
            cutoff_seconds=cutoff,
            fresh=True,
            reason=f"fresh draw, {finish:.0%} to finish by {cutoff:.3g} s",
        )


def _chances(value: Floats, folds: Counts, noise: float, n_folds: int) -> Floats:
    """Chance to be better than the leader; folds are a sample without replacement of n_folds."""
    variance = noise * np.maximum(1 / folds + 1 / folds[0] - 2 / n_folds, 0.0)
    gaps = value - value[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.where(variance > 0, ndtr(gaps / np.sqrt(variance)), 0.0)
    # Without noise only equals can still turn out better.
    chances = np.where((variance <= 0) & (gaps >= 0), 0.5, chances)
    chances[0] = chances[1:].max() if len(chances) > 1 else 0.0
    return np.asarray(chances)


def _reserve(contenders: Contenders, situation: Situation) -> tuple[int | None, float]:
    """The best contender whose missing folds fit into the time left, and what to keep for them.

    None if no fold of it is free, so that there is nothing to run for it now.
    """
    missing = contenders.missing
    rounds = np.ceil(missing / np.minimum(situation.n_workers, np.maximum(missing, 1)))
    needed = np.where(missing > 0, rounds * contenders.seconds, 0.0)
    affordable = np.flatnonzero(needed <= situation.seconds_left)
    if not len(affordable):
        return None, 0.0
    best = int(affordable[0])
    return best if contenders.free[best] else None, VALIDATION_MARGIN * float(needed[best])


def _why(index: int, contenders: Contenders) -> str:
    chance = contenders.chances[index]
    if index == 0:
        return f"leader, a rival has {chance:.0%} to beat it"
    return f"{chance:.0%} to beat the leader"


def _another_fold(index: int, contenders: Contenders, situation: Situation, reason: str) -> Pull:
    ledger, row = situation.ledger, int(contenders.rows[index])
    fold = int(np.flatnonzero(np.isnan(ledger.scores[row]) & ~ledger.pending[row])[0])
    mean = float(ledger.estimates().seconds[row])
    cutoff = later_cutoff(mean, float(ledger.waited[row]), situation.timeouts)
    done = ledger.n_folds - int(contenders.missing[index])
    spare = situation.seconds_to_spare
    return Pull(
        configuration=row,
        fold=fold,
        # Folds of the leader are what the time is kept for.
        cutoff_seconds=min(cutoff, situation.seconds_left if index == 0 else spare),
        reason=f"fold {done + 1} of {ledger.n_folds}: {reason}",
    )


def _again(situation: Situation) -> Pull | None:
    """With nothing fresh to draw: a configuration that was given up, with twice the wait."""
    ledger = situation.ledger
    unfinished = np.isnan(ledger.first_seconds) & (ledger.waited > 0)
    waiting = np.flatnonzero(unfinished & ~ledger.failed & ~ledger.pending.any(axis=1))
    if situation.timeouts is not None:
        waiting = waiting[ledger.waited[waiting] < situation.timeouts[-1] * (1 - 1e-3)]
    if not len(waiting):
        return None
    row = int(waiting[ledger.waited[waiting].argmin()])
    waited = float(ledger.waited[row])
    cutoff = at_least(max(2.0 * waited, situation.fresh_cutoff), situation.timeouts)
    return Pull(
        configuration=row,
        fold=0,
        cutoff_seconds=min(cutoff, situation.seconds_to_spare),
        reason=f"given up at {waited:.3g} s, nothing fresh is left",
    )


def _leftover(contenders: Contenders, situation: Situation) -> Pull | None:
    """With nothing better to do: the best configuration that still lacks a fold."""
    if not contenders.free.any():
        return None
    best = int(contenders.free.argmax())
    return _another_fold(best, contenders, situation, "nothing else is left to try")
