"""Which configuration to use, and at which level, given everything that is known about them."""

from __future__ import annotations

import numpy as np

from f2a_tune.racing.ledger import Estimates, Floats, Ledger
from f2a_tune.racing.pull import Recommendation

# A baseline with missing folds is recommended over a fully validated configuration only if it is
# better by this many standard errors.
DOUBT_OF_BASELINE = 3.0


def recommended(
    ledger: Ledger, baseline: int | None, sign: float, *, final: bool
) -> Recommendation | None:
    """Return the configuration to use if the race ended now; None if nothing has finished.

    Parameters
    ----------
    ledger : Ledger
        All outcomes, with scores oriented so that larger is better.
    baseline : int or None
        The configuration that may be recommended without all folds.
    sign : float
        1 if larger scores of the user are better, -1 otherwise.
    final : bool
        Whether fully validated configurations are preferred to all others.
    """
    estimates = ledger.estimates()
    rows = estimates.scored
    if not len(rows):
        return None
    value, folds = estimates.value[rows], estimates.folds[rows]
    error = np.sqrt(estimates.noise * np.maximum(1.0 / folds - 1.0 / ledger.n_folds, 0.0))
    validated = _validated(ledger, estimates)
    if not final or not np.isfinite(validated).any():
        return _recommendation(ledger, int(rows[(value - error).argmax()]), sign, validated=False)
    best = int(validated.argmax())
    # A baseline that could not be validated is preferred if it is clearly better.
    is_baseline = rows == (-1 if baseline is None else baseline)
    clearly = is_baseline & (value - DOUBT_OF_BASELINE * error > validated[best])
    if clearly.any():
        return _recommendation(ledger, int(rows[clearly.argmax()]), sign, validated=False)
    return _recommendation(ledger, int(rows[best]), sign, validated=True)


def _validated(ledger: Ledger, estimates: Estimates) -> Floats:
    """Return the value of every scored configuration with all folds; -inf for the others."""
    rows, curves = estimates.scored, ledger.curves
    if curves is not None:
        return np.asarray(curves.validated_mean[rows] - estimates.offsets.mean())
    is_complete = estimates.folds[rows] == ledger.n_folds
    return np.where(is_complete, estimates.value[rows], -np.inf)


def _recommendation(
    ledger: Ledger, chosen: int, sign: float, *, validated: bool
) -> Recommendation:
    scores, level, curves = ledger.scores[chosen], None, ledger.curves
    if curves is not None:
        level = int((curves.validated_level if validated else curves.level)[chosen])
        scores = curves.scores[chosen, :, level]
    scores = sign * scores[~np.isnan(scores)]
    with np.errstate(over="ignore"):  # the spread of scores around 1e300 overflows to infinity
        spread = float(scores.std(ddof=1)) if len(scores) > 1 else 0.0
    return Recommendation(
        configuration=chosen,
        folds_done=len(scores),
        mean=float(scores.mean()),
        spread=spread,
        fully_validated=len(scores) == ledger.n_folds,
        level=level,
    )
