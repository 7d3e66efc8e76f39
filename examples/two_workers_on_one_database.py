"""Run one search in two processes that share a database.

Pass the URL of a PostgreSQL database as the first argument (extra [postgres]). Without it, an
SQLite file is used, which is sufficient for two processes on one machine.
"""

import subprocess
import sys

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from f2a_tune import F2ASearchCV

X, y = load_digits(return_X_y=True)
storage = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///shared.db"
search = F2ASearchCV(
    SVC(),
    {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-5, 1e-1)},
    time_budget=30,
    cv=3,
    storage=storage,
    study_name="digits",
)
if sys.argv[2:] == ["join"]:
    search.join(X, y)
    sys.exit()

helper = None


def start_helper(event):
    global helper
    if helper is None:
        helper = subprocess.Popen([sys.executable, __file__, storage, "join"])


search.set_params(callbacks=[start_helper]).fit(X, y)
print(f"the helper ended with {helper.wait()}")
owners = {trial.user_attrs["f2a:owner"] for trial in search.study_.trials}
print(f"{len(owners)} processes evaluated {len(search.study_.trials)} configurations")
print(f"best: {search.best_score_:.3f} with {search.best_params_}")
