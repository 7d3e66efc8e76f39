"""What the ledger estimates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f2a_tune.outcome import Outcome
from f2a_tune.racing import Ledger, Pull


def filled(scores, seconds=1.0):
    ledger = Ledger(len(scores[0]))
    fill(ledger, scores, seconds)
    return ledger


def fill(ledger, scores, seconds=1.0):
    for row, folds in enumerate(scores):
        for fold, score in enumerate(folds):
            if score is not None:
                pull = Pull(row, fold, 10.0)
                ledger.start(pull)
                ledger.finish(pull, Outcome.finished(score, seconds))


def test_means_without_fold_offsets():
    # The second fold is 1 easier: one fold of it must not look better than both folds.
    rng = np.random.default_rng(0)
    quality = rng.normal(size=40)
    scores = [[q, q + 1.0] for q in quality]
    scores.append([2.9, None])
    estimates = filled(scores).estimates()
    assert estimates.value[:40] == pytest.approx(quality, abs=0.1)
    assert estimates.value[40] == 2.9


def test_noise_is_that_of_the_folds():
    rng = np.random.default_rng(1)
    quality = rng.normal(size=(300, 1))
    ledger = filled((quality + 0.3 * rng.normal(size=(300, 5))).tolist())
    assert ledger.estimates().noise == pytest.approx(0.09, rel=0.15)


def test_a_diverged_fit_moves_neither_offsets_nor_noise():
    rng = np.random.default_rng(2)
    scores = (rng.normal(size=(50, 1)) + 0.1 * rng.normal(size=(50, 3))).tolist()
    plain = filled(scores).estimates()
    diverged = filled([*scores, [5.0, -1e12, 5.0]]).estimates()
    assert diverged.noise == pytest.approx(plain.noise, rel=0.5)
    assert diverged.scored[-1] == 50


def test_best_first_and_ties_by_age():
    assert filled([[1.0], [3.0], [2.0], [3.0]]).estimates().scored.tolist() == [1, 3, 2, 0]


def test_what_was_given_up_or_runs():
    ledger = Ledger(2)
    first, second = Pull(0, 0, 1.0), Pull(1, 0, 4.0)
    for pull in (first, second):
        ledger.start(pull)
    assert ledger.pending.sum() == 2
    ledger.finish(first, Outcome.gave_up(1.0))
    assert ledger.waited.tolist() == [1.0, 0.0]
    assert not len(ledger.estimates().scored)
    ledger.finish(second, Outcome.finished(0.5, 2.0))
    assert ledger.estimates().scored[0] == 1
    assert ledger.first_seconds[1] == 2.0
    assert not ledger.pending.any()


def test_it_grows():
    ledger = filled([[float(row)] for row in range(1000)])
    assert ledger.n == 1000
    assert ledger.estimates().scored[0] == 999


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(1, 12))
def test_the_best_are_the_first_of_all(scores, count):
    estimates = filled([[float(score)] for score in scores]).estimates()
    assert estimates.best(count).tolist() == estimates.scored[:count].tolist()
    assert estimates.n_scored == len(scores)


def test_a_pull_that_came_to_nothing_leaves_what_is_known():
    ledger = filled([[1.0, None], [2.0, None]])
    again, fresh = Pull(0, 1, 9.0), Pull(2, 0, 9.0)
    for pull in (again, fresh):
        ledger.start(pull)
        ledger.withdraw(pull)
    assert ledger.n == 2
    assert not ledger.pending.any()
    assert not ledger.failed.any()
    assert ledger.estimates().scored.tolist() == [1, 0]


def test_evaluations_that_are_not_paired_have_no_offsets():
    scores = [[0.0, 1.0], [0.5, 1.5], [0.7, 1.8], [0.9, None]]
    paired, repeated = Ledger(2), Ledger(2, paired=False)
    for ledger in (paired, repeated):
        fill(ledger, scores)
    assert repeated.estimates().value[2] == pytest.approx(1.25)
    assert paired.estimates().value[2] < 1.25


def test_what_a_worker_took_beyond_the_cutoff_is_not_the_fits():
    ledger = Ledger(2)
    pull = Pull(0, 0, 0.2)
    ledger.start(pull)
    ledger.finish(pull, Outcome.gave_up(0.2, seconds=10.2))  # it hung before the fit began
    assert ledger.waited[0] == 0.2
