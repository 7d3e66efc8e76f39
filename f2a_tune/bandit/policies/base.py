"""Base classes of the bandit policies.

A policy is reset for a number of arms and levels; then ``choose`` and ``observe`` are called in
turn. It sees pulls, rewards and costs but never the game, so it works in a simulation as well as
in a user's own loop. Arms and levels are numbered from 0, and ties go to the lowest index.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from f2a_tune.bandit.game import MicroArm
from f2a_tune.bandit.levels import Floats, Levels
from f2a_tune.bandit.statistics import cost_ladder, new_counts
from f2a_tune.checks import positive_integer, real_number


class Policy(ABC):
    """Base class of policies, which choose the macro-arm to pull and how long to wait for it.

    Call `reset` once, then `choose` and `observe` for every pull. A subclass implements
    ``_start``, ``_choose`` and ``_learn``.

    Examples
    --------
    >>> from f2a_tune.bandit import WaitUCB
    >>> policy = WaitUCB().reset(n_arms=2, levels=[1, 2, 4])
    >>> pull = policy.choose()
    >>> policy.observe(pull, reward=0.8, cost=0.7)
    """

    name: str = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.name:
            cls.name = cls.__name__

    def reset(
        self, n_arms: int, levels: Levels | Iterable[Any], seed: int | np.random.Generator = 0
    ) -> Self:
        """Forget all observations and prepare for a new game.

        Parameters
        ----------
        n_arms : int
            Number of macro-arms (configurations).
        levels : Levels or iterable of float
            Waiting levels: the times after which a pull may be given up, strictly increasing.
        seed : int or numpy.random.Generator, default=0
            Source of random numbers for policies that draw some.

        Returns
        -------
        Policy
            The policy itself.
        """
        self.n_arms = positive_integer("n_arms", n_arms)
        self.levels = levels if isinstance(levels, Levels) else Levels.waiting(levels)
        self.n_levels = len(self.levels)
        self.rng = np.random.default_rng(seed)
        self.epoch = 0
        self._start()
        return self

    def choose(self) -> MicroArm:
        """Return the pair of macro-arm and waiting level to pull next."""
        self._require_reset()
        return self._choose()

    def observe(
        self,
        pull: MicroArm,
        reward: float,
        cost: float,
        *,
        finished: bool | None = None,
        looks: Iterable[float] = (),
    ) -> None:
        """Update the policy with the reward and cost of a pull.

        Parameters
        ----------
        pull : MicroArm
            The pull, as returned by `choose`.
        reward : float
            Reward in [0, 1]. For a pull that was given up it is 0, or its partial reward.
        cost : float
            Time or money that was spent, in the unit of the levels.
        finished : bool, default=None
            Whether the pull finished before it was given up. With None, a pull counts as finished
            if its reward is positive or its cost is below that of giving up. Required if pulls
            that are given up pay a partial reward.
        looks : iterable of float, default=()
            Partial rewards in [0, 1] that the pull would have paid at the levels it has passed,
            from the first one on.
        """
        self._require_reset()
        reward, cost = real_number("reward", reward), real_number("cost", cost)
        if not (0 <= pull.arm < self.n_arms and 0 <= pull.level < self.n_levels):
            raise ValueError(
                f"pull={pull!r} is not in this game, which has {self.n_arms} arms and "
                f"{self.n_levels} levels."
            )
        if not 0 <= reward <= 1:
            raise ValueError(f"reward must lie in [0, 1], got {reward!r}. Rescale it first.")
        if not (math.isfinite(cost) and cost >= 0):
            raise ValueError(f"cost must be a finite number of at least 0, got {cost!r}.")
        if finished is None:
            finished = reward > 0 or self._ended_by_itself(pull.level, cost)
        # The measured time may slightly exceed the wait; the pull still finished in its level.
        inside = min(self.levels.finish_level(cost), pull.level)
        finish_level = inside if finished else self.n_levels
        self.epoch += 1
        self._look(pull.arm, [real_number("looks", look) for look in looks])
        # The measured time of a quick pull may be 0, but a rate needs a positive cost.
        self._learn(pull, finish_level, reward, max(cost, 1e-9 * self.levels.smallest_cost))

    def _ended_by_itself(self, level: int, cost: float) -> bool:
        given_up = self.levels.give_up_costs[level]
        if self.levels.finish_costs[level] > given_up:  # in an auction, winning costs more
            return not math.isclose(cost, given_up, rel_tol=1e-9)
        # In real time, a pull that is given up ends slightly after its wait.
        return cost < given_up * (1 - 1e-9)

    def _require_reset(self) -> None:
        if not hasattr(self, "levels"):
            raise RuntimeError(
                f"{type(self).__name__} has not been reset for a game. "
                "First call reset(n_arms=…, levels=…)."
            )

    @abstractmethod
    def _start(self) -> None:
        """Initialize the statistics for a new game."""

    @abstractmethod
    def _choose(self) -> MicroArm: ...

    def _look(self, arm: int, looks: list[float]) -> None:
        """Take the partial rewards of the levels that a pull has passed."""
        return  # most policies have no use for them

    @abstractmethod
    def _learn(self, pull: MicroArm, finish_level: int, reward: float, cost: float) -> None:
        """Process one observation; ``finish_level`` is D for a pull that was given up."""


class Choice(NamedTuple):
    """A pair to pull, and the number of pulls for which it holds before ``decide`` is needed."""

    arm: int
    level: int
    pulls: int


class Observation(NamedTuple):
    """What a pull has shown."""

    arm: int
    level: int
    finish_level: int
    """The level at which it finished; above ``level`` if it was given up."""
    reward: float
    cost: float


class State(NamedTuple):
    """The complete state of a policy as arrays; each policy's module defines the columns."""

    pairs: Floats
    """Numbers per macro-arm and level (K × D × …)."""
    counts: Floats
    """Counts of `statistics` (K × D × 4), for policies that learn about all levels at once."""
    arms: Floats
    """Numbers per macro-arm (K × …)."""
    ladder: Floats
    """Numbers per level (D × …); the two costs come first."""
    settings: Floats
    """Numbers that apply to the whole policy."""
    looks: Floats
    """Latest partial reward of every macro-arm and level (K × D); 0 before it was seen."""


