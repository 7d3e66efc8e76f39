"""The rule of a race whose fits grow: what to start, continue, or run on another fold.

Macro-arms are the configurations, and a micro-arm is how much longer to wait for one of them.
Growing the first fold of a configuration and running another fold are compared by the expected
improvement of the final recommendation per second. Giving up becomes a choice that can be taken
back, because a paused fit can be continued.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from f2a_tune.racing.contenders import BASELINE_SHARE, Contenders
from f2a_tune.racing.offer import Growth
from f2a_tune.racing.opening import last_call
from f2a_tune.racing.pull import Pull
from f2a_tune.racing.rule import (
    Candidate,
    RacingRule,
    another_fold,
    cheap_baseline,
    last_pulls,
    of_use,
    reserved_or_leftover,
    retried,
)
from f2a_tune.racing.situation import Situation

# The cutoff of a step is this multiple of its expected seconds: a paused fit loses nothing.
STEP_MULTIPLE = 3.0
# Shortest cutoff of a step, as a share of the budget. While there is no score, it doubles whenever
# this many configurations were paused before their first look.
LEAST_CUTOFF_SHARE = 0.01
STREAK = 3
# Longest cutoff of a first look, in units of the shortest cutoff.
LONGEST_FIRST_LOOK = 2.0
# A new configuration is started only with this share of the seconds that its first look takes.
ENOUGH_FOR_A_LOOK = 0.8
# Longest cutoff of a fit that cannot grow, in units of the shortest cutoff.
LONGEST_WHOLE_FIT = 10.0
# While nothing has a score, a baseline that was paused is continued for up to this share of the
# budget; then other configurations get a chance.
UNSEEN_BASELINE_SHARE = 0.5


class GrowthRule(RacingRule):
    """Chooses pulls with a level. It keeps no state of its own."""

    def choose(self, situation: Situation) -> Pull | None:
        """Return the pull with the largest expected improvement per second."""
        if not situation.ledger.n_scored:
            baseline = last_call(situation) or _unseen_baseline(situation)
            if baseline is not None:
                return _with_level(baseline, situation)
        growth, grows = _baseline_growth(situation)
        if growth is not None:
            return growth
        # The baseline is validated at its own number of rounds, or not before it has them.
        due = last_pulls(situation) or (None if grows else cheap_baseline(situation))
        if due is not None:
            return _with_level(due, situation)
        found = [_started(situation), _grown(situation), _validated(situation)]
        candidates = [candidate for candidate in found if candidate is not None]
        if candidates:
            return max(candidates, key=lambda candidate: candidate.rate).pull
        pull = reserved_or_leftover(situation)
        if pull is None:
            again = retried(situation)
            pull = None if again is None else again.pull
        return None if pull is None else _with_level(pull, situation)


def _unseen_baseline(situation: Situation) -> Pull | None:
    """Return more time for a baseline that was paused before its first look.

    Its progress is kept, so that it is closer to a first result than a new configuration.
    """
    row, ledger, curves = situation.baseline, situation.ledger, situation.ledger.curves
    if row is None or curves is None or ledger.failed[row] or ledger.pending[row].any():
        return None
    spent = float(curves.spent[row, 0])
    left = UNSEEN_BASELINE_SHARE * situation.budget_seconds - spent
    if curves.whole[row] or spent <= 0 or left <= 0:
        return None
    cutoff = min(left, situation.seconds_left)
    return Pull(
        row, 0, cutoff, reason=f"nothing has finished, baseline continued at {spent:.3g} s"
    )


def _baseline_growth(situation: Situation) -> tuple[Pull | None, bool]:
    """Return the next step of the baseline to its own number of rounds, and whether it is due.

    It is due if one fold and the refit fit into `BASELINE_SHARE` of the budget: then the baseline
    can be compared, even if there is no time for all its folds. The step may be running already.
    """
    row, wanted = situation.baseline, situation.baseline_level
    ledger, curves = situation.ledger, situation.ledger.curves
    if row is None or wanted is None or curves is None or ledger.failed[row]:
        return None, False
    reached = int(curves.reached[row, 0])
    if not 0 <= reached < wanted or curves.ended[row, 0] or curves.whole[row]:
        return None, False
    if reached == 0:  # the next look shows how long a round takes without the start of the fit
        wanted = 1
    seconds = curves.expected_seconds(row, 0, wanted)
    fits = 1.0 + situation.refit_fits
    if seconds * fits > BASELINE_SHARE * situation.budget_seconds:
        return None, False
    if curves.spent[row, 0] > STEP_MULTIPLE * seconds:
        return None, False  # it was paused at its cutoffs since its last look, and may hang
    if ledger.pending[row, 0]:
        return None, True
    cutoff = _step_cutoff(situation, max(seconds - float(curves.spent[row, 0]), 0.0))
    reason = f"the baseline is grown to its own level {wanted}"
    return Pull(row, 0, cutoff, reason=reason, level=wanted), True


def _started(situation: Situation) -> Candidate | None:
    """Return a new configuration, if it is worth anything."""
    offer = situation.offer
    if not situation.reservoir_open or offer is None or not len(offer.unit):
        return None
    if not offer.explores and offer.worth <= 0:
        return None
    is_whole = offer.level is None
    longest = longest_whole_fit(situation) if is_whole else longest_first_look(situation)
    typical = situation.first_pulls.median if situation.ledger.n_scored else 0.0
    expected = typical if offer.seconds is None else offer.seconds
    cutoff = min(_step_cutoff(situation, expected), longest)
    is_given = offer.least_share > 0 or situation.baseline is not None
    if is_given and (is_whole or not situation.ledger.n_scored):
        cutoff = max(cutoff, min(situation.learned_cutoff, situation.seconds_to_spare))
    # A fit that is paused before its first look, and not continued, is a waste of time.
    enough = situation.first_pulls.quickest if offer.seconds is None else offer.seconds
    if cutoff <= 0 or cutoff < min(ENOUGH_FOR_A_LOOK * enough, longest):
        return None
    kind = "new configuration at random" if offer.explores else "new configuration"
    what = "a whole fit" if is_whole else f"first look at level {offer.level}"
    pull = Pull(
        configuration=situation.ledger.n,
        fold=0,
        cutoff_seconds=cutoff,
        fresh=True,
        reason=f"{kind}, {what}",
        level=offer.level,
    )
    return Candidate(math.inf if offer.explores else offer.worth, pull)


def _grown(situation: Situation) -> Candidate | None:
    """Return the paused configuration that is worth most."""
    best = _best_growth(situation)
    if best is None:
        return None
    cutoff = _step_cutoff(situation, best.seconds)
    if math.isinf(best.worth):  # one of the first configurations
        cutoff = min(max(STEP_MULTIPLE * best.seconds, cutoff), situation.seconds_left)
    if cutoff <= 0:
        return None
    pull = Pull(
        configuration=best.configuration,
        fold=0,
        cutoff_seconds=cutoff,
        reason=f"continued to level {best.level}, may become the best",
        level=best.level,
    )
    return Candidate(best.worth, pull)


def _best_growth(situation: Situation) -> Growth | None:
    """Return the paused configuration that is worth most; an older offer may name running ones."""
    ledger = situation.ledger
    for growth in () if situation.offer is None else situation.offer.grown:
        row = growth.configuration
        if not ledger.pending[row, 0] and not ledger.failed[row]:
            return growth if growth.worth > 0 else None
    return None


def _validated(situation: Situation) -> Candidate | None:
    """Return another fold of the contender for which it is worth most."""
    contenders, offer = situation.contenders, situation.offer
    if contenders is None or offer is None or offer.score_unit <= 0:
        return None
    gains = offer.score_unit * _fold_gains(situation, contenders)
    rates = gains / contenders.seconds
    rates = np.where(contenders.free & of_use(situation, contenders), rates, 0.0)
    best = int(rates.argmax())
    if rates[best] <= 0:
        return None
    pull = another_fold(best, situation, f"{contenders.chances[best]:.0%} chance to be the best")
    return Candidate(float(rates[best]), _with_level(pull, situation))


def _fold_gains(situation: Situation, contenders: Contenders) -> np.ndarray:
    """Expected improvement of the recommendation if a contender gets all its folds."""
    estimates = situation.ledger.estimates()
    value, folds = estimates.value[contenders.rows], estimates.folds[contenders.rows]
    lack = np.maximum(1 / folds + 1 / folds[0] - 2 / situation.ledger.n_folds, 0.0)
    deviation = np.sqrt(estimates.noise * lack)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(deviation > 0, (value - value[0]) / deviation, -np.inf)
    density = np.exp(-0.5 * away * away) / math.sqrt(2.0 * math.pi)
    gains = np.where(deviation > 0, deviation * (np.nan_to_num(away) * ndtr(away) + density), 0.0)
    gains[0] = gains[1:].max() if len(gains) > 1 else 0.0
    return np.asarray(np.maximum(gains, 0.0))


def _step_cutoff(situation: Situation, seconds: float) -> float:
    wanted = max(STEP_MULTIPLE * seconds, _least_cutoff(situation))
    return min(wanted, situation.seconds_to_spare)


def longest_first_look(situation: Situation) -> float:
    """Return the longest cutoff of a new configuration."""
    longest = LONGEST_FIRST_LOOK * _least_cutoff(situation)
    if situation.ledger.n_scored:
        longest = max(longest, LONGEST_FIRST_LOOK * situation.first_pulls.median)
    return longest


def longest_whole_fit(situation: Situation) -> float:
    """Return the longest cutoff of a new configuration that cannot grow."""
    return LONGEST_WHOLE_FIT * _least_cutoff(situation)


def _least_cutoff(situation: Situation) -> float:
    least = max(LEAST_CUTOFF_SHARE * situation.budget_seconds, situation.shortest_cutoff_seconds)
    if situation.ledger.n_scored:
        return least
    return least * 2.0 ** (situation.first_pulls.streak // STREAK)


def _with_level(pull: Pull, situation: Situation) -> Pull:
    """Return a pull of a fold, grown to the level at which its configuration is best."""
    curves = situation.ledger.curves
    assert curves is not None
    if pull.fresh:
        return replace(pull, level=None if situation.offer is None else situation.offer.level)
    if curves.whole[pull.configuration]:
        return pull
    known = max(int(curves.level[pull.configuration]), 0)
    if pull.configuration == situation.baseline and situation.baseline_level is not None:
        own = min(situation.baseline_level, int(curves.reached[pull.configuration, 0]))
        known = max(known, own)
    return replace(pull, level=known)
