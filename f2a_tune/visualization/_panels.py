"""The data of regret plots, one panel per game, independent of the plotting library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from f2a_tune.bandit import Game, Simulation

# Okabe & Ito's colours, distinguishable with any colour vision, then Tol's muted ones.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#882255",
    "#117733",
    "#999999",
    "#332288",
    "#661100",
    "#AA4499",
)


@dataclass(frozen=True)
class Panel:
    """One game and its simulations."""

    game: Game
    simulations: tuple[Simulation, ...]


def panels_of(simulations: Simulation | Iterable[Simulation]) -> list[Panel]:
    """Group simulations by their game, in the order given."""
    given = [simulations] if isinstance(simulations, Simulation) else list(simulations)
    if not given:
        raise ValueError("simulations must not be empty. Pass at least one result of simulate().")
    for item in given:
        if not isinstance(item, Simulation):
            raise TypeError(f"simulations must be results of simulate(), got {item!r}.")
    keys = dict.fromkeys(_key(item.game) for item in given)
    grouped = [tuple(item for item in given if _key(item.game) == key) for key in keys]
    return [Panel(group[0].game, group) for group in grouped]


def _key(game: Game) -> tuple[str, bytes]:
    """Return a key that copies of a game share, but different games of the same name do not."""
    return game.name, game.mean_rewards.tobytes() + game.mean_costs.tobytes()


def colours_of(panels: list[Panel]) -> dict[str, str]:
    """Assign one colour to each policy, the same in every panel."""
    policies = dict.fromkeys(item.policy for panel in panels for item in panel.simulations)
    return {policy: COLOURS[i % len(COLOURS)] for i, policy in enumerate(policies)}


def delay_bars(panel: Panel, arm: int) -> tuple[list[str], list[float]]:
    """Return labels and heights of an arm's delay distribution; ∞ means that it never finishes."""
    waits = panel.game.levels.finish_costs
    chances = panel.game.delay_probabilities()[arm]
    labels = [f"{wait:g}" for wait in waits]
    if chances[-1] > 1e-12:
        labels.append("∞")
    return labels, [float(chance) for chance in chances[: len(labels)]]


def missing(library: str, error: ImportError) -> NoReturn:
    """Raise an error that names the extra to install."""
    raise ImportError(f"{library} is not installed: pip install 'f2a_tune[plot]'.") from error
