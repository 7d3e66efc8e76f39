"""The Farewell-to-Arms game (section 2.1 of the paper): its distributions, true rates and samples.

Every macro-arm k has a joint distribution Q_k of delay and potential reward, stored as a finite
list of outcomes (finish level, reward, probability). Arms and levels are numbered from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from f2a_tune.bandit.levels import Floats, Levels

PROBABILITY_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class MicroArm:
    """What one pull plays: a macro-arm, and the level until which to wait for it."""

    arm: int
    """Index of the macro-arm (the configuration), from 0."""
    level: int
    """Index of the waiting level after which the pull is given up, from 0."""


class Tables(NamedTuple):
    """A game as plain arrays for compiled code; the last entry of ``cumulative[k]`` is 1."""

    cumulative: Floats
    finish_level: NDArray[np.int64]
    reward: Floats
    finish_costs: Floats
    give_up_costs: Floats
    partial_rewards: Floats


class Game:
    """A bandit game of K macro-arms and D waiting levels with known distributions.

    A player pulls one macro-arm at a time and chooses how long to wait for it. A pull that
    finishes in time pays its reward and costs its delay. A pull that is given up pays nothing, or
    its partial reward, and costs the wait. The goal is the highest reward per unit of cost.

    Parameters
    ----------
    delays : array-like of shape (K, D) or (K, D + 1)
        P(delay = level i) of every arm. If ``levels`` is given, an additional last column is the
        probability that a pull never finishes. A single row describes a game with one arm.
    rewards : float or array-like of shape (K,) or (K, D)
        Mean potential reward in [0, 1]: one for all arms, one per arm, or one per arm and delay.
    levels : array-like of shape (D,) or Levels, default=None
        Waiting times in any unit, strictly increasing. None means 1, 2, …, D.
    bernoulli : bool, default=True
        If True, a finished pull pays 0 or 1 with the given mean. If False, it pays the mean
        itself.
    partial_rewards : array-like of shape (K, D), default=None
        Reward in [0, 1] of a pull of every arm that is given up at every level, such as the score
        of a fit that was stopped early. None means 0, as in the paper.
    name : str, default="game"
        Name for tables and plots.

    Examples
    --------
    >>> game = Game(delays=[[0.5, 0.0, 0.5]], rewards=1.0)
    >>> game.best, round(game.best_rate, 3)
    (MicroArm(arm=0, level=0), 0.5)
    >>> Game(delays=[0.5, 0.5], rewards=1.0, levels=[10, 40]).rates().round(4).tolist()
    [[0.05, 0.04]]
    """

    def __init__(
        self,
        delays: ArrayLike,
        rewards: ArrayLike,
        levels: Levels | ArrayLike | None = None,
        *,
        bernoulli: bool = True,
        partial_rewards: ArrayLike | None = None,
        name: str = "game",
    ) -> None:
        probabilities = _checked_delays(delays)
        self.levels = _levels_for(probabilities, levels)
        depth = len(self.levels)
        means = _checked_rewards(rewards, len(probabilities), depth)
        arms = [
            _law_outcomes(row, mean, depth, bernoulli)
            for row, mean in zip(probabilities, means, strict=True)
        ]
        self.name = name
        self._set_outcomes(arms, _checked_partial(partial_rewards, len(probabilities), depth))

    @classmethod
    def from_records(
        cls, seconds: ArrayLike, scores: ArrayLike, levels: ArrayLike, *, name: str = "records"
    ) -> Game:
        """Build a game from a table of recorded fits.

        A pull of arm k draws one of the recorded folds of configuration k. Its delay is rounded up
        to the next level. A fit that was killed (score NaN) or took longer than the last level
        never finishes.

        Parameters
        ----------
        seconds : array-like of shape (n_configurations, n_folds)
            Seconds of every fit.
        scores : array-like of shape (n_configurations, n_folds)
            Score of every fit in [0, 1], or NaN for a fit that was killed.
        levels : array-like of shape (D,)
            Waiting times in seconds, strictly increasing.
        name : str, default="records"
            Name for tables and plots.
        """
        times, values = np.asarray(seconds, float), np.asarray(scores, float)
        if times.ndim != 2 or times.shape != values.shape or times.size == 0:
            raise ValueError(
                "seconds and scores must be non-empty tables of the same shape (configurations × "
                f"folds), got shapes {times.shape} and {values.shape}."
            )
        if np.nanmin(values) < 0 or np.nanmax(values) > 1:
            raise ValueError(
                f"scores must lie in [0, 1], got {np.nanmin(values)} to {np.nanmax(values)}. "
                "Rescale them first."
            )
        ladder = Levels.waiting(np.asarray(levels, float).tolist())
        game = cls.__new__(cls)
        game.levels, game.name = ladder, name
        depth, folds = len(ladder), times.shape[1]
        finish = np.searchsorted(ladder.finish_costs, times)
        finish = np.where(np.isnan(values), depth, finish)
        paid = np.nan_to_num(values)
        game._set_outcomes(
            [
                [(int(i), float(v), 1 / folds) for i, v in zip(row, pay, strict=True)]
                for row, pay in zip(finish, paid, strict=True)
            ],
            np.zeros((len(times), depth)),
        )
        return game

    def _set_outcomes(
        self, arms: list[list[tuple[int, float, float]]], partial_rewards: Floats
    ) -> None:
        width = max(len(outcomes) for outcomes in arms)
        cumulative = np.ones((len(arms), width))
        finish_level = np.full((len(arms), width), len(self.levels), dtype=np.int64)
        reward = np.zeros((len(arms), width))
        for k, outcomes in enumerate(arms):
            total = 0.0
            for m, (level, value, probability) in enumerate(outcomes):
                total += probability
                cumulative[k, m], finish_level[k, m], reward[k, m] = total, level, value
            # Rounding errors must not leave a part of [0, 1) without an outcome.
            cumulative[k, len(outcomes) - 1 :] = 1.0
        self.tables = Tables(
            cumulative,
            finish_level,
            reward,
            np.array(self.levels.finish_costs),
            np.array(self.levels.give_up_costs),
            partial_rewards,
        )
        self.mean_rewards, self.mean_costs = self._means()

    def _means(self) -> tuple[Floats, Floats]:
        """Return E[reward] and E[cost] of every pair: numerator and denominator of eq. 2."""
        chances = np.diff(self.tables.cumulative, prepend=0.0, axis=1)
        rewards = np.zeros((self.n_arms, self.n_levels))
        costs = np.zeros_like(rewards)
        for j in range(self.n_levels):
            finished = self.tables.finish_level <= j
            paid = np.append(self.tables.finish_costs, 0.0)[self.tables.finish_level]
            pays = np.where(finished, self.tables.reward, self.tables.partial_rewards[:, [j]])
            rewards[:, j] = (chances * pays).sum(axis=1)
            costs[:, j] = (chances * np.where(finished, paid, self.tables.give_up_costs[j])).sum(
                axis=1
            )
        return rewards, costs

    @property
    def n_arms(self) -> int:
        """K, the number of macro-arms."""
        return int(self.tables.cumulative.shape[0])

    @property
    def n_levels(self) -> int:
        """D, the number of waiting levels."""
        return len(self.levels)

    def rates(self) -> Floats:
        """Return g, the K×D matrix of expected reward per unit of cost (paper, eq. 2)."""
        return self.mean_rewards / self.mean_costs

    def gaps(self) -> Floats:
        """Return Δ (K×D), the difference between the best rate and the rate of every pair.

        Differences as small as rounding errors are returned as exactly 0.
        """
        gaps = self.best_rate - self.rates()
        return np.where(gaps <= 1e-12 * self.best_rate, 0.0, gaps)

    @property
    def best(self) -> MicroArm:
        """The pair with the highest rate; ties go to the lowest arm, then the shortest wait."""
        arm, level = np.unravel_index(int(np.argmin(self.gaps())), self.mean_costs.shape)
        return MicroArm(int(arm), int(level))

    @property
    def best_rate(self) -> float:
        """g*, the rate of the best pair."""
        return float(self.rates().max())

    @property
    def gap(self) -> float:
        """The smallest positive gap; infinite if all pairs are equally good."""
        gaps = self.gaps()
        return float(gaps[gaps > 0].min(initial=np.inf))

    def delay_probabilities(self) -> Floats:
        """Return the probability of finishing in each level and of never finishing (K×(D+1))."""
        chances = np.diff(self.tables.cumulative, prepend=0.0, axis=1)
        result = np.zeros((self.n_arms, self.n_levels + 1))
        rows = np.broadcast_to(np.arange(self.n_arms)[:, None], chances.shape)
        np.add.at(result, (rows, self.tables.finish_level), chances)
        return result

    def sample(
        self, arm: int, size: int = 1, seed: int | np.random.Generator | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Draw ``size`` finish levels and potential rewards; level D means "never finishes"."""
        if not 0 <= arm < self.n_arms:
            raise ValueError(f"arm must be 0 to {self.n_arms - 1}, got {arm!r}.")
        rng = np.random.default_rng(seed)
        picks = np.searchsorted(self.tables.cumulative[arm], rng.random(size), side="right")
        return self.tables.finish_level[arm, picks], self.tables.reward[arm, picks]

    def __repr__(self) -> str:
        return (
            f"Game({self.name!r}, K={self.n_arms}, D={self.n_levels}, best={self.best}, "
            f"rate={self.best_rate:.4g}, gap={self.gap:.4g})"
        )


