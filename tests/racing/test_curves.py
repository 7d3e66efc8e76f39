"""Learning curves: which level of a configuration counts."""

import numpy as np
import pytest

from f2a_tune.racing.curves import Curves, best_level
from f2a_tune.racing.pull import Look

NAN = float("nan")


def looks(*scores, first=0):
    return [Look(first + place, score, 1.0 + place) for place, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("scores", "level"),
    [
        ([[1.0, 2.0, 3.0]], 2),
        ([[1.0, 3.0, 2.0]], 1),  # it overfits
        ([[2.0, 2.0, 2.0]], 0),  # more effort for nothing
        ([[1.0, 3.0, NAN], [2.0, 1.5, 1.0]], 1),  # both folds decide about level 1
        ([[1.0, 2.0, 4.0], [2.0, 3.0, NAN]], 2),  # only the first fold has been there
        ([[NAN, 2.0, 1.0]], 1),  # the first look skipped a level
    ],
)
def test_best_level(scores, level):
    assert best_level(np.array(scores)) == level


def test_a_level_is_validated_when_all_folds_have_reached_it():
    curves = Curves(2, [1, 2, 4])
    curves.add(0, 0, looks(1.0, 2.0, 3.0), 3.0)
    curves.best(0)
    assert (curves.level[0], curves.validated_level[0]) == (2, -1)
    curves.add(0, 1, looks(2.0, 1.0), 2.0)
    curves.best(0)
    assert (curves.level[0], curves.validated_level[0]) == (2, 0)
    assert curves.validated_mean[0] == pytest.approx(1.5)
    curves.add(0, 1, looks(9.0, first=2), 1.0)
    curves.best(0)
    assert (curves.level[0], curves.validated_level[0]) == (2, 2)


def test_a_curve_ends_where_it_diverges_and_keeps_what_it_had():
    curves = Curves(1, [1, 2, 4])
    curves.add(0, 0, looks(1.0, NAN, 5.0), 3.0)
    view = curves.best(0)
    assert curves.ended[0, 0]
    assert (view.level, view.scores.tolist()) == (0, [1.0])


def test_seconds_add_up_over_pauses_until_a_restart():
    curves = Curves(1, [1, 2])
    curves.add(0, 0, looks(1.0), 1.5)
    curves.add(0, 0, [], 0.5)
    assert curves.spent[0, 0] == 2.0
    curves.restart(0, 0)
    assert curves.spent[0, 0] == 0.0


def test_there_is_room_for_any_number_of_configurations():
    curves = Curves(2, [1, 2])
    curves.add(200, 1, looks(0.5), 1.0)
    assert curves.n == 201
    assert curves.reached[200].tolist() == [-1, 0]
    assert curves.level[199] == -1
