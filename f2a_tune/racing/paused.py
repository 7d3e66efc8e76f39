"""Paused fits: which ones there are, and which to keep if the memory is limited."""

from __future__ import annotations

import numpy as np

from f2a_tune.racing.ledger import Ledger


def paused_fits(ledger: Ledger) -> list[tuple[int, int]]:
    """Return (configuration, fold) of all paused fits; those that may be needed most come first.

    Fits of better configurations are more likely to be continued. They have also run for
    longer, so that losing them costs more.
    """
    curves = ledger.curves
    if curves is None:
        return []
    paused = (curves.spent > 0) & (curves.reached < curves.n_levels - 1)
    paused &= ~curves.ended & ~ledger.pending & ~ledger.failed[:, None]
    rows, folds = np.nonzero(paused)
    value = ledger.estimates().value[rows]
    order = np.lexsort((folds, -curves.spent[rows, folds], -value))
    return [(int(rows[place]), int(folds[place])) for place in order]
