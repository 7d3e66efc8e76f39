import numpy as np
import pytest

from f2a_tune.bandit import PAPER_SCENARIOS, SCENARIOS, MicroArm, scenario, simulate

# What the paper's section 5 says of its experiments: (K, D, best level from 0, smallest gap).
STATED = {
    "doubling": (1, 10, 6, 0.042),
    "middle": (1, 10, 4, 0.124),
    "first": (1, 10, 0, 0.166),
    "plain": (3, 5, 0, 0.3),
    "ads-1": (3, 5, 2, None),
    "ads-2": (3, 5, 2, None),
}


@pytest.mark.parametrize("name", PAPER_SCENARIOS)
def test_the_papers_scenarios_meet_its_text(name):
    arms, depth, level, gap = STATED[name]
    game = scenario(name)
    assert (game.n_arms, game.n_levels, game.best.level) == (arms, depth, level)
    if gap is not None:
        assert game.gap == pytest.approx(gap, abs=0.001)


def test_advertisements_differ_only_by_their_utilities():
    first, second = scenario("ads-1"), scenario("ads-2")
    assert np.allclose(first.delay_probabilities(), second.delay_probabilities())
    assert (first.best, second.best) == (MicroArm(1, 2), MicroArm(0, 2))


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - set(PAPER_SCENARIOS)))
def test_the_applications_have_a_best_wait_inside(name):
    game = scenario(name)
    assert 0 < game.best.level < game.n_levels - 1
    assert game.gap > 0.001


def test_cross_validation_reads_a_replay_table(tmp_path):
    file = tmp_path / "table.npz"
    seconds = np.array([[0.1, 0.12], [0.5, 0.7], [4.0, 4.0]])
    scores = np.array([[0.8, 0.7], [0.9, 0.1], [np.nan, np.nan]])
    np.savez(file, seconds=seconds, scores=scores)
    game = scenario("cross-validation", table=file)
    assert game.n_arms == 3
    assert game.levels.finish_costs[0] == pytest.approx(0.1)
    assert game.levels.finish_costs[-1] >= 4.0
    assert game.best.arm == 0
    assert (game.mean_rewards[2] == 0).all()
    assert simulate(game, "hazard-thompson", 500, runs=1).pulls[0].sum(axis=1).argmax() == 0


def test_bad_names_and_tables(tmp_path):
    with pytest.raises(ValueError, match=r"'dobling' is unknown: did you mean 'doubling'"):
        scenario("dobling")
    with pytest.raises(ValueError, match=r"Pass table=FILE\.npz"):
        scenario("cross-validation")
    with pytest.raises(ValueError, match="only allowed with scenario='cross-validation'"):
        scenario("plain", table="x.npz")
    broken = tmp_path / "broken.npz"
    broken.write_text("no table")
    with pytest.raises(ValueError, match="is not a replay table"):
        scenario("cross-validation", table=broken)
    broken.write_bytes(b"")
    with pytest.raises(ValueError, match="is not a replay table"):
        scenario("cross-validation", table=broken)
    np.savez(broken, seconds=np.array([[0.0, 1.0]]), scores=np.ones((1, 2)))
    with pytest.raises(ValueError, match="seconds must be finite and above 0"):
        scenario("cross-validation", table=broken)
    with pytest.raises(TypeError, match="scenario must be a name"):
        scenario(3)
