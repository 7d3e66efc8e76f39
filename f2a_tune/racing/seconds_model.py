"""A model of how long growing fits take until each level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from f2a_tune.racing.curves import Curves
from f2a_tune.racing.gaussian import GaussianProcess, Hyperparameters
from f2a_tune.racing.ledger import Ledger
from f2a_tune.racing.proposals import LEAST_SECONDS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Largest number of seconds that the process is conditioned on.
MOST_TIMES = 100
# At least this share of the seconds until a look belongs to the rounds and not to the start.
LEAST_RUNNING_SHARE = 0.05


class SecondsModel:
    """Seconds of fits: a start that all have in common, and a rate that depends on the parameters.

    A fit that cannot grow has no start, and takes its rate for the whole effort.
    """

    def __init__(
        self,
        ledger: Ledger,
        curves: Curves,
        rows: Indices,
        levels: Indices,
        known: Floats,
        scales: Hyperparameters,
    ) -> None:
        self._curves = curves
        seconds = np.nanmean(curves.seconds[rows, :, levels], axis=1)
        self.start = _start_seconds(rows, curves.efforts[levels], seconds)
        is_last = np.append(rows[1:] != rows[:-1], True)
        last, efforts = rows[is_last], curves.efforts[levels[is_last]]
        rates = self._log_rates(last, seconds[is_last], efforts)
        # A fit that was paused before its first look is believed to take twice as long until then.
        unseen = np.flatnonzero((curves.level < 0) & (ledger.waited > 0))
        first = np.where(curves.whole[unseen], 1.0, curves.efforts[0])
        least = self._log_rates(unseen, 2.0 * ledger.waited[unseen], first)
        timed, rates = np.append(last, unseen), np.append(rates, least)
        chosen = timed.argsort()[-MOST_TIMES:]
        noise = np.ones(len(chosen))
        self._process = GaussianProcess(
            known[timed[chosen]], rates[chosen], noise, scales, len(timed)
        )
        self.scales = self._process.hyperparameters

    def _log_rates(self, rows: Indices, seconds: Floats, efforts: Floats) -> Floats:
        start = np.where(self._curves.whole[rows], 0.0, self.start)
        running = np.maximum(seconds - start, LEAST_RUNNING_SHARE * seconds) + LEAST_SECONDS
        return np.asarray(np.log(running / efforts))

    def of_new(self, features: Floats, grows: Flags) -> Floats:
        """Seconds until every level, for configurations that have not been tried."""
        rates = np.exp(self._process.predict(features)[0])[:, None]
        growing = self.start + rates * self._curves.efforts[None, :]
        return np.asarray(np.where(grows[:, None], growing, rates))

    def in_time(self, features: Floats, grows: Flags, seconds: Floats) -> Floats:
        """Probability that a configuration reaches its first level within these seconds."""
        mean, deviation = self._process.predict(features)
        deviation = np.sqrt(deviation**2 + self._process.noise_variance)
        left = np.where(grows, (seconds - self.start) / self._curves.efforts[0], seconds)
        return np.asarray(ndtr((np.log(np.maximum(left, 1e-9)) - mean) / deviation))

    def of_paused(self, rows: Indices) -> Floats:
        """Seconds until every level, from the looks of the configurations themselves."""
        curves = self._curves
        reached = curves.reached[rows, 0]
        seconds = curves.seconds[rows, 0, reached][:, None]
        done = curves.efforts[reached][:, None]
        ahead = np.maximum(curves.efforts[None, :] - done, 0.0)
        running = np.maximum(seconds - self.start, LEAST_RUNNING_SHARE * seconds)
        before = np.maximum(reached - 1, 0)
        step = (curves.efforts[reached] - curves.efforts[before])[:, None]
        earlier = curves.seconds[rows, 0, before][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            # The last step shows the rate of this configuration without the start of the fit.
            rates = np.where(step > 0, (seconds - earlier) / step, running / done)
        rates = np.where(np.isfinite(rates) & (rates > 0), rates, running / done)
        return np.asarray(seconds + ahead * rates)


def _start_seconds(rows: Indices, efforts: Floats, seconds: Floats) -> float:
    """Typical seconds of a fit before its first round, from the first two looks of each."""
    is_first = np.append(True, rows[1:] != rows[:-1])
    pairs = np.flatnonzero(is_first[:-1] & ~is_first[1:])
    if not len(pairs):
        return 0.0
    rates = (seconds[pairs + 1] - seconds[pairs]) / (efforts[pairs + 1] - efforts[pairs])
    starts = np.maximum(seconds[pairs] - rates * efforts[pairs], 0.0)
    return float(np.median(starts))
