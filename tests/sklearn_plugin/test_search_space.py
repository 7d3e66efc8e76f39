"""Users' spaces as the race's."""

import numpy as np
import optuna
import pytest
import scipy.stats
from optuna.distributions import FloatDistribution
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune.sklearn_plugin.search_space import SearchSpace


def drawn(space, count=200, seed=0):
    rows = space.space.sample(np.random.default_rng(seed), count)
    return [space.params(row) for row in rows]


def test_lists_arrays_and_distributions():
    given = {
        "C": scipy.stats.loguniform(1e-2, 1e2),
        "degree": scipy.stats.randint(2, 6),
        "kernel": ["rbf", "linear", None],
        "gamma": np.array([0.1, 1.0, 10.0]),
        "coef0": scipy.stats.norm(0, 1),
        "tol": scipy.stats.uniform(0.1, 0.4),
        "shrinking": [True, False],
        "cache_size": optuna.distributions.IntDistribution(100, 400, step=100),
    }
    space = SearchSpace(given, SVC())
    found = drawn(space)
    assert all(1e-2 <= params["C"] <= 1e2 for params in found)
    assert 0.3 < np.mean([params["C"] < 1 for params in found]) < 0.7
    assert {params["degree"] for params in found} == {2, 3, 4, 5}
    assert {params["kernel"] for params in found} == {"rbf", "linear", None}
    assert {params["gamma"] for params in found} == {0.1, 1.0, 10.0}
    assert abs(np.mean([params["coef0"] for params in found])) < 0.3
    assert all(0.1 <= params["tol"] <= 0.5 for params in found)
    assert {params["cache_size"] for params in found} == {100, 200, 300, 400}
    assert all(type(params["shrinking"]) is bool for params in found)
    assert space.size == np.inf


def test_a_list_of_dicts_is_a_choice():
    pipe = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    given = [
        {"model": [SVC()], "model__C": [1, 10, 100]},
        {"model": [LogisticRegression()], "model__C": [0.5], "scale": ["passthrough"]},
    ]
    space = SearchSpace(given, pipe)
    assert space.size == 4
    for params in drawn(space):
        if isinstance(params["model"], SVC):
            assert set(params) == {"model", "model__C"}
            assert params["model__C"] in (1, 10, 100)
        else:
            assert params["model__C"] == 0.5
            assert params["scale"] == "passthrough"


def test_anything_with_rvs():
    class Odd:
        def rvs(self, random_state=None):
            return 2 * np.random.RandomState(random_state).randint(5) + 1

    space = SearchSpace({"degree": Odd()}, SVC())
    row = space.space.sample(np.random.default_rng(0), 1)[0]
    assert space.params(row) == space.params(row)
    assert {params["degree"] for params in drawn(space)} == {1, 3, 5, 7, 9}


def test_what_is_stored_fits_every_storage():
    given = {
        "C": scipy.stats.loguniform(0.1, 10),
        "kernel": ["rbf", SVC(), SVC(), 1, True, (2, 3)],
    }
    space = SearchSpace(given, SVC())
    labels = set()
    for row in space.space.sample(np.random.default_rng(0), 100):
        stored = space.stored(row)
        value, distribution = stored["kernel"]
        labels.add((type(value), value))
        assert distribution._contains(distribution.to_internal_repr(value))
        assert isinstance(value, (str, int, bool))
    assert len(labels) == 6


def test_fingerprints():
    def of(**given):
        return SearchSpace(given, SVC()).fingerprint

    assert of(C=[1, 2, 3]) == of(C=[1, 2, 3])
    assert of(C=[1, 2, 3]) != of(C=[1, 2, 4])
    assert of(C=scipy.stats.uniform(0, 1)) != of(C=scipy.stats.uniform(0, 2))


def test_an_empty_dict_is_one_configuration():
    space = SearchSpace({}, SVC())
    assert space.size == 1
    assert drawn(space, 2) == [{}, {}]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"gama": [1]}, ValueError, "did you mean 'gamma'"),
        ({"C": []}, ValueError, r"param_distributions\['C'\] must not be empty"),
        ({"C": 3}, TypeError, "Wrap a single value in a list"),
        ({"kernel": "rbf"}, TypeError, "Wrap a single value in a list"),
        ("C", TypeError, "must be a dict or a list of dicts"),
        ([], ValueError, "must not be an empty list"),
        ([3], TypeError, "must contain dicts"),
    ],
)
def test_bad_input(given, error, words):
    with pytest.raises(error, match=words):
        SearchSpace(given, SVC())


