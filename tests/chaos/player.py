"""One search with hostile fits, in a process of its own: settings in, its own account out.

    python -m tests.chaos.player '{"budget": 10, …}'

Writes what it was told of every pull to a file, and its result as a line of stdout.
"""

import faulthandler
import json
import resource
import sys
import time
import warnings

import numpy as np
from scipy.stats import uniform

from f2a_tune import F2ASearchCV
from f2a_tune.sklearn_plugin import StorageLostWarning
from tests.chaos.faults import Hostile

N_FOLDS = 3
RESULT = "result: "
TOO_LATE_SECONDS = 2.0  # then it says where it is


def main(settings):
    if settings["files"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (settings["files"], settings["files"]))
    rows = settings["rows"]
    X = np.arange(rows * 10, dtype=float).reshape(rows, 10)
    y = np.arange(rows) % 2
    told = open(settings["told"], "a", buffering=1)  # noqa: SIM115

    def tell(event):
        params = event.params
        kind, fold = event.outcome.kind.value, event.pull.fold
        told.write(json.dumps([kind, params["fault"], params["quality"], fold]) + "\n")

    search = F2ASearchCV(
        Hostile(log=settings["log"], seconds=settings["seconds"]),
        {"quality": uniform(0, 1), "fault": settings["faults"]},
        time_budget=settings["budget"],
        n_jobs=settings["players"],
        cv=N_FOLDS,
        refit=False,  # it is done in this process, which then has only itself to blame
        memory=1_500_000_000,
        storage=settings["storage"],
        study_name="chaos" if settings["storage"] else None,
        resume=settings["resume"],
        proposals="random",  # every fault is tried again and again
        callbacks=[tell],
        start=[],
        random_state=settings["seed"],
    )
    begin = time.monotonic()
    faulthandler.dump_traceback_later(settings["budget"] + TOO_LATE_SECONDS, repeat=True)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", StorageLostWarning)
        search.fit(X, y)
    faulthandler.cancel_dump_traceback_later()
    seconds = time.monotonic() - begin
    result = {
        "seconds": seconds,
        "score": float(search.best_score_),
        "quality": float(search.best_params_["quality"]),
        "status": str(search.cv_results_["status"][search.best_index_]),
        "finished": search.budget_.n_finished,
        "given up": search.budget_.n_given_up,
        "failed": search.budget_.n_failed,
        "budget": str(search.budget_),
        "storage lost": bool(said),
    }
    print(f"\n{RESULT}{json.dumps(result)}", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
