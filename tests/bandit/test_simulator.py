import sys

import numpy as np
import pytest

from f2a_tune.bandit import (
    POLICIES,
    SCENARIOS,
    UCB1,
    ConstantPolicy,
    MicroArm,
    Policy,
    SlowSimulationWarning,
    scenario,
    simulate,
)
from tests.bandit.games import random_game


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_both_paths_make_the_same_pulls(name):
    games = [scenario("doubling"), scenario("ads-1"), scenario("auction"), random_game(7, 4, 5)]
    for game in games:
        fast = simulate(game, name, 2500, runs=2, seed=3, engine="compiled")
        slow = simulate(game, name, 2500, runs=2, seed=3, engine="python")
        assert (fast.engine, slow.engine) == ("compiled", "python")
        assert np.array_equal(fast.pulls_at, slow.pulls_at)
        assert np.allclose(fast.rewards, slow.rewards)


def test_a_checkpoint_knows_only_what_fits():
    result = simulate(
        scenario("first"), ConstantPolicy(MicroArm(0, 9)), 200, 3, checkpoints=[10, 57]
    )
    assert result.checkpoints.tolist() == [10, 57, 200]
    cheapest = scenario("first").levels.smallest_cost
    for run in range(3):
        counts = result.pulls_at[run].sum(axis=(1, 2))
        assert (np.diff(counts) >= 0).all()
        assert (counts <= result.checkpoints / cheapest).all()
    longer = simulate(scenario("first"), ConstantPolicy(MicroArm(0, 9)), 57, 3, checkpoints=[10])
    assert np.array_equal(longer.pulls_at, result.pulls_at[:, :2])


def test_both_forms_of_regret_have_the_same_mean():
    game = scenario("ads-2")
    result = simulate(game, "uniform", 5000, runs=300)
    noise = result.paper_regret[:, -1].std() / np.sqrt(300)
    # They differ by the reward that the last, unmade pull would have earned: at most g*·w_D + 1.
    assert abs(result.paper_regret[:, -1].mean() - result.mean()[-1]) < 4 * noise + 3
    assert result.sd()[-1] < result.paper_regret[:, -1].std()
    assert simulate(game, "constant", 5000).regret.max() == 0


def test_runs_differ_and_seeds_repeat():
    game = scenario("ads-1")
    first = simulate(game, "hazard-thompson", 2000, runs=3, seed=1)
    assert np.array_equal(first.pulls, simulate(game, "hazard-thompson", 2000, 3, seed=1).pulls)
    assert not np.array_equal(first.pulls[0], first.pulls[1])
    assert not np.array_equal(
        first.pulls, simulate(game, "hazard-thompson", 2000, 3, seed=2).pulls
    )


def test_regret_of_learners_grows_slower_than_their_budget():
    for name in ("wait-ucb", "hazard-thompson", "wilson-programming", "omega-ucb"):
        result = simulate(scenario("ads-1"), name, 1e5, runs=3, checkpoints=[1e4])
        assert result.mean()[1] < 8 * result.mean()[0]


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - {"growing"}))
def test_full_feedback_beats_the_papers_algorithm(name):
    game = scenario(name)
    wait_ucb = simulate(game, "wait-ucb", 3e5, runs=3).mean()[-1]
    for better in ("hazard-thompson", "wilson-programming"):
        assert 20 * simulate(game, better, 3e5, runs=3).mean()[-1] < wait_ucb


class Alternating(Policy):
    """A user's own policy."""

    name = "alternating"

    def _start(self):
        pass

    def _choose(self):
        return MicroArm(self.epoch % self.n_arms, 0)

    def _learn(self, pull, finish_level, reward, cost):
        pass


def test_a_users_own_policy_runs():
    result = simulate(scenario("plain"), Alternating(), 300, runs=1)
    assert result.engine == "python"
    assert result.pulls[0, :, 0].tolist() == [100, 100, 100]
    with pytest.raises(ValueError, match="no kernel for Alternating"):
        simulate(scenario("plain"), Alternating(), 300, engine="compiled")


def test_without_numba_it_warns_once_and_gives_the_same(monkeypatch):
    game = scenario("middle")
    expected = simulate(game, "wilson-programming", 500, runs=2)
    for module in [name for name in sys.modules if name.startswith("f2a_tune.bandit.compiled")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("f2a_tune.bandit.compiled")
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.warns(SlowSimulationWarning, match=r"f2a_tune\[sim\]") as caught:
        result = simulate(game, "wilson-programming", 500, runs=2)
    assert len(caught) == 1
    assert np.array_equal(result.pulls_at, expected.pulls_at)
    with pytest.raises(ImportError, match=r"f2a_tune\[sim\]"):
        simulate(game, "wilson-programming", 500, engine="compiled")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget must be a finite number above 0, got 0"),
        ({"budget": float("inf")}, "budget"),
        ({"runs": 0}, "runs must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"engine": "fast"}, "engine='fast' is unknown"),
        ({"checkpoints": [50, 20]}, "checkpoints must be strictly increasing"),
        ({"checkpoints": [500]}, "checkpoints must .* not exceed the budget 100"),
        ({"policy": "ucb"}, "policy='ucb' is unknown"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"policy": "uniform", "budget": 100, **changes}
    with pytest.raises(ValueError, match=message):
        simulate(scenario("plain"), **arguments)


def test_a_class_is_not_a_policy():
    with pytest.raises(TypeError, match="policy must be a name or a Policy"):
        simulate(scenario("plain"), UCB1, 100)
