import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f2a_tune.bandit import (
    PAPER_SCENARIOS,
    ConstantPolicy,
    Game,
    MicroArm,
    pull_bound,
    ratio_confidence,
    regret_bound,
    scenario,
    simulate,
)
from tests.bandit.games import games

BUDGET = 3e5


@pytest.mark.parametrize("name", PAPER_SCENARIOS)
def test_wait_ucb_stays_under_the_papers_bounds(name):
    game = scenario(name)
    result = simulate(game, "wait-ucb", BUDGET, runs=5)
    suboptimal = game.gaps() > 0
    assert (result.pulls.mean(axis=0) <= pull_bound(game, BUDGET))[suboptimal].all()
    assert result.mean()[-1] <= regret_bound(game, BUDGET)


def test_the_bound_by_hand():
    # One level: alpha = 0, beta = sqrt(2), so (2·beta/gap)² = 8/gap² as for UCB1.
    game = Game(np.ones((2, 1)), [0.5, 0.9])
    expected = 8 / 0.4**2 * np.log(1000) + 4 * np.pi**2 / 3
    assert pull_bound(game, 1000)[0, 0] == pytest.approx(expected)
    assert pull_bound(game, 1000)[1, 0] == np.inf
    assert regret_bound(game, 1000) == pytest.approx(0.4 * expected)


def test_bounds_do_not_depend_on_the_unit_of_time():
    seconds, minutes = (Game([0.2, 0.8], 0.7, levels=[unit, 3 * unit]) for unit in (60, 1))
    assert pull_bound(seconds, 6e6) == pytest.approx(pull_bound(minutes, 1e5))


@pytest.mark.parametrize("name", PAPER_SCENARIOS)
def test_a_constant_policy_earns_its_rate(name):
    """Theorem 1, with its constant on either side: |reward − T·g| ≤ j (see docs/paper.md)."""
    game = scenario(name)
    budget, runs = 1000.0, 400
    for arm in range(game.n_arms):
        for level in range(game.n_levels):
            result = simulate(game, ConstantPolicy(MicroArm(arm, level)), budget, runs)
            noise = result.rewards[:, -1].std() / np.sqrt(runs)
            expected = budget * game.rates()[arm, level]
            slack = game.levels.give_up_costs[level] + 4 * noise
            assert abs(result.rewards[:, -1].mean() - expected) <= slack


@settings(max_examples=25, deadline=None)
@given(games, st.integers(0, 1000), st.sampled_from([5, 40, 300]), st.floats(0.02, 0.4))
def test_the_ratio_stays_inside_its_confidence(game, seed, pulls, delta):
    """Lemma 2 in units of the smallest cost: misses are rarer than delta."""
    repeats = 400
    rng = np.random.default_rng(seed)
    arm, level = rng.integers(game.n_arms), rng.integers(game.n_levels)
    finish, rewards = game.sample(int(arm), pulls * repeats, rng)
    finished = finish <= level
    unit = game.levels.smallest_cost
    paid = np.append(game.tables.finish_costs, 0)[finish]
    costs = np.where(finished, paid, game.tables.give_up_costs[level]) / unit
    shape = (repeats, pulls)
    ratios = (rewards * finished).reshape(shape).sum(1) / costs.reshape(shape).sum(1)
    largest = float(game.levels.ratios[level])
    radius = ratio_confidence(
        pulls, largest, delta, mean_cost=float(game.mean_costs[arm, level] / unit)
    )
    misses = np.mean(np.abs(ratios - game.rates()[arm, level] * unit) > radius)
    assert misses <= delta + 4 * np.sqrt(delta * (1 - delta) / repeats)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="budget"):
        regret_bound(scenario("plain"), 0)
    with pytest.raises(ValueError, match="pulls"):
        ratio_confidence(0, 5, 0.1)
    with pytest.raises(ValueError, match="largest_cost must be at least 1"):
        ratio_confidence(10, 0.5, 0.1)
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\], got 2"):
        ratio_confidence(10, 5, 2)
    with pytest.raises(ValueError, match="mean_cost"):
        ratio_confidence(10, 5, 0.1, mean_cost=9)
