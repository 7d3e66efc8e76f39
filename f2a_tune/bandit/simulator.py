"""Simulation of policies on a game and their regret (section 5 of the paper).

There are two engines: kernels compiled with numba (extra ``[sim]``), and a Python loop that calls
the policy object for every pull. Both consume the same random numbers in the same order, so they
make the same pulls. Keep this property when you change one of them.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f2a_tune.bandit.environment import GameLedger, draw_outcome, new_ledger, pass_checkpoints
from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies import ConstantPolicy, Policy, make_policy
from f2a_tune.checks import known_name, positive_integer, positive_number

# First default checkpoint, in units of the smallest cost.
FIRST_CHECKPOINT = 100.0
CHECKPOINTS_PER_DECADE = 10
ENGINES = ("auto", "compiled", "python")


class SlowSimulationWarning(UserWarning):
    """Numba is not installed, so the simulation runs in Python, hundreds of times slower."""


@dataclass(frozen=True)
class Simulation:
    """Result of `simulate`: pulls, rewards and regret of every run at every checkpoint."""

    game: Game
    """The game that was played."""
    policy: str
    """Name of the policy."""
    checkpoints: Floats
    """Budgets at which the runs were recorded; the last one is the whole budget."""
    pulls_at: NDArray[np.int64]
    """Pulls of every pair at every checkpoint (runs × checkpoints × K × D)."""
    rewards: Floats
    """Total reward at every checkpoint (runs × checkpoints)."""
    engine: str
    """The engine that was used: ``"compiled"`` or ``"python"``."""

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Pulls of every pair at the end of each run (runs × K × D)."""
        return self.pulls_at[:, -1]

    @property
    def epochs(self) -> NDArray[np.int64]:
        """Total number of pulls of each run."""
        return np.asarray(self.pulls.sum(axis=(1, 2)), dtype=np.int64)

    @property
    def regret(self) -> Floats:
        """Pseudo-regret, Σ over pulls of (g*·E[cost] − E[reward]), (runs × checkpoints).

        Unlike `paper_regret`, it does not contain the noise of the rewards.
        """
        loss = self.game.mean_costs * self.game.gaps()
        return np.asarray((self.pulls_at * loss).sum(axis=(2, 3)), dtype=np.float64)

    @property
    def paper_regret(self) -> Floats:
        """Regret as computed in section 5 of the paper, t·g* − Σ rewards (runs × checkpoints)."""
        return np.asarray(self.checkpoints * self.game.best_rate - self.rewards)

    def mean(self) -> Floats:
        """Return the mean regret over the runs at every checkpoint."""
        return np.asarray(self.regret.mean(axis=0))

    def sd(self) -> Floats:
        """Return the standard deviation of the regret over the runs at every checkpoint."""
        ddof = 1 if len(self.regret) > 1 else 0
        return np.asarray(self.regret.std(axis=0, ddof=ddof))


def simulate(
    game: Game,
    policy: Policy | str,
    budget: float,
    runs: int = 10,
    seed: int = 0,
    checkpoints: Iterable[float] | None = None,
    *,
    engine: str = "auto",
) -> Simulation:
    """Play a game repeatedly with one policy and record its pulls, rewards and regret.

    Parameters
    ----------
    game : Game
        The game to play; see `f2a_tune.bandit.scenario` for predefined ones.
    policy : str or Policy
        Name of a policy (see `f2a_tune.bandit.POLICIES`) or a policy object, which is copied.
    budget : float
        Total cost of one run, in the unit of the game's levels. The run ends before the first pull
        that would exceed it.
    runs : int, default=10
        Number of independent runs. More runs reduce the noise of the mean regret.
    seed : int, default=0
        Seed of the random numbers. The same seed gives the same pulls.
    checkpoints : iterable of float, default=None
        Increasing budgets at which the state of a run is recorded. None means ten per decade. The
        whole budget is always added as the last one.
    engine : {"auto", "compiled", "python"}, default="auto"
        ``"compiled"`` requires numba (extra ``[sim]``) and a policy of this package. ``"python"``
        calls the policy object for every pull. ``"auto"`` uses the compiled engine if possible.
        Both make the same pulls for the same seed.

    Returns
    -------
    Simulation
        Pulls, rewards and regret of every run at every checkpoint.

    Examples
    --------
    >>> from f2a_tune.bandit import scenario
    >>> result = simulate(scenario("plain"), "uniform", budget=500, runs=2, engine="python")
    >>> result.epochs.tolist()
    [500, 500]
    """
    runs = positive_integer("runs", runs)
    marks = _checkpoints(positive_number("budget", budget), checkpoints, game)
    player = _player(game, policy)
    kernel_of = _kernel_finder(player, known_name("engine", engine, ENGINES))
    ledgers = []
    for run_seed in np.random.SeedSequence(_checked_seed(seed)).spawn(runs):
        game_rng, policy_rng = (np.random.default_rng(s) for s in run_seed.spawn(2))
        ledger = new_ledger(game, marks)
        player.reset(game.n_arms, game.levels, policy_rng)
        if kernel_of is None:
            _play(game, player, ledger, game_rng)
        else:
            kernel_of(player)(game.tables, ledger, game_rng)
        ledgers.append(ledger)
    return Simulation(
        game=game,
        policy=policy if isinstance(policy, str) else player.name,
        checkpoints=marks,
        pulls_at=np.stack([ledger.pulls_at for ledger in ledgers]),
        rewards=np.stack([ledger.reward_at for ledger in ledgers]),
        engine="python" if kernel_of is None else "compiled",
    )


