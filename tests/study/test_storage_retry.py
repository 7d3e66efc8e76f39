"""Calls are repeated while the storage is gone, as long as there is time and no longer."""

from types import SimpleNamespace

import pytest

from f2a_tune.clock import Budget
from f2a_tune.study import storage_retry
from f2a_tune.study.limits import LAST_TRY_SECONDS
from f2a_tune.study.storage_retry import StorageLostError, StorageRetry


@pytest.fixture
def now(monkeypatch):
    """Seconds in virtual time, in a list of one."""
    seconds = [0.0]

    def sleep(duration):
        seconds[0] += duration

    # Only for the module under test: threads of earlier tests sleep with the real clock.
    virtual = SimpleNamespace(monotonic_seconds=lambda: seconds[0], sleep_seconds=sleep)
    monkeypatch.setattr(storage_retry, "clock", virtual)
    return seconds


def gone_until(now, moment):
    def call():
        if now[0] < moment:
            raise OSError("gone")
        return "there"

    return call


def retry_for(now, budget):
    return StorageRetry(Budget(budget, lambda: now[0]))


def test_it_is_waited_for_until_the_budget_ends(now):
    assert retry_for(now, budget=10.0)(gone_until(now, 9.0)) == "there"
    assert now[0] <= 9.5


def test_the_wait_ends_with_the_budget(now):
    with pytest.raises(StorageLostError, match="gone"):
        retry_for(now, budget=3.2)(gone_until(now, 100.0))
    assert now[0] == pytest.approx(3.2)


def test_when_it_has_ended_there_is_one_more_try(now):
    retry = retry_for(now, budget=3.2)
    now[0] = 20.0
    assert retry(gone_until(now, 20.0 + LAST_TRY_SECONDS)) == "there"
    with pytest.raises(StorageLostError):
        retry(gone_until(now, 100.0))
    assert now[0] == pytest.approx(20.0 + 2 * LAST_TRY_SECONDS)


def test_nobody_waits_for_ever(now):
    with pytest.raises(StorageLostError):
        StorageRetry()(gone_until(now, 1e9))
    assert now[0] < 100.0


def test_other_errors_are_not_its_business(now):
    with pytest.raises(ZeroDivisionError):
        retry_for(now, budget=10.0)(lambda: 1 / 0)
