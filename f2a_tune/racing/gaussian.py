"""A small Gaussian process: points with noisy values go in, means and deviations come out.

Matérn-5/2 kernel with one length scale a feature, all scales fitted by maximum a posteriori; the
amplitude follows from the data in closed form. Scales are fitted again only when the caller has
seen a fifth more than at the last fit, so that a proposal costs milliseconds.
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

GROWTH = 1.2  # fit the scales again when so many times as much is known
FEWEST_FITTED = 3
MOST_FITTED = 80  # points that the scales are fitted to
ITERATIONS = 12
JITTER = 1e-5
# Log-normal priors (median, deviation of the logarithm): features lie in the unit interval.
SCALE_PRIOR = (math.log(0.6), 1.0)
NOISE_PRIOR = (math.log(0.1), 1.5)
SCALE_BOUNDS = (math.log(0.05), math.log(20.0))
NOISE_BOUNDS = (math.log(1e-4), math.log(2.0))


@dataclass(frozen=True)
class Hyperparameters:
    """Logarithms of the length scales and of the noise, in units of the amplitude."""

    log_scales: Floats
    log_noise: float
    n_seen: int

    @classmethod
    def unfitted(cls, n_features: int) -> Hyperparameters:
        """The prior's medians."""
        return cls(np.full(n_features, SCALE_PRIOR[0]), NOISE_PRIOR[0], 0)


class GaussianProcess:
    """The process conditioned on some points.

    ``noise`` gives each point's share of the noise variance: 1 for one observation, less for a
    mean of several. ``n_seen`` is how much is known in all, of which the points may be a part.
    """

    def __init__(
        self,
        features: Floats,
        values: Floats,
        noise: Floats,
        previous: Hyperparameters,
        n_seen: int | None = None,
    ) -> None:
        self.mean = float(values.mean())
        centred = values - self.mean
        n_seen = len(values) if n_seen is None else n_seen
        self.hyperparameters = previous
        if n_seen >= GROWTH * previous.n_seen and len(values) >= FEWEST_FITTED:
            self.hyperparameters = _fitted(features, centred, noise, previous, n_seen)
        self._scales = np.exp(self.hyperparameters.log_scales)
        self._points = features / self._scales
        kernel = _kernel(self._points, self._points, np.float64)
        noise_ratio = math.exp(self.hyperparameters.log_noise)
        kernel[np.diag_indices_from(kernel)] += noise_ratio * noise + JITTER
        self._root = _root(kernel)
        self._weights = cho_solve((self._root, True), centred)
        self._variance = max(float(centred @ self._weights) / len(values), 1e-12)
        self.noise_variance = noise_ratio * self._variance

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the noiseless value at each point."""
        # Single precision halves the cost of many candidates, and is exact enough for them.
        kernel = _kernel(features / self._scales, self._points, np.float32)
        half = solve_triangular(self._root, kernel.T, lower=True, check_finite=False)
        variance = self._variance * np.maximum(1.0 - (half * half).sum(axis=0), 1e-9)
        return self.mean + kernel @ self._weights, np.sqrt(variance)


def _kernel(left: Floats, right: Floats, precision: type[np.floating[Any]]) -> Floats:
    """Matérn-5/2 of scaled points."""
    near, far = left.astype(precision), right.astype(precision)
    squares = (near**2).sum(axis=1)[:, None] + (far**2).sum(axis=1)[None, :]
    distance = np.sqrt(5.0 * np.maximum(squares - 2.0 * (near @ far.T), 0.0))
    kernel = (1.0 + distance + distance * distance / 3.0) * np.exp(-distance)
    return np.asarray(kernel, dtype=np.float64)


def _root(kernel: Floats) -> Floats:
    """Cholesky factor; repeated points may need more on the diagonal than rounding leaves."""
    for extra in (0.0, 1e-4, 1e-2):
        try:
            padded = kernel + extra * np.eye(len(kernel)) if extra else kernel
            return np.asarray(np.linalg.cholesky(padded))
        except np.linalg.LinAlgError:
            continue
    return np.diag(np.sqrt(np.diag(kernel)))


def _fitted(
    features: Floats, centred: Floats, noise: Floats, previous: Hyperparameters, n_seen: int
) -> Hyperparameters:
    chosen = _informative(centred)
    start = np.append(previous.log_scales, previous.log_noise)
    found = minimize(
        _loss,
        start,
        args=(features[chosen], centred[chosen], noise[chosen]),
        jac=True,
        method="L-BFGS-B",
        bounds=[SCALE_BOUNDS] * features.shape[1] + [NOISE_BOUNDS],
        options={"maxiter": ITERATIONS},
    )
    best = found.x if np.isfinite(found.x).all() else start
    return Hyperparameters(best[:-1], float(best[-1]), n_seen)


def _informative(centred: Floats) -> Indices:
    """The points that the scales are fitted to."""
    if len(centred) <= MOST_FITTED:
        return np.arange(len(centred))
    return best_and_spread(np.argsort(-centred, kind="stable"), MOST_FITTED)


def best_and_spread(ordered: Indices, most: int) -> Indices:
    """At most so many of what is ordered best first: half the best, half evenly from the rest."""
    if len(ordered) <= most:
        return ordered
    best, others = ordered[: most // 2], ordered[most // 2 :]
    even = np.linspace(0, len(others) - 1, most - len(best)).round().astype(np.intp)
    return np.concatenate([best, others[even]])


def _loss(logs: Floats, features: Floats, centred: Floats, noise: Floats) -> tuple[float, Floats]:
    """Negative log posterior with the amplitude profiled out, and its gradient."""
    n, scales, noise_ratio = len(centred), np.exp(logs[:-1]), math.exp(logs[-1])
    points = features / scales
    squares = (points**2).sum(axis=1)
    gaps = np.maximum(squares[:, None] + squares[None, :] - 2.0 * points @ points.T, 0.0)
    distance = np.sqrt(5.0 * gaps)
    decay = np.exp(-distance)
    kernel = (1.0 + distance + distance * distance / 3.0) * decay
    kernel[np.diag_indices(n)] += noise_ratio * noise + JITTER
    root = _root(kernel)
    inverse = cho_solve((root, True), np.eye(n))
    weights = inverse @ centred
    amplitude = max(float(centred @ weights) / n, 1e-12)
    pull = np.outer(weights, weights) / amplitude - inverse
    slope = pull * (5.0 / 3.0) * (1.0 + distance) * decay
    # Σ_ab slope·(x_aj − x_bj)² for every feature j at once; slope is symmetric.
    moments = 2.0 * (slope.sum(axis=1) @ points**2 - (points * (slope @ points)).sum(axis=0))
    gradient = np.append(-0.5 * moments, -0.5 * noise_ratio * float(np.diag(pull) @ noise))
    centres = np.append(np.full(len(scales), SCALE_PRIOR[0]), NOISE_PRIOR[0])
    widths = np.append(np.full(len(scales), SCALE_PRIOR[1]), NOISE_PRIOR[1])
    away = (logs - centres) / widths
    loss = 0.5 * n * math.log(amplitude) + float(np.log(np.diag(root)).sum())
    return loss + 0.5 * float(away @ away), gradient + away / widths
