import time

import optuna
import optunahub


module = optunahub.load_module(package="samplers/wait_ucb")


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    for _ in range(100):
        time.sleep(0.001 if x < 2 else 0.05)  # some configurations take for ever
        if trial.should_prune():
            raise optuna.TrialPruned()
    return (x - 1) ** 2


if __name__ == "__main__":
    study = optuna.create_study(
        sampler=module.WaitUCBSampler(seed=0), pruner=module.WaitUCBPruner()
    )
    study.optimize(objective, n_trials=50)
    print(study.best_params)
