"""Studies with anything in them: read, reported and resumed, or refused in one clear line."""

import json
import math
import warnings

import numpy as np
import optuna
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

from f2a_tune import (
    F2ASearchCV,
    WaitUCBPruner,
    WaitUCBSampler,
    best_configuration,
    budget_summary,
    cutoff_of,
)
from f2a_tune.report import html_report
from f2a_tune.report.text import summary_sentence, table_of_configurations
from f2a_tune.study.reader import read_study
from tests.fuzz import examples

X, Y = np.zeros((12, 2)), np.arange(12) % 2
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**9), 10**9),
        st.floats(),
        st.text("<script>&'\"\n\u2028é", max_size=12),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("ab", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
# What we write, torn apart and put together wrongly.
FOLDS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.one_of(JSON, st.sampled_from(["finished", "gave_up", "failed"])),
        "seconds": st.one_of(JSON, st.floats(0, 10)),
        "cutoff": st.one_of(JSON, st.floats(0, 10)),
        "test": st.one_of(JSON, st.floats(), st.dictionaries(st.just("a"), JSON)),
        "train": JSON,
        "times": st.one_of(JSON, st.lists(JSON, min_size=2, max_size=2)),
        "at": JSON,
        "error": JSON,
        "reason": JSON,
        "before": st.one_of(JSON, st.lists(st.lists(JSON, min_size=2, max_size=2), max_size=2)),
    },
)
TRIAL_ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        [f"f2a:{name}" for name in ("fold:0", "fold:1", "fold:x", "unit", "owner", "pull")]
        + [f"f2a:{name}" for name in ("seconds", "outcome", "error", "")]
    ),
    st.one_of(JSON, FOLDS, st.lists(st.floats(0, 1), min_size=1, max_size=1)),
    max_size=5,
)
STUDY_ATTRIBUTES = st.dictionaries(
    st.sampled_from(["f2a:use", "f2a:run:a", "f2a:run:", "f2a:folds", "f2a:metric", "f2a:job"]),
    st.one_of(JSON, FOLDS, st.fixed_dictionaries({"seconds": JSON, "players": JSON, "at": JSON})),
    max_size=3,
)
TRIALS = st.lists(
    st.tuples(
        st.sampled_from([TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]),
        st.floats(allow_nan=False),
        st.dictionaries(st.integers(0, 3), st.floats(), max_size=2),
        TRIAL_ATTRIBUTES,
    ),
    max_size=4,
)
KEEP = settings(
    max_examples=examples(15),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Quick(ClassifierMixin, BaseEstimator):
    """Does nothing, well."""

    def __init__(self, quality=0.0):
        self.quality = quality

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):
        return self.quality


def fill(study, trials, attributes):
    for state, value, reported, attrs in trials:
        x = abs(hash(str(attrs))) % 1000 / 1000
        study.add_trial(
            create_trial(
                state=state,
                value=value if state is TrialState.COMPLETE else None,
                params={"quality": x},
                distributions={"quality": FloatDistribution(0, 1)},
                intermediate_values=reported,
                user_attrs=attrs,
            )
        )
    for name, content in attributes.items():
        study.set_user_attr(name, content)


def look_at(study):
    reading = read_study(study)
    page = html_report(reading)
    assert "<script>&" not in page
    assert "<script><script>" not in page
    table_of_configurations(reading)
    assert summary_sentence(reading)
    json.dumps(reading.budget.to_attribute())


@KEEP
@given(trials=TRIALS, attributes=STUDY_ATTRIBUTES)
def test_foreign_studies_can_be_looked_at_and_gone_on_with(trials, attributes):
    study = optuna.create_study(
        direction="maximize",
        sampler=WaitUCBSampler(base_sampler=RandomSampler(seed=0), seed=0),
        pruner=WaitUCBPruner(),
    )
    fill(study, trials, attributes)
    look_at(study)
    for number in range(3):
        trial = study.ask()
        quality = trial.suggest_float("quality", 0, 1)
        assert cutoff_of(trial) > 0
        trial.report(quality, 0)
        trial.should_prune()
        study.tell(trial, quality if number else None, state=None if number else TrialState.FAIL)
    budget_summary(study)
    best_configuration(study)
    look_at(study)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A search that was really begun, to be spoilt."""
    folder = tmp_path_factory.mktemp("begun")
    search("sqlite:///" + str(folder / "s.db"), resume=False).fit(X, Y)
    return folder / "s.db"


def search(url, **options):
    options = {"resume": True, "max_configurations": 3, "time_budget": 1000} | options
    return F2ASearchCV(
        Quick(),
        {"quality": uniform(0, 1)},
        cv=2,
        storage=url,
        study_name="s",
        refit=False,
        random_state=0,
        proposals="random",
        **options,
    )


@pytest.mark.slow
@settings(KEEP, max_examples=examples(15), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(trials=TRIALS, attributes=STUDY_ATTRIBUTES)
def test_a_spoilt_search_is_resumed_or_refused(begun, tmp_path, trials, attributes):
    path = tmp_path / "s.db"
    path.write_bytes(begun.read_bytes())
    study = optuna.load_study(storage=f"sqlite:///{path}", study_name="s")
    n_before = len(study.trials)
    known = study.best_value
    fill(study, trials, attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = search(f"sqlite:///{path}", max_configurations=n_before + 6).fit(X, Y)
        except ValueError as error:
            assert "\n" not in str(error) or "All the" in str(error)  # noqa: PT017
            return
    assert math.isfinite(found.best_score_)
    assert found.best_score_ >= known
    look_at(found.study_)
