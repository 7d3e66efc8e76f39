"""A race whose fits grow, in virtual time."""

import math

import numpy as np
import pytest

from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.racing import CurveProposals, Look, Parameter, Pull, Race, Space
from tests.racing.growing import EFFORTS, SPACE, TOP, Player, World, rising


def overfitting(x, fold, level):
    """Best at level 2, whatever x is."""
    return 1.0 - (x - 0.7) ** 2 - 0.05 * (level - 2) ** 2 + 0.01 * fold


def test_the_winner_is_good_and_has_all_folds_at_its_level():
    player = Player(World(rising))
    best = player.play()
    assert best.fully_validated
    assert best.level == TOP
    assert abs(player.x_of(best) - 0.7) < 0.1


def test_most_configurations_are_not_grown_to_the_end():
    player = Player(World(rising))
    player.play()
    reached = player.race.ledger.curves.reached[:, 0]
    assert (reached == TOP).mean() < 0.5


def test_the_best_level_may_be_in_the_middle():
    best = Player(World(overfitting)).play()
    assert best.fully_validated
    assert best.level == 2


def test_constant_curves_are_not_grown():
    player = Player(World(lambda x, fold, level: 1.0 - (x - 0.7) ** 2), budget=5.0)
    player.play()
    reached = player.race.ledger.curves.reached[:, 0]
    assert np.median(reached) < TOP


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
    steps = [outcome.seconds for pull, outcome in player.history if "continued" in pull.reason]
    assert max(steps) <= 0.05 * EFFORTS[-1] / 2 + 1e-9, "it pays only for the step"


def test_decisions_repeat():
    first, second = Player(World(rising)), Player(World(rising))
    first.play()
    second.play()
    assert first.pulls == second.pulls


