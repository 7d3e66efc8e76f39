"""Play a game many times: in go a game, a policy and a budget, out come regret curves.

Two paths play the same game with the same random numbers: compiled kernels (numba, extra
``[sim]``), and the policy object driven step by step. Section 5 of the paper.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f2a_tune.bandit.environment import Ledger, draw_outcome, new_ledger, pass_checkpoints
from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Floats
from f2a_tune.bandit.policies import ConstantPolicy, Policy, make_policy
from f2a_tune.checks import known_name, positive_integer, positive_number

# In units of the smallest cost.
FIRST_CHECKPOINT = 100.0
CHECKPOINTS_PER_DECADE = 10
ENGINES = ("auto", "compiled", "python")


class SlowSimulationWarning(UserWarning):
    """Numba is missing, so a simulation runs in plain Python, hundreds of times slower."""


@dataclass(frozen=True)
class Simulation:
    """What ``runs`` plays of a policy gave; first axis = run, second = checkpoint."""

    game: Game
    policy: str
    checkpoints: Floats
    pulls_at: NDArray[np.int64]
    rewards: Floats
    engine: str

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Pulls of every pair at the end (runs × K × D)."""
        return self.pulls_at[:, -1]

    @property
    def epochs(self) -> NDArray[np.int64]:
        """Pulls in all at the end, per run."""
        return np.asarray(self.pulls.sum(axis=(1, 2)), dtype=np.int64)

    @property
    def regret(self) -> Floats:
        """Σ over pulls of (g*·E[cost] − E[reward]): regret without the noise of the rewards."""
        loss = self.game.mean_costs * self.game.gaps()
        return np.asarray((self.pulls_at * loss).sum(axis=(2, 3)), dtype=np.float64)

    @property
    def paper_regret(self) -> Floats:
        """t·g* − Σ rewards, as the paper's section 5 computes it."""
        return np.asarray(self.checkpoints * self.game.best_rate - self.rewards)

    def mean(self) -> Floats:
        """Mean regret over the runs at every checkpoint."""
        return np.asarray(self.regret.mean(axis=0))

    def sd(self) -> Floats:
        """Standard deviation of the regret over the runs at every checkpoint."""
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
    """Play ``game`` with ``policy`` until ``budget`` is spent, ``runs`` times over.

    Parameters
    ----------
    policy
        A name (see `f2a_tune.bandit.POLICIES`) or a policy object.
    budget
        Total cost of a run; the pull that would pass it is not made.
    checkpoints
        Budgets at which to record, rising; default ten a decade. The budget itself is always last.
    engine
        ``"compiled"`` needs numba (extra ``[sim]``), ``"python"`` drives the object step by step,
        ``"auto"`` takes the first if it can. Both give the same pulls for the same seed.

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


def _play(game: Game, policy: Policy, ledger: Ledger, rng: np.random.Generator) -> None:
    """The reference path."""
    tables, spent, earned = game.tables, 0.0, 0.0
    while True:
        pull = policy.choose()
        outcome = draw_outcome(tables.cumulative, pull.arm, rng)
        finished = bool(tables.finish_level[pull.arm, outcome] <= pull.level)
        if finished:
            cost = float(tables.finish_costs[tables.finish_level[pull.arm, outcome]])
            reward = float(tables.reward[pull.arm, outcome])
        else:
            cost, reward = float(tables.give_up_costs[pull.level]), 0.0
        if pass_checkpoints(ledger, spent + cost, earned) < 0:
            return
        spent += cost
        earned += reward
        ledger.pulls[pull.arm, pull.level] += 1
        policy.observe(pull, reward, cost, finished=finished)


def _player(game: Game, policy: Policy | str) -> Policy:
    player = make_policy(policy) if isinstance(policy, str) else copy.deepcopy(policy)
    if not isinstance(player, Policy):
        raise TypeError(f"policy must be a name or a Policy, got {policy!r}.")
    if isinstance(player, ConstantPolicy) and player.pull is None:
        return ConstantPolicy(game.best)
    return player


def _kernel_finder(policy: Policy, engine: str) -> Any:
    """The function that finds a policy's compiled kernel, or None for the reference path."""
    if engine == "python":
        return None
    try:
        from f2a_tune.bandit import compiled
    except ImportError as error:
        message = (
            f"numba cannot be imported ({error}), so the simulation runs in plain Python, "
            "hundreds of times slower: pip install 'f2a_tune[sim]'."
        )
        if engine == "compiled":
            raise ImportError(message) from error
        warnings.warn(message, SlowSimulationWarning, stacklevel=3)
        return None
    if compiled.is_compilable(policy):
        return compiled.kernel_of
    if engine == "compiled":
        raise ValueError(
            f"engine='compiled' has no kernel for {type(policy).__name__}: use engine='auto'."
        )
    return None


def _checkpoints(budget: float, marks: Iterable[float] | None, game: Game) -> Floats:
    if marks is None:
        first = min(FIRST_CHECKPOINT * game.levels.smallest_cost, budget / 10)
        count = 1 + round(CHECKPOINTS_PER_DECADE * np.log10(budget / first))
        # Three digits: marks that can be read and typed.
        values = np.array([float(f"{mark:.3g}") for mark in np.geomspace(first, budget, count)])
    else:
        values = np.array([positive_number("checkpoints", mark) for mark in marks])
        if np.any(np.diff(values) <= 0) or (len(values) and values[-1] > budget):
            raise ValueError(
                f"checkpoints must rise and end by the budget {budget:g}, got {values.tolist()}."
            )
    return np.append(values[values < budget], budget)


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}.")
    return int(seed)
