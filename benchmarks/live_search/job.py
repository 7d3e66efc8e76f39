"""One search of the benchmark: which table, model, method, budget and seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MODELS = ("lightgbm", "xgboost", "hgb", "mlp")


@dataclass(frozen=True)
class Method:
    """Where a method is implemented, and what it can tune."""

    module: str
    """Module of this package with the function ``search``."""
    models: tuple[str, ...] = MODELS

    def can_tune(self, model: str) -> bool:
        return model in self.models


METHODS = {
    "ours": Method("ours"),
    "ours-no-growth": Method("ours"),
    "flaml": Method("flaml_peer", ("lightgbm", "xgboost")),
    "flaml-cv": Method("flaml_peer", ("lightgbm", "xgboost")),
    "tpe-hyperband": Method("optuna_peer"),
    "halving": Method("halving_peer"),
    "random": Method("random_peer"),
}
# The library that a model or a method needs besides those that f2a_tune itself needs.
LIBRARIES = {
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "flaml": "flaml",
    "flaml-cv": "flaml",
}


@dataclass(frozen=True)
class Job:
    """One search."""

    set: str
    model: str
    method: str
    budget: float
    seed: int

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Job:
        """Return the job of a line of the results file."""
        return cls(row["set"], row["model"], row["method"], row["budget"], row["seed"])

    def row(self, seconds: float, error: str | None = None) -> dict[str, Any]:
        """Return a line of the results file for a search that has found nothing."""
        figures = dict.fromkeys(
            ("loss", "cv_loss", "configurations", "folds", "given_up_share"), None
        )
        times = {"seconds": seconds, "late": seconds - self.budget}
        return asdict(self) | times | figures | {"error": error}
