"""Heartbeats: a silent run is gone only if the storage works."""

import math

import optuna
import pytest

from f2a_tune import clock
from f2a_tune.clock import Budget, VirtualClock
from f2a_tune.study.heartbeat import Heartbeat
from f2a_tune.study.run_records import RunRecord, timestamp


@pytest.fixture
def now(monkeypatch):
    virtual = VirtualClock()
    virtual.advance(100)
    monkeypatch.setattr(clock, "monotonic_seconds", virtual)
    return virtual


def heartbeat(study, *, age_seconds=0.0):
    """With another run on another machine, which said so long ago that it plays."""
    said = timestamp(clock.wall_clock()) - age_seconds
    RunRecord("other", 5.0, written_at=said, process="elsewhere:1:1").write(study)
    found = Heartbeat(study, Budget(math.inf, clock.monotonic_seconds), 1, shared=False)
    found._write()
    return found


def pass_time(now, found, seconds, *, beats):
    for _ in range(seconds):
        now.advance(1)
        if beats:
            found._write()


def test_a_run_is_gone_when_it_is_silent_though_we_look_rarely(now):
    found = heartbeat(optuna.create_study())
    assert found.is_alive("other")
    pass_time(now, found, 40, beats=True)  # one long fit of ours
    found.read()
    assert not found.is_alive("other")
    assert found.takes_over


def test_a_storage_that_stood_still_has_killed_nobody(now):
    study = optuna.create_study()
    found = heartbeat(study)
    pass_time(now, found, 40, beats=False)
    found._write()
    found.read()
    assert found.is_alive("other")
    pass_time(now, found, 21, beats=True)
    assert not found.is_alive("other")


def test_old_records_belong_to_runs_that_have_ended(now):
    found = heartbeat(optuna.create_study(), age_seconds=3600)
    assert not found.is_alive("other")
    assert not found.has_joined
