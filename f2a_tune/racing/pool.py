"""The paper's algorithm, literally: a fixed pool of configurations as macro-arms.

Pulls and outcomes flow through a policy of `f2a_tune.bandit`, which knows arms and waiting levels
only. A pull takes the configuration's next fold, and begins again with the first after the last.
The reward is the score between the worst and the best seen so far, since a policy needs [0, 1].
Every pair of configuration and level is pulled once first, which eats small budgets: in the replay
benchmark this earns more reward per second than random search and ends among the worst in quality.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from f2a_tune.bandit import Policy
from f2a_tune.bandit.game import Pull as Pair
from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing.ledger import is_score
from f2a_tune.racing.pull import Pull
from f2a_tune.racing.rule import Situation

# Waiting levels if no timeouts are given: doubling, the longest a tenth of the budget.
N_LEVELS = 6
LONGEST_SHARE = 0.1


class PoolRule:
    """A bandit policy over a pool that is drawn first."""

    def __init__(
        self,
        policy: Policy,
        pool_size: int,
        n_folds: int,
        budget_seconds: float,
        timeouts: tuple[float, ...] | None,
        seed: int,
    ) -> None:
        longest = LONGEST_SHARE * budget_seconds
        doubling = tuple(longest / 2**step for step in reversed(range(N_LEVELS)))
        self.levels = timeouts or doubling
        self.policy = copy.deepcopy(policy)
        self.n_folds, self.seed = n_folds, seed
        self._history: list[tuple[Pull, Outcome]] = []
        self._begin(list(range(pool_size)))

    def choose(self, situation: Situation) -> Pull | None:
        """What the policy chooses, with pulls in flight counted as given up."""
        if not self._arms:
            return None
        policy = copy.deepcopy(self.policy) if situation.in_flight else self.policy
        for pull in situation.in_flight:
            if pull.configuration not in self._told:
                continue  # somebody else's, not in the pool
            pair = self._pair(pull)
            policy.observe(pair, 0.0, self.levels[pair.level], finished=False)
        # A stream of its own for every choice, so that a rebuilt race draws the same.
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
        """Tell the policy what the pull paid and cost; what is not in the pool does not count."""
        if pull.configuration not in self._told:
            return
        self._history.append((pull, outcome))
        self._told[pull.configuration] += 1
        pair = self._pair(pull)
        # Where nobody enforces cutoffs, a pull may finish after its own: too late for the game.
        in_time = outcome.seconds <= self.levels[pair.level]
        finished, reward = outcome.kind is not Kind.GAVE_UP and in_time, 0.0
        if finished and outcome.kind is Kind.FINISHED and is_score(outcome.value):
            reward = self._reward(float(outcome.value))
        seconds = min(outcome.seconds, self.levels[pair.level])
        self.policy.observe(pair, reward, seconds, finished=finished)

    def close(self) -> None:
        """The pool is what has been drawn: play on with those arms alone."""
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

    def _pair(self, pull: Pull) -> Pair:
        # The last pull's cutoff may have been shortened to what was left of the budget.
        enough = (level for level, wait in enumerate(self.levels) if wait >= pull.cutoff_seconds)
        arm = self._arms.index(pull.configuration)
        return Pair(arm, next(enough, len(self.levels) - 1))

    def _reward(self, score: float) -> float:
        self._worst, self._best = min(self._worst, score), max(self._best, score)
        spread = self._best - self._worst
        return (score - self._worst) / spread if 0 < spread < math.inf else 0.5