def _checked_delays(delays: ArrayLike) -> Floats:
    probabilities = np.atleast_2d(_numeric("delays", delays))
    if probabilities.ndim != 2 or probabilities.size == 0:
        raise ValueError(
            "delays must be a non-empty table of probabilities (arms × levels), "
            f"got shape {np.shape(delays)}."
        )
    if not np.all(np.isfinite(probabilities)) or probabilities.min() < 0:
        bad = probabilities[~(probabilities >= 0) | ~np.isfinite(probabilities)][0]
        raise ValueError(f"delays must be probabilities of at least 0, got {bad}.")
    sums = probabilities.sum(axis=1)
    wrong = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[wrong] - 1) > PROBABILITY_TOLERANCE:
        raise ValueError(
            f"delays of arm {wrong} must sum to 1, got {sums[wrong]:.6g}. If some pulls never "
            "finish, pass levels= and add their probability as one more column."
        )
    return np.asarray(probabilities / sums[:, None], dtype=np.float64)


def _levels_for(probabilities: Floats, levels: Levels | ArrayLike | None) -> Levels:
    columns = probabilities.shape[1]
    if levels is None:
        return Levels.waiting(range(1, columns + 1))
    ladder = levels if isinstance(levels, Levels) else Levels.waiting(_listed("levels", levels))
    if columns not in (len(ladder), len(ladder) + 1):
        raise ValueError(
            f"levels has {len(ladder)} entries, but delays has {columns} columns. Pass one column "
            "per level, and at most one more for pulls that never finish."
        )
    return ladder


