"""Everything that a rule may use to choose the next pull of a race."""

from __future__ import annotations

from dataclasses import dataclass

from f2a_tune.racing.contenders import OVERHEAD_SECONDS, Contenders, Reservation
from f2a_tune.racing.cutoffs import SHORTEST_SECONDS, FirstPulls
from f2a_tune.racing.ledger import Ledger
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.pull import Pull


@dataclass(frozen=True)
class Situation:
    """Everything that a rule may use to choose a pull."""

    ledger: Ledger
    first_pulls: FirstPulls
    learned_cutoff: float
    """Cutoff of a fresh pull, regardless of the remaining time."""
    seconds_left: float
    budget_seconds: float
    reservoir_open: bool
    timeouts: tuple[float, ...] | None
    in_flight: tuple[Pull, ...]
    offer: Offer | None
    contenders: Contenders | None
    """The best configurations; None while nothing has a score."""
    reservations: tuple[Reservation, ...] = ()
    """Parts of the remaining time that are reserved for some contenders."""
    baseline: int | None = None
    """Row of the configuration that is always a contender."""
    baseline_level: int | None = None
    """Level to which the baseline is grown before it is validated."""
    n_workers: int = 1
    refit_fits: float = 0.0
    """Seconds of a refit per second of a fit on one fold."""
    overhead_seconds: float = OVERHEAD_SECONDS
    shortest_cutoff_seconds: float = SHORTEST_SECONDS
    has_last_resort: bool = False
    """Whether the caller can offer a fallback configuration if nothing else finishes."""
    pulls_left: int | None = None
    """Number of pulls still allowed, including this one; None means no limit."""

    @property
    def rounds(self) -> int:
        """Number of consecutive fits that validate one configuration, with all workers on it."""
        return -(-self.ledger.n_folds // self.n_workers)

    @property
    def seconds_to_spare(self) -> float:
        """Remaining seconds that are not reserved."""
        kept = sum(reservation.seconds for reservation in self.reservations)
        return max(self.seconds_left - kept, 0.0)

    @property
    def must_validate(self) -> bool:
        """Whether a configuration is useful only if all its folds are run.

        This is so once some configuration has all folds, or has time reserved for them: it is
        recommended over all configurations with missing folds.
        """
        if self.contenders is None:
            return self.ledger.n_folds == 1 and self.ledger.n_scored > 0
        return bool(self.reservations) or bool(self.contenders.complete.any())

    @property
    def fresh_cutoff(self) -> float:
        """Cutoff of a fresh pull, given the remaining time."""
        spare = self.seconds_to_spare
        # A first fold that takes longer would leave no time for the other folds.
        longest = spare / self.rounds if self.must_validate else spare
        return min(self.learned_cutoff, longest)

    def allowed_seconds(self, contender: int) -> float:
        """Return the seconds that the missing folds of this contender may take."""
        own = sum(r.seconds for r in self.reservations if r.index == contender)
        return min(self.seconds_to_spare + own, self.seconds_left)
