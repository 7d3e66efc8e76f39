"""Interactive plotly figures (extra ``[plot]``); ``.matplotlib`` has the same as static ones."""

from __future__ import annotations

from f2a_tune.visualization.regret import plot_regret
from f2a_tune.visualization.search import (
    plot_best_over_time,
    plot_cutoffs,
    plot_learning_curves,
    plot_parallel_coordinates,
    plot_race,
    plot_reward_per_second,
    plot_time_account,
)

__all__ = [
    "plot_best_over_time",
    "plot_cutoffs",
    "plot_learning_curves",
    "plot_parallel_coordinates",
    "plot_race",
    "plot_regret",
    "plot_reward_per_second",
    "plot_time_account",
]
