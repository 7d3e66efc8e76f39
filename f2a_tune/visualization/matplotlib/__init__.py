"""The same plots as still pictures, drawn with matplotlib (extra ``[plot]``)."""

from __future__ import annotations

from f2a_tune.visualization.matplotlib.regret import plot_regret

__all__ = ["plot_regret"]
