"""Estimators that can be scored while they are fitted, stopped early and continued.

A fit *grows* by rounds: trees, boosting rounds or iterations. `growable` says how an estimator
grows, and `Growable.fit` calls a function at chosen numbers of rounds. The model at each of them
is the one that a plain fit with that many rounds would give. This package makes no decisions,
starts no processes and stores nothing.
"""

from __future__ import annotations

from f2a_tune.growth.adapter import Growable, Look, StopGrowing
from f2a_tune.growth.families import growable

__all__ = ["Growable", "Look", "StopGrowing", "growable"]
