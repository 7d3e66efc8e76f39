"""A small Gaussian process regression for the proposal model.

The kernel is Matérn-5/2 with one length scale per feature. The scales are fitted by maximum a
posteriori, and the amplitude is computed in closed form. Scales are refitted only when the caller
has seen a fifth more data than at the last fit, so that a proposal costs milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The scales are refitted when the number of observations has grown by this factor.
GROWTH = 1.2
# Smallest and largest number of points that the scales are fitted to, and optimizer iterations.
FEWEST_FITTED = 3
MOST_FITTED = 80
ITERATIONS = 12
# Added to the diagonal of the kernel matrix for numerical stability.
JITTER = 1e-5
# For points with a time: the part of the variance that does not change with time, and the length
# scale of the rest. A curve that is good early stays good more often than not.
STEADY_SHARE = 0.7
TIME_SCALE = 0.5
# Log-normal priors as (log of the median, standard deviation of the log), for features in [0, 1].
SCALE_PRIOR = (math.log(0.6), 1.0)
NOISE_PRIOR = (math.log(0.1), 1.5)
SCALE_BOUNDS = (math.log(0.05), math.log(20.0))
NOISE_BOUNDS = (math.log(1e-4), math.log(2.0))


@dataclass(frozen=True)
class Hyperparameters:
    """Fitted hyper-parameters: logarithms of the length scales and of the noise.

    The noise is in units of the amplitude. ``n_seen`` is the number of observations known when
    they were fitted.
    """

    log_scales: Floats
    log_noise: float
    n_seen: int

    @classmethod
    def unfitted(cls, n_features: int) -> Hyperparameters:
        """Return the medians of the priors."""
        return cls(np.full(n_features, SCALE_PRIOR[0]), NOISE_PRIOR[0], 0)


class GaussianProcess:
    """A Gaussian process conditioned on observed points.

    Parameters
    ----------
    features : ndarray of shape (n_points, n_features)
        The observed points, in the unit cube.
    values : ndarray of shape (n_points,)
        Their observed values.
    noise : ndarray of shape (n_points,)
        Each point's factor of the noise variance: 1 for a single observation, less for a mean of
        several.
    previous : Hyperparameters
        Hyper-parameters of the previous process; they are reused or are the start of a new fit.
    n_seen : int, default=None
        Number of all observations; the points may be a subset of them. It determines when the
        hyper-parameters are refitted. None means the number of points.
    times : ndarray of shape (n_points,), default=None
        Time of each point in [0, 1], if the values are points of curves over time. The kernel is
        then multiplied by one that couples the times of a curve.
    """

    def __init__(
        self,
        features: Floats,
        values: Floats,
        noise: Floats,
        previous: Hyperparameters,
        n_seen: int | None = None,
        times: Floats | None = None,
    ) -> None:
        self._times = times
        self.mean = float(values.mean())
        centred = values - self.mean
        n_seen = len(values) if n_seen is None else n_seen
        self.hyperparameters = previous
        if n_seen >= GROWTH * previous.n_seen and len(values) >= FEWEST_FITTED:
            coupling = None if times is None else _coupling(times, times)
            self.hyperparameters = _fitted(features, centred, noise, coupling, previous, n_seen)
        self._scales = np.exp(self.hyperparameters.log_scales)
        self._points = features / self._scales
        kernel = _kernel(self._points, self._points, np.float64)
        if times is not None:
            kernel = kernel * _coupling(times, times)
        noise_ratio = math.exp(self.hyperparameters.log_noise)
        kernel[np.diag_indices_from(kernel)] += noise_ratio * noise + JITTER
        self._root = _root(kernel)
        self._weights = cho_solve((self._root, True), centred)
        self._variance = max(float(centred @ self._weights) / len(values), 1e-12)
        self.noise_variance = noise_ratio * self._variance

    def predict(self, features: Floats, times: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the mean and standard deviation of the noise-free value at each point.

        With ``times``, the values are those of each point at each of these times, point by point.
        """
        # Single precision halves the cost for many candidates and is accurate enough.
        kernel = _kernel(features / self._scales, self._points, np.float32)
        if times is not None:
            assert self._times is not None
            coupling = _coupling(times, self._times)
            kernel = (kernel[:, None, :] * coupling[None, :, :]).reshape(-1, kernel.shape[1])
        half = solve_triangular(self._root, kernel.T, lower=True, check_finite=False)
        variance = self._variance * np.maximum(1.0 - (half * half).sum(axis=0), 1e-9)
        return self.mean + kernel @ self._weights, np.sqrt(variance)


