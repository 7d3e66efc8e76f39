"""Maps numbers in [0, 1] to values of scipy distributions."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Distributions with infinite tails are not evaluated at the quantiles 0 and 1.
QUANTILE_MARGIN = 1e-4


def check_draws(name: str, spec: Any, value: Callable[[float], Any]) -> None:
    """Raise before any fit if a distribution draws NaN or fails, due to invalid arguments."""
    for quantile in (0.0, 0.5, 1.0):
        try:
            drawn = value(quantile)
            usable = not isinstance(drawn, float) or math.isfinite(drawn)
        except Exception:
            usable = False
        if not usable:
            kind = name_of_distribution(value) or repr(spec)
            raise ValueError(
                f"param_distributions[{name!r}]={kind} does not draw finite numbers. Check its "
                "arguments."
            )


@dataclass(frozen=True)
class QuantileValue:
    """Values of a distribution by quantile, so that close numbers give close values."""

    spec: Any

    def __call__(self, quantile: float) -> Any:
        """Return the value at this quantile."""
        inner = min(max(quantile, QUANTILE_MARGIN), 1 - QUANTILE_MARGIN)
        value = self.spec.ppf(inner)
        discrete = hasattr(getattr(self.spec, "dist", None), "pmf")
        return int(value) if discrete else float(value)

    def quantile_of(self, value: Any) -> float | None:
        """Return the quantile of a value, or None if the distribution does not produce it."""
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not hasattr(self.spec, "cdf"):
            return None
        try:
            quantile = float(self.spec.cdf(value))
            found = self(quantile)
        except (ValueError, TypeError, OverflowError):  # raised by a user-defined distribution
            return None
        close = math.isclose(found, float(value), rel_tol=1e-6, abs_tol=1e-12)
        return quantile if close else None


@dataclass(frozen=True)
class SeededValue:
    """Values of an object with ``rvs``; a number is a seed, so it always gives the same value."""

    spec: Any

    def __call__(self, quantile: float) -> Any:
        """Return the value drawn with the seed for this number."""
        return self.spec.rvs(random_state=int(quantile * (2**31 - 1)))


def name_of_distribution(value: Any) -> str:
    """Return the name and arguments of the scipy distribution of a value; empty without one."""
    spec = getattr(value, "spec", None)
    if spec is None:
        return ""
    kind = getattr(getattr(spec, "dist", None), "name", type(spec).__qualname__)
    return f"{kind}{getattr(spec, 'args', ())}{getattr(spec, 'kwds', {})}"
