"""Under every joblib backend a task carries its own cutoff inside it."""

import time

import joblib
import pytest

from f2a_tune.cutoff import run_with_cutoff

pytestmark = pytest.mark.slow


def sleep_and_say(seconds):
    time.sleep(seconds)
    return seconds


def outcomes(**options):
    tasks = [
        joblib.delayed(run_with_cutoff)(sleep_and_say, s, cutoff=2) for s in (0, 60, 0.01, 60)
    ]
    return [str(outcome.kind) for outcome in joblib.Parallel(**options)(tasks)]


EXPECTED = ["finished", "gave_up", "finished", "gave_up"]


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
def test_one_slow_task_does_not_harm_the_others(backend):
    assert outcomes(n_jobs=2, backend=backend) == EXPECTED


@pytest.mark.parametrize("daemon", [True, False])
def test_on_a_dask_cluster_of_processes(daemon):
    dask = pytest.importorskip("dask", reason="install the extra [dask] to run this")
    distributed = pytest.importorskip("distributed", reason="install the extra [dask] to run this")
    with (
        dask.config.set({"distributed.worker.daemon": daemon}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert outcomes() == EXPECTED
