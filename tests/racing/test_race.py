"""Decisions of the race, in virtual time."""

import math

import numpy as np
import pytest

from f2a_tune.bandit import HazardThompson, WaitUCB
from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.racing import Pull, Race
from tests.racing.virtual import play, regret, table

BUDGET = 60.0


def race(**options):
    return Race(options.pop("n_folds", 5), options.pop("budget_seconds", BUDGET), **options)


def decisions(seconds, scores, n_workers=1, **options):
    return play(
        race(n_workers=n_workers, **options), seconds, scores, n_workers=n_workers
    ).decisions


@pytest.mark.parametrize("n_workers", [1, 4])
@pytest.mark.parametrize("scale", [8.0, 2.0**-20, 2.0**40])
def test_scale_of_scores_changes_no_decision(scale, n_workers):
    seconds, scores = table()
    plain = decisions(seconds, scores, n_workers)
    assert len(plain) > 20
    assert decisions(seconds, scale * scores, n_workers) == plain


def test_shift_of_scores_changes_no_decision():
    seconds, scores = table()
    scores = np.round(scores * 1024) / 1024  # so that the sum is exact
    assert decisions(seconds, scores + 4096.0) == decisions(seconds, scores)


def test_sign_of_scores_changes_no_decision():
    seconds, scores = table()
    plain, losses = race(), race(maximize=False)
    assert play(losses, seconds, -scores).decisions == play(plain, seconds, scores).decisions
    assert losses.recommend().mean == -plain.recommend().mean
    assert losses.recommend().configuration == plain.recommend().configuration


def test_same_seed_same_decisions():
    seconds, scores = table(seed=3)
    assert decisions(seconds, scores) == decisions(seconds, scores)


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("stop", [1, 7, 40])
@pytest.mark.parametrize("policy", ["race", "wait-ucb", HazardThompson()])
def test_rebuilt_from_history_decides_the_same(stop, n_workers, policy):
    seconds, scores = table()
    first = race(n_workers=n_workers, policy=policy)
    history = play(first, seconds, scores, n_workers=n_workers, most_pulls=stop).history
    running = [(pull, None) for pull in first.in_flight.values()]
    again = race(n_workers=n_workers, policy=policy)
    again.rebuild(history + running)
    now = 20.0
    for _ in range(5):
        ours, theirs = first.ask(now), again.ask(now)
        assert ours == theirs
        for one, pull in ((first, ours), (again, theirs)):
            one.tell(pull, Outcome.finished(0.3, 0.1))
        now += 0.1
    assert first.recommend() == again.recommend()


@pytest.mark.parametrize("stop", [63, 150, 700])
def test_a_long_history_decides_the_same(stop):
    # From some dozens of outcomes on, lessons about waiting are drawn now and then only.
    seconds, scores = table(n=1000)
    first, again = race(budget_seconds=1e4), race(budget_seconds=1e4)
    again.rebuild(play(first, seconds, scores, most_pulls=stop).history)
    for step in range(20):
        ours, theirs = first.ask(5000.0 + step), again.ask(5000.0 + step)
        assert ours == theirs
        for one, pull in ((first, ours), (again, theirs)):
            one.tell(pull, Outcome.finished(float(step), 0.1))


def test_without_a_budget_the_first_is_waited_for():
    runner = Race(1, math.inf)
    pull = runner.ask(0.0)
    assert pull.cutoff_seconds == math.inf
    runner.tell(pull, Outcome.finished(1.0, 2.0))
    assert 2.0 < runner.ask(1e9).cutoff_seconds < math.inf


def test_a_chosen_pull_is_not_handed_out_yet():
    runner = race()
    assert runner.choose(0.0) == runner.choose(0.0)
    assert not runner.in_flight
    pull = runner.ask(0.0)
    with pytest.raises(ValueError, match="in flight already"):
        runner.start(pull)
    runner.withdraw(pull)
    assert runner.ledger.n == 0