def _checked_rewards(rewards: ArrayLike, arms: int, depth: int) -> Floats:
    means = _numeric("rewards", rewards)
    if means.ndim == 1 and len(means) == arms:
        means = means[:, None]
    if means.ndim > 2 or means.shape not in ((), (arms, 1), (arms, depth)):
        raise ValueError(
            f"rewards must be one number, {arms} numbers (one per arm) or a {arms}×{depth} table "
            f"(arm × delay), got shape {means.shape}."
        )
    if not np.all((means >= 0) & (means <= 1)):
        raise ValueError(f"rewards must lie in [0, 1], got {rewards!r}. Rescale them first.")
    return np.array(np.broadcast_to(means, (arms, depth)), dtype=np.float64)


def _checked_partial(partial_rewards: ArrayLike | None, arms: int, depth: int) -> Floats:
    if partial_rewards is None:
        return np.zeros((arms, depth))
    found = np.atleast_2d(_numeric("partial_rewards", partial_rewards))
    if found.shape != (arms, depth):
        raise ValueError(
            f"partial_rewards must be a {arms}×{depth} table (arm × level), got shape "
            f"{found.shape}."
        )
    if not np.all((found >= 0) & (found <= 1)):
        raise ValueError(
            f"partial_rewards must lie in [0, 1], got {partial_rewards!r}. Rescale them first."
        )
    return found


def _law_outcomes(
    probabilities: Floats, means: Floats, depth: int, bernoulli: bool
) -> list[tuple[int, float, float]]:
    outcomes = []
    for level, chance in enumerate(probabilities):
        mean = float(means[level]) if level < depth else 0.0
        if level >= depth or not bernoulli:
            outcomes.append((level, mean, float(chance)))
        else:
            outcomes.append((level, 1.0, float(chance * mean)))
            outcomes.append((level, 0.0, float(chance * (1 - mean))))
    return [outcome for outcome in outcomes if outcome[2] > 0]


def _numeric(argument: str, values: Any) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} must be numbers in a regular table, got {values!r}."
        ) from None


def _listed(argument: str, values: Any) -> list[float]:
    numbers = _numeric(argument, values)
    if numbers.ndim != 1:
        raise ValueError(f"{argument} must be one row of numbers, got shape {numbers.shape}.")
    return [float(number) for number in numbers]
