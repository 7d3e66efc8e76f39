"""When to give up on a fresh configuration: seconds of first pulls go in, a cutoff comes out.

The reservoir of configurations not seen yet is one macro-arm of the paper's game; its delays are
those of all first pulls. The cutoff is the level of a doubling ladder with the most reward per
second (with full feedback: a pull that was given up at w still says what every shorter wait would
have cost), held up by a multiple of the median: reward per second alone is
greedy for fast mediocre fits and ends up killing nearly all.
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

WINDOW = 1000  # first pulls that count: draws improve, and what the first ones took fades
START_SHARE = 1 / 100  # of the budget: the first cutoff while nothing has finished
FEWEST_FINISHED = 5  # before that the cutoff is a multiple of the median
EARLY_MULTIPLE = 10.0
EARLY_SHARE = 1 / 20  # of the budget
FLOOR_MULTIPLE = 10.0
HEAVY_TAIL = 3.0  # mean over median above which the floor gives way
REWARD_POWER = 6  # reward of a first pull: its rank quantile to this power
FEWEST_REGRESSED = 10  # finished first pulls before slow is believed to be better
BEYOND_SLOWEST = 4.0  # how far beyond the slowest finished fit the regression is believed
DOUBT = 2.0  # standard errors taken off that regression's slope
LATER_MULTIPLE = 4.0  # of its own mean for a configuration's later folds
SHORTEST_SECONDS = 0.01  # giving up sooner saves less than a pull costs
LATER_SLACK_SECONDS = 0.01


@dataclass(frozen=True)
class FirstPulls:
    """What first pulls of the last configurations took, and what they were worth."""

    seconds: Floats
    """Until it finished, or was given up."""
    finished: Flags
    quantile: Floats
    """Rank among all scored configurations in [0, 1], 0 without a score."""
    n_scored: int

    @classmethod
    def of(cls, ledger: Ledger) -> FirstPulls:
        """Read them from a ledger; pulls that run or failed say nothing."""
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
        """Median seconds; if most were given up, the longest that finished; 0 if none did."""
        if not self.finished.any():
            return 0.0
        middle = median(np.where(self.finished, self.seconds, np.inf))
        return middle if math.isfinite(middle) else float(self.seconds[self.finished].max())

    def forecast(self, cutoff_seconds: float) -> tuple[float, float]:
        """Chance that a fresh pull finishes by this cutoff, and what it costs on average."""
        if not self.finished.any():
            return 0.5, cutoff_seconds
        n, law = len(self.seconds), self._law
        running, cost = law.running(cutoff_seconds), law.mean_seconds(cutoff_seconds)
        # One pseudo-pull that finishes half of the time.
        chance = (n * (1.0 - float(running)) + 0.5) / (n + 1)
        return chance, (n * float(cost) + 0.25 * cutoff_seconds) / (n + 1)

    def finish_later(self, waited: float, cutoff_seconds: float) -> float:
        """Chance that a pull still running after ``waited`` finishes by the cutoff."""
        running = self.seconds > waited
        later = running & self.finished & (self.seconds <= cutoff_seconds)
        return (int(later.sum()) + 0.5) / (int(running.sum()) + 1)

    def best_level(self, levels: Floats) -> float:
        """The level with the most reward per second, with one optimistic pseudo-pull."""
        reward = self.quantile ** min(self.n_scored, REWARD_POWER)
        n, law = len(self.seconds), self._law
        gains = n * law.mean_reward(levels, reward) + 1.0
        rates = gains / (n * law.mean_seconds(levels) + levels / 2)
        return float(levels[int(rates.argmax())])

    def worth_waiting(self) -> float:
        """Where slow fits are better: how long waiting pays more than drawing anew; 0 elsewhere.

        Normal scores of the finished are regressed on their log seconds. A fit of t seconds then
        has some chance to lead, and is worth it while chance/t is above that of an average draw.
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
    """Kaplan–Meier estimate of how long a pull runs, from pulls of which some were given up.

    The wait is fixed before the delay is seen, so giving up is independent censoring
    (`bandit.statistics` has the same for levels).
    """

    order: NDArray[np.intp]
    times: Floats
    """All pulls' seconds, rising; at equal times those that finished come first."""
    jumps: Floats
    """Share of all pulls that finishes at each time."""
    areas: Floats
    """Mean seconds of a pull that is waited for until each time."""
    survival: Floats
    """Share still running after each time."""

    @classmethod
    def of(cls, seconds: Floats, finished: Flags) -> DelayLaw:
        """Estimate it."""
        order = np.lexsort((~finished, seconds))
        times, ends = seconds[order], finished[order]
        at_risk = np.arange(len(times), 0, -1, dtype=np.float64)
        survival = np.asarray(np.cumprod(1.0 - ends / at_risk), dtype=np.float64)
        before = np.concatenate([[1.0], survival[:-1]])
        areas = np.cumsum(before * np.diff(times, prepend=0.0))
        return cls(order, times, before - survival, areas, survival)

    def running(self, cutoff_seconds: float | Floats) -> Floats:
        """Chance that a pull has not finished by then."""
        return _steps(1.0, self.survival)[self._before(cutoff_seconds)]

    def mean_seconds(self, cutoff_seconds: float | Floats) -> Floats:
        """E[min(delay, cutoff)]."""
        before = self._before(cutoff_seconds)
        beyond = cutoff_seconds - _steps(0.0, self.times)[before]
        running = _steps(1.0, self.survival)[before]
        return np.asarray(_steps(0.0, self.areas)[before] + running * beyond)

    def mean_reward(self, cutoff_seconds: Floats, reward: Floats) -> Floats:
        """E[reward if it finishes by the cutoff]."""
        earned = np.cumsum(self.jumps * reward[self.order])
        return _steps(0.0, earned)[self._before(cutoff_seconds)]

    def _before(self, cutoff_seconds: float | Floats) -> NDArray[np.intp]:
        """How many pulls are not longer than the cutoff."""
        return np.asarray(self.times.searchsorted(cutoff_seconds, side="right"))


