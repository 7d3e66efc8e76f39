"""Games by name: the paper's six experiments and its other applications.

The paper shows its delay distributions only as figures. Those of `doubling`, `middle`, `first`,
`ads-1` and `ads-2` are reconstructions that meet every fact the text states (number of levels,
position of the best one, smallest gap); `plain` is given in full there.
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
    """The game of this name; ``cross-validation`` reads a replay table (an ``.npz`` file).

    Examples
    --------
    >>> round(scenario("doubling").gap, 4)
    0.0421
    """
    known_name("scenario", name, (*SCENARIOS, "cross-validation"))
    if name == "cross-validation":
        if table is None:
            raise ValueError(
                "scenario='cross-validation' is built from recorded fits: give table=FILE.npz."
            )
        return cross_validation(table)
    if table is not None:
        raise ValueError(f"table={str(table)!r} is read by scenario='cross-validation' only.")
    return SCENARIOS[name]()


def doubling() -> Game:
    """Figure 1a: every doubling of the wait doubles the chance of a reward."""
    delays = np.zeros(10)
    delays[[0, 2, 6]] = np.array([1, 2, 4]) / 7
    return Game(delays, 1.0, name="doubling")


def middle() -> Game:
    """Figure 1b: the best wait lies in the middle."""
    return Game([0.10, 0.15, 0.10, 0.05, 0.60, 0, 0, 0, 0, 0], 1.0, name="middle")


def first() -> Game:
    """Figure 1c: the shortest wait is best."""
    return Game([0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0.5], 1.0, name="first")


def plain() -> Game:
    """Figure 2a: every pull takes one unit of time, so this is a standard bandit in disguise."""
    return Game(np.eye(1, 5).repeat(3, axis=0), [0.5, 0.7, 1.0], name="plain")


def ads_1() -> Game:
    """Figure 2b: three kinds of advertisement, case I."""
    return Game(AD_DELAYS, [0.7, 1.0, 0.5], name="ads-1")


def ads_2() -> Game:
    """Figure 2c: the same users, other utilities."""
    return Game(AD_DELAYS, [1.0, 0.5, 0.7], name="ads-2")


def crowdsourcing() -> Game:
    """When to reassign a task (section 1): a worker drawn at random is fast, slow, or lost.

    Levels are minutes on a doubling ladder. Of the workers 35 % are fast (median 5 minutes), 45 %
    slow (45 minutes), both with log-normal times; the rest walk away with the task.
    """
    minutes = np.array([1, 2, 4, 8, 16, 32, 64, 128.0])
    finished = np.array(
        [0.35 * _lognormal(m, 5.0, 0.5) + 0.45 * _lognormal(m, 45.0, 0.8) for m in minutes]
    )
    steps = np.diff(finished, prepend=0.0)
    return Game(np.append(steps, 1 - finished[-1]), 0.9, minutes, name="crowdsourcing")


def auction() -> Game:
    """A repeated second-price auction with a participation cost (section 2.2): levels are bids.

    The highest rival bid is triangular over ten prices; whatever is won is worth 0.8.
    """
    prices = np.arange(1, 11.0)
    rivals = np.minimum(prices, 11 - prices)
    return Game(rivals / rivals.sum(), 0.8, Levels.bidding(prices, 1.0), name="auction")


def advertising() -> Game:
    """Five advertisements (section 2.2): most users never click, the others after a while."""
    seconds = np.arange(1, 9.0)
    # Per advertisement: share of users who click at all, median seconds until then, value of it.
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


def cross_validation(table: str | Path) -> Game:
    """k-fold cross-validation (section 2.2) from recorded fits: configurations × folds.

    The table is an ``.npz`` file with ``seconds`` and ``scores`` (NaN = killed). Scores are scaled
    to [0, 1] by their range; levels double from the fastest fit until the slowest one finishes.
    """
    try:
        with np.load(table, allow_pickle=False) as file:
            seconds, scores = file["seconds"].astype(float), file["scores"].astype(float)
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"table={str(table)!r} is not a replay table with 'seconds' and 'scores': {error}"
        ) from error
    if not np.all((seconds > 0) & np.isfinite(seconds)):
        raise ValueError(f"table={str(table)!r}: seconds must be finite and above 0.")
    if np.isinf(scores).any() or np.isnan(scores).all():
        raise ValueError(f"table={str(table)!r}: scores must be finite, or NaN for killed fits.")
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    scaled = (scores - low) / (high - low) if high > low else np.where(np.isnan(scores), scores, 1)
    fastest, slowest = float(np.nanmin(seconds)), float(np.nanmax(seconds))
    doublings = int(np.ceil(np.log2(slowest / fastest))) if slowest > fastest else 0
    levels = fastest * 2.0 ** np.arange(doublings + 1)
    return Game.from_records(seconds, scaled, levels, name="cross-validation")


def _lognormal(value: float, median: float, sigma: float) -> float:
    """The log-normal distribution function."""
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
}
