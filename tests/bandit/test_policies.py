import copy
import pickle

import numpy as np
import pytest

from f2a_tune.bandit import (
    POLICIES,
    UCB1,
    UCBBV1,
    BudgetUCB,
    ConstantPolicy,
    Game,
    Levels,
    MicroArm,
    OmegaUCB,
    UCBSimplex,
    WaitUCB,
    WilsonProgramming,
    make_policy,
    simulate,
)
from tests.bandit.games import random_game

LEARNING = sorted(set(POLICIES) - {"constant", "uniform", "ucb1"})
SMALLEST_GAP = 0.08


def play_by_hand(policy, game, epochs, seed=0):
    """A user's own loop, which does not say whether a pull finished."""
    rng = np.random.default_rng(seed)
    pulls = []
    policy.reset(game.n_arms, game.levels, seed=1)
    for _ in range(epochs):
        pull = policy.choose()
        finish, reward = (x[0] for x in game.sample(pull.arm, 1, rng))
        done = finish <= pull.level
        cost = game.tables.finish_costs[finish] if done else game.tables.give_up_costs[pull.level]
        policy.observe(pull, float(reward) if done else 0.0, float(cost))
        pulls.append(pull)
    return pulls


def test_with_one_level_wait_ucb_is_ucb1():
    game = Game(np.ones((4, 1)), [0.3, 0.5, 0.45, 0.2])
    assert play_by_hand(WaitUCB(), game, 5000) == play_by_hand(UCB1(), game, 5000)


def test_the_index_of_wait_ucb_by_hand():
    policy = WaitUCB().reset(1, [2, 6])  # in units: 1 and 3
    policy.observe(MicroArm(0, 0), 0.5, 2.0)
    policy.observe(MicroArm(0, 1), 0.9, 4.0)
    policy.observe(MicroArm(0, 1), 0.3, 2.0)
    rates, linear, root = policy.state.pairs[0, :, 3:].T
    assert rates == pytest.approx([0.5 / 1, 1.2 / 3])
    assert linear == pytest.approx([0.0, 16 / 3 / 2])  # 8(3−1)/3 over two pulls
    assert root == pytest.approx([1.4142136, 1.4142136 * 2.4142136 / 1.4142136])
    assert policy.choose() == MicroArm(0, 1)
    greedy = WaitUCB(exploration=0).reset(1, [1, 3])
    greedy.observe(MicroArm(0, 0), 0.5, 1.0)
    greedy.observe(MicroArm(0, 1), 0.9, 2.0)
    assert greedy.choose() == MicroArm(0, 0)


def test_the_rivals_formulas_by_hand():
    """A pair with sums 6 (reward), 4 (cost) after 16 pulls at ln s = 2: r̄ = 0.375, c̄ = 0.25."""
    seen = 6.0, 4.0, 16.0, 2.0
    assert UCB1.formula(*seen, 0.0) == pytest.approx(0.375 + 0.5)
    # ε = 0.5: (0.375 + 11·0.5)/0.25
    assert UCBSimplex.formula(*seen, 11.0) == pytest.approx(23.5)
    # 1.5 + 2·(1 + 0.875/0.1)
    assert BudgetUCB.formula(*seen, 0.1) == pytest.approx(1.5 + 2 * 9.75)
    # ε = 0.353553: infinite while it is at least λ, else 1.5 + (1 + 1/λ)·ε/(λ−ε)
    assert UCBBV1.formula(*seen, 0.2) == np.inf
    assert UCBBV1.formula(*seen, 0.5) == pytest.approx(1.5 + 3 * 0.3535534 / 0.1464466)
    # z²/N = 1/16: 0.375 + 1/32 + √(0.234375/16 + 1/1024) over 0.25 + 1/32 − √(0.1875/16 + 1/1024)
    assert OmegaUCB.formula(*seen, 0.25) == pytest.approx(0.53125 / 0.1685770, rel=1e-5)


