"""Ctrl-C that is not lost: one that Python has swallowed is sent again.

The garbage collector's callbacks and those of extensions are called from C, where an exception
cannot travel on: Python prints it and goes on as if nothing had been pressed. `kept_interrupts`
hears of that and repeats the signal a moment later, when the callback has returned.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

REPEAT_AFTER_SECONDS = 0.05


@contextmanager
def kept_interrupts() -> Iterator[None]:
    """While it is open, a swallowed KeyboardInterrupt comes again and is not printed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not come here, and the hook is everybody's
        return
    previous = sys.unraisablehook

    def repeat(unraisable: UnraisableHookArgs) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            previous(unraisable)
            return
        timer = threading.Timer(REPEAT_AFTER_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = repeat
    try:
        yield
    finally:
        sys.unraisablehook = previous
