"""Race folds in an Optuna study: each trial is one fold, and weak configurations get only one.

`evaluation_of(trial)` counts the evaluations of the trial's configuration from zero. Used as the
fold, it turns the study into a race: only configurations that may still win get all folds.
"""

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from f2a_tune import WaitUCBSampler, best_configuration, evaluation_of, optimize

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_breast_cancer(return_X_y=True)
folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))


def objective(trial: optuna.Trial) -> float:
    c = trial.suggest_float("C", 1e-3, 1e4, log=True)
    gamma = trial.suggest_float("gamma", 1e-6, 1e2, log=True)
    train, test = folds[evaluation_of(trial)]
    model = make_pipeline(StandardScaler(), SVC(C=c, gamma=gamma))
    return model.fit(X[train], y[train]).score(X[test], y[test])


study = optuna.create_study(
    direction="maximize", sampler=WaitUCBSampler(seed=0, evaluations_per_configuration=5)
)
optimize(study, objective, time_budget=15)

best = best_configuration(study)
tried = {tuple(trial.params.values()) for trial in study.trials}
print(f"{len(study.trials)} folds of {len(tried)} configurations")
print(f"best: {best.mean:.4f} ± {best.spread:.4f} over {best.n_evaluations} folds, {best.params}")
