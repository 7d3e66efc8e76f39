"""What a trial is told before it runs and what is written down after: small attributes of it.

A `Plan` is the sampler's decision about one trial. It is stored as one user attribute, so that any
process can rebuild the ledger from the storage, and dashboards show it. Attributes may come from
anywhere: what cannot be read counts as not there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

PLAN = "f2a:pull"
SECONDS = "f2a:seconds"
OUTCOME = "f2a:outcome"
ERROR = "f2a:error"


@dataclass(frozen=True)
class Plan:
    """One trial as one pull."""

    cutoff_seconds: float = math.inf
    reason: str = ""
    again_of: int | None = None
    """Number of the trial whose configuration comes again; None for a fresh one."""
    evaluation: int = 0
    """The how-manieth evaluation of its configuration this is."""
    evaluations: int = 1
    """How many a promising configuration gets."""
    arm: int | None = None
    """Arm of a bandit policy."""
    player: str = ""
    """Which sampler made it."""
    run: str = ""
    """Which call of `optimize` it belongs to."""
    hard: bool = False
    """Whether the cutoff is enforced by killing the worker."""
    fixed: bool = False
    """Whether the trial was told its parameters."""
    number: int = -1
    """Of the trial it was made for: attributes get copied to others."""

    def to_attribute(self) -> dict[str, Any]:
        """As JSON that every storage takes: no infinity, no defaults."""
        found = {name: value for name, value in vars(self).items() if value != _DEFAULTS[name]}
        return {**found, "cutoff_seconds": finite_or_none(self.cutoff_seconds)}

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any]) -> Plan | None:
        """Read it from a trial's user attributes; None if there is none that makes sense."""
        content = attributes.get(PLAN)
        if not isinstance(content, Mapping):
            return None
        known = {name: content[name] for name in _DEFAULTS if name in content}
        known["cutoff_seconds"] = number_or(known.get("cutoff_seconds"), math.inf)
        for name in ("again_of", "evaluation", "evaluations", "arm", "number"):
            if name in known and not (isinstance(known[name], int) and known[name] >= 0):
                del known[name]
        for name in ("reason", "player", "run"):
            known[name] = str(known.get(name, ""))
        for name in ("hard", "fixed"):
            known[name] = known.get(name) is True
        return cls(**known)

    @classmethod
    def of(cls, trial: BaseTrial) -> Plan | None:
        """That of a trial; a plan that was copied from another trial is none."""
        plan = cls.from_attributes(trial.user_attrs)
        return plan if plan is not None and plan.number == trial.number else None


_DEFAULTS = dict(vars(Plan()))


def configuration_key(params: Mapping[str, Any]) -> str:
    """What makes two trials the same configuration: their parameters as canonical JSON."""
    return json.dumps(params, sort_keys=True, default=repr)


def number_or(value: Any, default: float) -> float:
    """A finite number that is not negative, or the default."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    return float(value) if math.isfinite(value) and value >= 0 else default


def finite_or_none(seconds: float) -> float | None:
    """JSON has no infinity."""
    return seconds if math.isfinite(seconds) else None
