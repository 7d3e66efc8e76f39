"""Predefined games: the six experiments of the paper and its other applications.

The paper shows most delay distributions only as figures. Those of `doubling`, `middle`, `first`,
`ads-1` and `ads-2` are reconstructions that agree with every fact stated in the text (number of
levels, position of the best level, smallest gap). The text specifies `plain` completely.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from f2a_tune.bandit.game import Game
from f2a_tune.bandit.levels import Levels
from f2a_tune.checks import known_name

AD_DELAYS = (
    (0.10, 0.45, 0.45, 0.00, 0.00),
    (0.10, 0.40, 0.50, 0.00, 0.00),
    (0.20, 0.10, 0.10, 0.10, 0.50),
)


def scenario(name: str, *, table: str | Path | None = None) -> Game:
    """Return the predefined game of this name.

    Parameters
    ----------
    name : str
        One of the names in `SCENARIOS`, or ``"cross-validation"``.
    table : str or Path, default=None
        Replay table (``.npz`` file) for ``"cross-validation"``; not allowed for other scenarios.

    Examples
    --------
    >>> round(scenario("doubling").gap, 4)
    0.0421
    """
    known_name("scenario", name, (*SCENARIOS, "cross-validation"))
    if name == "cross-validation":
        if table is None:
            raise ValueError(
                "scenario='cross-validation' requires a table of recorded fits. Pass "
                "table=FILE.npz."
            )
        return cross_validation(table)
    if table is not None:
        raise ValueError(
            f"table={str(table)!r} is only allowed with scenario='cross-validation'. Remove it or "
            "change the scenario."
        )
    return SCENARIOS[name]()


def doubling() -> Game:
    """Figure 1a: doubling the wait doubles the probability of a reward."""
    delays = np.zeros(10)
    delays[[0, 2, 6]] = np.array([1, 2, 4]) / 7
    return Game(delays, 1.0, name="doubling")


def middle() -> Game:
    """Figure 1b: the best wait is in the middle of the levels."""
    return Game([0.10, 0.15, 0.10, 0.05, 0.60, 0, 0, 0, 0, 0], 1.0, name="middle")


def first() -> Game:
    """Figure 1c: the shortest wait is the best one."""
    return Game([0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0.5], 1.0, name="first")


def plain() -> Game:
    """Figure 2a: every pull takes one unit of time, as in a standard multi-armed bandit."""
    return Game(np.eye(1, 5).repeat(3, axis=0), [0.5, 0.7, 1.0], name="plain")


def ads_1() -> Game:
    """Figure 2b: three kinds of advertisement, case I."""
    return Game(AD_DELAYS, [0.7, 1.0, 0.5], name="ads-1")


def ads_2() -> Game:
    """Figure 2c: the delays of `ads_1` with different rewards."""
    return Game(AD_DELAYS, [1.0, 0.5, 0.7], name="ads-2")


def crowdsourcing() -> Game:
    """Crowdsourcing (section 1): how long to wait before a task is assigned to another worker.

    Every worker is drawn at random: 35 % are fast (median 5 minutes), 45 % are slow (median 45
    minutes), both with log-normal times, and 20 % never finish. Levels are minutes and double from
    1 to 128.
    """
    minutes = np.array([1, 2, 4, 8, 16, 32, 64, 128.0])
    finished = np.array(
        [0.35 * _lognormal(m, 5.0, 0.5) + 0.45 * _lognormal(m, 45.0, 0.8) for m in minutes]
    )
    steps = np.diff(finished, prepend=0.0)
    return Game(np.append(steps, 1 - finished[-1]), 0.9, minutes, name="crowdsourcing")


def auction() -> Game:
    """Repeated second-price auction with a participation cost (section 2.2); levels are bids.

    The highest competing bid has a triangular distribution over ten prices. A won auction has the
    reward 0.8.
    """
    prices = np.arange(1, 11.0)
    rivals = np.minimum(prices, 11 - prices)
    return Game(rivals / rivals.sum(), 0.8, Levels.bidding(prices, 1.0), name="auction")


def advertising() -> Game:
    """Five advertisements (section 2.2); a share of the users clicks after a random delay."""
    seconds = np.arange(1, 9.0)
    # Per advertisement: share of users who click, median seconds until the click, its reward.
    advertisements = (
        (0.3, 1.5, 0.9),
        (0.4, 2.0, 0.6),
        (0.5, 3.0, 0.8),
        (0.6, 4.0, 0.5),
        (0.7, 5.0, 0.9),
    )
    clicked = [[i * _lognormal(s, m, 0.5) for s in seconds] for i, m, _ in advertisements]
    steps = np.diff(np.array(clicked), prepend=0.0, axis=1)
    delays = np.column_stack([steps, 1 - steps.sum(axis=1)])
    return Game(delays, [value for *_, value in advertisements], seconds, name="advertising")


def growing() -> Game:
    """Fits that grow: a fit that is stopped early pays what it has reached by then.

    Beyond the paper, in which it pays nothing. Each of five configurations has a final score and a
    number of rounds after which it has reached half of it. Some fits stop by themselves after 16
    or 32 rounds. Levels are rounds and double from 1 to 32.
    """
    rounds = 2.0 ** np.arange(6)
    # Per configuration: final score, rounds until half of it.
    configurations = ((0.9, 10.0), (0.7, 5.0), (0.6, 3.0), (1.0, 14.0), (0.3, 2.0))
    curves = [final / (1 + (half / rounds) ** 2) for final, half in configurations]
    delays = np.tile([0, 0, 0, 0, 0.3, 0.2, 0.5], (len(configurations), 1))
    return Game(delays, curves, rounds, partial_rewards=curves, bernoulli=False, name="growing")


def cross_validation(table: str | Path) -> Game:
    """k-fold cross-validation (section 2.2), built from a table of recorded fits.

    The table is an ``.npz`` file with the arrays ``seconds`` and ``scores`` of shape
    (n_configurations, n_folds). The score of a fit that was killed is NaN. Scores are scaled
    to [0, 1] by their range. Levels double from the fastest fit until they cover the slowest one.
    """
    try:
        with np.load(table, allow_pickle=False) as file:
            seconds, scores = file["seconds"].astype(float), file["scores"].astype(float)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"table={str(table)!r} is not a replay table, which is an .npz file with the arrays "
            f"'seconds' and 'scores': {error}"
        ) from error
    if not np.all((seconds > 0) & np.isfinite(seconds)):
        raise ValueError(f"table={str(table)!r} is invalid: seconds must be finite and above 0.")
    if np.isinf(scores).any() or np.isnan(scores).all():
        raise ValueError(
            f"table={str(table)!r} is invalid: scores must be finite numbers, or NaN for killed "
            "fits, and at least one of them must be a number."
        )
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    scaled = (scores - low) / (high - low) if high > low else np.where(np.isnan(scores), scores, 1)
    fastest, slowest = float(np.nanmin(seconds)), float(np.nanmax(seconds))
    doublings = int(np.ceil(np.log2(slowest / fastest))) if slowest > fastest else 0
    levels = fastest * 2.0 ** np.arange(doublings + 1)
    return Game.from_records(seconds, scaled, levels, name="cross-validation")


def _lognormal(value: float, median: float, sigma: float) -> float:
    """Return the log-normal cumulative distribution function at ``value``."""
    return 0.5 * math.erfc(-math.log(value / median) / (sigma * math.sqrt(2)))


PAPER_SCENARIOS = ("doubling", "middle", "first", "plain", "ads-1", "ads-2")
SCENARIOS: dict[str, Callable[[], Game]] = {
    "doubling": doubling,
    "middle": middle,
    "first": first,
    "plain": plain,
    "ads-1": ads_1,
    "ads-2": ads_2,
    "crowdsourcing": crowdsourcing,
    "auction": auction,
    "advertising": advertising,
    "growing": growing,
}
