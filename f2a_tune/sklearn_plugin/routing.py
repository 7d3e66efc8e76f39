"""Which metadata goes where: groups to the splitter, weights to fit and scorer, as users asked."""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing


def routed(
    owner: str, estimator: Any, splitter: Any, scorer: Any, params: dict[str, Any], groups: Any
) -> Any:
    """``.splitter.split``, ``.estimator.fit`` and ``.scorer.score``: keyword arguments of each.

    Without scikit-learn's metadata routing all of ``params`` goes to ``fit``.
    """
    if not sklearn.get_config()["enable_metadata_routing"]:
        return Bunch(
            splitter=Bunch(split={"groups": groups}),
            estimator=Bunch(fit=params),
            scorer=Bunch(score={}),
        )
    if groups is not None:
        raise ValueError(
            "groups must be passed in params when metadata routing is enabled: "
            "params={'groups': groups}."
        )
    router = (
        MetadataRouter(owner=owner)
        .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        .add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        .add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    )
    return process_routing(router, "fit", **params)
