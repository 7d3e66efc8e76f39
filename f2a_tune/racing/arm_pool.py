"""The algorithm of the paper without changes: a bandit policy over a fixed pool of configurations.

A policy of `f2a_tune.bandit` chooses the pulls; it knows only arms and waiting levels. A pull uses
the configuration's next fold, and the first fold again after the last. Policies need rewards in
[0, 1], so the reward is the score scaled between the worst and the best score seen so far.
Every pair of configuration and level is pulled once first, which uses up small budgets: in the
replay benchmark this rule earns more reward per second than random search, but its final quality
is among the worst.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from f2a_tune.bandit import Policy
from f2a_tune.bandit.game import MicroArm
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing.ledger import is_score
from f2a_tune.racing.pull import Pull
from f2a_tune.racing.situation import Situation

# Waiting levels if no timeouts are given: six doubling levels, the longest a tenth of the budget.
N_LEVELS = 6
LONGEST_SHARE = 0.1


class PoolRule:
    """Rule that lets a bandit policy choose among a fixed pool of configurations.

    Parameters
    ----------
    policy : Policy
        The policy; it is copied.
    pool_size : int
        Number of configurations in the pool.
    n_folds : int
        Number of folds of a configuration.
    budget_seconds : float
        Total budget, from which the waiting levels are derived if ``timeouts`` is None.
    timeouts : tuple of float or None
        Waiting levels in seconds.
    seed : int
        Seed of the policy's random numbers.
    """

    def __init__(
        self,
        policy: Policy,
        pool_size: int,
        n_folds: int,
        budget_seconds: float,
        timeouts: tuple[float, ...] | None,
        seed: int,
    ) -> None:
        if math.isinf(budget_seconds) and timeouts is None:
            raise ValueError(
                "A bandit policy with an infinite budget_seconds requires timeouts=. Pass the "
                "waiting times in seconds or a finite budget."
            )
        longest = LONGEST_SHARE * budget_seconds
        doubling = tuple(longest / 2**step for step in reversed(range(N_LEVELS)))
        self.levels = timeouts or doubling
        self.policy = copy.deepcopy(policy)
        self.n_folds, self.seed = n_folds, seed
        self._history: list[tuple[Pull, Outcome]] = []
        self._begin(list(range(pool_size)))

    def choose(self, situation: Situation) -> Pull | None:
        """Return the policy's choice, with the pulls in flight counted as given up."""
        if not self._arms:
            return None
        policy = copy.deepcopy(self.policy) if situation.in_flight else self.policy
        for pull in situation.in_flight:
            if pull.configuration not in self._told:
                continue  # started by another process and not in this pool
            pair = self._pair(pull)
            policy.observe(pair, 0.0, self.levels[pair.level], finished=False)
        # Every choice has its own random stream, so that a rebuilt race makes the same draws.
        policy.rng = np.random.default_rng([self.seed, policy.epoch])
        pair = policy.choose()
        configuration = self._arms[pair.arm]
        running = [pull for pull in situation.in_flight if pull.configuration == configuration]
        before = self._told[configuration] + len(running)
        wait = self.levels[pair.level]
        return Pull(
            configuration=configuration,
            fold=before % self.n_folds,
            cutoff_seconds=min(wait, situation.seconds_left),
            fresh=not before,
            reason=f"{policy.name}: arm {pair.arm}, wait {wait:.3g} s",
        )

    def learn(self, pull: Pull, outcome: Outcome) -> None:
        """Pass reward and cost of a pull to the policy; ignore pulls that are not in the pool."""
        if pull.configuration not in self._told:
            return
        self._history.append((pull, outcome))
        self._told[pull.configuration] += 1
        pair = self._pair(pull)
        # If the caller does not enforce cutoffs, a pull may finish after its cutoff. The policy
        # must see it as given up.
        in_time = outcome.seconds <= self.levels[pair.level]
        finished, reward = outcome.kind is not Kind.GAVE_UP and in_time, 0.0
        if finished and outcome.kind is Kind.FINISHED and is_score(outcome.value):
            reward = self._reward(float(outcome.value))
        seconds = min(outcome.seconds, self.levels[pair.level])
        self.policy.observe(pair, reward, seconds, finished=finished)

    def close(self) -> None:
        """Reduce the pool to the configurations drawn so far and replay their outcomes."""
        history = self._history
        self._history = []
        self._begin(sorted({pull.configuration for pull, _ in history}))
        for pull, outcome in history:
            self.learn(pull, outcome)

    def _begin(self, configurations: list[int]) -> None:
        self._arms = configurations
        self._told: dict[int, int] = dict.fromkeys(configurations, 0)
        self._worst, self._best = math.inf, -math.inf
        if configurations:
            self.policy.reset(len(configurations), self.levels, self.seed)

    def _pair(self, pull: Pull) -> MicroArm:
        # The cutoff of a late pull may have been shortened to the remaining budget.
        enough = (level for level, wait in enumerate(self.levels) if wait >= pull.cutoff_seconds)
        arm = self._arms.index(pull.configuration)
        return MicroArm(arm, next(enough, len(self.levels) - 1))

    def _reward(self, score: float) -> float:
        self._worst, self._best = min(self._worst, score), max(self._best, score)
        spread = self._best - self._worst
        return (score - self._worst) / spread if 0 < spread < math.inf else 0.5
