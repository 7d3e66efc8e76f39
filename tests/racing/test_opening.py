"""The first pulls and the last ones of a search, in virtual time.

A search is played as `F2ASearchCV` plays it: given configurations first, time kept for the refit.
"""

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from f2a_tune.outcome import Kind, Outcome
from f2a_tune.racing import Offer, Race

REFIT_FITS = 2.03  # seconds of a refit for each second of a fit, with five folds
NEVER = math.inf


@dataclass
class Played:
    race: Race
    pulls: list
    ended: float

    def count(self, kind):
        return sum(outcome.kind is kind for _, outcome in self.pulls)

    def folds_of(self, configuration):
        return int((~np.isnan(self.race.ledger.scores[configuration])).sum())


def search(
    seconds,
    budget,
    *,
    n_given=1,
    n_folds=5,
    n_workers=1,
    scores=None,
    start_up=0.0,
    overhead=0.005,
    refit_fits=REFIT_FITS,
):
    """Play a search in which configuration i takes ``seconds[i]`` for every fold."""
    race = Race(
        n_folds,
        budget,
        n_workers=n_workers,
        refit_fits=refit_fits,
        shortest_cutoff_seconds=0.1,
    )
    scores = np.zeros(len(seconds)) if scores is None else scores
    running, done, ticket = [], [], itertools.count()
    now, idle = start_up, n_workers
    while True:
        while idle:
            offer = None
            if race.ledger.n < len(seconds):
                given = race.ledger.n < n_given
                offer = Offer(np.array([0.5]), least_share=0.1 / n_given if given else 0.0)
            else:
                race.exhausted()
            pull = race.ask(budget - max(seconds_left(race, budget, now), 0.0), offer)
            if pull is None:
                break
            if n_given and race.baseline is None:
                race.set_baseline(0)
            idle -= 1
            cutoff = min(pull.cutoff_seconds, seconds_left(race, budget, now))
            race.overhead_seconds = overhead
            heapq.heappush(running, (now + overhead, next(ticket), pull, 0.0, cutoff))
        if not running:
            return Played(race, done, now)
        now, _, pull, ran, more = heapq.heappop(running)
        took = seconds[pull.configuration]
        if ran < took and more <= 0:  # it has reached its cutoff
            left = seconds_left(race, budget, now)
            more = min(race.more_seconds(pull, budget - max(left, 0.0)), left)
        if ran < took and more > 0:
            step = min(more, took - ran)
            heapq.heappush(running, (now + step, next(ticket), pull, ran + step, more - step))
            continue
        idle += 1
        outcome = Outcome.gave_up(ran)
        if ran >= took:
            outcome = Outcome.finished(scores[pull.configuration], took)
        race.tell(pull, outcome)
        done.append((pull, outcome))


def seconds_left(race, budget, now):
    best = race.recommend(final=True)
    refit = 0.0
    if best is not None:
        refit = race.refit_fits * race.ledger.estimates().seconds[best.configuration]
    return budget - now - refit


# Seconds of the command's starts on a table of 32,561 rows: logistic regression, neighbours, SVM,
# boosting, forests, gradient boosting, MLP; then whatever the race draws.
ADULT = [1.06, 2.6, 60.0, 2.4, 4.0, 5.0, 9.0, 80.0, *[30.0] * 100]


@pytest.mark.parametrize("n_workers", [1, 2])
@pytest.mark.parametrize("slowdown", [1.0, 1.3])
def test_a_normal_table_ends_with_a_validated_default(n_workers, slowdown):
    played = search(
        [slowdown * one for one in ADULT], 20.0, n_given=8, n_workers=n_workers, start_up=1.5
    )
    assert played.folds_of(0) == 5
    assert played.race.recommend(final=True).fully_validated


def test_a_slow_space_around_a_quick_default_does_not_end_with_nothing():
    # Eighteen fits in a row were given up here while the default takes 0.2 s.
    played = search([0.2, *[NEVER] * 100], 3.0, start_up=0.5)
    assert played.folds_of(0) == 5


@pytest.mark.parametrize("seconds", [0.5, 2.0, 5.0, 10.0])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_default_that_fits_into_half_the_budget_finishes_in_any_case(seconds, n_workers):
    played = search([seconds, *[NEVER] * 100], 20.0, n_workers=n_workers)
    assert played.folds_of(0) >= 1


@pytest.mark.parametrize("budget", [10.0, 60.0])
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_a_default_whose_folds_and_refit_take_half_the_budget_is_validated(budget, n_workers):
    seconds = 0.49 * budget / (math.ceil(5 / n_workers) + REFIT_FITS)
    others = [seconds * factor for factor in (0.1, 0.3, 3.0, 0.5, 10.0)] * 50
    better = np.array([0.0, *np.linspace(1.0, 2.0, len(others))])
    played = search([seconds, *others], budget, n_workers=n_workers, scores=better)
    assert played.folds_of(0) == 5
    assert played.race.recommend(final=True).fully_validated


@pytest.mark.parametrize(("n_workers", "seconds"), [(1, 13.5), (2, 17.5)])
def test_a_default_that_takes_most_of_the_budget_still_finishes(n_workers, seconds):
    played = search([seconds, *[NEVER] * 100], 20.0, n_workers=n_workers)
    assert played.folds_of(0) == 1


