"""What every policy is: reset for a game's shape, then ``choose`` and ``observe`` in turn.

A policy sees pulls, rewards and costs, never the game; so the same object plays a simulation or
sits in a user's own loop. Arms and levels count from 0, ties go to the lowest index.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from f2a_tune.bandit.game import Pull
from f2a_tune.bandit.levels import Floats, Levels
from f2a_tune.bandit.statistics import cost_ladder, new_counts
from f2a_tune.checks import positive_integer, real_number


class Policy(ABC):
    """Chooses which macro-arm to pull and how long to wait.

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
        """Forget everything and prepare for ``n_arms`` macro-arms and these waiting levels."""
        self.n_arms = positive_integer("n_arms", n_arms)
        self.levels = levels if isinstance(levels, Levels) else Levels.waiting(levels)
        self.n_levels = len(self.levels)
        self.rng = np.random.default_rng(seed)
        self.epoch = 0
        self._start()
        return self

    def choose(self) -> Pull:
        """The pair to pull now."""
        self._require_reset()
        return self._choose()

    def observe(
        self, pull: Pull, reward: float, cost: float, *, finished: bool | None = None
    ) -> None:
        """Learn what a pull paid and cost.

        ``finished`` says whether it finished by its wait. Left out, it is read off: a pull that
        paid something, or ended before its wait was over, has finished.
        """
        self._require_reset()
        reward, cost = real_number("reward", reward), real_number("cost", cost)
        if not (0 <= pull.arm < self.n_arms and 0 <= pull.level < self.n_levels):
            raise ValueError(
                f"pull={pull!r} is not in this game of {self.n_arms} arms, {self.n_levels} levels."
            )
        if not 0 <= reward <= 1:
            raise ValueError(f"reward must lie in [0, 1], got {reward!r}: rescale it first.")
        if not (math.isfinite(cost) and cost >= 0):
            raise ValueError(f"cost must be a finite number of at least 0, got {cost!r}.")
        if finished is None:
            finished = reward > 0 or self._ended_by_itself(pull.level, cost)
        # A pull that ran past its wait by the clock's slack still finished inside its level.
        inside = min(self.levels.finish_level(cost), pull.level)
        finish_level = inside if finished else self.n_levels
        self.epoch += 1
        # A clock may read 0 for a quick pull, and a rate needs a cost.
        self._learn(pull, finish_level, reward, max(cost, 1e-9 * self.levels.smallest_cost))

    def _ended_by_itself(self, level: int, cost: float) -> bool:
        given_up = self.levels.give_up_costs[level]
        if self.levels.finish_costs[level] > given_up:  # an auction: winning costs more
            return not math.isclose(cost, given_up, rel_tol=1e-9)
        # A pull that is given up by a real clock ends a little after its wait.
        return cost < given_up * (1 - 1e-9)

    def _require_reset(self) -> None:
        if not hasattr(self, "levels"):
            raise RuntimeError(
                f"{type(self).__name__} does not know its game yet: "
                "call reset(n_arms=…, levels=…) first."
            )

    @abstractmethod
    def _start(self) -> None:
        """Make the statistics of a new game."""

    @abstractmethod
    def _choose(self) -> Pull: ...

    @abstractmethod
    def _learn(self, pull: Pull, finish_level: int, reward: float, cost: float) -> None:
        """Take one observation in; ``finish_level`` is D for a pull that was given up."""


class Choice(NamedTuple):
    """A pair to pull, and for how many pulls it may stand before ``decide`` is asked again."""

    arm: int
    level: int
    pulls: int


class State(NamedTuple):
    """All that a policy knows, as arrays; each says in its module what its columns mean."""

    pairs: Floats
    """K × D × …: per macro-arm and level."""
    counts: Floats
    """K × D × 4: what `statistics` counts, for policies that learn about all levels at once."""
    arms: Floats
    """K × …: per macro-arm."""
    ladder: Floats
    """D × …: per level; costs first."""
    settings: Floats
    """Numbers of the whole policy."""


class ArrayPolicy(Policy):
    """A policy whose state is arrays and whose two decisions are plain functions of them.

    ``decide(*state, epoch, rng)`` returns a `Choice`; ``learn(*state, arm, level, finish_level,
    reward, cost, rng)`` takes one observation in and returns True if the choice may not stand for
    further pulls. Both use nothing but their arguments and `math`, so the simulator can compile
    them as they stand.
    """

    decide: ClassVar[Callable[..., Choice]]
    learn: ClassVar[Callable[..., bool]]
    state: State

    @abstractmethod
    def new_state(self) -> State:
        """The state before the first pull."""

    def blank_state(
        self,
        *,
        pair_columns: int = 0,
        arm_columns: int = 0,
        ladder: Floats | None = None,
        settings: Iterable[float] = (),
    ) -> State:
        """A state of zeros in the shape of the game."""
        return State(
            pairs=np.zeros((self.n_arms, self.n_levels, pair_columns)),
            counts=new_counts(self.n_arms, self.n_levels),
            arms=np.zeros((self.n_arms, arm_columns)),
            ladder=cost_ladder(self.levels) if ladder is None else ladder,
            settings=np.array(list(settings), dtype=np.float64),
        )

    def _start(self) -> None:
        self.state = self.new_state()

    def _choose(self) -> Pull:
        choice = type(self).decide(*self.state, self.epoch, self.rng)
        return Pull(int(choice.arm), int(choice.level))

    def _learn(self, pull: Pull, finish_level: int, reward: float, cost: float) -> None:
        type(self).learn(*self.state, pull.arm, pull.level, finish_level, reward, cost, self.rng)
