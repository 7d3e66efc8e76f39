"""Index policies from the literature that the paper compares with, and the more recent ω-UCB.

In every formula, s is the total number of pulls so far, N the number of pulls of the pair, and r̄
and c̄ are the pair's mean reward and mean cost. UCB1 is what Wait-UCB reduces to with one level.
"""

from __future__ import annotations

import math

from f2a_tune.bandit.levels import Levels
from f2a_tune.bandit.policies.index import IndexPolicy
from f2a_tune.checks import positive_number


class UCB1(IndexPolicy):
    r"""UCB1 (Auer, Cesa-Bianchi & Fischer 2002): r̄ + √(2·ln s/N). It ignores costs."""

    name = "ucb1"

    @staticmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """Return the mean reward plus its confidence radius."""
        return reward / pulls + math.sqrt(2.0 * log_epoch / pulls)

    def constant(self, levels: Levels) -> float:
        """Return 0; the formula has no constant."""
        return 0.0


class UCBSimplex(IndexPolicy):
    r"""UCB-Simplex (Flajolet & Jaillet 2017) for one resource: (r̄ + (1+κ)ε)/c̄, ε = √(2·ln s/N).

    κ is the largest cost in units of the smallest (D in the paper's games). The formula was
    written from memory of the published algorithm and not checked against the authors' code.
    """

    name = "ucb-simplex"

    @staticmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """Return the optimistic reward divided by the cost; the constant is 1 + κ."""
        return (reward + constant * math.sqrt(2.0 * log_epoch * pulls)) / cost

    def constant(self, levels: Levels) -> float:
        """Return 1 + κ."""
        return 1.0 + float(levels.ratios[-1])


class BudgetUCB(IndexPolicy):
    r"""Budget-UCB (Xia et al. 2016).

    The index is r̄/c̄ + (ε/c̄)·(1 + min(r̄+ε, 1)/max(c̄−ε, λ)), ε = √(2·ln s/N). The formula was
    written from memory of the published algorithm and not checked against the authors' code.
    """

    name = "budget-ucb"

    @staticmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """Return the index; the constant is λ."""
        mean_reward, mean_cost = reward / pulls, cost / pulls
        radius = math.sqrt(2.0 * log_epoch / pulls)
        optimistic = min(mean_reward + radius, 1.0) / max(mean_cost - radius, constant)
        return (mean_reward + radius * (1.0 + optimistic)) / mean_cost

    def constant(self, levels: Levels) -> float:
        """Return λ, the smallest cost in units of the largest."""
        return 1.0 / float(levels.ratios[-1])


class UCBBV1(IndexPolicy):
    r"""UCB-BV1 (Ding et al. 2013): r̄/c̄ + (1 + 1/λ)ε/(λ−ε), ε = √(ln s/N); infinite if ε ≥ λ."""

    name = "ucb-bv1"

    @staticmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """Return the index; the constant is λ."""
        radius = math.sqrt(log_epoch / pulls)
        if radius >= constant:
            return math.inf
        return reward / cost + (1.0 + 1.0 / constant) * radius / (constant - radius)

    def constant(self, levels: Levels) -> float:
        """Return λ, the smallest cost in units of the largest."""
        return 1.0 / float(levels.ratios[-1])


class OmegaUCB(IndexPolicy):
    r"""ω-UCB (Heyden et al. 2023): Wilson⁺(r̄)/Wilson⁻(c̄) with z² = 2ρ·ln s.

    Wilson⁺ and Wilson⁻ are the upper and lower ends of the Wilson score interval after N pulls.

    Parameters
    ----------
    rho : float, default=0.25
        Width of the intervals. The authors recommend 1/4. Their code uses ln(s+1), which makes a
        difference only for the first pulls.
    """

    name = "omega-ucb"

    def __init__(self, rho: float = 0.25) -> None:
        self.rho = positive_number("rho", rho)

    @staticmethod
    def formula(
        reward: float, cost: float, pulls: float, log_epoch: float, constant: float
    ) -> float:
        """Return the ratio; the constant is ρ, and the common denominator 1 + z²/N cancels."""
        mean_reward, mean_cost = reward / pulls, cost / pulls
        spread = 2.0 * constant * log_epoch / pulls
        half = 0.5 * spread
        high = math.sqrt(spread * max(mean_reward * (1.0 - mean_reward), 0.0) + half * half)
        low = math.sqrt(spread * max(mean_cost * (1.0 - mean_cost), 0.0) + half * half)
        return (mean_reward + half + high) / max(mean_cost + half - low, 1e-300)

    def constant(self, levels: Levels) -> float:
        """Return ρ."""
        return self.rho