@pytest.mark.parametrize("name", sorted(set(LEARNING) - {"hazard-thompson", "budgeted-thompson"}))
def test_a_pair_or_arm_that_was_never_pulled_comes_first(name):
    policy = make_policy(name).reset(2, [1, 2])
    for _ in range(10):  # somebody else's history: arm 0 only
        policy.observe(MicroArm(0, 0), 1.0, 0.5)
        policy.observe(MicroArm(0, 1), 1.0, 0.0)
    assert policy.choose().arm == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_every_policy_finds_the_best_pair_of_random_games(name):
    seeds = (seed for seed in range(10_000) if random_game(seed).gap > SMALLEST_GAP)
    for seed, _ in zip(seeds, range(20), strict=False):
        game = random_game(seed)
        pulls = simulate(game, name, 300_000, runs=1, seed=seed).pulls[0]
        spent = pulls * game.mean_costs
        assert game.gaps().flat[spent.argmax()] == 0, (name, seed, game)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "wait-ucb" else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(POLICIES)
    ],
)
def test_units_of_cost_do_not_matter(name):
    plain = random_game(3)
    levels = [0.004 * cost for cost in plain.levels.finish_costs]
    scaled = Game(plain.delay_probabilities(), np.full((2, 3), 0.6), levels)
    plain = Game(plain.delay_probabilities(), np.full((2, 3), 0.6), plain.levels)
    first = simulate(plain, name, 3000, runs=2, seed=5)
    second = simulate(scaled, name, 3000 * 0.004, runs=2, seed=5)
    assert np.abs(first.pulls - second.pulls).sum() <= 2


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"constant"}))
def test_a_policy_can_be_copied_and_pickled_in_mid_game(name):
    policy = make_policy(name)
    play_by_hand(policy, random_game(1), 60)
    twins = [copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))]
    for _ in range(20):
        pull = policy.choose()
        policy.observe(pull, 0.5, 0.5)
        for twin in twins:
            assert twin.choose() == pull
            twin.observe(pull, 0.5, 0.5)


def test_a_pull_that_overran_its_wait_still_finished_inside_it():
    policy = make_policy("hazard-thompson").reset(1, [1.0, 2.0])
    policy.observe(MicroArm(0, 0), reward=1.0, cost=1.01)
    assert policy.state.counts[0, :, 0].tolist() == [1, 0]
    policy.observe(MicroArm(0, 0), reward=0.0, cost=1.0)
    assert policy.state.counts[0, :, 3].tolist() == [1, 0]
    policy.observe(MicroArm(0, 1), reward=0.0, cost=2.0, finished=True)
    assert policy.state.counts[0, :, 0].tolist() == [1, 1]
    # By a real clock a pull that is given up ends a little late.
    policy.observe(MicroArm(0, 0), reward=0.0, cost=1.003)
    assert policy.state.counts[0, :, 3].tolist() == [2, 0]


def test_an_auction_knows_a_lost_bid_by_its_cost():
    policy = make_policy("hazard-thompson").reset(1, Levels.bidding([1, 3], participation_cost=2))
    policy.observe(MicroArm(0, 1), reward=0.0, cost=2.0)
    policy.observe(MicroArm(0, 1), reward=0.0, cost=5.0)
    assert policy.state.counts[0, :, 3].tolist() == [0, 1]
    assert policy.state.counts[0, :, 0].tolist() == [0, 1]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"policy='wait-ubc' is unknown: did you mean 'wait-ucb'"):
        make_policy("wait-ubc")
    with pytest.raises(ValueError, match="feedback='all'"):
        WaitUCB(feedback="all")
    with pytest.raises(ValueError, match="exploration must be at least 0, got -1"):
        WaitUCB(exploration=-1)
    with pytest.raises(ValueError, match="rho must be a finite number above 0"):
        OmegaUCB(rho=0)
    with pytest.raises(TypeError, match="rho must be a number"):
        WilsonProgramming(rho="x")
    with pytest.raises(RuntimeError, match="call reset"):
        WaitUCB().choose()
    with pytest.raises(ValueError, match="n_arms must be a whole number"):
        WaitUCB().reset(0, [1])
    with pytest.raises(ValueError, match="is not in this game"):
        ConstantPolicy(MicroArm(0, 9)).reset(1, [1, 2])
    with pytest.raises(ValueError, match="needs a pair"):
        ConstantPolicy().reset(1, [1, 2])
    policy = WaitUCB().reset(1, [1, 2])
    for arguments in [
        (MicroArm(0, 5), 0.5, 1),
        (MicroArm(0, 0), 1.5, 1),
        (MicroArm(0, 0), 0.5, float("nan")),
    ]:
        with pytest.raises(ValueError, match=r"pull=|reward|cost"):
            policy.observe(*arguments)
