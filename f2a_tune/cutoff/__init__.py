"""Hard cutoffs for any function: run it in a process that can be, and is, killed on time.

The only package that starts or ends processes. It decides nothing and scores nothing.
"""

from __future__ import annotations

from f2a_tune.cutoff.launcher import WorkerStartError
from f2a_tune.cutoff.pool import CutoffPool, MemoryLimitWarning
from f2a_tune.cutoff.shared import Shared
from f2a_tune.cutoff.single import run_with_cutoff

__all__ = ["CutoffPool", "MemoryLimitWarning", "Shared", "WorkerStartError", "run_with_cutoff"]
