"""Entry point of a worker that was started as an interpreter of its own (no fork)."""

from __future__ import annotations

import importlib
import json
import os
import threading
from multiprocessing.connection import Connection

from f2a_tune import clock
from f2a_tune.cutoff.processes import kill_group
from f2a_tune.cutoff.worker import serve

PARENT_CHECK_SECONDS = 0.2


def main(file: int, settings: str) -> None:
    """Import what was asked for and serve; ``settings`` is JSON (see `launcher`)."""
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()
    for module in json.loads(settings)["preload"]:
        importlib.import_module(module)
    serve(Connection(file))


def _die_with(parent_pid: int) -> None:
    """Without a zygote nobody else notices that the parent is gone.

    A call that holds the interpreter's lock in C keeps this thread from looking; it is then ended
    only when it lets go.
    """
    while os.getppid() == parent_pid:
        clock.sleep_seconds(PARENT_CHECK_SECONDS)
    kill_group(os.getpid())
