"""Parts of Optuna and of optuna-integration around our sampler and under `optimize`."""

import functools
import json
import subprocess
import sys
import textwrap
import warnings
from enum import Enum

import numpy as np
import optuna
import pytest
from optuna.samplers import (
    BruteForceSampler,
    CmaEsSampler,
    GPSampler,
    GridSampler,
    NSGAIISampler,
    PartialFixedSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.trial import Trial, TrialState
from sklearn.datasets import make_classification

from f2a_tune import WaitUCBPruner, WaitUCBSampler, best_configuration, optimize

pytestmark = pytest.mark.slow

GRID = {"x": [0.0, 0.25, 0.5, 0.75], "k": [1, 2]}


def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    k = trial.suggest_int("k", 1, 2)
    for step in range(3):
        trial.report(x * k, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return (x - 0.3) ** 2 * k


def needs(module, make):
    pytest.importorskip(module)
    return make()


SAMPLERS = {
    "tpe": lambda: TPESampler(seed=0),
    "tpe-multivariate": lambda: TPESampler(seed=0, multivariate=True, group=True),
    "random": lambda: RandomSampler(seed=0),
    "grid": lambda: GridSampler(GRID, seed=0),
    "brute-force": lambda: BruteForceSampler(seed=0),
    "qmc": lambda: QMCSampler(seed=0),
    "nsga-ii": lambda: NSGAIISampler(seed=0),
    "cma-es": lambda: needs("cmaes", lambda: CmaEsSampler(seed=0)),
    "gp": lambda: needs("torch", lambda: GPSampler(seed=0)),
    "partial-fixed": lambda: PartialFixedSampler({"k": 1}, RandomSampler(seed=0)),
}
PRUNERS = {
    "none": optuna.pruners.NopPruner,
    "median": optuna.pruners.MedianPruner,
    "percentile": lambda: optuna.pruners.PercentilePruner(25.0),
    "halving": optuna.pruners.SuccessiveHalvingPruner,
    "hyperband": optuna.pruners.HyperbandPruner,
    "threshold": lambda: optuna.pruners.ThresholdPruner(upper=100.0),
    "patient": lambda: optuna.pruners.PatientPruner(None, patience=2),
    "wilcoxon": optuna.pruners.WilcoxonPruner,
}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("evaluations", [1, 3])
@pytest.mark.parametrize("hard", [False, True], ids=["study.optimize", "optimize"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_as_base(name, hard, evaluations):
    sampler = WaitUCBSampler(
        base_sampler=SAMPLERS[name](), evaluations_per_configuration=evaluations
    )
    study = optuna.create_study(sampler=sampler)
    categorical = name in ("grid", "brute-force")
    run = gridded if categorical else objective
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if hard:
            optimize(study, run, n_trials=9)
        else:
            study.optimize(run, n_trials=9)
    states = {trial.state for trial in study.trials}
    assert states <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(study.trials) <= 9
    assert best_configuration(study).n_evaluations <= evaluations


def gridded(trial):
    x = trial.suggest_categorical("x", GRID["x"])
    return (x - 0.3) ** 2 * trial.suggest_categorical("k", GRID["k"])


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("hard", [False, True], ids=["study.optimize", "optimize"])
@pytest.mark.parametrize("name", PRUNERS)
def test_every_pruner(name, hard):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        pruner = WaitUCBPruner(PRUNERS[name]())
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0), pruner=pruner)
    if hard:
        optimize(study, objective, n_trials=8)
    else:
        study.optimize(objective, n_trials=8)
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(study.trials) == 8


def looks_at_its_study(trial):
    x = trial.suggest_float("x", 0, 1)
    assert isinstance(trial, Trial)
    assert trial.study.direction is optuna.study.StudyDirection.MAXIMIZE
    assert trial.study.study_name == "watched"
    assert trial.study.user_attrs["colour"] == "red"
    assert trial.relative_params == {}
    if trial.number:
        assert trial.study.best_value >= 0
        assert len(trial.study.get_trials(states=(TrialState.COMPLETE,))) == trial.number
    if trial.number == 3:
        trial.study.stop()
    with pytest.raises(AttributeError, match="callbacks="):
        trial.study.enqueue_trial({})
    with pytest.raises(AttributeError, match="cannot call 'get_all_trials'"):
        trial.storage.get_all_trials(0)
    return x


def test_a_trial_in_a_worker_can_read_and_stop_its_study():
    study = optuna.create_study(study_name="watched", direction="maximize")
    study.set_user_attr("colour", "red")
    optimize(study, looks_at_its_study, n_trials=20)
    assert len(study.trials) == 4


def test_a_study_in_a_closure_is_the_study_and_not_a_copy():
    study = optuna.create_study()

    def refers_to_it(trial):
        x = trial.suggest_float("x", 0, 1)
        seen = len(study.trials)
        if seen == 5:
            study.stop()
        return x + seen

    optimize(study, refers_to_it, n_trials=50)
    assert len(study.trials) == 5


def test_cross_validation_scores_and_the_terminator():
    from optuna.terminator import CrossValidationErrorEvaluator, report_cross_validation_scores

    def scores(trial):
        x = trial.suggest_float("x", 0, 1)
        report_cross_validation_scores(trial, [x, x + 0.1, x - 0.1])
        return x

    study = optuna.create_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        optimize(study, scores, n_trials=3)
        error = CrossValidationErrorEvaluator().evaluate(study.trials, study.direction)
    assert error > 0


def test_artifacts(tmp_path):
    from optuna.artifacts import FileSystemArtifactStore, upload_artifact

    folder = tmp_path / "store"
    folder.mkdir()
    model = tmp_path / "model.txt"
    model.write_text("weights")
    store = FileSystemArtifactStore(base_path=str(folder))

    def uploads(trial):
        upload_artifact(artifact_store=store, file_path=str(model), study_or_trial=trial)
        return trial.suggest_float("x", 0, 1)

    study = optuna.create_study()
    optimize(study, uploads, n_trials=1)
    (found,) = optuna.artifacts.get_all_artifact_meta(study.trials[0], storage=study._storage)
    assert found.filename == "model.txt"


def test_the_lightgbm_callback_of_optuna_integration():
    lightgbm = pytest.importorskip("lightgbm", reason="pip install lightgbm")
    integration = pytest.importorskip(
        "optuna_integration", reason="pip install optuna-integration"
    )
    X, y = make_classification(200, 5, random_state=0)

    def trains(trial):
        callback = integration.LightGBMPruningCallback(trial, "binary_logloss", "valid_0")
        data = lightgbm.Dataset(X[:100], y[:100])
        model = lightgbm.train(
            {
                "objective": "binary",
                "metric": "binary_logloss",
                "verbose": -1,
                "num_threads": 1,
                "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            },
            data,
            10,
            valid_sets=[lightgbm.Dataset(X[100:], y[100:], reference=data)],
            callbacks=[callback],
        )
        return model.best_score["valid_0"]["binary_logloss"]

    study = optuna.create_study(
        sampler=WaitUCBSampler(seed=0), pruner=optuna.pruners.MedianPruner(n_startup_trials=2)
    )
    optimize(study, trains, n_trials=6)
    assert len(study.trials[0].intermediate_values) == 10
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}


def test_the_xgboost_callback_of_optuna_integration():
    xgboost = pytest.importorskip("xgboost", reason="pip install xgboost")
    integration = pytest.importorskip(
        "optuna_integration", reason="pip install optuna-integration"
    )
    X, y = make_classification(200, 5, random_state=0)

    def trains(trial):
        data, valid = xgboost.DMatrix(X[:100], y[:100]), xgboost.DMatrix(X[100:], y[100:])
        params = {"objective": "binary:logistic", "eta": trial.suggest_float("eta", 0.01, 0.3)}
        callback = integration.XGBoostPruningCallback(trial, "valid-logloss")
        result = {}
        xgboost.train(
            params | {"eval_metric": "logloss", "nthread": 1},
            data,
            10,
            evals=[(valid, "valid")],
            evals_result=result,
            callbacks=[callback],
            verbose_eval=False,
        )
        return result["valid"]["logloss"][-1]

    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    optimize(study, trains, n_trials=3)
    assert [len(trial.intermediate_values) for trial in study.trials] == [10, 10, 10]


class Kind(Enum):
    RBF = "rbf"
    LINEAR = "linear"


def test_choices_that_are_enums_read_as_in_python():
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    optimize(
        study, lambda trial: trial.suggest_categorical("kind", list(Kind)) is Kind.RBF, n_trials=3
    )
    assert {trial.params["kind"] for trial in study.trials} <= {"Kind.RBF", "Kind.LINEAR"}


def run_script(text):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done


def test_functions_with_a_cache_in_a_script():
    done = run_script(
        """
        import functools, json, optuna
        from f2a_tune import optimize
        optuna.logging.set_verbosity(optuna.logging.WARNING)

        @functools.cache
        def data():
            return [1.0, 2.0]

        @functools.lru_cache(maxsize=7)
        def scaled(factor):
            return [factor * value for value in data()]

        def objective(trial):
            assert scaled.cache_parameters()["maxsize"] == 7
            return sum(scaled(trial.suggest_float("x", 1, 1)))

        study = optuna.create_study()
        optimize(study, objective, n_trials=2)
        print(json.dumps([trial.value for trial in study.trials]))
        """
    )
    assert json.loads(done.stdout) == [3.0, 3.0]


def test_optunas_verbosity_holds_for_us():
    text = """
        import optuna
        from f2a_tune import optimize
        optuna.logging.set_verbosity(optuna.logging.{level})
        optimize(optuna.create_study(), lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        """
    assert run_script(text.format(level="WARNING")).stderr == ""
    assert "Trial 0 finished" in run_script(text.format(level="INFO")).stderr


class TwoArguments(Exception):
    def __init__(self, code, reason):
        super().__init__(f"{code}: {reason}")
        self.code = code


def raises_it(trial):
    trial.suggest_float("x", 0, 1)
    raise TwoArguments(7, "no such thing")


def test_exceptions_with_several_arguments_keep_their_class():
    with pytest.raises(TwoArguments, match="7: no such thing") as raised:
        optimize(optuna.create_study(), raises_it, n_trials=1)
    assert raised.value.code == 7
    assert "WorkerDied" not in type(raised.value.__cause__).__name__
    assert "raises_it" in str(raised.value.__cause__)
    study = optuna.create_study()
    optimize(study, raises_it, n_trials=2, catch=TwoArguments)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 2


def test_constraints_and_callbacks_of_a_study():
    def constrained(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("x", 0.5 - x) if hasattr(trial, "set_constraint") else None
        return x

    seen = []
    study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimize(study, constrained, n_trials=6, callbacks=[lambda s, t: seen.append(t.number)])
    assert seen == list(range(6))


def test_a_grpc_proxy(tmp_path):
    pytest.importorskip("grpc", reason="pip install grpcio protobuf")
    from optuna.storages import GrpcStorageProxy

    port = 20_000 + np.random.default_rng().integers(10_000)
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import optuna; optuna.storages.run_grpc_proxy_server("
            f"optuna.storages.RDBStorage('sqlite:///{tmp_path}/s.db'), "
            f"host='localhost', port={port})",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        proxy = GrpcStorageProxy(host="localhost", port=int(port))
        proxy.wait_server_ready(timeout=120)
        study = optuna.create_study(storage=proxy, sampler=WaitUCBSampler(seed=0))
        optimize(study, objective, n_trials=4)
        assert len(study.trials) == 4
    finally:
        server.kill()
        server.wait()


def test_partial_functions_as_objectives():
    study = optuna.create_study()
    optimize(study, functools.partial(_shifted, 2.0), n_trials=2)
    assert all(trial.value >= 2.0 for trial in study.trials)


def _shifted(shift, trial):
    return shift + trial.suggest_float("x", 0, 1)
