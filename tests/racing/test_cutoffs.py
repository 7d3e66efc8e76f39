"""How long fresh configurations are waited for."""

import numpy as np
import pytest

from f2a_tune.outcome import Outcome
from f2a_tune.racing import Ledger, Pull
from f2a_tune.racing.cutoffs import DelayLaw, FirstPulls, fresh_cutoff, later_cutoff

BUDGET = 100.0


def pulls(seconds, quality=None, given_up=()):
    seconds = np.array([*seconds, *given_up], dtype=float)
    finished = np.arange(len(seconds)) < len(seconds) - len(given_up)
    quantile = np.zeros(len(seconds))
    n = int(finished.sum())
    order = np.arange(n) if quality is None else np.argsort(np.argsort(quality))
    quantile[finished] = (order + 1) / max(n, 1)
    return FirstPulls(seconds, finished, quantile, n)


def test_before_anything_has_finished_the_cutoff_grows_quickly():
    assert fresh_cutoff(pulls([]), BUDGET, None) == 1.0
    assert fresh_cutoff(pulls([], given_up=[1.0]), BUDGET, None) == 10.0


def test_with_few_finished_it_is_a_multiple_of_the_median():
    assert fresh_cutoff(pulls([0.2, 0.2]), BUDGET, None) == 2.0


def test_with_few_finished_and_a_small_budget_it_is_not_most_of_it():
    assert fresh_cutoff(pulls([2.0, 2.0]), BUDGET, None) == BUDGET / 20
    assert fresh_cutoff(pulls([20.0, 20.0]), BUDGET, None) == 40.0


def test_light_tails_wait_for_ten_medians():
    rng = np.random.default_rng(0)
    seconds = rng.uniform(0.9, 1.1, 100)
    assert fresh_cutoff(pulls(seconds), BUDGET, None) == pytest.approx(10.0, rel=0.1)


def test_heavy_tails_are_cut_earlier():
    seconds = np.concatenate([np.full(60, 0.1), np.full(20, 100.0)])
    quality = np.random.default_rng(1).permutation(80)
    assert fresh_cutoff(pulls(seconds, quality), BUDGET, None) < 1.0


def test_where_slow_is_better_waiting_is_longer():
    rng = np.random.default_rng(2)
    seconds = np.exp(rng.normal(size=60))
    better = np.log(seconds) + 0.1 * rng.normal(size=60)
    longer = fresh_cutoff(pulls(seconds, better), BUDGET, None)
    plain = fresh_cutoff(pulls(seconds, rng.normal(size=60)), BUDGET, None)
    assert longer > 1.5 * plain


def test_given_timeouts_are_kept_to():
    rng = np.random.default_rng(3)
    levels = (1.0, 4.0, 16.0)
    for n in (0, 1, 50):
        assert fresh_cutoff(pulls(rng.uniform(0.1, 20, n)), BUDGET, levels) in levels
    assert later_cutoff(1.0, 0.0, levels) == 16.0
    assert later_cutoff(100.0, 0.0, levels) == 16.0
    assert later_cutoff(0.1, 0.0, None) == pytest.approx(0.41)
    assert later_cutoff(0.1, 3.0, None) == 6.0


def test_forecast_corrects_for_what_was_given_up():
    chance, cost = pulls([1.0, 2.0, 3.0], given_up=[1.5]).forecast(2.0)
    # Kaplan–Meier: 3/4 run beyond 1, half of those beyond 2; plus half a pseudo-pull.
    assert chance == pytest.approx((4 * (1 - 0.375) + 0.5) / 5)
    assert cost == pytest.approx((4 * (1 + 0.75) + 0.5) / 5)


def test_equal_scores_say_nothing_about_slow_fits():
    seconds = np.sort(np.exp(np.random.default_rng(0).normal(size=60)))
    for order in (seconds, seconds[::-1]):
        ledger = Ledger(1)
        for row, took in enumerate(order):
            pull = Pull(row, 0, 100.0)
            ledger.start(pull)
            ledger.finish(pull, Outcome.finished(1.0, took))
        assert FirstPulls.of(ledger).worth_waiting() == 0.0


def test_delay_law_without_give_ups_is_the_plain_mean():
    rng = np.random.default_rng(4)
    seconds, reward = rng.exponential(size=50), rng.random(50)
    law = DelayLaw.of(seconds, np.ones(50, dtype=bool))
    cutoffs = np.array([0.01, 0.5, 2.0, 10.0])
    for index, cutoff in enumerate(cutoffs):
        in_time = seconds <= cutoff
        assert law.running(cutoff) == pytest.approx(1 - in_time.mean())
        assert law.mean_seconds(cutoff) == pytest.approx(np.minimum(seconds, cutoff).mean())
        assert law.mean_reward(cutoffs, reward)[index] == pytest.approx((in_time * reward).mean())


def test_delay_law_sees_through_give_ups():
    rng = np.random.default_rng(5)
    delays, waits = rng.exponential(size=20_000), rng.choice([0.3, 1.0, 3.0], 20_000)
    law = DelayLaw.of(np.minimum(delays, waits), delays <= waits)
    assert law.running(2.0) == pytest.approx(np.exp(-2.0), abs=0.01)
    assert law.mean_seconds(2.0) == pytest.approx(1 - np.exp(-2.0), abs=0.02)
