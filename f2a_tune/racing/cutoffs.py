"""The cutoffs of pulls, learned from the seconds and ranks of earlier pulls.

All configurations not tried yet together form one macro-arm (the reservoir) of the paper's game;
its delays are the seconds of all first pulls. The cutoff of a fresh configuration is the level of
a doubling ladder with the highest reward per second. It uses full feedback: a pull given up after
w seconds still shows the cost of every shorter wait. A multiple of the median is the lower limit,
because reward per second alone prefers fast mediocre fits and ends up giving up nearly all others.
The constants were tuned with ``benchmarks/replay.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from f2a_tune.racing.ledger import Ledger, median

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Only the last 1000 first pulls are used: proposals improve, so early ones become irrelevant.
WINDOW = 1000
# While nothing has finished, the first cutoff is this share of the budget, and every fit that is
# given up multiplies the cutoff by the growth.
START_SHARE = 1 / 100
START_GROWTH = 10.0
# While fewer first pulls have finished, the cutoff is the early multiple of their median. It is
# limited to the early share of the budget, but not below twice the median: if the budget allows
# only a few fits, ten times the first one would be most of it.
FEWEST_FINISHED = 5
EARLY_MULTIPLE = 10.0
EARLY_SHARE = 1 / 20
# Later, the cutoff is at least this multiple of the median. The limit is lowered if the tail of
# the seconds is heavy, which means that their mean exceeds their median by more than HEAVY_TAIL.
FLOOR_MULTIPLE = 10.0
HEAVY_TAIL = 3.0
# The reward of a first pull is the quantile of its rank to this power.
REWARD_POWER = 6
# This many pulls given up in a row double the cutoff: the machine may have become slower.
STREAK = 5
# Regression of rank on time (see `FirstPulls.worth_waiting`): finished first pulls that it needs,
# the multiple of the slowest finished fit up to which it is extrapolated, and the number of
# standard errors subtracted from its slope.
FEWEST_REGRESSED = 10
BEYOND_SLOWEST = 4.0
DOUBT = 2.0
# The cutoff of a configuration's later folds is this multiple of its own mean seconds, plus
# LATER_SLACK_SECONDS for very short fits.
LATER_MULTIPLE = 4.0
# Shortest cutoff: giving up earlier would save less time than a pull costs.
SHORTEST_SECONDS = 0.01
LATER_SLACK_SECONDS = 0.01


@dataclass(frozen=True)
class FirstPulls:
    """Seconds and ranks of the first pulls of the latest configurations."""

    seconds: Floats
    """Seconds until the pull finished or was given up."""
    finished: Flags
    """Whether the pull finished."""
    quantile: Floats
    """Rank among all scored configurations, scaled to [0, 1]; 0 without a score."""
    n_scored: int
    """Number of all configurations with a score."""

    @classmethod
    def of(cls, ledger: Ledger) -> FirstPulls:
        """Read the first pulls from a ledger; running and failed pulls are left out."""
        first, waited = ledger.first_seconds, ledger.waited
        finished = ~np.isnan(first)
        known = np.flatnonzero(finished | (waited > 0))[-WINDOW:]
        estimates = ledger.estimates()
        seconds = np.where(finished, first, waited)
        quantile = estimates.quantile
        return cls(seconds[known], finished[known], quantile[known], ledger.n_scored)

    @cached_property
    def _law(self) -> DelayLaw:
        return DelayLaw.of(self.seconds, self.finished)

    @property
    def median(self) -> float:
        """Median seconds; if most were given up, the longest finished one; 0 if none finished."""
        if not self.finished.any():
            return 0.0
        middle = median(np.where(self.finished, self.seconds, np.inf))
        return middle if math.isfinite(middle) else float(self.seconds[self.finished].max())

    @cached_property
    def quickest(self) -> float:
        """First quartile of the seconds of finished pulls; 0 if none has finished."""
        finished = np.sort(self.seconds[self.finished])
        return float(finished[(len(finished) - 1) // 4]) if len(finished) else 0.0

    @cached_property
    def streak(self) -> int:
        """Number of most recent pulls in a row that were given up."""
        finished = np.flatnonzero(self.finished)
        return len(self.finished) - 1 - int(finished[-1]) if len(finished) else len(self.finished)

    def forecast(self, cutoff_seconds: float) -> tuple[float, float]:
        """Return the probability that a fresh pull finishes by this cutoff and its mean cost."""
        if not self.finished.any():
            return 0.5, cutoff_seconds
        n, law = len(self.seconds), self._law
        running, cost = law.running(cutoff_seconds), law.mean_seconds(cutoff_seconds)
        # Add one pseudo-observation that finishes with probability one half.
        chance = (n * (1.0 - float(running)) + 0.5) / (n + 1)
        return chance, (n * float(cost) + 0.25 * cutoff_seconds) / (n + 1)

    def finish_later(self, waited: float, cutoff_seconds: float) -> float:
        """Return the probability that a pull running after ``waited`` finishes by the cutoff."""
        running = self.seconds > waited
        later = running & self.finished & (self.seconds <= cutoff_seconds)
        return (int(later.sum()) + 0.5) / (int(running.sum()) + 1)

    def best_level(self, levels: Floats) -> float:
        """Return the level with the highest reward per second.

        One optimistic pseudo-observation (reward 1 after half of the level) is included.
        """
        reward = self.quantile ** min(self.n_scored, REWARD_POWER)
        n, law = len(self.seconds), self._law
        gains = n * law.mean_reward(levels, reward) + 1.0
        rates = gains / (n * law.mean_seconds(levels) + levels / 2)
        return float(levels[int(rates.argmax())])

    def worth_waiting(self) -> float:
        """Return how long waiting is better than a new draw, if slow fits score higher; else 0.

        The normal scores of the finished pulls are regressed on their log seconds. This predicts
        the probability that a fit of t seconds becomes the leader. Waiting for t seconds is worth
        it as long as probability/t is not below that of an average draw.
        """
        logs = np.log(np.maximum(self.seconds[self.finished], 1e-9))
        scores = ndtri(self.quantile[self.finished] - 0.5 / max(self.n_scored, 1))
        known = np.isfinite(scores)
        logs, scores = logs[known], scores[known]
        n, spread = len(logs), float(logs.std()) if len(logs) else 0.0
        if n < FEWEST_REGRESSED or spread < 1e-3:
            return 0.0
        slope = float(((logs - logs.mean()) * scores).mean()) / spread**2
        rest = scores - scores.mean() - slope * (logs - logs.mean())
        deviation = math.sqrt(float((rest**2).sum()) / (n - 2)) + 1e-9
        slope -= DOUBT * deviation / (spread * math.sqrt(n))
        if slope <= 0:
            return 0.0
        steps = np.linspace(logs.min(), logs.max() + math.log(BEYOND_SLOWEST), 40)
        expected = scores.mean() + slope * (steps - logs.mean())
        chances = ndtr((expected - scores.max()) / deviation)
        average = 1.0 / ((n + 1) * float(self.seconds.mean()))
        worth = np.flatnonzero(chances / np.exp(steps) >= average)
        return float(np.exp(steps[worth[-1]])) if len(worth) else 0.0


@dataclass(frozen=True)
class DelayLaw:
    """Kaplan–Meier estimate of the distribution of a pull's seconds, with given-up pulls censored.

    The wait is chosen before the delay is observed, so giving up is independent censoring
    (`bandit.statistics` has the same estimate for levels).
    """

    order: NDArray[np.intp]
    """Indices that sort the pulls by their seconds."""
    times: Floats
    """Seconds of all pulls in increasing order; at equal times, finished pulls come first."""
    jumps: Floats
    """Share of all pulls that finish at each time."""
    areas: Floats
    """Mean seconds of a pull with a cutoff at each time."""
    survival: Floats
    """Share of all pulls that are still running after each time."""

    @classmethod
    def of(cls, seconds: Floats, finished: Flags) -> DelayLaw:
        """Estimate the distribution from the seconds of pulls and whether they finished."""
        order = np.lexsort((~finished, seconds))
        times, ends = seconds[order], finished[order]
        at_risk = np.arange(len(times), 0, -1, dtype=np.float64)
        survival = np.asarray(np.cumprod(1.0 - ends / at_risk), dtype=np.float64)
        before = np.concatenate([[1.0], survival[:-1]])
        areas = np.cumsum(before * np.diff(times, prepend=0.0))
        return cls(order, times, before - survival, areas, survival)

    def running(self, cutoff_seconds: float | Floats) -> Floats:
        """Return the probability that a pull has not finished by the cutoff."""
        return _steps(1.0, self.survival)[self._before(cutoff_seconds)]

    def mean_seconds(self, cutoff_seconds: float | Floats) -> Floats:
        """Return E[min(delay, cutoff)]."""
        before = self._before(cutoff_seconds)
        beyond = cutoff_seconds - _steps(0.0, self.times)[before]
        running = _steps(1.0, self.survival)[before]
        return np.asarray(_steps(0.0, self.areas)[before] + running * beyond)

    def mean_reward(self, cutoff_seconds: Floats, reward: Floats) -> Floats:
        """Return E[reward · 1{delay ≤ cutoff}]; ``reward`` has one entry per pull."""
        earned = np.cumsum(self.jumps * reward[self.order])
        return _steps(0.0, earned)[self._before(cutoff_seconds)]

    def _before(self, cutoff_seconds: float | Floats) -> NDArray[np.intp]:
        """Return the number of pulls that are not longer than the cutoff."""
        return np.asarray(self.times.searchsorted(cutoff_seconds, side="right"))


def _steps(start: float, values: Floats) -> Floats:
    """Return the values of a step function, indexed by the number of pulls before a time."""
    steps = np.empty(len(values) + 1)
    steps[0], steps[1:] = start, values
    return steps


@dataclass(frozen=True)
class Learned:
    """The first pulls and the cutoff learned from them."""

    first_pulls: FirstPulls
    cutoff_seconds: float


def fresh_cutoff(
    pulls: FirstPulls,
    budget_seconds: float,
    timeouts: Sequence[float] | None,
    shortest_seconds: float = SHORTEST_SECONDS,
) -> float:
    """Return the cutoff of the first pull of a configuration."""
    wanted = _learned(pulls, budget_seconds, timeouts)
    return at_least(max(wanted, shortest_seconds), timeouts)


def at_least(seconds: float, timeouts: Sequence[float] | None) -> float:
    """Round up to the next of the given timeouts (at most the longest); None means no rounding."""
    if timeouts is None:
        return seconds
    return next((level for level in timeouts if level >= seconds), timeouts[-1])


def later_cutoff(
    mean_seconds: float,
    waited: float,
    timeouts: Sequence[float] | None,
    shortest_seconds: float = SHORTEST_SECONDS,
) -> float:
    """Return the cutoff of another fold of a configuration that has finished at least one."""
    own = LATER_MULTIPLE * mean_seconds + LATER_SLACK_SECONDS
    wanted = max(own, 2.0 * waited, shortest_seconds)
    return at_least(wanted, timeouts)


def _learned(pulls: FirstPulls, budget_seconds: float, timeouts: Sequence[float] | None) -> float:
    start = START_SHARE * budget_seconds
    n_finished = int(pulls.finished.sum())
    if not n_finished:
        longest = float(pulls.seconds.max()) if len(pulls.seconds) else 0.0
        return max(start, START_GROWTH * longest)
    typical = pulls.median
    if n_finished < FEWEST_FINISHED:
        return min(EARLY_MULTIPLE * typical, max(2.0 * typical, EARLY_SHARE * budget_seconds))
    if timeouts is not None:
        return pulls.best_level(np.asarray(timeouts, dtype=np.float64))
    floor = FLOOR_MULTIPLE * typical
    streak = 2.0 ** (pulls.streak // STREAK)
    ratio = pulls.best_level(_ladder(pulls, floor))
    heaviness = float(pulls.seconds.mean()) / typical if typical > 0 else 1.0
    wanted = max(ratio, floor * min(1.0, (HEAVY_TAIL / heaviness) ** 2), pulls.worth_waiting())
    return streak * wanted


def _ladder(pulls: FirstPulls, floor: float) -> Floats:
    """Return doubling levels from the fastest fit to beyond the slowest one."""
    fastest = max(float(pulls.seconds[pulls.finished].min()), 1e-6)
    slowest = max(float(pulls.seconds.max()), floor, fastest)
    steps = np.arange(math.ceil(math.log2(slowest / fastest)) + 2, dtype=np.float64)
    return np.asarray(fastest * 2.0**steps, dtype=np.float64)
