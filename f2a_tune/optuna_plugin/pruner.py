"""`WaitUCBPruner`: prunes trials at their cutoff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optuna.pruners import BasePruner

from f2a_tune.study import trial_clock
from f2a_tune.study.trial_plan import TrialPlan

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial


class WaitUCBPruner(BasePruner):
    """Prune a trial that has run longer than the cutoff that `WaitUCBSampler` gave it.

    This requires an objective that calls ``trial.should_prune()`` regularly. Only
    `f2a_tune.optimize` can stop an objective that hangs between two calls.

    Parameters
    ----------
    pruner : optuna.pruners.BasePruner, optional
        Another pruner, such as `optuna.pruners.MedianPruner`, that decides before the cutoff. By
        default trials are pruned at their cutoff only.

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
        """Return whether the trial has passed its cutoff, or the other pruner prunes it."""
        plan, start = TrialPlan.of(trial), trial_clock.find(study, trial)
        if start is not None:
            elapsed = start.elapsed_seconds
        else:  # it began in another process, or without our sampler
            elapsed = trial_clock.seconds_by_wall_clock(trial) or 0.0
        if plan is not None and elapsed > plan.cutoff_seconds:
            return True
        return self.pruner is not None and self.pruner.prune(study, trial)
