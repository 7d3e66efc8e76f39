"""Resume a search that was killed with SIGKILL; it continues with its remaining seconds."""

import os
import signal
import subprocess
import sys

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from f2a_tune import F2ASearchCV

X, y = load_digits(return_X_y=True)


def search(**options):
    return F2ASearchCV(
        SVC(),
        {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-5, 1e-1)},
        time_budget=20,
        cv=3,
        storage="sqlite:///search.db",
        study_name="digits",
        **options,
    )


if sys.argv[1:] == ["first"]:
    n_pulls = 0

    def count(event):
        global n_pulls
        n_pulls += 1
        if n_pulls == 15:
            os.kill(os.getpid(), signal.SIGKILL)  # simulates a power failure

    search(callbacks=[count]).fit(X, y)

crashed = subprocess.run([sys.executable, __file__, "first"], check=False)
print(f"the first process ended with {signal.Signals(-crashed.returncode).name}")
found = search(resume=True).fit(X, y)
known = found.cv_results_["n_folds_done"].sum() - found.budget_.n_finished
print(f"{known} folds were known already, {found.budget_.n_finished} finished after the crash")
print(f"best: {found.best_score_:.3f} with {found.best_params_}")
