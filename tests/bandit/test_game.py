import numpy as np
import pytest
from hypothesis import given, settings

from f2a_tune.bandit import Game, Levels, MicroArm
from tests.bandit.games import games


def test_rates_are_reward_per_cost():
    game = Game([[0.5, 0.2, 0.3]], [[1.0, 0.5, 0.5]])
    assert game.rates()[0] == pytest.approx([0.5 / 1, 0.6 / 1.5, 0.75 / 1.8])
    assert game.best == MicroArm(0, 0)
    assert game.gap == pytest.approx(0.5 - 0.75 / 1.8)


def test_a_further_column_never_finishes():
    game = Game([[0.5, 0.0, 0.5]], 1.0, levels=[1, 10])
    assert game.rates()[0] == pytest.approx([0.5, 0.5 / 5.5])
    assert game.delay_probabilities()[0] == pytest.approx([0.5, 0.0, 0.5])


def test_an_auction_charges_the_fee_and_the_price():
    game = Game([0.25, 0.75], 0.8, Levels.bidding([1, 3], participation_cost=2))
    assert game.mean_costs[0] == pytest.approx([2 + 0.25, 2 + 0.25 + 0.75 * 3])
    assert game.mean_rewards[0] == pytest.approx([0.2, 0.8])


def test_records_become_outcomes():
    game = Game.from_records([[0.5, 3.0], [9.0, 1.0]], [[0.2, 0.6], [np.nan, 1.0]], [1, 2, 4])
    assert game.mean_rewards == pytest.approx(np.array([[0.1, 0.1, 0.4], [0.5, 0.5, 0.5]]))
    assert game.mean_costs == pytest.approx(np.array([[1, 1.5, 2.5], [1, 1.5, 2.5]]))


@settings(max_examples=30, deadline=None)
@given(games)
def test_samples_agree_with_the_means(game):
    for arm in range(game.n_arms):
        levels, rewards = game.sample(arm, 20_000, seed=1)
        for j in range(game.n_levels):
            finished = levels <= j
            assert np.mean(rewards * finished) == pytest.approx(
                game.mean_rewards[arm, j], abs=5 * 0.5 / np.sqrt(20_000)
            )
            cost = np.where(
                finished,
                np.append(game.tables.finish_costs, 0)[levels],
                game.tables.give_up_costs[j],
            )
            spread = game.levels.largest_cost
            assert cost.mean() == pytest.approx(
                game.mean_costs[arm, j], abs=5 * 0.5 * spread / np.sqrt(20_000)
            )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delays": [[0.5, 0.4]], "rewards": 1.0}, r"delays of arm 0 must sum to 1, got 0\.9"),
        ({"delays": [[0.5, 0.5], [1.5, -0.5]], "rewards": 1}, r"delays .* got -0\.5"),
        ({"delays": [], "rewards": 1.0}, "delays must be a non-empty table"),
        ({"delays": [[np.nan, 1.0]], "rewards": 1.0}, "delays .* got nan"),
        ({"delays": [1.0], "rewards": 1.5}, r"rewards must lie in \[0, 1\], got 1\.5"),
        ({"delays": [1.0], "rewards": [1.0, 1.0]}, "rewards must be one number, 1"),
        ({"delays": [0.5, 0.5], "rewards": 1, "levels": [2, 1]}, "levels must be strictly incr"),
        ({"delays": [0.5, 0.5], "rewards": 1, "levels": [-1, 1]}, r"levels .* got -1\.0"),
        ({"delays": [0.5, 0.5], "rewards": 1, "levels": []}, "levels must not be empty"),
        ({"delays": [0.5, 0.5], "rewards": 1, "levels": [1, 2, 3]}, "levels has 3 entries"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Game(**arguments)


def test_what_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match="delays"):
        Game([["a", "b"]], 1.0)
    with pytest.raises(TypeError, match="levels"):
        Levels.waiting("123")
    with pytest.raises(ValueError, match="must not fall"):
        Levels((5.0, 3.0), (1.0, 1.0))
    with pytest.raises(ValueError, match="participation_cost"):
        Levels.bidding([1, 2], 0)
    with pytest.raises(ValueError, match="arm must be 0 to 0"):
        Game([1.0], 1.0).sample(3)
    with pytest.raises(ValueError, match="scores must lie"):
        Game.from_records([[1.0]], [[7.0]], [1])
