"""The first pulls of a race, while nothing has finished."""

from __future__ import annotations

from f2a_tune.racing.cutoffs import at_least
from f2a_tune.racing.pull import Pull
from f2a_tune.racing.situation import Situation

# If nothing has finished when this share of the budget is left, the baseline gets all of it. There
# is time for about two waits per worker before that (see `first_wait`).
LAST_CALL_SHARE = 0.75
# A fresh pull may take at most this share of the remaining time, so that a few configurations that
# hang cannot use up the whole budget.
OPENING_SHARE = 2 / 3


def fresh_wait(situation: Situation) -> float:
    """Return the cutoff of the next fresh pull before it is limited to the remaining time."""
    wait, offer = situation.learned_cutoff, situation.offer
    given = offer is not None and offer.least_share > 0
    n_scored, timeouts = situation.ledger.n_scored, situation.timeouts
    if not n_scored and (given or situation.baseline is not None):
        return at_least(first_wait(situation), timeouts)
    if offer is not None and given:
        least = offer.least_share * situation.n_workers * situation.budget_seconds
        wait = max(wait, at_least(least, timeouts))
    if not n_scored:
        wait = min(wait, at_least(OPENING_SHARE * situation.seconds_left, timeouts))
    return wait


def first_wait(situation: Situation) -> float:
    """Return the cutoff of a baseline or user-given configuration while nothing has finished.

    The cutoff leaves enough time to validate the configuration on all folds and to refit it. If at
    most `LAST_CALL_SHARE` of the budget is left, the cutoff is all of the remaining time, or half
    of it if the caller has a last resort.
    """
    if situation.seconds_left <= LAST_CALL_SHARE * situation.budget_seconds:
        return situation.seconds_left / (2 if situation.has_last_resort else 1)
    return situation.seconds_left / (situation.rounds + situation.refit_fits)


def last_call(situation: Situation) -> Pull | None:
    """Return a pull that may use all of the remaining time, if nothing has finished so far.

    It is the caller's last resort if one is offered (``least_share`` of 1), or another try of the
    baseline if at most `LAST_CALL_SHARE` of the budget is left.
    """
    row, ledger, offer = situation.baseline, situation.ledger, situation.offer
    if offer is not None and offer.least_share >= 1:
        reason = "nothing has finished, the last resort gets all remaining time"
        return Pull(ledger.n, 0, situation.seconds_left, fresh=True, reason=reason)
    if row is None or ledger.failed[row] or ledger.pending[row].any():
        return None
    left = situation.seconds_left
    if left > LAST_CALL_SHARE * situation.budget_seconds or left <= ledger.waited[row]:
        return None
    reason = f"nothing has finished, baseline again after giving up at {ledger.waited[row]:.3g} s"
    return Pull(row, 0, left, reason=reason)
