"""Search over SVCs, some of which would run for hours; the search ends after 20 seconds."""

import time

from optuna.distributions import CategoricalDistribution, FloatDistribution
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from f2a_tune import F2ASearchCV

X, y = make_classification(2000, 20, flip_y=0.2, random_state=0)
space = {
    "kernel": CategoricalDistribution(["rbf", "linear", "poly"]),
    "C": FloatDistribution(1e-3, 1e6, log=True),
    "gamma": FloatDistribution(1e-5, 1e2, log=True),
}
begin = time.monotonic()
search = F2ASearchCV(SVC(), space, time_budget=20, cv=3, random_state=0).fit(100 * X, y)
print(f"ended after {time.monotonic() - begin:.1f} s")
print(f"best: {search.best_score_:.3f} with {search.best_params_}")
print(f"{search.budget_.n_given_up} fits were given up")
print(search.budget_)
