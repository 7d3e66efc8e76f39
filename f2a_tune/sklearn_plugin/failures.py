"""Failed fits: when to stop a search because all fits fail alike, and errors for the user.

Errors count as alike if their texts differ only in numbers.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence

from sklearn.exceptions import FitFailedWarning

from f2a_tune.outcome import FAILED, Kind, Outcome
from f2a_tune.study.fold_record import FoldRecord

# If this many fits of different configurations fail alike and none finishes, the cause is a
# mistake in the call, not bad luck.
MOST_ALIKE = 10


class NothingFinishedError(ValueError):
    """Raised when a search ends without a single score."""

    def __init__(self, message: str, summary: str = "") -> None:
        super().__init__(message)
        self.summary = summary or message
        """The message in one line, without a traceback."""


class Failures:
    """Counts failures as long as no fit has finished."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._finished = False

    def add(self, outcome: Outcome) -> None:
        """Count the outcome of a fit."""
        self._finished = self._finished or outcome.kind is Kind.FINISHED
        if outcome.kind in FAILED and outcome.error is not None:
            self._kinds[alike(str(outcome.error))] += 1

    @property
    def are_alike(self) -> bool:
        """Whether the search would only repeat the same failure."""
        return not self._finished and max(self._kinds.values(), default=0) >= MOST_ALIKE


def alike(error: str) -> str:
    """Return the text of an error without numbers, which differ between configurations."""
    return re.sub(r"[-+]?\d[\d.e+-]*", "#", error)


def most_common_error(pulls: Sequence[FoldRecord]) -> str:
    """Return the traceback or text of the most frequent failure; empty if there is none."""
    errors = [pull.error for pull in pulls if pull.kind in FAILED and pull.error]
    if not errors:
        return ""
    kind, _ = Counter(alike(last_line(error)) for error in errors).most_common(1)[0]
    return next(error for error in errors if alike(last_line(error)) == kind)


def last_line(error: str) -> str:
    """Return the last line of a traceback, which names the exception."""
    lines = error.strip().splitlines()
    return lines[-1] if lines else ""


def why_nothing_finished(
    pulls: Sequence[FoldRecord], time_budget: float, n_given_up: int, fits_needed: float
) -> NothingFinishedError:
    """Return the error for a search without a single score.

    ``fits_needed`` is the number of consecutive fits that validate and refit one configuration.
    """
    failed = [pull for pull in pulls if pull.kind in FAILED]
    waits = [pull.seconds for pull in pulls if pull.kind is Kind.GAVE_UP]
    error = most_common_error(pulls)
    if failed and not waits:
        return NothingFinishedError(
            f"\nAll the {len(failed)} fits failed.\nIt is very likely that your model is "
            "misconfigured.\nYou can try to debug the error by setting error_score='raise'."
            f"\n\nBelow are more details about the failures:\n{error}",
            f"all {len(failed)} fits failed: {last_line(error)}",
        )
    if not pulls:
        return NothingFinishedError(
            f"time_budget={time_budget:g} ended before the first fit. Starting the worker "
            "processes takes a few seconds in the first search of a process. Increase time_budget."
        )
    longest = max(waits)
    text = (
        f"no fit finished within time_budget={time_budget:g}. {max(n_given_up, len(waits))} fits "
        f"were given up, the longest after {longest:.3g} s, and {len(failed)} failed. One fit "
        f"takes longer than {longest:.3g} s on this machine: try time_budget="
        f"{2 * fits_needed * longest:.0f} or more, fewer rows, or faster configurations."
    )
    if failed:
        details = f"{text}\n\nThe most common failure:\n{error}"
        return NothingFinishedError(details, f"{text} The most common failure: {last_line(error)}")
    return NothingFinishedError(text)


def warn_of_failures(pulls: Sequence[FoldRecord], error_score: float) -> None:
    """Issue one warning for all failed fits, with the text of scikit-learn."""
    failed = [pull for pull in pulls if pull.kind in FAILED]
    if failed:
        warnings.warn(
            f"\n{len(failed)} fits failed out of a total of {len(pulls)}.\n"
            f"The score on these train-test partitions for these parameters will be set to "
            f"{error_score}.\nIf these failures are not expected, you can try to debug them "
            "by setting error_score='raise'.\n\nBelow are more details about the failures:\n"
            f"{most_common_error(pulls)}",
            FitFailedWarning,
            stacklevel=4,
        )
