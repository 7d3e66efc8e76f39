"""The Farewell-to-Arms game: in go delay and reward laws, out come true rates and samples.

Section 2.1 of the paper. Every macro-arm k has a joint law Q_k of delay and potential reward, kept
as a finite list of outcomes (finish level, reward, probability). Arms and levels count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from f2a_tune.bandit.levels import Floats, Levels

PROBABILITY_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Pull:
    """One play: macro-arm (configuration) ``arm``, waiting at most to ``level``; both from 0."""

    arm: int
    level: int


class Tables(NamedTuple):
    """A game as plain arrays, readable by compiled code; ``cumulative[k]`` ends with 1."""

    cumulative: Floats
    finish_level: NDArray[np.int64]
    reward: Floats
    finish_costs: Floats
    give_up_costs: Floats


class Game:
    """K macro-arms, D waiting levels, and the law of delay and reward of every arm.

    Parameters
    ----------
    delays
        P(delay = level i), one row an arm (K×D); where ``levels`` are given, one column more than
        levels is the chance that a pull never finishes. A single row stands for a single arm.
    rewards
        Mean potential reward in [0, 1]: a number, one per arm (K), or one per arm and delay (K×D).
    levels
        Waits in any unit, strictly rising; default 1, 2, …, D. Or a `Levels`.
    bernoulli
        True: a finished pull pays 0 or 1 with that mean. False: it pays the mean itself.
    name
        For tables and plots.

    Examples
    --------
    >>> game = Game(delays=[[0.5, 0.0, 0.5]], rewards=1.0)
    >>> game.best, round(game.best_rate, 3)
    (Pull(arm=0, level=0), 0.5)
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
        self._set_outcomes(arms)

    @classmethod
    def from_records(
        cls, seconds: ArrayLike, scores: ArrayLike, levels: ArrayLike, *, name: str = "records"
    ) -> Game:
        """Build a game from recorded fits: row = configuration, column = fold.

        A pull draws one recorded fold. Its delay is rounded up to the next level; a fit that was
        never finished (score NaN) or took longer than the last level never finishes.
        """
        times, values = np.asarray(seconds, float), np.asarray(scores, float)
        if times.ndim != 2 or times.shape != values.shape or times.size == 0:
            raise ValueError(
                "seconds and scores must be two equal non-empty tables (configurations × folds), "
                f"got shapes {times.shape} and {values.shape}."
            )
        if np.nanmin(values) < 0 or np.nanmax(values) > 1:
            raise ValueError(
                f"scores must lie in [0, 1], got {np.nanmin(values)} to {np.nanmax(values)}: "
                "rescale them first."
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
            ]
        )
        return game

    def _set_outcomes(self, arms: list[list[tuple[int, float, float]]]) -> None:
        width = max(len(outcomes) for outcomes in arms)
        cumulative = np.ones((len(arms), width))
        finish_level = np.full((len(arms), width), len(self.levels), dtype=np.int64)
        reward = np.zeros((len(arms), width))
        for k, outcomes in enumerate(arms):
            total = 0.0
            for m, (level, value, probability) in enumerate(outcomes):
                total += probability
                cumulative[k, m], finish_level[k, m], reward[k, m] = total, level, value
            # Rounding must not leave a sliver of [0, 1) without an outcome.
            cumulative[k, len(outcomes) - 1 :] = 1.0
        self.tables = Tables(
            cumulative,
            finish_level,
            reward,
            np.array(self.levels.finish_costs),
            np.array(self.levels.give_up_costs),
        )
        self.mean_rewards, self.mean_costs = self._means()

    def _means(self) -> tuple[Floats, Floats]:
        """E[reward] and E[cost] of every pair (numerator and denominator of the paper's eq. 2)."""
        chances = np.diff(self.tables.cumulative, prepend=0.0, axis=1)
        rewards = np.zeros((self.n_arms, self.n_levels))
        costs = np.zeros_like(rewards)
        for j in range(self.n_levels):
            finished = self.tables.finish_level <= j
            paid = np.append(self.tables.finish_costs, 0.0)[self.tables.finish_level]
            rewards[:, j] = (chances * finished * self.tables.reward).sum(axis=1)
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
        """g, the K×D matrix of expected reward per unit of cost (paper, eq. 2)."""
        return self.mean_rewards / self.mean_costs

    def gaps(self) -> Floats:
        """Δ, how far every pair's rate lies below the best one's; rounding noise is exactly 0."""
        gaps = self.best_rate - self.rates()
        return np.where(gaps <= 1e-12 * self.best_rate, 0.0, gaps)

    @property
    def best(self) -> Pull:
        """The pair of the highest rate; among equals the lowest arm, then the shortest wait."""
        arm, level = np.unravel_index(int(np.argmin(self.gaps())), self.mean_costs.shape)
        return Pull(int(arm), int(level))

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
        """K×(D+1): chance of finishing inside each level, and of never finishing."""
        chances = np.diff(self.tables.cumulative, prepend=0.0, axis=1)
        result = np.zeros((self.n_arms, self.n_levels + 1))
        rows = np.broadcast_to(np.arange(self.n_arms)[:, None], chances.shape)
        np.add.at(result, (rows, self.tables.finish_level), chances)
        return result

    def sample(
        self, arm: int, size: int = 1, seed: int | np.random.Generator | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Draw ``size`` pairs (finish level, potential reward); level D means "never finishes"."""
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
            f"delays of arm {wrong} must sum to 1, got {sums[wrong]:.6g}: give levels=, and what "
            "is missing as one more column, the chance that a pull never finishes."
        )
    return np.asarray(probabilities / sums[:, None], dtype=np.float64)


def _levels_for(probabilities: Floats, levels: Levels | ArrayLike | None) -> Levels:
    columns = probabilities.shape[1]
    if levels is None:
        return Levels.waiting(range(1, columns + 1))
    ladder = levels if isinstance(levels, Levels) else Levels.waiting(_listed("levels", levels))
    if columns not in (len(ladder), len(ladder) + 1):
        raise ValueError(
            f"levels has {len(ladder)} entries, but delays has {columns} columns: give one column "
            "a level, and at most one more for pulls that never finish."
        )
    return ladder


def _checked_rewards(rewards: ArrayLike, arms: int, depth: int) -> Floats:
    means = _numeric("rewards", rewards)
    if means.ndim == 1 and len(means) == arms:
        means = means[:, None]
    if means.ndim > 2 or means.shape not in ((), (arms, 1), (arms, depth)):
        raise ValueError(
            f"rewards must be one number, {arms} (one an arm) or {arms}×{depth} (arm × delay), "
            f"got shape {means.shape}."
        )
    if not np.all((means >= 0) & (means <= 1)):
        raise ValueError(f"rewards must lie in [0, 1], got {rewards!r}: rescale them first.")
    return np.array(np.broadcast_to(means, (arms, depth)), dtype=np.float64)


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