@pytest.mark.slow
def test_slow_is_better_is_not_ruined_by_cutoffs():
    regrets = {True: [], False: []}
    for run in range(120):
        seconds, scores = table(n=400, seed=run, slow_is_better=1.0, spread=1.0)
        budget = 20 * seconds.sum(axis=1).mean()
        for use_cutoffs in regrets:
            runner = race(budget_seconds=budget, use_cutoffs=use_cutoffs)
            play(runner, seconds, scores)
            regrets[use_cutoffs].append(regret(runner, scores))
    assert np.mean(regrets[True]) <= 1.1 * np.mean(regrets[False])


def test_a_heavy_tail_is_cut_off():
    regrets = {True: [], False: []}
    for run in range(12):
        seconds, scores = table(n=2000, seed=run, spread=2.5)
        budget = 5 * seconds.sum(axis=1).mean()
        for use_cutoffs in regrets:
            runner = race(budget_seconds=budget, use_cutoffs=use_cutoffs)
            play(runner, seconds, scores)
            regrets[use_cutoffs].append(regret(runner, scores))
    assert np.mean(regrets[True]) < 0.8 * np.mean(regrets[False])


def test_all_slower_than_the_budget():
    runner = race(budget_seconds=1.0)
    done = play(runner, np.full((50, 5), 100.0), np.zeros((50, 5)))
    assert runner.recommend() is None
    assert {outcome.kind for _, outcome in done.history} == {Kind.GAVE_UP}
    assert done.now == pytest.approx(1.0, abs=0.1)
    cutoffs = [pull.cutoff_seconds for pull in done.pulls]
    longest = cutoffs.index(max(cutoffs))
    assert cutoffs[: longest + 1] == sorted(cutoffs[: longest + 1]), "it waits longer and longer"
    assert max(cutoffs) > 0.5
    assert len(cutoffs) > longest + 3, "and keeps time for others that may be quick"


def test_all_failing():
    runner = race(budget_seconds=5.0)
    done = play(runner, np.full((20, 5), 0.1), np.full((20, 5), -np.inf))
    assert runner.recommend() is None
    failed = [pull.configuration for pull, outcome in done.history if outcome.kind is Kind.FAILED]
    assert sorted(failed) == list(range(20)), "a configuration that failed is not tried again"


def test_one_configuration():
    runner = race()
    done = play(runner, np.full((1, 5), 0.1), np.arange(5.0)[None, :])
    assert sorted(pull.fold for pull in done.pulls) == [0, 1, 2, 3, 4]
    best = runner.recommend()
    assert best.fully_validated
    assert (best.mean, best.folds_done) == (2.0, 5)
    assert best.spread == pytest.approx(np.std(np.arange(5.0), ddof=1))


@pytest.mark.parametrize("nonsense", [np.nan, np.inf, -np.inf, None, "much"])
def test_scores_that_are_no_numbers_never_win(nonsense):
    runner = race()
    for value in (nonsense, 0.5, nonsense):
        pull = runner.ask(now=0.0)
        if not pull.fresh:
            break
        runner.tell(pull, Outcome.finished(value, 0.1))
    best = runner.recommend()
    assert best.configuration == 1
    assert best.mean == 0.5


@pytest.mark.parametrize("largest", [1e-300, 1e300, 5e-324])
def test_extreme_scores(largest):
    seconds, scores = table(n=40)
    runner = race()
    play(runner, seconds, largest * scores / np.abs(scores).max())
    assert math.isfinite(runner.recommend().mean)


def test_ties_are_settled_and_all_is_explored():
    runner = race(budget_seconds=1000.0)
    done = play(runner, np.full((30, 5), 0.1), np.ones((30, 5)))
    assert runner.recommend().fully_validated
    assert len(done.history) == 150, "with time left every fold is run"


def test_a_finite_grid_is_exhausted_and_ends():
    seconds, scores = table(n=12)
    runner = race(budget_seconds=1e6)
    done = play(runner, seconds, scores)
    assert done.now < 1e6
    finished = {(p.configuration, p.fold) for p, o in done.history if o.ok}
    assert len(finished) == 60
    assert regret(runner, scores) == 0.0


