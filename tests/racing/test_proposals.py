"""What the model draws."""

import numpy as np
import pytest

from f2a_tune.outcome import Outcome
from f2a_tune.racing import (
    ModelProposals,
    Parameter,
    Pull,
    Race,
    RandomProposals,
    Space,
    StartProposals,
)

SPACE = Space(
    (
        Parameter("x", "float", 0.0, 1.0),
        Parameter("y", "float", 0.0, 1.0),
        Parameter("kind", "categorical", choices=("a", "b")),
    )
)


def score(unit):
    bonus = 0.2 if unit[2] < 0.5 else 0.0
    return bonus - (unit[0] - 0.7) ** 2 - (unit[1] - 0.2) ** 2


def tune(proposals, seconds, budget, seed=0, n_folds=3):
    race, units, now = Race(n_folds, budget), [], 0.0
    rng = np.random.default_rng(seed)
    while True:
        offer = proposals.offer(race.ledger, units, max(race.fresh_cutoff(now), 1e-6))
        pull = race.ask(now, offer)
        if pull is None:
            return race, units
        if pull.fresh:
            units.append(offer.unit)
        unit = units[pull.configuration]
        took = seconds(unit)
        outcome = Outcome.finished(score(unit) + 0.001 * rng.normal(), took)
        if took > pull.cutoff_seconds:
            outcome = Outcome.gave_up(pull.cutoff_seconds)
        now += outcome.seconds
        race.tell(pull, outcome)


def best_score(proposals, seconds, budget, seed):
    race, units = tune(proposals, seconds, budget, seed)
    return score(units[race.recommend(final=True).configuration])


def test_the_model_beats_random_draws():
    gaps = {}
    for kind in (ModelProposals, RandomProposals):
        found = [best_score(kind(SPACE, seed), lambda _: 1.0, 60.0, seed) for seed in range(6)]
        gaps[kind] = np.mean(0.2 - np.array(found))
    assert gaps[ModelProposals] < 0.5 * gaps[RandomProposals]


