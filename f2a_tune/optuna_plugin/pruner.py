"""`WaitUCBPruner`: a trial goes in, whether its time is up comes out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from optuna.pruners import BasePruner

from f2a_tune import clock
from f2a_tune.optuna_plugin import running
from f2a_tune.optuna_plugin.plan import Plan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


class WaitUCBPruner(BasePruner):
    """Prunes a trial that has run for longer than the cutoff which `WaitUCBSampler` gave it.

    It works where the objective asks ``trial.should_prune()`` now and then; an objective that
    hangs between two questions is ended by `f2a_tune.optimize` only.

    Parameters
    ----------
    pruner
        Another pruner that is asked as long as there is time, such as Optuna's MedianPruner.

    Examples
    --------
    >>> import optuna
    >>> from f2a_tune import WaitUCBPruner, WaitUCBSampler
    >>> pruner = WaitUCBPruner(optuna.pruners.MedianPruner())
    >>> study = optuna.create_study(sampler=WaitUCBSampler(), pruner=pruner)
    """

    def __init__(self, pruner: BasePruner | None = None) -> None:
        if pruner is not None and not isinstance(pruner, BasePruner):
            raise TypeError(
                f"pruner must be an Optuna pruner or None, got {pruner!r}: "
                "give an instance, such as optuna.pruners.MedianPruner()."
            )
        self.pruner = pruner

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial's time is up, or the other pruner says so."""
        known = running.find(study, trial)
        if known is not None:
            cutoff = known.plan.cutoff_seconds
            elapsed = clock.monotonic_seconds() - known.started
        else:  # it began in another process, or without our sampler
            plan = Plan.of(trial)
            cutoff = math.inf if plan is None else plan.cutoff_seconds
            elapsed = running.seconds_by_wall_clock(trial) or 0.0
        if elapsed > cutoff:
            return True
        return self.pruner is not None and self.pruner.prune(study, trial)
