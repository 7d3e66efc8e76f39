"""Games in which a pull that is given up pays a partial reward."""

import numpy as np
import pytest

from f2a_tune.bandit import ConstantPolicy, Game, MicroArm, regret_bound, scenario, simulate


def test_the_rate_of_a_pair_contains_its_partial_reward():
    game = Game([[0.25, 0.0, 0.75]], [[0.8, 0.0, 0.4]], partial_rewards=[[0.1, 0.5, 0.9]])
    rewards = [0.25 * 0.8 + 0.75 * 0.1, 0.25 * 0.8 + 0.75 * 0.5, 0.25 * 0.8 + 0.75 * 0.4]
    costs = [1.0, 0.25 * 1 + 0.75 * 2, 0.25 * 1 + 0.75 * 3]
    assert game.mean_rewards[0] == pytest.approx(rewards)
    assert game.mean_costs[0] == pytest.approx(costs)
    assert game.best == MicroArm(0, 1)


def test_without_partial_rewards_giving_up_pays_nothing():
    plain = Game([[0.5, 0.5]], 1.0)
    zeros = Game([[0.5, 0.5]], 1.0, partial_rewards=[[0.0, 0.0]])
    assert np.array_equal(plain.rates(), zeros.rates())


@pytest.mark.parametrize("arm", [0, 2, 4])
@pytest.mark.parametrize("level", [1, 4])
def test_a_constant_pair_earns_its_rate(arm, level):
    game = scenario("growing")
    policy = ConstantPolicy(MicroArm(arm, level))
    result = simulate(game, policy, 2e4, runs=4, engine="python")
    assert result.rewards[:, -1].mean() / 2e4 == pytest.approx(game.rates()[arm, level], rel=0.03)


@pytest.mark.parametrize("name", ["wait-ucb-side", "wait-ucb-full", "hazard-thompson"])
def test_both_engines_make_the_same_pulls(name):
    pytest.importorskip("numba", reason="numba (extra [sim]) is not installed")
    game = scenario("growing")
    compiled = simulate(game, name, 3000, runs=2, engine="compiled")
    python = simulate(game, name, 3000, runs=2, engine="python")
    assert np.array_equal(compiled.pulls_at, python.pulls_at)
    assert np.allclose(compiled.rewards, python.rewards)


def test_the_papers_algorithm_plays_it_within_its_bound():
    game = scenario("growing")
    result = simulate(game, "wait-ucb", 3e4, runs=2)
    assert 0 < result.mean()[-1] < regret_bound(game, 3e4)


def test_learning_what_a_stopped_fit_pays_beats_ignoring_it():
    game = scenario("growing")
    known = simulate(game, "hazard-thompson", 1e5, runs=3, checkpoints=[1e4])
    for other in ("wilson-programming", "wait-ucb", "omega-ucb"):
        assert 5 * known.mean()[-1] < simulate(game, other, 1e5, runs=3).mean()[-1]
    assert known.mean()[1] < 3 * known.mean()[0], "regret grows far slower than the budget"
    assert known.pulls[:, game.best.arm, game.best.level].min() > 0.9 * known.epochs.max()


@pytest.mark.parametrize(
    ("partial", "message"),
    [([[0.1]], "1×2 table"), ([[0.5, 1.5]], r"must lie in \[0, 1\]"), ([[0.5, np.nan]], "lie in")],
)
def test_bad_partial_rewards(partial, message):
    with pytest.raises(ValueError, match=message):
        Game([[0.5, 0.5]], 1.0, partial_rewards=partial)
    with pytest.raises(TypeError, match="partial_rewards"):
        Game([[0.5, 0.5]], 1.0, partial_rewards="much")
