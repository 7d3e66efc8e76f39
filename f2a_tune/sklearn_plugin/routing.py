"""Routes metadata, such as groups and sample weights, to splitter, estimator and scorer."""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing


def routed(
    owner: str, estimator: Any, splitter: Any, scorer: Any, params: dict[str, Any], groups: Any
) -> Any:
    """Return the keyword arguments of ``splitter.split``, ``estimator.fit`` and ``scorer.score``.

    The result has them as attributes of these names. Without scikit-learn's metadata routing, all
    ``params`` are passed to ``fit``.
    """
    if not sklearn.get_config()["enable_metadata_routing"]:
        return Bunch(
            splitter=Bunch(split={"groups": groups}),
            estimator=Bunch(fit=params),
            scorer=Bunch(score={}),
        )
    if groups is not None:
        raise ValueError(
            "groups must be passed in params when metadata routing is enabled. Pass "
            "params={'groups': groups}."
        )
    router = (
        MetadataRouter(owner=owner)
        .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        .add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        .add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    )
    return process_routing(router, "fit", **params)