@pytest.mark.parametrize("factor", [1e-6, -1.0, 1e6])
def test_the_scale_of_scores_does_not_matter(factor):
    plain, scaled = Player(World(rising)), Player(World(lambda *a: factor * rising(*a) + 3.0))
    scaled.race.sign = np.sign(factor)
    plain.play(most_pulls=40)
    scaled.play(most_pulls=40)
    assert [pull.configuration for pull in plain.pulls] == [
        pull.configuration for pull in scaled.pulls
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


@pytest.mark.parametrize("n_workers", [2, 4, 16])
def test_several_workers_share_one_race(n_workers):
    player = Player(World(), budget=20.0 / n_workers, n_workers=n_workers)
    best = player.play()
    assert best.fully_validated
    assert player.regret(best) < 0.1
    assert player.now <= player.budget + 0.1


def test_a_fit_runs_on_one_worker_at_a_time():
    player = Player(World(), budget=3.0, n_workers=4)
    running = set()
    start, tell = player.race.start, player.race.tell

    def checked_start(pull):
        assert (pull.configuration, pull.fold) not in running
        running.add((pull.configuration, pull.fold))
        start(pull)

    def checked_tell(pull, outcome, looks):
        running.remove((pull.configuration, pull.fold))
        tell(pull, outcome, looks)

    player.race.start, player.race.tell = checked_start, checked_tell
    player.play()
    assert len(player.history) > 20


@pytest.mark.parametrize("stop", [1, 7, 40])
def test_a_race_is_rebuilt_from_its_history(stop):
    player = Player(World())
    player.play(most_pulls=stop)
    again = Race(3, player.budget, efforts=EFFORTS)
    again.rebuild(player.history, player.looks)
    assert np.array_equal(again.ledger.curves.scores, player.curves.scores, equal_nan=True)
    assert np.array_equal(again.ledger.curves.spent, player.curves.spent)
    assert again.recommend() == player.race.recommend()
    offer = player.proposals.offer(again.ledger, player.units, again.time_left(player.now))
    assert again.ask(player.now, offer) == player.race.ask(player.now, offer)


def test_a_lost_fit_starts_again_at_once_for_as_long_as_is_best():
    player = Player(World())
    player.play(most_pulls=60)
    grown = player.proposals.offer(
        player.race.ledger, player.units, player.race.time_left(player.now)
    ).grown
    lost = next(one for one in grown if one.worth > 0)
    before = player.curves.scores[lost.configuration].copy()
    player.race.lose(lost.configuration, 0)
    assert player.curves.spent[lost.configuration, 0] == 0
    assert np.array_equal(player.curves.scores[lost.configuration], before, equal_nan=True)
    best = player.play()
    assert best.fully_validated


def test_fits_that_must_start_again_take_fewer_and_longer_steps():
    steps = {}
    for resumable in (True, False):
        player = Player(World(), resumable=resumable)
        best = player.play()
        assert best.fully_validated
        assert player.regret(best) < 0.05
        grown = [pull for pull in player.pulls if "continued" in pull.reason]
        fits = {pull.configuration for pull in grown}
        steps[resumable] = len(grown) / len(fits)
    assert steps[False] < steps[True]


def test_a_released_pull_of_another_process_must_start_again():
    race = Race(1, 100.0, efforts=EFFORTS)
    proposals = CurveProposals(SPACE, 100.0)
    offer = proposals.offer(race.ledger, [], race.time_left(0.0))
    pull = race.ask(0.0, offer)
    race.tell(pull, Outcome.finished(0.5, 0.1), [Look(0, 0.5, 0.1)])
    again = race.ask(0.1, proposals.offer(race.ledger, [offer.unit], race.time_left(0.1)))
    assert again.configuration == pull.configuration, "the first one is grown at first"
    race.release(again)
    assert race.ledger.curves.spent[0, 0] == 0
    assert race.recommend().mean == 0.5


def test_memory_for_few_paused_fits():
    player = Player(World(), most_paused=4)
    best = player.play()
    assert best.fully_validated
    assert player.regret(best) < 0.05
    paused = (player.curves.spent > 0) & (player.curves.reached < TOP)
    assert paused.sum() <= 4
    assert player.race.surplus(4) == []


def test_paused_fits_of_the_best_configurations_are_kept():
    race = Race(1, 100.0, efforts=EFFORTS)
    proposals, units = CurveProposals(SPACE, 100.0), []
    for score in (0.2, 0.9, 0.4):
        offer = proposals.offer(race.ledger, units, race.time_left(0.0))
        pull = race.ask(0.0, offer)
        while not pull.fresh:  # the first ones are grown at first
            race.tell(pull, Outcome.gave_up(100.0))
            pull = race.ask(0.0, proposals.offer(race.ledger, units, race.time_left(0.0)))
        units.append(offer.unit)
        race.tell(pull, Outcome.finished(score, 0.1), [Look(0, score, 0.1)])
    assert race.surplus(1) == [(2, 0), (0, 0)]
    assert race.surplus(3) == []


@pytest.mark.parametrize("lengths", [(1, 3), (0, 4)])
def test_curves_of_different_length(lengths):
    # Folds and configurations stop by themselves at different levels.
    def last(x, fold):
        return lengths[int(1000 * x + fold) % 2]

    player = Player(World(last=last))
    best = player.play()
    assert best.fully_validated
    assert player.now >= 0.9 * player.budget or not player.race.reservoir_open
    again = [
        (pull.configuration, pull.fold, pull.level)
        for pull, outcome in player.history
        if outcome.seconds == 0
    ]
    assert len(again) == len(set(again)), "a fit that has stopped is not continued again"


def test_a_fit_that_stopped_by_itself_is_the_same_at_every_later_level():
    race = Race(2, 100.0, efforts=EFFORTS)
    offer = CurveProposals(SPACE, 100.0).offer(race.ledger, [], race.time_left(0.0))
    pull = race.ask(0.0, offer)
    race.start(Pull(0, 1, 10.0, number=7, level=TOP))
    race.tell(Pull(0, 1, 10.0, number=7, level=TOP), Outcome.finished(0.4, 0.2), looks(0.3, 0.4))
    race.tell(pull, Outcome.gave_up(3.0), looks(0.1, 0.2, 0.5, 0.6))
    best = race.recommend(final=True)
    assert best.fully_validated
    assert (best.level, best.mean) == (3, pytest.approx(0.5))


def test_a_fold_that_breaks_limits_the_levels_of_its_configuration():
    player = Player(World(breaks=lambda x, fold: 3 if fold == 1 else math.inf))
    best = player.play()
    assert best.fully_validated
    assert best.level == 2
    broken = [
        pull.configuration for pull, outcome in player.history if outcome.kind is Kind.FAILED
    ]
    assert len(broken) == len(set(broken)), "a fold that broke is not tried again"


def test_a_configuration_whose_other_fold_cannot_start_is_out():
    player = Player(World(breaks=lambda x, fold: 0 if fold == 1 and x > 0.5 else math.inf))
    best = player.play()
    assert best.fully_validated
    assert player.x_of(best) <= 0.5


MIXED = Space(
    (Parameter("x", "float", low=0.0, high=1.0), Parameter("kind", "categorical", choices=(0, 1)))
)


@pytest.mark.parametrize("better", [0, 1])
@pytest.mark.parametrize("slow", [1.0, 5.0])
def test_some_configurations_cannot_grow(better, slow):
    # Kind 1 cannot grow. Its whole fit takes as long as a grown one, or five times as long.
    player = None

    def kind(unit):
        return MIXED.configuration(unit)["kind"]

    def grows(units):
        return np.array([kind(unit) == 0 for unit in units])

    class Mixed(World):
        def run(self, pull, x, cutoff):
            chosen = kind(player.units[pull.configuration])
            assert (pull.level is None) == (chosen == 1)
            self.score = lambda *a: rising(*a) + 0.2 * (chosen == better)
            self.seconds = lambda x, effort: (slow if chosen else 1.0) * 0.05 * effort
            return super().run(pull, x, cutoff)

    player = Player(Mixed(), budget=60.0, space=MIXED, grows=grows)
    best = player.play()
    assert best.fully_validated
    assert kind(player.units[best.configuration]) == better
    assert abs(player.x_of(best) - 0.7) < 0.2


def test_whole_fits_that_are_given_up_are_not_paused():
    player = Player(
        World(seconds=lambda x, effort: 10.0 * effort),
        grows=lambda units: np.zeros(len(units), dtype=bool),
    )
    assert player.play() is None
    assert {outcome.kind for _, outcome in player.history} == {Kind.GAVE_UP}
    assert not player.curves.spent.any()
    assert player.race.surplus(0) == []


@pytest.mark.parametrize("n_choices", [1, 2, 3, 12])
def test_all_configurations_of_a_small_space_are_grown(n_choices):
    values = tuple(np.linspace(0.0, 0.7, n_choices)) if n_choices > 1 else (0.7,)
    space = Space((Parameter("x", "categorical", choices=values),))

    class Listed(World):
        def run(self, pull, x, cutoff):
            place = space.configuration(player.units[pull.configuration])["x"]
            return super().run(pull, float(place), cutoff)

    player = Player(Listed(), budget=200.0, space=space)
    best = player.play()
    assert best.fully_validated
    assert best.level == TOP
    assert space.configuration(player.units[best.configuration])["x"] == 0.7
    assert player.now < player.budget, "it ends when nothing is left"


def test_noisy_curves():
    rng = np.random.default_rng(0)
    noise = {}

    def score(x, fold, level):
        key = x, fold, level
        noise.setdefault(key, 0.1 * rng.normal())
        return rising(x, fold, level) + noise[key]

    player = Player(World(score), budget=60.0)
    best = player.play()
    assert best.fully_validated
    assert abs(player.x_of(best) - 0.7) < 0.35


def test_curves_that_cross_are_followed():
    # Below 0.5 a configuration is better at first and worse in the end.
    def score(x, fold, level):
        return 0.6 if x < 0.5 else (0.3, 0.45, 0.6, 0.75, 0.9)[level]

    player = Player(World(score))
    best = player.play()
    assert player.x_of(best) >= 0.5
    assert best.level == TOP


def test_nothing_but_nan():
    player = Player(World(lambda x, fold, level: math.nan), budget=2.0)
    assert player.play() is None
    ledger = player.race.ledger
    assert (ledger.failed | (ledger.waited > 0)).all(), "each one broke, or was not seen in time"


@pytest.mark.parametrize("constant", [0.0, 1.0, -1e9])
def test_equal_scores_everywhere(constant):
    best = Player(World(lambda x, fold, level: constant), budget=5.0).play()
    assert best.fully_validated
    assert best.level == 0, "more effort for nothing is not recommended"


def test_every_pull_says_why():
    player = Player(World())
    player.play()
    assert all(pull.reason for pull in player.pulls)


def looks(*scores):
    return [Look(level, score, 0.1 * EFFORTS[level]) for level, score in enumerate(scores)]