def test_written_down_configurations_become_rows():
    from sklearn.pipeline import make_pipeline

    estimator = make_pipeline(LogisticRegression())
    space = SearchSpace(
        [
            {"logisticregression__C": FloatDistribution(0.1, 10, log=True)},
            {"logisticregression__fit_intercept": [True, False]},
        ],
        estimator,
    )
    for wanted in ({"logisticregression__C": 2.0}, {"logisticregression__fit_intercept": False}):
        params = space.params(space.encoded(wanted))
        assert list(params) == list(wanted)
        assert list(params.values()) == pytest.approx(list(wanted.values()))
    for wrong in ({"logisticregression__C": 100.0}, {"C": 1.0}, {}):
        with pytest.raises(ValueError, match="which is not in the space"):
            space.encoded(wrong)


def test_the_estimators_own_values_are_a_row_if_they_are_in_the_space():
    given = [
        {"kernel": ["linear"], "C": scipy.stats.expon(scale=2)},
        {"kernel": ["rbf"], "C": scipy.stats.expon(scale=2), "gamma": FloatDistribution(0.01, 1)},
    ]
    space = SearchSpace(given, SVC())
    own = space.params(space.own(SVC(C=3.0, gamma=0.5)))
    assert own == {"kernel": "rbf", "C": pytest.approx(3.0), "gamma": 0.5}
    assert space.params(space.own(SVC(kernel="linear", C=1)))["C"] == pytest.approx(1.0)
    for outside in (SVC(), SVC(gamma=2.0), SVC(C=1e9, gamma=0.5), SVC(C=True, gamma=0.5)):
        assert space.own(outside) is None


def test_a_start_is_in_the_units_of_its_distribution():
    space = SearchSpace({"C": scipy.stats.norm(5, 1), "degree": scipy.stats.poisson(3)}, SVC())
    row = space.encoded({"C": 6.5, "degree": 4})
    assert space.params(row) == {"C": pytest.approx(6.5), "degree": 4}
    with pytest.raises(ValueError, match="not in the space"):
        space.encoded({"C": 6.5, "degree": 4.5})


class Endless:
    """Has quantiles, and nothing that says where a value is."""

    def rvs(self, random_state=None):
        return 1.0

    def ppf(self, quantile):
        return quantile


def test_own_values_that_no_distribution_knows():
    assert SearchSpace({"C": Endless()}, SVC()).own(SVC()) is None
    whole = SearchSpace({"C": scipy.stats.poisson(3)}, SVC())
    assert whole.own(SVC(C=np.nan)) is None
    assert whole.own(SVC(C=np.inf)) is None
    assert whole.params(whole.own(SVC(C=2.0))) == {"C": 2}


@pytest.mark.parametrize(
    "spec", [scipy.stats.poisson(-1.0), scipy.stats.norm(0, -1), scipy.stats.poisson(np.nan)]
)
def test_distributions_that_draw_nothing_are_refused_at_once(spec):
    with pytest.raises(ValueError, match=r"param_distributions\['C'\]=.* does not draw finite"):
        SearchSpace({"C": spec}, SVC())


def test_the_nearest_configuration_to_an_estimator():
    space = SearchSpace(
        {"C": scipy.stats.loguniform(10, 1000), "gamma": ["a", "b"], "kernel": ["poly", "rbf"]},
        SVC(),
    )
    nearest = space.params(space.nearest_to(SVC()))
    assert nearest == {"C": pytest.approx(10.0), "gamma": "a", "kernel": "rbf"}
    assert space.is_in_space(space.nearest_to(SVC()))


def test_an_estimator_outside_the_space_has_a_row_of_its_own():
    space = SearchSpace({"C": [10.0, 100.0]}, SVC())
    assert space.own(SVC()) is None
    assert not space.is_in_space(space.nothing_set)
    assert space.params(space.nothing_set) == {"C": 1.0}
    assert space.stored(space.nothing_set) == {}
