"""A race whose fits grow, in virtual time."""

import numpy as np
import pytest

from f2a_tune.outcome import ErrorReport, Outcome
from f2a_tune.racing import CurveProposals, Look, Parameter, Race, Space

EFFORTS = (1.0, 2.0, 4.0, 8.0, 16.0)
SPACE = Space((Parameter("x", "float", low=0.0, high=1.0),))
N_FOLDS = 3


class World:
    """Curves that are known for every configuration, fold and level."""

    def __init__(self, score, seconds=lambda x, effort: 0.05 * effort):
        self.score, self.seconds = score, seconds
        self.done = {}

    def run(self, pull, x):
        """Grow a fit to the level of a pull, or to its cutoff."""
        key = pull.configuration, pull.fold
        begin = self.done.get(key, 0.0)
        times = [self.seconds(x, effort) for effort in EFFORTS]
        end = min(max(times[pull.level], begin), begin + pull.cutoff_seconds)
        self.done[key] = end
        found = [
            Look(level, self.score(x, pull.fold, level), times[level])
            for level in range(pull.level + 1)
            if begin < times[level] <= end
        ]
        if times[pull.level] > end:
            return Outcome.gave_up(end - begin), found
        return Outcome.finished(found[-1].score if found else 0.0, end - begin), found


class Player:
    """Plays a race in a world until the budget ends."""

    def __init__(self, world, budget=20.0, n_folds=N_FOLDS, seed=0, n_workers=1):
        self.world, self.budget = world, budget
        self.race = Race(n_folds, budget, efforts=EFFORTS, n_workers=n_workers)
        self.proposals = CurveProposals(SPACE, budget, seed)
        self.units, self.pulls, self.now = [], [], 0.0

    def step(self):
        offer = self.proposals.offer(self.race.ledger, self.units, self.race.time_left(self.now))
        pull = self.race.ask(self.now, offer)
        if pull is None:
            return False
        if pull.fresh:
            self.units.append(offer.unit)
        outcome, looks = self.world.run(pull, float(self.units[pull.configuration][0]))
        self.now += outcome.seconds + 0.005
        self.race.tell(pull, outcome, looks)
        self.pulls.append(pull)
        return True

    def play(self):
        while self.now < self.budget and self.step():
            pass
        return self.race.recommend(final=True)

    def x_of(self, recommendation):
        return float(self.units[recommendation.configuration][0])


def rising(x, fold, level):
    """Better with every level, and best at x = 0.7."""
    return 1.0 - (x - 0.7) ** 2 - 0.3 / EFFORTS[level] + 0.01 * fold


def overfitting(x, fold, level):
    """Best at level 2, whatever x is."""
    return 1.0 - (x - 0.7) ** 2 - 0.05 * (level - 2) ** 2 + 0.01 * fold


def test_the_winner_is_good_and_has_all_folds_at_its_level():
    player = Player(World(rising))
    best = player.play()
    assert best.fully_validated
    assert best.level == len(EFFORTS) - 1
    assert abs(player.x_of(best) - 0.7) < 0.1


def test_most_configurations_are_not_grown_to_the_end():
    player = Player(World(rising))
    player.play()
    reached = player.race.ledger.curves.reached[:, 0]
    assert (reached == len(EFFORTS) - 1).mean() < 0.5


def test_the_best_level_may_be_in_the_middle():
    best = Player(World(overfitting)).play()
    assert best.fully_validated
    assert best.level == 2


def test_constant_curves_are_not_grown():
    player = Player(World(lambda x, fold, level: 1.0 - (x - 0.7) ** 2), budget=5.0)
    player.play()
    reached = player.race.ledger.curves.reached[:, 0]
    assert np.median(reached) < len(EFFORTS) - 1


def test_diverging_configurations_keep_their_early_looks():
    def score(x, fold, level):
        return float("nan") if x > 0.5 and level >= 2 else rising(x, fold, level)

    player = Player(World(score), budget=8.0)
    best = player.play()
    assert best is not None
    assert np.isfinite(best.mean)


def test_the_race_waits_longer_if_no_fit_reaches_its_first_level():
    player = Player(World(rising, lambda x, effort: 1.5 * effort), n_folds=1)
    best = player.play()
    assert best is not None


def test_a_paused_fit_is_continued_where_it_was():
    player = Player(World(rising))
    player.play()
    grown = [pull for pull in player.pulls if "continued" in pull.reason]
    assert grown
    assert not any(pull.fresh for pull in grown)
    curves = player.race.ledger.curves
    for (row, fold), seconds in player.world.done.items():
        assert curves.spent[row, fold] == pytest.approx(seconds)


def test_decisions_repeat():
    first, second = Player(World(rising)), Player(World(rising))
    first.play()
    second.play()
    assert first.pulls == second.pulls


@pytest.mark.parametrize("factor", [1e-6, -1.0, 1e6])
def test_the_scale_of_scores_does_not_matter(factor):
    plain, scaled = Player(World(rising)), Player(World(lambda *a: factor * rising(*a) + 3.0))
    scaled.race.sign = np.sign(factor)
    plain.play()
    scaled.play()
    assert [pull.configuration for pull in plain.pulls[:40]] == [
        pull.configuration for pull in scaled.pulls[:40]
    ]


def test_a_failure_after_a_look_keeps_the_look():
    race = Race(1, 100.0, efforts=EFFORTS)
    proposals = CurveProposals(SPACE, 100.0)
    offer = proposals.offer(race.ledger, [], race.time_left(0.0))
    pull = race.ask(0.0, offer)
    error = Outcome.failed(ErrorReport("ValueError", "too large"), 1.0)
    race.tell(pull, error, [Look(0, 0.5, 0.1)])
    best = race.recommend(final=True)
    assert (best.mean, best.level) == (0.5, 0)
    assert race.ledger.curves.ended[0, 0]


def test_a_pull_of_a_fit_that_cannot_grow_needs_no_looks():
    race = Race(1, 100.0, efforts=EFFORTS)
    offer = CurveProposals(SPACE, 100.0).offer(race.ledger, [], race.time_left(0.0))
    pull = race.ask(0.0, offer)
    race.tell(pull, Outcome.finished(0.25, 1.0))
    assert race.recommend().level == pull.level
    assert race.recommend().mean == 0.25


def test_efforts_must_rise():
    with pytest.raises(ValueError, match="efforts"):
        Race(1, 10.0, efforts=[1.0, 1.0])
