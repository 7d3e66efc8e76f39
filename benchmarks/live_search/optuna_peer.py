"""Optuna's TPE with Hyperband, which sees the first fold at a doubling ladder of rounds.

Optuna does not stop trials that are running at the end, so the search can take longer than its
budget.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import optuna

from live_search.ladder import grow
from live_search.problem import FoldScore, Found, NothingFoundError, Problem, refit_seconds
from live_search.space import Parameter
from live_search.table import N_FOLDS

REFIT_SECONDS = "refit_seconds"


def search(problem: Problem) -> Found:
    """Search until only the time for the refit is left, and refit the best."""
    end = time.monotonic() + problem.job.budget
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = _study(problem)

    def keep_refit(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        best = _best(study)
        if best and time.monotonic() + best.user_attrs[REFIT_SECONDS] > end:
            study.stop()

    study.optimize(
        lambda trial: _evaluate(problem, trial),
        timeout=end - time.monotonic(),
        n_jobs=problem.workers,
        callbacks=[keep_refit],
        catch=(Exception,),
    )
    best = _best(study)
    if best is None:
        raise NothingFoundError("no trial was finished in time")
    params = _params(problem, optuna.trial.FixedTrial(best.params))
    return Found(problem.refit(params), best.value, len(study.trials), N_FOLDS)


def _study(problem: Problem) -> optuna.Study:
    rounds = problem.space[problem.rounds]
    return optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=problem.job.seed),
        pruner=optuna.pruners.HyperbandPruner(
            min_resource=rounds.low, max_resource=rounds.high, reduction_factor=3
        ),
    )


def _best(study: optuna.Study) -> optuna.trial.FrozenTrial | None:
    finished = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    return max(finished, key=lambda trial: trial.value, default=None)


def _params(problem: Problem, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
    return {name: _suggest(trial, name, one) for name, one in problem.space.items()}


def _suggest(trial: optuna.trial.BaseTrial, name: str, one: Parameter) -> Any:
    if isinstance(one, list):
        places = len(one)
        # Numbers have an order that the sampler can use, tuples have none.
        if isinstance(one[0], int):
            return one[trial.suggest_int(name, 0, places - 1)]
        return one[trial.suggest_categorical(name, list(range(places)))]
    if isinstance(one, optuna.distributions.IntDistribution):
        return trial.suggest_int(name, one.low, one.high, log=one.log)
    return trial.suggest_float(name, one.low, one.high, log=one.log)


def _evaluate(problem: Problem, trial: optuna.Trial) -> float:
    params = _params(problem, trial)
    folds = [_first_fold(problem, params, trial)]
    folds += [problem.evaluate(params, place) for place in range(1, N_FOLDS)]
    trial.set_user_attr(REFIT_SECONDS, refit_seconds(folds))
    return float(np.mean([fold.score for fold in folds]))


def _first_fold(problem: Problem, params: dict[str, Any], trial: optuna.Trial) -> FoldScore:
    """Report the score at every level, and prune the trial where the pruner says so."""
    begin, table, fold = time.monotonic(), problem.table, problem.table.folds[0]
    rows, truth = table.X[fold.validation], table.y[fold.validation]
    scores = [-np.inf]

    def look(level: int, predict: Any) -> None:
        scores.append(table.score(np.asarray(predict(rows)), truth))
        trial.report(scores[-1], level)
        if trial.should_prune():
            raise optuna.TrialPruned

    grow(
        problem.job.model,
        problem.with_params(params),
        table.X[fold.train],
        table.y[fold.train],
        _levels(problem.space[problem.rounds].low, params[problem.rounds]),
        look,
    )
    return FoldScore(scores[-1], time.monotonic() - begin)


def _levels(lowest: int, rounds: int) -> list[int]:
    levels: list[int] = []
    level = lowest
    while level < rounds:
        levels.append(level)
        level *= 2
    return [*levels, rounds]
