"""Any space: refused with a clear error, or every configuration of it can be used and stored."""

import json
import math

import numpy as np
import optuna
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune.cli.job import space_of_toml
from f2a_tune.racing import RandomProposals
from f2a_tune.sklearn_plugin.search_space import SearchSpace

NAMES = ("svc__C", "svc__gamma", "svc__kernel", "svc", "standardscaler__with_mean", "svk__C", "")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=80),
    st.sampled_from([SVC(), np.float32(1.5), np.int64(3), (1, 2), [1], {"a": 1}, math.nan, len]),
)
NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=True, allow_infinity=True))


@st.composite
def distributions(draw):
    low, high = draw(NUMBERS), draw(NUMBERS)
    log = draw(st.booleans())
    make = draw(
        st.sampled_from(
            [
                lambda: FloatDistribution(low, high, log=log),
                lambda: IntDistribution(int(low), int(high), log=log),
                lambda: CategoricalDistribution([low, high]),
                lambda: scipy.stats.uniform(low, high),
                lambda: scipy.stats.loguniform(low, high),
                lambda: scipy.stats.randint(int(low), int(high)),
                lambda: scipy.stats.norm(low, high),
                lambda: scipy.stats.poisson(low),
            ]
        )
    )
    try:
        return make()
    except (ValueError, OverflowError):
        assume(False)


SPECS = st.one_of(
    st.lists(VALUES, max_size=5),
    st.lists(st.floats(allow_nan=False), max_size=5).map(np.array),
    distributions(),
    st.text(max_size=3),
    st.integers(),
)
DICTS = st.dictionaries(st.sampled_from(NAMES), SPECS, max_size=3)


@given(given_space=st.one_of(DICTS, st.lists(DICTS, max_size=3), st.none(), st.text(max_size=3)))
def test_a_space_is_refused_or_works(given_space):
    estimator = make_pipeline(StandardScaler(), SVC())
    try:
        space = SearchSpace(given_space, estimator)
    except (ValueError, TypeError):
        return
    assert space.size >= 1
    assert space.fingerprint == SearchSpace(given_space, estimator).fingerprint
    proposals, study = RandomProposals(space.space, 0), optuna.create_study()
    units = []
    for _ in range(5):
        offer = proposals.offer(None, units, 1.0)
        if offer is None:
            assert len(units) >= 1
            break
        units.append(offer.unit)
        params, stored = space.params(offer.unit), space.stored(offer.unit)
        assert all(name in NAMES for name in params)
        json.dumps([float(number) for number in offer.unit])
        study.add_trial(
            create_trial(
                value=0.0,
                params={name: value for name, (value, _) in stored.items()},
                distributions={name: one for name, (_, one) in stored.items()},
            )
        )
    assert len(study.trials) == len(units)
    space.own(estimator)


@given(text=st.text(max_size=200))
def test_any_text_as_toml(text):
    check_toml(text)


PLAIN = st.one_of(
    st.booleans(), st.integers(-1000, 1000), st.floats(), st.text("ab\"'", max_size=3)
)


@given(
    content=st.dictionaries(
        st.sampled_from(["C", "a__b", "spaces", "low"]),
        st.one_of(
            PLAIN,
            st.lists(PLAIN, max_size=3),
            st.dictionaries(
                st.sampled_from(["low", "high", "log", "step", "what"]),
                st.one_of(PLAIN, st.lists(PLAIN, max_size=2)),
                max_size=4,
            ),
        ),
        max_size=3,
    )
)
def test_any_content_as_toml(content):
    check_toml("\n".join(f"{name} = {toml(value)}" for name, value in content.items()))


def check_toml(text):
    try:
        found = space_of_toml(text)
    except ValueError as error:
        if not str(error).startswith("--space"):
            raise
        return
    dicts = found if isinstance(found, list) else [found]
    kinds = (list, FloatDistribution, IntDistribution)
    assert all(isinstance(one, kinds) for space in dicts for one in space.values())


def toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str) else repr(value)
