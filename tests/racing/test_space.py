"""Spaces and their unit cube."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f2a_tune.racing import Parameter, Space

MIXED = Space(
    (
        Parameter("model", "categorical", choices=("svc", "forest", 3, None, True, 1)),
        Parameter("C", "float", 1e-3, 1e4, log=True, active_if=(("model", ("svc",)),)),
        Parameter("gamma", "float", -2.0, 5.0, active_if=(("model", ("svc", 3)),)),
        Parameter("trees", "int", 1, 300, log=True, active_if=(("model", ("forest",)),)),
        Parameter("depth", "int", 2, 30, active_if=(("model", ("forest",)),)),
        Parameter("share", "float", 0.1, 0.9, step=0.2),
        Parameter("deeper", "int", 0, 3, active_if=(("model", ("forest",)), ("depth", (2, 3)))),
        Parameter("single", "categorical", choices=("only",)),
        Parameter("fixed", "int", 7, 7),
    )
)


def test_sampled_rows_come_back_from_their_configurations():
    rows = MIXED.sample(np.random.default_rng(0), 500)
    for row in rows:
        configuration = MIXED.configuration(row)
        np.testing.assert_allclose(MIXED.encode(configuration), row, atol=1e-9)


def test_only_active_parameters_are_there():
    for row in MIXED.sample(np.random.default_rng(1), 500):
        found = MIXED.configuration(row)
        assert ("C" in found) == (found["model"] == "svc")
        assert ("gamma" in found) == (found["model"] in ("svc", 3) and found["model"] is not True)
        assert ("trees" in found) == (found["model"] == "forest")
        assert ("deeper" in found) == (found.get("depth") in (2, 3))


def test_values_cover_their_ranges_evenly():
    rows = MIXED.sample(np.random.default_rng(2), 20_000)
    found = [MIXED.configuration(row) for row in rows]
    depths = np.bincount([f["depth"] for f in found if "depth" in f], minlength=31)[2:]
    assert depths.min() > 0.5 * depths.mean()
    logs = np.log([f["C"] for f in found if "C" in f])
    low, high = math.log(1e-3), math.log(1e4)
    assert logs.min() >= low - 1e-9
    assert logs.max() <= high + 1e-9
    assert np.mean(logs) == pytest.approx((low + high) / 2, abs=0.3)
    assert {round(f["share"], 9) for f in found} == {0.1, 0.3, 0.5, 0.7, 0.9}
    assert {type(f["model"]) for f in found} == {str, int, bool, type(None)}
    assert {f["trees"] for f in found if "trees" in f} >= {1, 2, 3, 300}


def test_neighbours_differ_and_stay_inside():
    rng = np.random.default_rng(3)
    rows = MIXED.sample(rng, 300)
    near = MIXED.neighbours(rows, rng)
    for row in near:
        np.testing.assert_allclose(MIXED.encode(MIXED.configuration(row)), row, atol=1e-9)
    changed = [
        MIXED.configuration(a) != MIXED.configuration(b) for a, b in zip(rows, near, strict=True)
    ]
    assert np.mean(changed) > 0.6


def test_features_are_finite_and_tell_choices_apart():
    rows = MIXED.sample(np.random.default_rng(4), 100)
    features = MIXED.features(rows)
    assert np.isfinite(features).all()
    models = {MIXED.configuration(row)["model"] for row in rows}
    assert features.shape[1] == 6 + 7
    assert len(models) > 3


def test_distances():
    space = Space((Parameter("a", "categorical", choices="xyz"), Parameter("b", "float", 0, 1)))
    rows = np.array([space.encode({"a": "x", "b": 0.5}), space.encode({"a": "z", "b": 0.25})])
    np.testing.assert_allclose(space.distances(rows[0], rows), [0.0, 1.0625])


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(0, 1e6),
    unit=st.floats(0, 1),
    kind=st.sampled_from(["float", "int"]),
    log=st.booleans(),
)
def test_numbers_stay_in_range_and_come_back(low, width, unit, kind, log):
    if kind == "int":
        low, width = round(low), round(width)
    if log:
        low = abs(low) + 1
    parameter = Parameter("p", kind, low, low + width, log=log)
    value = parameter.value(unit)
    assert low <= value <= low + width
    again = parameter.value(parameter.unit(value))
    assert again == pytest.approx(value, rel=1e-9, abs=1e-6 * max(width, 1e-3))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("p", "categorical"), "no choices"),
        (("p", "float", 2.0, 1.0), "low <= high"),
        (("p", "float"), "low <= high"),
        (("p", "float", 0.0, 1.0, True), "low > 0"),
    ],
)
def test_bad_parameters(arguments, words):
    with pytest.raises(ValueError, match=words):
        Parameter(*arguments)


def test_bad_spaces():
    a = Parameter("a", "float", 0, 1)
    with pytest.raises(ValueError, match="twice"):
        Space((a, a))
    with pytest.raises(ValueError, match="must come before"):
        Space((Parameter("b", "float", 0, 1, active_if=(("a", (1,)),)), a))
    with pytest.raises(ValueError, match="not one of the choices"):
        MIXED.encode({"model": "forests"})
