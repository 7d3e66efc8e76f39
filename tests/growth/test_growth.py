"""A grown model is the model of a plain fit with that many rounds."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from f2a_tune.growth import StopGrowing, growable

ROUNDS = (3, 6, 12)


def classes(n_classes=3, n=240):
    return make_classification(n, 8, n_informative=5, n_classes=n_classes, random_state=0)


def numbers(n=240):
    return make_regression(n, 8, noise=5.0, random_state=0)


def outputs(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def check_equality(estimator, X, y, fit_params=None, rounds=ROUNDS):
    """Compare the model at every number of rounds with a plain fit."""
    fit_params, found = fit_params or {}, {}
    growth = growable(clone(estimator))
    fitted = growth.fit(X, y, rounds, lambda done, model: found.update({done: outputs(model, X)}),
                        fit_params)  # fmt: skip
    assert list(found) == list(rounds)
    for done, values in found.items():
        plain = clone(estimator).set_params(**{growth.parameter: done}).fit(X, y, **fit_params)
        assert np.array_equal(values, outputs(plain, X))
    assert np.array_equal(outputs(fitted, X), values)
    return growth


WARM = [
    (RandomForestClassifier(random_state=1), classes()),
    (RandomForestClassifier(class_weight="balanced", oob_score=False, random_state=1), classes(2)),
    (RandomForestRegressor(max_samples=0.5, random_state=1), numbers()),
    (ExtraTreesClassifier(random_state=1), classes()),
    (ExtraTreesRegressor(random_state=1), numbers()),
    (GradientBoostingClassifier(subsample=0.7, max_features=0.5, random_state=1), classes()),
    (GradientBoostingRegressor(subsample=0.7, random_state=1), numbers()),
    (HistGradientBoostingClassifier(random_state=1), classes()),
    (HistGradientBoostingClassifier(max_features=0.5, random_state=1), classes(2)),
    (HistGradientBoostingRegressor(random_state=1), numbers()),
    (BaggingClassifier(random_state=1), classes()),
    (BaggingRegressor(random_state=1), numbers()),
]


@pytest.mark.parametrize(("estimator", "data"), WARM, ids=lambda value: type(value).__name__)
def test_ensembles_of_scikit_learn(estimator, data):
    growth = check_equality(estimator, *data)
    assert growth.rounds == clone(estimator).get_params()[growth.parameter]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "data"), [
    (MLPClassifier((8,), random_state=1), classes()),
    (MLPClassifier((8,), solver="sgd", learning_rate="adaptive", random_state=1), classes(2)),
    (MLPRegressor(hidden_layer_sizes=(8, 4), batch_size=32, random_state=1), numbers()),
])  # fmt: skip
def test_neural_networks(estimator, data):
    check_equality(estimator, *data)


def test_a_neural_network_that_converges_is_looked_at_when_it_stops():
    X, y = classes(2)
    estimator = MLPClassifier((8,), tol=10.0, n_iter_no_change=2, max_iter=64, random_state=1)
    plain, seen = clone(estimator).fit(X, y), []
    fitted = growable(clone(estimator)).fit(X, y, [2, 8, 64], lambda done, _: seen.append(done))
    assert seen[-1] == plain.n_iter_ < 64
    assert np.array_equal(outputs(fitted, X), outputs(plain, X))
    assert "_update_no_improvement_count" not in vars(fitted)


def test_the_estimator_is_left_as_it_was_but_for_its_rounds():
    estimator = RandomForestClassifier(n_estimators=50, random_state=1)
    fitted = growable(estimator).fit(*classes(), ROUNDS, lambda *_: None)
    assert fitted.warm_start is False
    assert fitted.n_estimators == 12


def test_sample_weights_and_sparse_rows():
    X, y = classes(2)
    weight = np.linspace(0.1, 2.0, len(y))
    check_equality(RandomForestClassifier(random_state=1), X, y, {"sample_weight": weight})
    check_equality(GradientBoostingClassifier(random_state=1), sparse.csr_array(X), y)


def test_early_stopping_of_hist_gradient_boosting_is_respected():
    X, y = classes(2, 600)
    estimator = HistGradientBoostingClassifier(
        early_stopping=True, n_iter_no_change=2, learning_rate=0.8, max_iter=256, random_state=1
    )
    plain = clone(estimator).fit(X, y)
    assert plain.n_iter_ < 128, "the test needs a fit that stops"
    seen = []
    fitted = growable(clone(estimator)).fit(
        X, y, [2**power for power in range(9)], lambda done, _: seen.append(done)
    )
    assert seen[-1] == plain.n_iter_
    assert seen == sorted(set(seen))
    assert np.array_equal(outputs(fitted, X), outputs(plain, X))


@pytest.mark.parametrize("last", [RandomForestClassifier(random_state=1),
                                  HistGradientBoostingClassifier(random_state=1)])  # fmt: skip
def test_the_last_step_of_a_pipeline(last):
    X, y = classes()
    count = []

    class Counting(StandardScaler):
        def fit(self, X, y=None):
            count.append(1)
            return super().fit(X, y)

    scale = make_column_transformer((Counting(), [0, 1, 2]), remainder="passthrough")
    growth = growable(make_pipeline(scale, clone(last)))
    growth.fit(X, y, ROUNDS, lambda *_: None)
    assert len(count) == 1, "transformers are fitted once"
    check_equality(make_pipeline(StandardScaler(), last), X, y)
    check_equality(make_pipeline(last), X, y)


def test_fit_parameters_of_a_pipeline():
    X, y = classes(2)
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(random_state=1))
    weight = {"randomforestclassifier__sample_weight": np.linspace(0.1, 2.0, len(y))}
    check_equality(pipeline, X, y, weight)
    with pytest.raises(ValueError, match="standardscaler__sample_weight"):
        growable(pipeline).fit(X, y, ROUNDS, lambda *_: None, {"standardscaler__sample_weight": 1})


class Steps(BaseEstimator):
    """A user's own estimator."""

    growth_parameter = "n_steps"

    def __init__(self, n_steps=10, stops_after=10**9):
        self.n_steps, self.stops_after = n_steps, stops_after

    def fit(self, X, y):
        return self.grow(X, y, self.n_steps)

    def grow(self, X, y, rounds):
        self.rounds_done_ = min(rounds, self.stops_after)
        return self

    def predict(self, X):
        return np.full(len(X), self.rounds_done_)


