"""A training loop that asks whether to go on: the pruner knows what time it is.

No worker process is needed where the objective asks often enough. The loop stands for epochs of
any network; its learning rate decides how fast it learns, its width how long an epoch takes.
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
print(f"a trial is waited for {cutoff_of(study.trials[-1]):.2f} s now")
print(budget_summary(study))
