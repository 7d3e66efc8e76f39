"""What callbacks of a search are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from f2a_tune.outcome import Outcome
from f2a_tune.racing import Pull


@dataclass(frozen=True)
class Event:
    """A pull that has ended; the argument of the ``callbacks`` of `F2ASearchCV`.

    Attributes
    ----------
    pull : Pull
        Which configuration and fold was evaluated, with what cutoff, and why.
    outcome : Outcome
        How it ended: ``outcome.kind``, ``outcome.seconds``, and ``outcome.value`` if it finished.
    params : dict
        Parameters of the configuration.
    """

    pull: Pull
    outcome: Outcome
    params: dict[str, Any]