def test_an_estimator_of_ones_own():
    X, y = numbers()
    growth = check_equality(Steps(), X, y)
    assert (growth.parameter, growth.rounds) == ("n_steps", 10)
    seen = []
    growable(Steps(stops_after=5)).fit(X, y, ROUNDS, lambda done, _: seen.append(done))
    assert seen == [3, 5]


def test_a_growth_parameter_that_is_none():
    class Wrong(Steps):
        growth_parameter = "steps"

    with pytest.raises(ValueError, match="growth_parameter of Wrong"):
        growable(Wrong())


@pytest.mark.parametrize("estimator", [estimator for estimator, _ in WARM[::3]] + [Steps()])
def test_a_look_can_stop_the_fit(estimator):
    X, y = classes()
    seen = []

    def look(done, model):
        seen.append(done)
        if done == 6:
            raise StopGrowing

    fitted = growable(clone(estimator)).fit(X, y, ROUNDS, look)
    assert seen == [3, 6]
    growth = growable(clone(estimator))
    plain = clone(estimator).set_params(**{growth.parameter: 6}).fit(X, y)
    assert np.array_equal(outputs(fitted, X), outputs(plain, X))


class OwnForest(RandomForestClassifier):
    pass


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        MLPClassifier(early_stopping=True),
        MLPClassifier(solver="lbfgs"),
        OwnForest(),
        RandomForestClassifier(warm_start=True),
        GradientBoostingClassifier(n_iter_no_change=3),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler()),
        object(),
    ],
)
def test_what_does_not_grow(estimator):
    assert growable(estimator) is None


@pytest.mark.parametrize("rounds", [(), (0, 1), (2, 2), (3, 2)])
def test_rounds_must_rise(rounds):
    with pytest.raises(ValueError, match="rounds must be"):
        growable(RandomForestClassifier()).fit(*classes(), rounds, lambda *_: None)