def test_given_up_configurations_come_again_with_twice_the_wait():
    seconds = np.concatenate([np.full((8, 2), 0.01), np.full((1, 2), 50.0)])
    scores = np.concatenate([np.zeros((8, 2)), np.ones((1, 2))])
    runner = Race(2, 1000.0)
    done = play(runner, seconds, scores)
    waits = [pull.cutoff_seconds for pull in done.pulls if pull.configuration == 8]
    assert waits[-1] >= 50
    assert runner.recommend().configuration == 8


@pytest.mark.parametrize("n_workers", [1, 2, 4, 16])
def test_pulls_in_flight_never_overlap(n_workers):
    seconds, scores = table(n=60)
    runner = race(n_workers=n_workers)
    done = play(runner, seconds, scores, n_workers=n_workers)
    assert done.busiest == n_workers
    finished = [(p.configuration, p.fold) for p, o in done.history if o.ok]
    assert len(finished) == len(set(finished))
    fresh = [pull.configuration for pull in done.pulls if pull.fresh]
    assert sorted(fresh) == list(range(len(fresh)))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("n_workers", [1, 4])
def test_the_winner_has_all_folds(seed, n_workers):
    seconds, scores = table(seed=seed)
    budget = 10 * seconds.sum(axis=1).mean()
    runner = race(budget_seconds=budget, n_workers=n_workers)
    play(runner, seconds, scores, n_workers=n_workers)
    assert runner.recommend(final=True).fully_validated


def test_a_leader_that_cannot_be_validated_leaves_time_for_one_that_can():
    runner = Race(5, 20.0)
    for score, seconds in ((0.5, 0.2), (0.9, 6.0)):
        pull = runner.ask(now=0.0)
        runner.tell(pull, Outcome.finished(score, seconds))
    now, folds = 18.7, []
    while (pull := runner.ask(now)) is not None:
        folds.append((pull.configuration, pull.fold))
        took = min((0.2, 6.0)[pull.configuration] if pull.configuration < 2 else 99, 20 - now)
        runner.tell(pull, Outcome.finished(0.5, took))
        now += took
    assert folds[:4] == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert runner.recommend(final=True).configuration == 0


def test_an_early_stop_prefers_more_folds_among_equals():
    seconds, scores = np.full((2, 5), 0.1), np.zeros((2, 5))
    runner = race()
    noisy = scores + np.array([0.0, 0.3, -0.3, 0.1, -0.1])
    done = play(runner, seconds, noisy, most_pulls=6)
    assert len({pull.configuration for pull in done.pulls}) == 2
    assert runner.recommend().folds_done == max(runner.ledger.estimates().folds)


def test_when_most_never_finish_the_wait_does_not_explode():
    rng = np.random.default_rng(0)
    seconds = np.where(rng.random((3000, 1)) < 0.6, 1e9, 0.1) * np.ones((1, 5))
    runner = race(budget_seconds=1000.0)
    done = play(runner, seconds, rng.normal(size=(3000, 5)))
    waits = [o.seconds for _, o in done.history if o.kind is Kind.GAVE_UP]
    assert max(waits) < 30
    assert sum(pull.fresh for pull in done.pulls) > 300


@pytest.mark.parametrize("n_workers", [2, 3, 8])
def test_no_pull_is_without_time_near_the_end(n_workers):
    for seed in range(5):
        seconds, scores = table(n=60, seed=seed, spread=0.3)
        seconds = seconds * 5.0
        runner = race(budget_seconds=40.0, n_workers=n_workers)
        done = play(runner, seconds, scores, n_workers=n_workers)
        assert min(pull.cutoff_seconds for pull in done.pulls) > 0
        asked = [(pull.configuration, pull.fold, pull.cutoff_seconds) for pull in done.pulls]
        assert len(asked) == len(set(asked))


