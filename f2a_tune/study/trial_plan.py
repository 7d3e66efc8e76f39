"""The plan of a trial: which configuration it evaluates, and with what cutoff.

The sampler writes the plan to the trial as one user attribute before the trial runs. Any process
can therefore rebuild the race from the storage, and dashboards show the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from f2a_tune.study.attributes import PLAN, finite_or_none, number_or
from f2a_tune.study.limits import MOST_FOLDS

if TYPE_CHECKING:
    from optuna.trial import BaseTrial


@dataclass(frozen=True)
class TrialPlan:
    """One trial as one pull of the race. Field names are part of the storage format."""

    cutoff_seconds: float = math.inf
    reason: str = ""
    again_of: int | None = None
    """Number of the trial whose configuration is evaluated again; None for a new one."""
    evaluation: int = 0
    """Zero-based index of this evaluation of the configuration."""
    evaluations: int = 1
    """Number of evaluations that a promising configuration gets."""
    arm: int | None = None
    """Arm of a bandit policy."""
    player: str = ""
    """Name of the sampler that made the plan."""
    run: str = ""
    """Name of the call of `optimize` that the trial belongs to."""
    hard: bool = False
    """Whether the cutoff is enforced by killing the worker."""
    fixed: bool = False
    """Whether the trial was enqueued with its parameters."""
    number: int = -1
    """Number of the trial that the plan is for; a retried trial has a copy of the attributes."""

    def to_attribute(self) -> dict[str, Any]:
        """JSON that every storage accepts, without defaults."""
        found = {name: value for name, value in vars(self).items() if value != _DEFAULTS[name]}
        return {**found, "cutoff_seconds": finite_or_none(self.cutoff_seconds)}

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any]) -> TrialPlan | None:
        """Read the plan from the user attributes of a trial; None if there is no valid one."""
        content = attributes.get(PLAN)
        if not isinstance(content, Mapping):
            return None
        known = {name: content[name] for name in _DEFAULTS if name in content}
        known["cutoff_seconds"] = number_or(known.get("cutoff_seconds"), math.inf)
        for name in ("again_of", "evaluation", "evaluations", "arm", "number"):
            if name in known and not (isinstance(known[name], int) and known[name] >= 0):
                del known[name]
        for name in ("evaluation", "evaluations", "arm"):
            if known.get(name, 0) > MOST_FOLDS:
                del known[name]
        for name in ("reason", "player", "run"):
            known[name] = str(known.get(name, ""))
        for name in ("hard", "fixed"):
            known[name] = known.get(name) is True
        return cls(**known)

    @classmethod
    def of(cls, trial: BaseTrial) -> TrialPlan | None:
        """The plan of a trial; a plan that was copied from another trial does not count."""
        plan = cls.from_attributes(trial.user_attrs)
        return plan if plan is not None and plan.number == trial.number else None


_DEFAULTS = dict(vars(TrialPlan()))


def cutoff_of(trial: BaseTrial) -> float:
    """The cutoff of a trial in seconds, or ``math.inf`` without one.

    Parameters
    ----------
    trial : optuna.trial.BaseTrial
        A live trial in an objective, a finished trial, or an `optuna.trial.FixedTrial` (which has
        no cutoff).
    """
    plan = TrialPlan.from_attributes(trial.user_attrs)
    return math.inf if plan is None else plan.cutoff_seconds


def evaluation_of(trial: BaseTrial) -> int:
    """Zero-based index of this evaluation of the configuration.

    Use it as the index of the fold to validate on, or as the seed. Configurations are then
    compared on the same data, and a weak one is dropped after its first fold.

    Parameters
    ----------
    trial : optuna.trial.BaseTrial
        The trial of an objective, with a `WaitUCBSampler` whose ``evaluations_per_configuration``
        is above 1. With any other sampler the index is always 0.
    """
    plan = TrialPlan.from_attributes(trial.user_attrs)
    return 0 if plan is None else plan.evaluation
