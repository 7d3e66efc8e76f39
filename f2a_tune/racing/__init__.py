"""The tuning algorithm: which configuration to fit next, on which fold, and how long to wait.

`Race` chooses pulls and recommends a configuration; `ModelProposals` draws new configurations
from a `Space`. This package must not read the clock, start processes or access a storage.
"""

from __future__ import annotations

from f2a_tune.racing.curve_model import TimeLeft
from f2a_tune.racing.curve_proposals import CurveProposals
from f2a_tune.racing.curves import Curves
from f2a_tune.racing.ledger import Ledger
from f2a_tune.racing.offer import Growth, Offer
from f2a_tune.racing.proposals import (
    ModelProposals,
    Proposals,
    RandomProposals,
    StartProposals,
)
from f2a_tune.racing.pull import Look, Pull, Recommendation
from f2a_tune.racing.race import Race
from f2a_tune.racing.space import Parameter, Space

__all__ = [
    "CurveProposals",
    "Curves",
    "Growth",
    "Ledger",
    "Look",
    "ModelProposals",
    "Offer",
    "Parameter",
    "Proposals",
    "Pull",
    "Race",
    "RandomProposals",
    "Recommendation",
    "Space",
    "StartProposals",
    "TimeLeft",
]