def _play(game: Game, policy: Policy, ledger: GameLedger, rng: np.random.Generator) -> None:
    """Play one run with the Python engine, which is the reference for the compiled one."""
    tables, spent, earned = game.tables, 0.0, 0.0
    while True:
        pull = policy.choose()
        outcome = draw_outcome(tables.cumulative, pull.arm, rng)
        finished = bool(tables.finish_level[pull.arm, outcome] <= pull.level)
        if finished:
            cost = float(tables.finish_costs[tables.finish_level[pull.arm, outcome]])
            reward = float(tables.reward[pull.arm, outcome])
        else:
            cost = float(tables.give_up_costs[pull.level])
            reward = float(tables.partial_rewards[pull.arm, pull.level])
        if pass_checkpoints(ledger, spent + cost, earned) < 0:
            return
        spent += cost
        earned += reward
        ledger.pulls[pull.arm, pull.level] += 1
        last = tables.finish_level[pull.arm, outcome] if finished else pull.level + 1
        looks = tables.partial_rewards[pull.arm, :last]
        policy.observe(pull, reward, cost, finished=finished, looks=looks)


def _player(game: Game, policy: Policy | str) -> Policy:
    player = make_policy(policy) if isinstance(policy, str) else copy.deepcopy(policy)
    if not isinstance(player, Policy):
        raise TypeError(f"policy must be a name or a Policy object, got {policy!r}.")
    if isinstance(player, ConstantPolicy) and player.pull is None:
        return ConstantPolicy(game.best)
    return player


def _kernel_finder(policy: Policy, engine: str) -> Any:
    """Return the function that compiles a policy's kernel, or None to use the Python engine."""
    if engine == "python":
        return None
    try:
        from f2a_tune.bandit import compiled
    except ImportError as error:
        message = (
            f"numba cannot be imported ({error}). Without it, a simulation runs in plain Python, "
            "hundreds of times slower. Install it with: pip install 'f2a_tune[sim]'."
        )
        if engine == "compiled":
            raise ImportError(message) from error
        warnings.warn(message, SlowSimulationWarning, stacklevel=3)
        return None
    if compiled.is_compilable(policy):
        return compiled.kernel_of
    if engine == "compiled":
        raise ValueError(
            f"engine='compiled' has no kernel for {type(policy).__name__}. Use engine='auto'."
        )
    return None


def _checkpoints(budget: float, marks: Iterable[float] | None, game: Game) -> Floats:
    if marks is None:
        first = min(FIRST_CHECKPOINT * game.levels.smallest_cost, budget / 10)
        count = 1 + round(CHECKPOINTS_PER_DECADE * np.log10(budget / first))
        # Three significant digits, so that checkpoints are easy to read and to type.
        values = np.array([float(f"{mark:.3g}") for mark in np.geomspace(first, budget, count)])
    else:
        values = np.array([positive_number("checkpoints", mark) for mark in marks])
        if np.any(np.diff(values) <= 0) or (len(values) and values[-1] > budget):
            raise ValueError(
                "checkpoints must be strictly increasing and not exceed the budget "
                f"{budget:g}, got {values.tolist()}."
            )
    return np.append(values[values < budget], budget)


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}.")
    return int(seed)
