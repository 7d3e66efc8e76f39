"""The tuner's rule: which configuration, which fold, and how long to wait.

`Race` chooses pulls and recommends; `ModelProposals` draws configurations from a `Space`. All of
it is pure: no clock, no processes, no storage.
"""

from __future__ import annotations

from f2a_tune.racing.ledger import Ledger
from f2a_tune.racing.offer import Offer
from f2a_tune.racing.proposals import (
    ModelProposals,
    Proposals,
    RandomProposals,
    StartProposals,
)
from f2a_tune.racing.pull import Pull, Recommendation
from f2a_tune.racing.race import Race
from f2a_tune.racing.space import Parameter, Space

__all__ = [
    "Ledger",
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
]
