"""The Gaussian process against finite differences and scikit-learn's."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from f2a_tune.racing import gaussian
from f2a_tune.racing.gaussian import GaussianProcess, Hyperparameters


def data(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.random((n, d))
    values = np.sin(5 * features[:, 0]) + 0.1 * rng.normal(size=n)
    return features, values, rng.uniform(0.2, 1.0, n)


def test_gradient():
    features, values, noise = data()
    for logs in (np.full(4, -0.5), np.array([0.3, -1.0, 0.8, -2.0])):
        error = check_grad(
            lambda x: gaussian._loss(x, features, values, noise)[0],
            lambda x: gaussian._loss(x, features, values, noise)[1],
            logs,
        )
        assert error < 1e-3


def test_predictions_are_those_of_scikit_learn():
    features, values, _ = data()
    process = GaussianProcess(features, values, np.ones(40), Hyperparameters.unfitted(3))
    found = process.hyperparameters
    kernel = ConstantKernel(process._variance) * Matern(np.exp(found.log_scales), nu=2.5)
    kernel += WhiteKernel(process.noise_variance + gaussian.JITTER * process._variance)
    peer = GaussianProcessRegressor(kernel, optimizer=None).fit(features, values - values.mean())
    points = np.random.default_rng(1).random((20, 3))
    mean, deviation = process.predict(points)
    expected, with_noise = peer.predict(points, return_std=True)
    np.testing.assert_allclose(mean, expected + values.mean(), atol=1e-3)
    np.testing.assert_allclose(
        deviation**2 + process.noise_variance, with_noise**2, rtol=0.02, atol=1e-4
    )


def test_it_finds_which_feature_matters():
    features, values, noise = data(n=80)
    found = GaussianProcess(features, values, noise, Hyperparameters.unfitted(3)).hyperparameters
    assert found.log_scales[0] < min(found.log_scales[1:]) - 0.5


def test_scales_are_kept_until_the_data_has_grown():
    features, values, noise = data(n=60)
    first = GaussianProcess(features[:50], values[:50], noise[:50], Hyperparameters.unfitted(3))
    kept = GaussianProcess(features[:55], values[:55], noise[:55], first.hyperparameters)
    assert kept.hyperparameters is first.hyperparameters
    grown = GaussianProcess(features, values, noise, first.hyperparameters)
    assert grown.hyperparameters.n_seen == 60


@pytest.mark.parametrize("n", [1, 2, 3, 300])
@pytest.mark.parametrize("values", ["equal", "repeated points"])
def test_degenerate_data(n, values):
    rng = np.random.default_rng(0)
    features = np.zeros((n, 2)) if values == "repeated points" else rng.random((n, 2))
    y = np.zeros(n) if values == "equal" else rng.normal(size=n)
    process = GaussianProcess(features, y, np.ones(n), Hyperparameters.unfitted(2))
    mean, deviation = process.predict(rng.random((5, 2)))
    assert np.isfinite(mean).all()
    assert (deviation > 0).all()
