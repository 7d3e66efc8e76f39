"""Plots as interactive plotly figures (extra ``[plot]``); still twins in ``.matplotlib``."""

from __future__ import annotations

from f2a_tune.visualization.regret import plot_regret

__all__ = ["plot_regret"]