def test_the_model_avoids_what_never_finishes():
    def seconds(unit):
        return 1000.0 if unit[2] >= 0.5 else 1.0

    race, units = tune(ModelProposals(SPACE, 0), seconds, 400.0)
    late = np.array(units[len(units) // 2 :])
    assert np.mean(late[:, 2] >= 0.5) < 0.4
    assert race.recommend(final=True).fully_validated


def test_the_same_history_gives_the_same_offer():
    race, units = tune(ModelProposals(SPACE, 1), lambda _: 1.0, 40.0)
    offers = [ModelProposals(SPACE, 5).offer(race.ledger, units, 2.0) for _ in range(2)]
    np.testing.assert_array_equal(offers[0].unit, offers[1].unit)
    assert offers[0].chance == offers[1].chance


def test_forecasts_are_chances_and_seconds():
    race, units = tune(ModelProposals(SPACE, 2), lambda unit: 0.1 + unit[0], 40.0)
    seen = 0
    for seed in range(10):
        offer = ModelProposals(SPACE, seed).offer(race.ledger, units, 5.0)
        if offer.chance is not None:
            seen += 1
            assert 0 <= offer.chance <= 1
            assert 0 <= offer.finish <= 1
            assert 0.05 < offer.seconds < 3.0
    assert seen >= 4


def test_nothing_is_drawn_twice_from_a_finite_space():
    space = Space((Parameter("n", "int", 0, 9), Parameter("c", "categorical", choices=(1, 2))))
    race, units, proposals = Race(1, 1e6), [], ModelProposals(space, 0)
    modelled = 0
    for _ in range(19):
        offer = proposals.offer(race.ledger, units, 1.0)
        if offer.chance is not None:
            modelled += 1
            assert not any(np.allclose(offer.unit, unit) for unit in units)
        pull = Pull(len(units), 0, 1.0, fresh=True, number=len(units))
        units.append(offer.unit)
        race.rebuild([(pull, Outcome.finished(float(offer.unit[0]), 0.1))])
    assert modelled > 5


def test_draws_in_flight_are_not_drawn_again():
    race, units = tune(ModelProposals(SPACE, 3), lambda _: 1.0, 40.0)
    proposals = ModelProposals(SPACE, 3)
    drawn = []
    for _ in range(8):
        offer = proposals.offer(race.ledger, units, 2.0)
        pull = Pull(len(units), 0, 2.0, fresh=True, number=race.n_pulls)
        race.rebuild([(pull, None)])
        units.append(offer.unit)
        drawn.append(offer.unit)
    rows = np.array(drawn)
    gaps = np.abs(rows[:, None] - rows[None, :]).sum(axis=2)[np.triu_indices(8, 1)]
    assert gaps.min() > 1e-6


@pytest.mark.parametrize("scores", ["equal", "huge"])
def test_odd_scores_do_not_break_the_model(scores):
    race, units, proposals = Race(1, 1e6), [], ModelProposals(SPACE, 0)
    for index in range(40):
        offer = proposals.offer(race.ledger, units, 1.0)
        assert np.isfinite(offer.unit).all()
        value = 1.0 if scores == "equal" else (-1) ** index * 1e300
        pull = Pull(len(units), 0, 1.0, fresh=True, number=index)
        units.append(offer.unit)
        race.rebuild([(pull, Outcome.finished(value, 0.0))])


def test_a_space_of_few_configurations_is_exhausted():
    space = Space((Parameter("c", "categorical", choices=("one", "two", "three")),))
    for proposals in (ModelProposals(space, 0), RandomProposals(space, 0)):
        race, units, found = Race(1, 10.0), [], set()
        while (offer := proposals.offer(race.ledger, units, 1.0)) is not None:
            found.add(space.configuration(offer.unit)["c"])
            pull = Pull(len(units), 0, 1.0, fresh=True, number=len(units))
            units.append(offer.unit)
            race.rebuild([(pull, Outcome.finished(0.5, 0.1))])
        assert len(units) == 3
        assert found == {"one", "two", "three"}


def test_random_draws_cover_the_space():
    proposals, race, units = ModelProposals(SPACE, 0), Race(1, 1e6), []
    seen = []
    for index in range(300):
        offer = proposals.offer(race.ledger, units, 1.0)
        if offer.chance is None:
            seen.append(offer.unit)
        pull = Pull(index, 0, 1.0, fresh=True, number=index)
        units.append(offer.unit)
        race.rebuild([(pull, Outcome.finished(float(index % 7), 0.1))])
    rows = np.array(seen)
    assert len(rows) > 40
    assert rows[:, :2].min() < 0.1
    assert rows[:, :2].max(axis=0).min() > 0.9


def test_before_there_is_a_model_what_is_slow_is_kept_away_from():
    proposals, random = ModelProposals(SPACE, 0), RandomProposals(SPACE, 0)
    away = {}
    for kind in (proposals, random):
        distances = []
        for seed in range(30):
            kind.seed = seed
            race, units = Race(3, 1000.0), []
            for place in range(3):
                pull = race.ask(0.0)
                units.append(np.array([0.1, 0.1 * place, 0.0]))
                race.tell(pull, Outcome.gave_up(pull.cutoff_seconds))
            drawn = kind.offer(race.ledger, units, 1.0).unit
            distances.append(min(np.linalg.norm(drawn[:2] - unit[:2]) for unit in units))
        away[kind] = np.mean(distances)
    assert away[proposals] > 1.15 * away[random]


def test_given_rows_come_first_and_are_waited_for():
    rows = [np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.5, 0.0])]
    proposals = StartProposals(rows, RandomProposals(SPACE, 0))
    race, units = Race(3, 100.0), []
    for row in rows:
        offer = proposals.offer(race.ledger, units, 1.0)
        assert offer.unit is row
        pull = race.ask(0.0, offer)
        # As long as it could be validated; then half of the budget for all that were given.
        assert pull.cutoff_seconds == pytest.approx(25.0 if units else 100.0 / 3)
        units.append(row)
        race.tell(pull, Outcome.finished(0.5, seconds=0.01))
    later = proposals.offer(race.ledger, units, 1.0)
    assert race.ask(0.0, later).cutoff_seconds < 1.0


def test_given_rows_come_though_others_have_drawn_many():
    given, other = np.array([0.5, 0.5, 0.0]), np.array([0.1, 0.5, 0.0])
    proposals = StartProposals([other, given], RandomProposals(SPACE, 0))
    race = Race(3, 100.0)
    units = [other, *SPACE.sample(np.random.default_rng(0), 10)]
    assert proposals.offer(race.ledger, units, 1.0).unit is given
    assert proposals.offer(race.ledger, [*units, given], 1.0).unit is not given
