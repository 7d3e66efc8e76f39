"""A storage that is gone is waited for as long as there is time, and not a moment longer."""

import pytest

from f2a_tune import clock
from f2a_tune.sklearn_plugin.patience import LAST_SECONDS, Patience, StorageLostError


@pytest.fixture
def now(monkeypatch):
    """Seconds in virtual time, in a list of one."""
    seconds = [0.0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: seconds[0])

    def sleep(duration):
        seconds[0] += duration

    monkeypatch.setattr(clock, "sleep_seconds", sleep)
    return seconds


def gone_until(now, moment):
    def call():
        if now[0] < moment:
            raise OSError("gone")
        return "there"

    return call


def patience_of(now, budget):
    patience = Patience()
    patience.seconds_left = lambda: max(budget - now[0], 0.0)
    return patience


def test_it_is_waited_for_until_the_budget_ends(now):
    assert patience_of(now, budget=10.0)(gone_until(now, 9.0)) == "there"
    assert now[0] <= 9.5


def test_the_wait_ends_with_the_budget(now):
    with pytest.raises(StorageLostError, match="gone"):
        patience_of(now, budget=3.2)(gone_until(now, 100.0))
    assert now[0] == pytest.approx(3.2)


def test_when_it_has_ended_there_is_one_more_try(now):
    now[0] = 20.0
    assert patience_of(now, budget=3.2)(gone_until(now, 20.0 + LAST_SECONDS)) == "there"
    with pytest.raises(StorageLostError):
        patience_of(now, budget=3.2)(gone_until(now, 100.0))
    assert now[0] == pytest.approx(20.0 + 2 * LAST_SECONDS)


def test_nobody_waits_for_ever(now):
    with pytest.raises(StorageLostError):
        Patience()(gone_until(now, 1e9))
    assert now[0] < 100.0


def test_other_errors_are_not_its_business(now):
    with pytest.raises(ZeroDivisionError):
        patience_of(now, budget=10.0)(lambda: 1 / 0)