def test_a_fold_beyond_the_last_timeout_is_not_pulled_for_ever():
    seconds = np.array([[0.1, 50.0, 0.1], [0.1, 0.1, 0.1]])
    scores = np.array([[1.0, 1.0, 1.0], [0.5, 0.5, 0.5]])
    runner = Race(3, 100.0, timeouts=[1, 2])
    done = play(runner, seconds, scores)
    hopeless = [pull for pull in done.pulls if (pull.configuration, pull.fold) == (0, 1)]
    assert len(hopeless) <= 2
    assert runner.recommend(final=True).configuration == 1


def test_time_is_kept_for_the_one_that_can_be_validated():
    runner = Race(4, 100.0)
    for score, seconds in ((0.9, 9.0), (0.5, 1.0), (0.4, 1.0)):
        pull = runner.ask(now=0.0)
        while not pull.fresh:
            runner.tell(pull, Outcome.finished(0.9, 9.0))
            pull = runner.ask(now=0.0)
        runner.tell(pull, Outcome.finished(score, seconds))
    situation = runner.situation(now=75.0)
    if situation.contenders.unstarted[0] * 9 > 25:
        assert 0 not in {reservation.index for reservation in situation.reservations}
        assert situation.allowed_seconds(0) < 25


def test_pull_numbers_are_never_used_twice():
    runner = race(n_workers=3)
    first, second = runner.ask(0.0), runner.ask(0.0)
    runner.exhausted(first)
    runner.tell(second, Outcome.finished(0.5, 0.1))
    third = runner.ask(0.1)
    assert third.number not in (first.number, second.number)


def test_a_thousand_failures_do_not_hide_what_is_known():
    runner = race(budget_seconds=1e6)
    runner.tell(runner.ask(0.0), Outcome.finished(0.5, 0.1))
    for _ in range(1100):
        pull = runner.ask(1.0)
        error = Outcome.failed(ErrorReport("ValueError", "no"), 0.1)
        runner.tell(pull, error if pull.fresh else Outcome.finished(0.5, 0.1))
    assert runner.recommend().configuration == 0


def test_one_diverged_score_changes_no_decision():
    seconds, scores = table()
    found = []
    for diverged in (-1e6, -1e200):
        scores[5] = diverged
        found.append(decisions(seconds, scores))
    assert found[0] == found[1]


def test_a_whole_number_beyond_all_floats_is_a_failure():
    runner = race()
    runner.tell(runner.ask(0.0), Outcome.finished(10**400, 0.1))
    assert runner.recommend() is None
    assert not runner.ledger.pending.any()


@pytest.mark.parametrize("policy", ["wait-ucb", HazardThompson()])
def test_a_pool_that_cannot_be_filled_is_played_with_what_there_is(policy):
    seconds, scores = table(n=8, spread=0.3)
    runner = race(policy=policy, pool_size=20, timeouts=[1, 4], budget_seconds=200.0)
    done = play(runner, seconds, scores)
    assert done.now > 150
    drawn = {pull.configuration for pull in done.pulls}
    assert drawn == set(range(8)) if policy == "wait-ucb" else drawn <= set(range(8))


