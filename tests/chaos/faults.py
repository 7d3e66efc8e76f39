"""What a fit may do to those around it: a name goes in, harm comes out.

`Hostile` is an estimator whose parameter ``fault`` says what it does in the middle of a fit. A fit
that ends leaves a line in a file, so that afterwards everybody can see what has really finished.
"""

import ctypes
import os
import signal
import sys
import threading
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

_kept = []


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _crash() -> None:
    ctypes.string_at(0)


def _leave() -> None:
    os._exit(3)


def _raise() -> None:
    raise RuntimeError("a fit that fails <script>alert('!')</script>")


def _hang() -> None:
    ctypes.PyDLL(None).pause()  # C code that keeps the interpreter's lock


def _deaf_hang() -> None:
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    ctypes.PyDLL(None).pause()


def _eat() -> None:
    while True:
        _kept.append(bytearray(50_000_000))


def _leak() -> None:
    _kept.append(bytearray(20_000_000))


def _fork() -> None:
    if os.fork() == 0:
        time.sleep(3600)


def _daemon() -> None:
    """A grandchild in a session of its own, whose parent is gone."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)


def _close() -> None:
    os.closerange(0, 256)


def _move() -> None:
    os.chdir("/")
    os.umask(0)


def _forget() -> None:
    os.environ.clear()
    sys.path.clear()


def _shout() -> None:
    line = b"\0" * 1_000_000
    while True:
        os.write(1, line)


def _thread() -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()


def _nothing() -> None:
    pass


FAULTS = {
    "nothing": _nothing,
    "kill": _kill,
    "stop": _stop,
    "crash": _crash,
    "leave": _leave,
    "raise": _raise,
    "hang": _hang,
    "deaf hang": _deaf_hang,
    "eat": _eat,
    "leak": _leak,
    "fork": _fork,
    "daemon": _daemon,
    "close": _close,
    "move": _move,
    "forget": _forget,
    "shout": _shout,
    "thread": _thread,
}


class Hostile(ClassifierMixin, BaseEstimator):
    """As good as it is told; ``log`` is a file of what has finished."""

    def __init__(self, quality=0.0, fault="nothing", seconds=0.01, log=""):
        self.quality = quality
        self.fault = fault
        self.seconds = seconds
        self.log = log

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self._file = os.open(self.log or os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        time.sleep(self.seconds)
        FAULTS[self.fault]()
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):
        fold = int(X.sum())
        line = f"{self.quality!r} {fold}\n".encode()
        try:
            os.write(self._file, line)
            os.close(self._file)
        except OSError:  # its descriptors are gone
            with open(self.log or os.devnull, "ab") as file:
                file.write(line)
        return self.quality + 1e-3 * (fold % 7)