def test_a_default_that_cannot_be_validated_is_recommended_before_a_quick_bad_one():
    # The default takes 1.3 s of 3 s; another one is validated meanwhile, and is far worse.
    scores = np.array([0.77, *[0.48] * 50])
    played = search([1.3, *[0.15, NEVER] * 25], 3.0, n_workers=2, scores=scores)
    assert played.folds_of(1) == 5
    assert played.race.recommend(final=True).configuration == 0


def test_configurations_that_hang_leave_time_for_a_quick_one():
    # Without a baseline three of them could use up the whole budget: 0.01, 0.1 and 0.89 of it.
    for n_hanging in range(1, 6):
        played = search([*[NEVER] * n_hanging, *[0.03] * 50], 12.0, n_given=0, n_folds=3)
        assert played.count(Kind.FINISHED) >= 3


def test_a_fit_that_takes_half_of_the_budget_finishes_without_a_baseline():
    played = search([6.0] * 50, 12.0, n_given=0, refit_fits=0.0)
    assert played.count(Kind.FINISHED) == 1


def test_a_default_that_hangs_is_given_up_once_others_finish():
    played = search([NEVER, *[0.5] * 100], 60.0, n_workers=2)
    (first,) = [outcome for pull, outcome in played.pulls if pull.configuration == 0]
    assert first.seconds < 60.0 / (3 + REFIT_FITS) + 3.0


def test_most_of_the_budget_spent_on_starting_leaves_the_rest_to_the_default():
    played = search([0.5, *[NEVER] * 50], 3.0, start_up=2.0)
    assert played.folds_of(0) >= 1


def test_tiny_fits_with_a_large_overhead_end_validated():
    # A budget of one second: fits of 20 ms, each with 30 ms of overhead on a busy machine.
    rng = np.random.default_rng(0)
    seconds = [0.02, *rng.uniform(0.01, 0.05, 200)]
    scores = np.array([0.0, *rng.normal(size=200)])
    played = search(seconds, 1.0, scores=scores, overhead=0.03)
    assert played.race.recommend(final=True).fully_validated


def test_a_cheap_default_is_validated_before_anything_else():
    played = search([0.1, *[0.1] * 300], 20.0)
    assert [pull.configuration for pull, _ in played.pulls[:5]] == [0] * 5


def test_most_of_the_budget_may_go_into_validating_one_configuration():
    # A search of 12 s ended early, with one of five folds; these need 10.5 s.
    played = search([1.5, *[1.5] * 50], 12.0)
    assert played.race.recommend(final=True).fully_validated


def test_nothing_hopeless_is_started_at_the_end():
    rng = np.random.default_rng(1)
    seconds = [1.0, *rng.uniform(0.8, 1.2, 200)]
    played = search(seconds, 40.0, scores=rng.normal(size=201))
    late = [outcome for _, outcome in played.pulls[-5:]]
    assert all(outcome.kind is Kind.FINISHED for outcome in late)
    assert played.count(Kind.GAVE_UP) <= 1


def test_fits_of_equal_length_are_hardly_ever_given_up():
    played = search([1.0] * 100, 12.0, n_given=0, n_folds=1, refit_fits=0.0)
    assert played.count(Kind.FINISHED) >= 11


def test_give_ups_in_a_row_make_the_race_wait_longer():
    race, cutoffs = Race(1, 1000.0), []
    for _ in range(12):
        race.tell(race.ask(0.0), Outcome.finished(0.5, 0.1))
    for _ in range(12):
        pull = race.ask(0.0)
        cutoffs.append(pull.cutoff_seconds)
        race.tell(pull, Outcome.gave_up(pull.cutoff_seconds))
    assert cutoffs[-1] > cutoffs[0]


def test_the_last_pulls_validate_the_leader():
    race, scores = Race(3, math.inf), [0.1, 0.9, 0.2, 0.3, 0.4]
    for left in range(8, 0, -1):
        pull = race.choose(0.0, pulls_left=left)
        race.start(pull)
        race.tell(pull, Outcome.finished(scores[pull.configuration % 5], 1.0))
    assert race.recommend(final=True).fully_validated
    assert race.recommend().configuration == race.recommend(final=True).configuration


def test_a_last_resort_gets_all_that_is_left():
    race = Race(5, 10.0, refit_fits=REFIT_FITS)
    pull = race.ask(0.0, Offer(np.array([0.5]), least_share=0.1))
    race.set_baseline(0)
    race.tell(pull, Outcome.gave_up(pull.cutoff_seconds))
    pull = race.ask(5.0, Offer(np.array([np.nan]), least_share=1.0))
    assert pull.fresh
    assert pull.cutoff_seconds == 5.0


def test_no_cutoff_is_shorter_than_the_shortest():
    race = Race(5, 10.0, shortest_cutoff_seconds=0.5)
    for _ in range(30):
        pull = race.ask(1.0)
        assert pull.cutoff_seconds >= 0.5
        race.tell(pull, Outcome.finished(0.1, 0.001))
