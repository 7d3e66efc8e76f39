import pickle

import pytest

from f2a_tune.outcome import CutoffExceededError, ErrorReport, Kind, Outcome, WorkerDiedError


def test_unwrap_returns_or_raises():
    assert Outcome.finished([1], 0.1).unwrap() == [1]
    with pytest.raises(CutoffExceededError, match=r"within 2\.5 s"):
        Outcome.gave_up(2.5).unwrap()
    with pytest.raises(TimeoutError):
        Outcome.gave_up(2.5).unwrap()
    report = ErrorReport("KeyError", "'a'", "remote lines", KeyError("a"))
    with pytest.raises(KeyError) as caught:
        Outcome.failed(report, 0.1).unwrap()
    assert "remote lines" in str(caught.value.__cause__)
    with pytest.raises(WorkerDiedError, match="Odd: gone"):
        Outcome.failed(ErrorReport("Odd", "gone"), 0.1).unwrap()
    with pytest.raises(MemoryError):
        Outcome.out_of_memory(ErrorReport("MemoryError", ""), 0.1).unwrap()


def test_a_give_up_costs_its_cutoff_unless_measured():
    assert Outcome.gave_up(3.0).seconds == 3.0
    assert Outcome.gave_up(3.0, 3.01).seconds == 3.01


def test_outcomes_are_values():
    outcome = Outcome.failed(ErrorReport("A", "b", exception=ValueError()), 1.0)
    assert outcome == pickle.loads(pickle.dumps(outcome))
    assert (outcome.kind, outcome.ok) == ("failed", False)
    assert Kind("gave_up") is Kind.GAVE_UP
    with pytest.raises(AttributeError):
        outcome.seconds = 2.0