def _kernel(left: Floats, right: Floats, precision: type[np.floating[Any]]) -> Floats:
    """Return the Matérn-5/2 kernel matrix of points that are divided by the length scales."""
    near, far = left.astype(precision), right.astype(precision)
    squares = (near**2).sum(axis=1)[:, None] + (far**2).sum(axis=1)[None, :]
    distance = np.sqrt(5.0 * np.maximum(squares - 2.0 * (near @ far.T), 0.0))
    kernel = (1.0 + distance + distance * distance / 3.0) * np.exp(-distance)
    return np.asarray(kernel, dtype=np.float64)


def _coupling(left: Floats, right: Floats) -> Floats:
    """Return the kernel matrix of times."""
    distance = np.abs(left[:, None] - right[None, :]) * (math.sqrt(5.0) / TIME_SCALE)
    changing = (1.0 + distance + distance * distance / 3.0) * np.exp(-distance)
    return np.asarray(STEADY_SHARE + (1.0 - STEADY_SHARE) * changing)


def _root(kernel: Floats) -> Floats:
    """Return the Cholesky factor; add to the diagonal if repeated points make it singular."""
    for extra in (0.0, 1e-4, 1e-2):
        try:
            padded = kernel + extra * np.eye(len(kernel)) if extra else kernel
            return np.asarray(np.linalg.cholesky(padded))
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.diag(kernel)))


def _fitted(
    features: Floats,
    centred: Floats,
    noise: Floats,
    coupling: Floats | None,
    previous: Hyperparameters,
    n_seen: int,
) -> Hyperparameters:
    chosen = _informative(centred)
    of_chosen = None if coupling is None else coupling[np.ix_(chosen, chosen)]
    start = np.append(previous.log_scales, previous.log_noise)
    found = minimize(
        _loss,
        start,
        args=(features[chosen], centred[chosen], noise[chosen], of_chosen),
        jac=True,
        method="L-BFGS-B",
        bounds=[SCALE_BOUNDS] * features.shape[1] + [NOISE_BOUNDS],
        options={"maxiter": ITERATIONS},
    )
    best = found.x if np.isfinite(found.x).all() else start
    return Hyperparameters(best[:-1], float(best[-1]), n_seen)


def _informative(centred: Floats) -> Indices:
    """Return the indices of the points that the scales are fitted to."""
    if len(centred) <= MOST_FITTED:
        return np.arange(len(centred))
    return best_and_spread(np.argsort(-centred, kind="stable"), MOST_FITTED)


def best_and_spread(ordered: Indices, most: int) -> Indices:
    """Return at most ``most`` of the indices, which are ordered with the best first.

    One half are the best ones, and the other half are spread evenly over the rest.
    """
    if len(ordered) <= most:
        return ordered
    best, others = ordered[: most // 2], ordered[most // 2 :]
    even = np.linspace(0, len(others) - 1, most - len(best)).round().astype(np.intp)
    return np.concatenate([best, others[even]])


def _loss(
    logs: Floats, features: Floats, centred: Floats, noise: Floats, coupling: Floats | None = None
) -> tuple[float, Floats]:
    """Return the negative log posterior, with the amplitude profiled out, and its gradient."""
    n, scales, noise_ratio = len(centred), np.exp(logs[:-1]), math.exp(logs[-1])
    points = features / scales
    squares = (points**2).sum(axis=1)
    gaps = np.maximum(squares[:, None] + squares[None, :] - 2.0 * points @ points.T, 0.0)
    distance = np.sqrt(5.0 * gaps)
    decay = np.exp(-distance)
    if coupling is not None:
        decay *= coupling
    kernel = (1.0 + distance + distance * distance / 3.0) * decay
    kernel[np.diag_indices(n)] += noise_ratio * noise + JITTER
    root = _root(kernel)
    inverse = cho_solve((root, True), np.eye(n))
    weights = inverse @ centred
    amplitude = max(float(centred @ weights) / n, 1e-12)
    pull = np.outer(weights, weights) / amplitude - inverse
    slope = pull * (5.0 / 3.0) * (1.0 + distance) * decay
    # This is Σ_ab slope·(x_aj − x_bj)² for all features j at once, because slope is symmetric.
    moments = 2.0 * (slope.sum(axis=1) @ points**2 - (points * (slope @ points)).sum(axis=0))
    gradient = np.append(-0.5 * moments, -0.5 * noise_ratio * float(np.diag(pull) @ noise))
    centres = np.append(np.full(len(scales), SCALE_PRIOR[0]), NOISE_PRIOR[0])
    widths = np.append(np.full(len(scales), SCALE_PRIOR[1]), NOISE_PRIOR[1])
    away = (logs - centres) / widths
    loss = 0.5 * n * math.log(amplitude) + float(np.log(np.diag(root)).sum())
    return loss + 0.5 * float(away @ away), gradient + away / widths
