"""Hard cutoffs for any function: it runs in a worker process that is killed at its cutoff.

This is the only package that starts or kills processes. It does not choose cutoffs and does not
interpret results.
"""

from __future__ import annotations

from f2a_tune.cutoff.call import MemoryLimitWarning
from f2a_tune.cutoff.launcher import WorkerStartError
from f2a_tune.cutoff.partial_result import report_result
from f2a_tune.cutoff.pool import CutoffPool
from f2a_tune.cutoff.shared import Shared
from f2a_tune.cutoff.single_call import run_with_cutoff

__all__ = [
    "CutoffPool",
    "MemoryLimitWarning",
    "Shared",
    "WorkerStartError",
    "report_result",
    "run_with_cutoff",
]
