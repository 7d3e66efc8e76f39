import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f2a_tune.bandit import scenario
from f2a_tune.bandit.statistics import (
    COSTS,
    REWARDS,
    cost_ladder,
    count_pull,
    entered,
    kaplan_meier,
    new_counts,
)
from tests.bandit.games import games

PULLS = 30_000


def played(game, waits, seed):
    """Counts of pulls of arm 0 with these waits, and their finish levels and rewards."""
    finish, rewards = game.sample(0, len(waits), seed)
    counts = new_counts(1, game.n_levels)
    for wait, level, reward in zip(waits, finish, rewards, strict=True):
        count_pull(counts, 0, int(wait), int(level), float(reward))
    return counts, finish, rewards


def estimates(game, counts):
    pairs = np.zeros((1, game.n_levels, 3))
    kaplan_meier(counts, 0, cost_ladder(game.levels), pairs, game.tables.partial_rewards)
    return pairs[0, :, REWARDS], pairs[0, :, COSTS]


def naive_estimates(game, waits, finish, rewards):
    """Count a finished pull for every longer wait too, without correcting for who was given up."""
    means = []
    for level in range(game.n_levels):
        known = (waits >= level) | (finish <= waits)
        done = known & (finish <= level)
        paid = np.append(game.tables.finish_costs, 0)[finish]
        costs = np.where(done, paid, game.tables.give_up_costs[level])[known]
        means.append((rewards * done)[known].sum() / costs.sum())
    return np.array(means)


@settings(max_examples=25, deadline=None)
@given(games, st.integers(0, 1000), st.floats(0.05, 0.95))
def test_kaplan_meier_converges_under_every_mix_of_cutoffs(game, seed, share_of_long_waits):
    rng = np.random.default_rng(seed)
    mix = rng.dirichlet(np.ones(game.n_levels)) * (1 - share_of_long_waits)
    mix[-1] += share_of_long_waits
    waits = rng.choice(game.n_levels, size=PULLS, p=mix / mix.sum())
    counts, *_ = played(game, waits, rng)
    rewards, costs = estimates(game, counts)
    # Six standard errors of the least-informed level: only its own pulls are sure to count.
    slack = 6 * 0.5 / np.sqrt(PULLS * share_of_long_waits)
    assert rewards == pytest.approx(game.mean_rewards[0], abs=slack)
    assert costs == pytest.approx(game.mean_costs[0], abs=slack * game.levels.largest_cost)


@pytest.mark.parametrize("name", ["doubling", "middle", "first", "crowdsourcing"])
def test_naive_estimates_do_not_converge(name):
    game = scenario(name)
    rng = np.random.default_rng(0)
    mix = np.full(game.n_levels, 0.5 / (game.n_levels - 1))
    mix[0] = 0.5
    errors = {"naive": [], "kaplan-meier": []}
    for size in (2_000, 50_000):
        waits = rng.choice(game.n_levels, size=size, p=mix)
        counts, finish, rewards = played(game, waits, rng)
        good = np.divide(*estimates(game, counts))
        naive = naive_estimates(game, waits, finish, rewards)
        truth = game.rates()[0]
        errors["kaplan-meier"].append(np.max(np.abs(good - truth)) / truth.max())
        errors["naive"].append(np.max(np.abs(naive - truth)) / truth.max())
    assert errors["kaplan-meier"][1] < 0.03
    assert min(errors["naive"]) > 0.06


def test_entered_counts_who_still_ran():
    counts = new_counts(1, 3)
    for wait, finish in [(2, 0), (2, 2), (0, 3), (1, 3)]:
        count_pull(counts, 0, wait, finish, 1.0)
    assert [entered(counts, 0, level) for level in range(3)] == [4, 2, 1]