def test_timeouts_are_the_only_cutoffs():
    seconds, scores = table()
    runner = race(timeouts=[0.5, 2.0, 8.0])
    done = play(runner, seconds, scores)
    early = [p.cutoff_seconds for p, _ in done.history[: len(done.history) // 2]]
    assert set(early) <= {0.5, 2.0, 8.0}
    assert max(pull.cutoff_seconds for pull in done.pulls) <= 8.0


def test_cutoffs_never_reach_beyond_the_budget():
    seconds, scores = table(spread=2.5)
    runner = race()
    done = play(runner, seconds, scores)
    assert done.now <= BUDGET + 2e-3
    assert all(0 < pull.cutoff_seconds <= BUDGET for pull in done.pulls)
    assert runner.ask(BUDGET) is None
    assert runner.ask(BUDGET + 1) is None


def test_every_pull_says_why():
    seconds, scores = table()
    runner = race()
    reasons = [pull.reason for pull in play(runner, seconds, scores).pulls]
    assert all(reasons)
    assert any("new configuration" in reason for reason in reasons)
    assert any("to beat the leader" in reason for reason in reasons)


def test_exploration_changes_decisions_and_still_ends():
    seconds, scores = table()
    plain, curious = race(), race(exploration=1.0)
    first, second = play(plain, seconds, scores), play(curious, seconds, scores)
    assert first.decisions != second.decisions
    assert curious.recommend() is not None


@pytest.mark.parametrize("policy", ["wait-ucb", WaitUCB(), HazardThompson()])
@pytest.mark.parametrize("n_workers", [1, 3])
def test_policies_over_a_fixed_pool(policy, n_workers):
    seconds, scores = table(n=8, spread=0.5)
    runner = race(policy=policy, pool_size=8, timeouts=[1, 4], n_workers=n_workers)
    done = play(runner, seconds, scores, n_workers=n_workers)
    assert {pull.configuration for pull in done.pulls} <= set(range(8))
    early = done.pulls[: len(done.pulls) // 2]
    assert {pull.cutoff_seconds for pull in early} <= {1.0, 4.0}
    assert runner.recommend() is not None


def test_wait_ucb_pulls_every_pair_once_first():
    seconds, scores = table(n=4, spread=0.1)
    runner = race(policy="wait-ucb", pool_size=4, timeouts=[2, 4], budget_seconds=100)
    done = play(runner, seconds, scores, most_pulls=8)
    pairs = {(pull.configuration, pull.cutoff_seconds) for pull in done.pulls}
    assert len(pairs) == 8


def test_wait_ucb_ends_when_nothing_can_be_drawn():
    runner = race(policy="wait-ucb", pool_size=4)
    runner.exhausted(runner.ask(0.0))
    assert runner.ask(0.0) is None


def test_a_pull_is_told_once():
    runner = race()
    pull = runner.ask(0.0)
    runner.tell(pull, Outcome.finished(0.5, 0.1))
    with pytest.raises(ValueError, match="not in flight"):
        runner.tell(pull, Outcome.finished(0.5, 0.1))
    with pytest.raises(ValueError, match="not in flight"):
        runner.tell(Pull(7, 0, 1.0, number=99), Outcome.gave_up(1.0))


def test_out_of_memory_is_a_failure():
    runner = race()
    pull = runner.ask(0.0)
    runner.tell(pull, Outcome.out_of_memory(ErrorReport("MemoryError", ""), 0.1))
    assert runner.recommend() is None
    assert runner.ask(0.1).fresh


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_folds": 0}, ValueError, "n_folds"),
        ({"budget_seconds": -1}, ValueError, "budget_seconds"),
        ({"budget_seconds": "60s"}, TypeError, "budget_seconds"),
        ({"policy": "rase"}, ValueError, "did you mean 'race'"),
        ({"policy": 3}, TypeError, "policy"),
        ({"policy": "wait-ucb", "budget_seconds": math.inf}, ValueError, "timeouts"),
        ({"timeouts": []}, ValueError, "timeouts"),
        ({"timeouts": [2, 1]}, ValueError, "strictly increasing"),
        ({"timeouts": [-1, 1]}, ValueError, "timeouts"),
        ({"timeouts": "1,2"}, TypeError, "timeouts"),
        ({"timeouts": 3}, TypeError, "timeouts"),
        ({"exploration": -0.1}, ValueError, "exploration"),
        ({"exploration": math.nan}, ValueError, "exploration"),
        ({"n_workers": 0}, ValueError, "n_workers"),
        ({"pool_size": 0}, ValueError, "pool_size"),
        ({"use_cutoffs": False, "policy": "wait-ucb"}, ValueError, "use_cutoffs"),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error, match=words):
        race(**options)
