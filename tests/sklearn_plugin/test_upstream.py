"""scikit-learn's own tests of its searches, with ours in the place of RandomizedSearchCV.

The installed module is executed once more with the class replaced, and those of its tests that
mention it are collected here. Ours is asked to complete every fold: as many configurations as
``n_iter``, and plenty of time.
"""

import importlib.util
import inspect
import sys
from unittest import mock

import cloudpickle
import numpy as np
import pytest
import sklearn
import sklearn.model_selection
from sklearn.model_selection.tests import test_search as upstream

from f2a_tune.sklearn_plugin import F2ASearchCV


class RandomizedSearchCV(F2ASearchCV):
    """The signature of scikit-learn's, the search of ours."""

    def __init__(
        self,
        estimator,
        param_distributions,
        *,
        n_iter=10,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        pre_dispatch="2*n_jobs",
        random_state=None,
        error_score=np.nan,
        return_train_score=False,
    ):
        super().__init__(
            estimator,
            param_distributions,
            time_budget=600,
            proposals="random",
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.n_iter = n_iter
        self.pre_dispatch = pre_dispatch

    @property
    def max_configurations(self):
        return self.n_iter

    @max_configurations.setter
    def max_configurations(self, value):
        pass


# Why some cannot apply; everything else must pass.
CANNOT_APPLY = {
    "test_random_search_cv_results": "cv_results_ has columns of its own beside scikit-learn's",
    "test_random_search_cv_results_multimetric": "compares the seconds of two runs",
    "test_search_cv_results_rank_tie_breaking": "needs scikit-learn's order of draws",
    "test_search_default_iid": "needs scikit-learn's order of draws",
    "test_search_cv_timing": "needs scikit-learn's order of draws",
    "test_search_with_2d_array": "needs scikit-learn's order of draws",
    "test_search_cv_using_minimal_compatible_estimator": "an unknown parameter is refused",
    "test_multi_metric_search_forwards_metadata": "looks into the worker's memory",
    "test_search_callbacks_propagation": "fits in workers have no callbacks; the refit has",
}


def substituted():
    spec = importlib.util.spec_from_file_location("upstream_test_search", upstream.__file__)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    cloudpickle.register_pickle_by_value(module)  # workers do not have it
    with mock.patch.object(sklearn.model_selection, "RandomizedSearchCV", RandomizedSearchCV):
        spec.loader.exec_module(module)
    return module


def mentions_ours(test):
    marks = getattr(test, "pytestmark", [])
    return "RandomizedSearchCV" in inspect.getsource(test) or any(
        RandomizedSearchCV.__name__ in repr(mark.args) for mark in marks
    )


@pytest.fixture
def enable_slep006():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


for _name, _test in vars(substituted()).items():
    if _name.startswith("test_") and callable(_test) and mentions_ours(_test):
        if _name in CANNOT_APPLY:
            _test = pytest.mark.skip(reason=CANNOT_APPLY[_name])(_test)
        globals()[_name] = _test


def test_every_reason_is_needed():
    assert set(CANNOT_APPLY) <= set(globals())
