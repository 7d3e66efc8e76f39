"""Plots the quality of each method's recommendation over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def draw(figures: dict[str, Any], path: Path) -> None:
    """Geometric mean over tables of the share that is better, against the share of the budget."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    methods = list(dict.fromkeys(name for entry in figures.values() for name in entry))
    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for index, method in enumerate(methods):
        entries = [entry[method] for entry in figures.values() if method in entry]
        curves = np.log([entry["curve_better_share"] for entry in entries])
        ours = method == "race"
        axes.plot(
            entries[0]["curve_shares"],
            100 * np.exp(curves.mean(axis=0)),
            label=method,
            color="black" if ours else plt.get_cmap("tab20")(index % 20),
            linewidth=2.5 if ours else 1.2,
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(0.01, 1),
        xlabel="share of the budget",
        ylabel="better configurations (%, geometric mean)",
        title=f"{len(figures)} tables",
    )
    axes.grid(alpha=0.3, which="both", linewidth=0.5)
    axes.legend(fontsize=8, ncols=2)
    figure.savefig(path, dpi=150)
    plt.close(figure)
