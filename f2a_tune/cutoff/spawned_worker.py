"""Entry point of a worker process that was started as a new interpreter, without a zygote."""

from __future__ import annotations

import importlib
import os
import threading
from multiprocessing.connection import Connection
from typing import Any

from f2a_tune import clock
from f2a_tune.cutoff.processes import kill_group
from f2a_tune.cutoff.worker_process import read_nothing, serve

# Time between checks whether the parent is dead.
PARENT_CHECK_SECONDS = 0.2


def main(file: int, options: dict[str, Any]) -> None:
    """Import the preloaded modules and serve calls; the launcher defines the options."""
    read_nothing()
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    for module in options["preload"]:
        importlib.import_module(module)
    serve(Connection(file))


def _die_with(parent_pid: int) -> None:
    """Kill this process when its parent is dead; without a zygote, no other process does so.

    C code that holds the GIL blocks this thread, so such a call is killed only when it releases
    the GIL.
    """
    while os.getppid() == parent_pid:
        clock.sleep_seconds(PARENT_CHECK_SECONDS)
    kill_group(os.getpid())
