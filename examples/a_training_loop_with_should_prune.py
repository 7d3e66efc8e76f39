"""Apply learned cutoffs in a training loop that calls ``trial.should_prune()``.

No worker process is needed if the objective calls it often enough. The loop stands for the epochs
of a network: the learning rate determines how fast it learns, the width how long an epoch takes.
"""

import time

import optuna

from f2a_tune import WaitUCBPruner, WaitUCBSampler, budget_summary, cutoff_of

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    width = trial.suggest_int("width", 8, 2048, log=True)
    loss = 1.0
    for epoch in range(20):
        time.sleep(width / 10_000)  # one epoch
        loss = loss * (1 - 0.5 * rate) + 0.01 / width
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


study = optuna.create_study(
    sampler=WaitUCBSampler(seed=0), pruner=WaitUCBPruner(optuna.pruners.MedianPruner())
)
study.optimize(objective, n_trials=60, timeout=15)

print(f"best loss {study.best_value:.5f} with {study.best_params}")
print(f"cutoff of the last trial: {cutoff_of(study.trials[-1]):.2f} s")
print(budget_summary(study))