class ArrayPolicy(Policy):
    """Base class of policies that the simulator can compile.

    The state is a tuple of arrays, and the policy consists of two static functions:
    ``decide(state, epoch, rng)`` returns a `Choice`, and ``learn(state, observation, rng)``
    processes one observation and returns True if the current choice must not be repeated. Both may
    use only their arguments and `math`, so that numba can compile them unchanged.
    """

    decide: ClassVar[Callable[..., Choice]]
    learn: ClassVar[Callable[..., bool]]
    state: State

    @abstractmethod
    def new_state(self) -> State:
        """Return the state before the first pull."""

    def blank_state(
        self,
        *,
        pair_columns: int = 0,
        arm_columns: int = 0,
        ladder: Floats | None = None,
        settings: Iterable[float] = (),
    ) -> State:
        """Return a state of zeros in the shape of the game."""
        return State(
            pairs=np.zeros((self.n_arms, self.n_levels, pair_columns)),
            counts=new_counts(self.n_arms, self.n_levels),
            arms=np.zeros((self.n_arms, arm_columns)),
            ladder=cost_ladder(self.levels) if ladder is None else ladder,
            settings=np.array(list(settings), dtype=np.float64),
            looks=np.zeros((self.n_arms, self.n_levels)),
        )

    def _start(self) -> None:
        self.state = self.new_state()

    def _choose(self) -> MicroArm:
        choice = type(self).decide(self.state, self.epoch, self.rng)
        return MicroArm(int(choice.arm), int(choice.level))

    def _look(self, arm: int, looks: list[float]) -> None:
        self.state.looks[arm, : len(looks)] = looks

    def _learn(self, pull: MicroArm, finish_level: int, reward: float, cost: float) -> None:
        type(self).learn(
            self.state, Observation(pull.arm, pull.level, finish_level, reward, cost), self.rng
        )
