"""Who is there: silence means death only while the storage works."""

import math

import optuna
import pytest

from f2a_tune import clock
from f2a_tune.clock import Budget, VirtualClock
from f2a_tune.optuna_plugin.runs import RunNote, moment
from f2a_tune.sklearn_plugin.company import Company


@pytest.fixture
def now(monkeypatch):
    virtual = VirtualClock()
    virtual.advance(100)
    monkeypatch.setattr(clock, "monotonic_seconds", virtual)
    return virtual


def company(study, *, age_seconds=0.0):
    """With another run on another machine, which said so long ago that it plays."""
    said = moment(clock.wall_clock()) - age_seconds
    RunNote("other", 5.0, written_at=said, process="elsewhere:1:1").write(study)
    found = Company(study, Budget(math.inf, clock.monotonic_seconds), 1, shared=False)
    found._write()
    return found


def pass_time(now, found, seconds, *, beats):
    for _ in range(seconds):
        now.advance(1)
        if beats:
            found._write()


def test_a_run_is_gone_when_it_is_silent_though_we_look_rarely(now):
    found = company(optuna.create_study())
    assert found.is_alive("other")
    pass_time(now, found, 20, beats=True)  # one long fit of ours
    found.look_around()
    assert not found.is_alive("other")
    assert found.takes_over


def test_a_storage_that_stood_still_has_killed_nobody(now):
    study = optuna.create_study()
    found = company(study)
    pass_time(now, found, 20, beats=False)
    found._write()
    found.look_around()
    assert found.is_alive("other")
    pass_time(now, found, 9, beats=True)
    assert not found.is_alive("other")


def test_notes_of_long_ago_are_of_nobody(now):
    found = company(optuna.create_study(), age_seconds=3600)
    assert not found.is_alive("other")
    assert not found.has_joined
