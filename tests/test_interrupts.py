"""A Ctrl-C that arrives inside a callback of C code ends what runs all the same."""

import ctypes
import os
import signal
import sys
import threading
import time

import optuna
import pytest
from scipy.stats import randint
from sklearn.dummy import DummyClassifier

from f2a_tune import F2ASearchCV, optimize
from f2a_tune.interrupts import kept_interrupts
from f2a_tune.sklearn_plugin import SearchInterruptedWarning


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


def swallowed_once():
    """A callback of a search or a study: Ctrl-C comes while it runs, the first time."""
    first = iter([swallowing])
    return lambda *seen: next(first, int)() and False


def test_a_search_is_ended_by_it():
    space = {"random_state": randint(0, 10**9)}
    found = F2ASearchCV(DummyClassifier(), space, cv=2, callbacks=[swallowed_once()])
    with pytest.warns(SearchInterruptedWarning):
        found.fit([[0], [1]] * 20, [0, 1] * 20)
    assert found.best_score_ == 0.5


def test_a_study_is_ended_by_it():
    study = optuna.create_study()
    with pytest.raises(KeyboardInterrupt):
        optimize(study, sleeping, time_budget=60, callbacks=[swallowed_once()])
    assert len(study.trials) < 5


def sleeping(trial):
    time.sleep(0.5)
    return trial.suggest_float("x", 0, 1)


def test_in_other_threads_nothing_is_changed():
    hooks = []

    def look():
        with kept_interrupts():
            hooks.append(sys.unraisablehook)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert hooks == [sys.unraisablehook]


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