def _steps(start: float, values: Floats) -> Floats:
    """A step function by the number of pulls before: ``start`` while there is none."""
    steps = np.empty(len(values) + 1)
    steps[0], steps[1:] = start, values
    return steps


def fresh_cutoff(
    pulls: FirstPulls, budget_seconds: float, timeouts: Sequence[float] | None
) -> float:
    """How long to wait for a configuration that has never been tried."""
    wanted = _learned(pulls, budget_seconds, timeouts)
    return at_least(max(wanted, SHORTEST_SECONDS), timeouts)


def at_least(seconds: float, timeouts: Sequence[float] | None) -> float:
    """The shortest given timeout that is not below this, if timeouts are given at all."""
    if timeouts is None:
        return seconds
    return next((level for level in timeouts if level >= seconds), timeouts[-1])


def later_cutoff(mean_seconds: float, waited: float, timeouts: Sequence[float] | None) -> float:
    """How long to wait for another fold of a configuration that has finished some."""
    wanted = max(LATER_MULTIPLE * mean_seconds + LATER_SLACK_SECONDS, 2.0 * waited)
    return at_least(wanted, timeouts)


def _learned(pulls: FirstPulls, budget_seconds: float, timeouts: Sequence[float] | None) -> float:
    start = START_SHARE * budget_seconds
    n_finished = int(pulls.finished.sum())
    if not n_finished:
        longest = float(pulls.seconds.max()) if len(pulls.seconds) else 0.0
        return max(start, 2.0 * longest)
    typical = pulls.median
    if n_finished < FEWEST_FINISHED:
        # With a budget of few fits, ten times the first would be most of it.
        return min(EARLY_MULTIPLE * typical, max(2.0 * typical, EARLY_SHARE * budget_seconds))
    if timeouts is not None:
        return pulls.best_level(np.asarray(timeouts, dtype=np.float64))
    floor = FLOOR_MULTIPLE * typical
    ratio = pulls.best_level(_ladder(pulls, floor))
    heaviness = float(pulls.seconds.mean()) / typical if typical > 0 else 1.0
    return max(ratio, floor * min(1.0, (HEAVY_TAIL / heaviness) ** 2), pulls.worth_waiting())


def _ladder(pulls: FirstPulls, floor: float) -> Floats:
    """Doubling levels from the fastest fit seen to beyond the slowest."""
    fastest = max(float(pulls.seconds[pulls.finished].min()), 1e-6)
    slowest = max(float(pulls.seconds.max()), floor, fastest)
    steps = np.arange(math.ceil(math.log2(slowest / fastest)) + 2, dtype=np.float64)
    return np.asarray(fastest * 2.0**steps, dtype=np.float64)
