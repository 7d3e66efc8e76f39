"""A search that several processes of a test play together; every fit leaves a line in a file."""

import sys
import time
import warnings

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

from f2a_tune import F2ASearchCV

N_FOLDS = 3
X = np.arange(60, dtype=float)[:, None]
Y = np.arange(60) % 2


class Logged(ClassifierMixin, BaseEstimator):
    """As good as it is told, on every fold a little different."""

    def __init__(self, quality=0.5, seconds=0.05, log=""):
        self.quality = quality
        self.seconds = seconds
        self.log = log

    def fit(self, X, y):
        time.sleep(self.seconds)
        self.classes_ = np.unique(y)
        self.rows_ = float(X.sum())
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{self.quality!r} {self.rows_}\n")
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)

    def score(self, X, y):
        return self.quality + 1e-3 * (float(X.sum()) % 7)


def opened(url):
    if url is not None and url.endswith(".journal"):
        return optuna.storages.JournalStorage(JournalFileBackend(url))
    return url


def search(url, log="", **options):
    estimator = Logged(log=log, seconds=options.pop("seconds", 0.05))
    options = {"time_budget": 40, "cv": N_FOLDS, "study_name": "s", "refit": False} | options
    return F2ASearchCV(estimator, {"quality": uniform(0, 1)}, storage=opened(url), **options)


def make():
    """For ``f2a-tune worker --search``."""
    return search(None), X, Y


if __name__ == "__main__":
    role, url, log = sys.argv[1:4]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    if role == "begin":
        found = search(url, log, **dict(eval(one) for one in sys.argv[4:])).fit(X, Y)
        print(found.best_score_, found.best_params_["quality"], found.budget_.total_seconds)
    else:
        print(search(url, log).join(X, Y).total_seconds)
