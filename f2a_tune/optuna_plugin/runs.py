"""Runs that have spent time on a study: each writes its seconds under a key of its own.

Nothing is added up in the storage, which has no atomic increment; whoever wants a sum reads all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from f2a_tune.optuna_plugin.plan import number_or

if TYPE_CHECKING:
    from optuna import Study

RUN = "f2a:run:"


def record_run(study: Study, name: str, seconds: float, n_players: int = 1) -> None:
    """Write down what a run has taken so far."""
    study.set_user_attr(f"{RUN}{name}", {"seconds": seconds, "players": n_players})


def recorded_runs(study: Study) -> dict[str, float]:
    """Worker-seconds of every run that has written them down."""
    runs = {}
    for key, content in study.user_attrs.items():
        if key.startswith(RUN) and isinstance(content, Mapping):
            players = number_or(content.get("players"), 1.0)
            runs[key.removeprefix(RUN)] = number_or(content.get("seconds"), 0.0) * players
    return runs
