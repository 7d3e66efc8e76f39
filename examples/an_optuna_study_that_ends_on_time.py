"""Add learned cutoffs and a hard time budget to an Optuna study with two more lines.

Some configurations of this objective hang, like a solver that does not converge. The sampler
learns how long it pays to wait, and `optimize` kills trials that take longer.
"""

import time

import optuna

from f2a_tune import WaitUCBSampler, best_configuration, budget_summary, optimize

BUDGET_SECONDS = 15


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    time.sleep(3600 if x > 2 else 0.05)
    return (x - 1) ** 2


study = optuna.create_study(sampler=WaitUCBSampler(seed=0))
begin = time.monotonic()
optimize(study, objective, time_budget=BUDGET_SECONDS)

print(f"ended after {time.monotonic() - begin:.1f} s of {BUDGET_SECONDS}")
print(budget_summary(study))
best = best_configuration(study)
print(f"best: x={best.params['x']:.3f}, value {best.mean:.2g}")
