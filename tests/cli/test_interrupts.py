"""A Ctrl-C that arrives inside a callback of C code ends the command all the same."""

import ctypes
import os
import signal
import sys
import time

import pytest

from f2a_tune.cli.interrupts import kept_interrupts


@ctypes.CFUNCTYPE(None)
def swallowing():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)


def test_an_interrupt_swallowed_by_a_callback_comes_again(capsys):
    def command():
        swallowing()
        time.sleep(60)

    with kept_interrupts(), pytest.raises(KeyboardInterrupt):
        command()
    assert capsys.readouterr().err == ""


def test_other_swallowed_exceptions_are_printed_as_ever():
    seen = []

    @ctypes.CFUNCTYPE(None)
    def failing():
        raise ZeroDivisionError

    previous, sys.unraisablehook = sys.unraisablehook, seen.append
    try:
        with kept_interrupts():
            failing()
        assert [one.exc_type for one in seen] == [ZeroDivisionError]
    finally:
        sys.unraisablehook = previous
