"""Ready models: their starts lie in their spaces, and all of them fit tables as people have."""

import numpy as np
import pytest
from optuna.distributions import BaseDistribution
from sklearn.base import clone

from f2a_tune.cli.preprocessing import prepared
from f2a_tune.cli.presets import (
    CLASSIFICATION,
    MODELS,
    QUICKEST_FIRST,
    REGRESSION,
    model_names,
    ready_space,
)
from f2a_tune.study import optuna_private

pd = pytest.importorskip("pandas")


def lies_in(value, space):
    if isinstance(space, BaseDistribution):
        return optuna_private.contains(space, value)
    return value in space


@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
@pytest.mark.parametrize("name", MODELS)
def test_a_start_lies_in_its_space(name, task):
    model = MODELS[name]
    start, space = model.start_for(task), model.space_for(task)
    assert start.keys() == space.keys()
    assert all(lies_in(start[key], space[key]) for key in space)
    assert start.keys() <= model.estimator(task, 0).get_params().keys()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("task", [CLASSIFICATION, REGRESSION])
def test_every_start_fits_a_table_with_categories_and_gaps(task):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"size": rng.normal(size=60), "colour": rng.choice(["red", "blue"], 60)}, dtype=object
    )
    table.loc[3, "size"] = table.loc[5, "colour"] = np.nan
    target = (table["colour"] == "red").to_numpy()
    ready = ready_space(model_names("auto"), task, seed=0)
    estimator = prepared(ready.estimator, ["colour"], ["size"])
    y = target if task == CLASSIFICATION else target + rng.normal(scale=0.1, size=60)
    for start in ready.start:
        fitted = clone(estimator).set_params(**clone(start, safe=False)).fit(table, y)
        assert np.shape(fitted.predict(table)) == (60,)


def test_all_models_are_begun_with_the_quickest_first():
    assert set(QUICKEST_FIRST) == set(MODELS)
    ready = ready_space(("mlp", "linear"), CLASSIFICATION)
    assert [type(start["model"]).__name__ for start in ready.start] == [
        "LogisticRegression",
        "MLPClassifier",
    ]
