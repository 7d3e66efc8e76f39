"""Any order of any outcomes: the race always has an answer, and never an error."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from f2a_tune.outcome import ErrorReport, Kind, Outcome
from f2a_tune.racing import ModelProposals, Parameter, Race, RandomProposals, Space

SPACE = Space(
    (
        Parameter("x", "float", 1e-6, 1.0, log=True),
        Parameter("n", "int", 1, 4),
        Parameter("kind", "categorical", choices=("a", "b")),
        Parameter("y", "float", 0.0, 1.0, active_if=(("kind", ("b",)),)),
    )
)
SCORES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.5, 1e300, -1e300, 5e-324, 0.0, -0.0]),
    st.none(),
)
EVENTS = st.tuples(
    st.sampled_from(["finished"] * 4 + ["gave_up", "failed", "memory", "withdraw", "wait"]),
    SCORES,
    st.floats(0.0, 1.5),
)


def outcome_of(kind, score, share, cutoff):
    seconds = share * min(cutoff, 1e6)
    if kind == "gave_up":
        return Outcome.gave_up(cutoff, seconds)
    if kind == "failed":
        return Outcome.failed(ErrorReport("E", "e"), seconds)
    if kind == "memory":
        return Outcome.out_of_memory(ErrorReport("E", "e"), seconds)
    return Outcome.finished(score, seconds)


@given(
    events=st.lists(EVENTS, max_size=60),
    n_folds=st.integers(1, 6),
    budget=st.sampled_from([1e-3, 1.0, 1e4, math.inf]),
    n_workers=st.integers(1, 4),
    maximize=st.booleans(),
    timeouts=st.sampled_from([None, [0.1], [0.01, 1, 100]]),
    model=st.booleans(),
    step=st.floats(0.0, 2.0),
)
def test_any_order_of_any_outcomes(
    events, n_folds, budget, n_workers, maximize, timeouts, model, step
):
    race = Race(n_folds, budget, maximize=maximize, n_workers=n_workers, timeouts=timeouts)
    proposals = (ModelProposals if model else RandomProposals)(SPACE, 0)
    units, flying, now = [], [], 0.0
    finished, failed = set(), set()
    for kind, score, share in events:
        offer = proposals.offer(race.ledger, units, max(race.fresh_cutoff(now), 1e-6))
        assert offer is not None
        pull = race.ask(now, offer)
        if pull is None:
            assert now >= budget or flying or race.ledger.n
        else:
            assert pull.cutoff_seconds > 0
            assert 0 <= pull.fold < n_folds
            if pull.fresh:
                assert pull.configuration == len(units)
                units.append(offer.unit)
            flying.append(pull)
        if kind == "wait" or not flying:
            continue
        pull = flying.pop(0)
        if kind == "withdraw":
            if not pull.fresh:  # a fresh one is withdrawn only before it has a row
                race.withdraw(pull)
            else:
                race.release(pull)
            continue
        outcome = outcome_of(kind, score, share, pull.cutoff_seconds)
        race.tell(pull, outcome)
        now += step * outcome.seconds
        if kind == "finished" and score is not None and math.isfinite(score):
            finished.add(pull.configuration)
        elif outcome.kind is not Kind.GAVE_UP:
            failed.add(pull.configuration)
    found = race.recommend(final=True)
    assert (found is not None) == bool(finished - failed)
    if found is not None:
        assert math.isfinite(found.mean) or abs(found.mean) > 1e290
        assert 1 <= found.folds_done <= n_folds
        assert found.fully_validated == (found.folds_done == n_folds)
    assert np.isfinite(race.ledger.estimates().seconds[race.ledger.estimates().scored]).all()
