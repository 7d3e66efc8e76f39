"""How an estimator grows: the value that all adapters return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Look = Callable[[int, Any], None]
"""Called with a number of rounds and an estimator that can be scored at this moment."""
Grow = Callable[[Any, Any, dict[str, Any], tuple[int, ...], Look], Any]


class StopGrowing(Exception):  # noqa: N818 - it ends a fit and is not an error
    """Raised by a look to end the fit; the model so far is kept."""


@dataclass(frozen=True)
class Growable:
    """An estimator together with the way in which it grows."""

    parameter: str
    """The parameter of the estimator that is its number of rounds."""
    rounds: int
    """Number of rounds of a whole fit."""
    grow: Grow
    """Takes X, y, fit parameters, rounds and look, and returns the fitted estimator."""
    repeats_start: bool = False
    """Whether each look repeats the start of the fit, such as binning the data."""

    def fit(
        self,
        X: Any,
        y: Any,
        rounds: Sequence[int],
        look: Look,
        fit_params: dict[str, Any] | None = None,
    ) -> Any:
        """Fit the estimator, and call ``look(rounds, model)`` at the given numbers of rounds.

        Parameters
        ----------
        X, y : array-like
            Training data.
        rounds : sequence of int
            Strictly increasing. The fit ends at the last one.
        look : callable
            The model that it gets is valid only during the call. It may raise `StopGrowing`.
        fit_params : dict, default=None
            Further arguments of the estimator's ``fit``.

        Returns
        -------
        estimator
            The fitted estimator. Fits that stop by themselves have fewer rounds.
        """
        levels = tuple(int(level) for level in rounds)
        if not levels or levels[0] < 1 or list(levels) != sorted(set(levels)):
            raise ValueError(f"rounds must be at least 1 and strictly increasing, got {rounds!r}.")
        return self.grow(X, y, dict(fit_params or {}), levels, look)
