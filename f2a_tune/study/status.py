"""The status of a configuration, by one rule for ``cv_results_``, reports and plots."""

from __future__ import annotations

from collections.abc import Collection

from f2a_tune.outcome import FAILED, Kind

COMPLETE, RACING, DROPPED, GIVEN_UP, FAILURE = (
    "complete",
    "racing",
    "dropped",
    "given_up",
    "failed",
)


def configuration_status(kinds: Collection[str], n_folds: int, *, is_open: bool = False) -> str:
    """The status of a configuration whose folds, or evaluations, ended in these ways.

    - "complete": it has all folds;
    - "racing": it is still being evaluated;
    - "failed": a fit failed;
    - "given_up": no fit finished before its cutoff;
    - "dropped": it has fewer folds than others, because they are better or the time was up.
    """
    n_finished = sum(kind == Kind.FINISHED for kind in kinds)
    if n_finished >= n_folds:
        return COMPLETE
    if is_open:
        return RACING
    if any(kind in FAILED for kind in kinds):
        return FAILURE
    return GIVEN_UP if Kind.GAVE_UP in kinds and not n_finished else DROPPED
