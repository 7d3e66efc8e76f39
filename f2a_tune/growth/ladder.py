"""The numbers of rounds at which growing fits are scored."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The lowest level is the first one with at least this many rounds. Each level has twice the rounds
# of the one below it, so that the number of scores grows with the logarithm of the rounds.
FEWEST_ROUNDS = 3
# A level this close to the end is left out.
NEAR_THE_END = 0.75


@dataclass(frozen=True)
class Ladder:
    """Levels of effort, as shares of a whole fit; the last one is 1.

    Examples
    --------
    >>> Ladder.of(most_rounds=100).rounds(100)
    (3, 6, 13, 25, 50, 100)
    >>> Ladder.of(most_rounds=500, anchor_rounds=100).rounds(500)
    (3, 6, 13, 25, 50, 100, 200, 500)
    """

    shares: tuple[float, ...]

    @classmethod
    def of(cls, most_rounds: int, anchor_rounds: int | None = None) -> Ladder:
        """Return the doubling ladder up to ``most_rounds`` that contains ``anchor_rounds``."""
        anchor = most_rounds
        if anchor_rounds is not None and FEWEST_ROUNDS <= anchor_rounds <= most_rounds:
            anchor = anchor_rounds
        below = int(max(math.log2(anchor / FEWEST_ROUNDS), 0.0))
        above = math.ceil(math.log2(most_rounds / anchor))
        shares = [anchor * 2.0**step / most_rounds for step in range(-below, above + 1)]
        kept = [
            share for share in shares if share <= NEAR_THE_END or share == anchor / most_rounds
        ]
        return cls((*(share for share in kept if share < 1.0), 1.0))

    @classmethod
    def through(cls, values: list[int]) -> Ladder:
        """Return the ladder of exactly these numbers of rounds, which must be increasing."""
        return cls(tuple(value / values[-1] for value in values))

    def rounds(self, whole: int) -> tuple[int, ...]:
        """Return the rounds of each level for a whole fit of this many rounds.

        For a small number, neighbouring levels may have the same rounds.
        """
        return tuple(max(math.floor(share * whole + 0.5), 1) for share in self.shares)

    def level_of(self, rounds: int, whole: int) -> int:
        """Return the first level that has at least this many rounds, or the last one."""
        return next(
            (level for level, count in enumerate(self.rounds(whole)) if count >= rounds),
            len(self.shares) - 1,
        )
