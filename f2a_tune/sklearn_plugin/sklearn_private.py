"""The only module that uses private names of scikit-learn.

Each function documents what it replaces, and `tests/test_private_names.py` tests each of them. If
a new release of scikit-learn moves a name, that test fails and names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def base_search_cv() -> Any:
    """Return the base class of scikit-learn's searches."""
    from sklearn.model_selection._search import BaseSearchCV

    return BaseSearchCV


def fit_context() -> Any:
    """Return the decorator of ``fit`` that checks parameters and tears down callbacks."""
    from sklearn.base import _fit_context

    return _fit_context(prefer_skip_nested_validation=False)


def scorers_of(search: Any) -> tuple[Any, Any]:
    """Return the scorer or scorers of a search, and the name of the metric for the refit."""
    scorers, refit_metric = search._get_scorers()
    return scorers, refit_metric


def scorers_by_name(scorers: Any) -> Any:
    """Return the value of ``scorer_``: a scorer, or a dict of several."""
    return getattr(scorers, "_scorers", scorers)


def checked_params(X: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return fit parameters; those with one value per row are made indexable."""
    from sklearn.utils.validation import _check_method_params

    found: dict[str, Any] = _check_method_params(X, params=params)
    return found


def routed_for_fit(search: Any, params: dict[str, Any]) -> Any:
    """Route the fit parameters of a search to estimator, scorer and splitter."""
    return search._get_routed_params_for_fit(params)


def check_refit_for_multimetric(search: Any, scores: Any) -> None:
    """Raise unless ``refit`` is the name of one of several metrics, a function or False."""
    search._check_refit_for_multimetric(scores)


def best_index_of(search: Any, refit_metric: Any, results: dict[str, Any]) -> int:
    """Return the row that ``refit`` chooses."""
    return int(search._select_best_index(search.refit, refit_metric, results))


def callback_root(search: Any, n_subtasks: int) -> Any:
    """Return the context of scikit-learn's callbacks; None before version 1.9."""
    begin = getattr(search, "_init_callback_context", None)
    return None if begin is None else begin(max_subtasks=n_subtasks)


def has_callbacks(estimator: Any) -> bool:
    """Whether an estimator has scikit-learn callbacks, which exist since version 1.9."""
    return bool(getattr(estimator, "_skl_callbacks", ()))


@dataclass(frozen=True)
class FoldParts:
    """Training and test rows of a fold, with the arguments that belong to them."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    fit_params: dict[str, Any]
    train_score_params: dict[str, Any]
    test_score_params: dict[str, Any]

    def test_scores(self, model: Any, scorer: Any) -> Any:
        """Return the score, or the scores by name, on the test rows."""
        return _scores(model, self.X_test, self.y_test, scorer, self.test_score_params)

    def train_scores(self, model: Any, scorer: Any) -> Any:
        """Return the score, or the scores by name, on the training rows."""
        return _scores(model, self.X_train, self.y_train, scorer, self.train_score_params)


def _scores(model: Any, X: Any, y: Any, scorer: Any, params: dict[str, Any]) -> Any:
    from sklearn.model_selection._validation import _score

    return _score(model, X, y, scorer, params, error_score="raise")


def split_fold(
    estimator: Any,
    X: Any,
    y: Any,
    train: Any,
    test: Any,
    fit_params: dict[str, Any],
    score_params: dict[str, Any],
) -> FoldParts:
    """Split the data of one fold as `fit_and_score` does."""
    from sklearn.utils.metaestimators import _safe_split
    from sklearn.utils.validation import _check_method_params

    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, y_test = _safe_split(estimator, X, y, test, train)
    return FoldParts(
        X_train,
        y_train,
        X_test,
        y_test,
        _check_method_params(X, params=fit_params, indices=train),
        _check_method_params(X, params=score_params, indices=train),
        _check_method_params(X, params=score_params, indices=test),
    )


def fit_and_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scorer: Any,
    train: Any,
    test: Any,
    parameters: dict[str, Any] | None,
    fit_params: dict[str, Any],
    score_params: dict[str, Any],
    return_train_score: bool = False,
    return_estimator: bool = False,
) -> dict[str, Any]:
    """Fit and score one fold as scikit-learn's own searches do, but raise errors."""
    from sklearn.model_selection._validation import _fit_and_score

    found: dict[str, Any] = _fit_and_score(
        estimator,
        X,
        y,
        scorer=scorer,
        train=train,
        test=test,
        verbose=0,
        parameters=parameters,
        fit_params=fit_params,
        score_params=score_params,
        return_train_score=return_train_score,
        return_estimator=return_estimator,
        return_times=True,
        return_n_test_samples=True,
        error_score="raise",
    )
    return found
