"""Names of the attributes that this library writes to a study and its trials, and their JSON.

Attributes can come from anywhere, including other versions of this library. A reader treats a
value that it does not understand as missing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

# Attributes of a trial that is one call of an objective.
PLAN = "f2a:pull"
SECONDS = "f2a:seconds"
OUTCOME = "f2a:outcome"
ERROR = "f2a:error"

# Attributes of a trial that is one configuration of a search.
UNIT = "f2a:unit"  # the configuration as a point of the unit cube
FOLD = "f2a:fold:"  # followed by the index of a fold
OWNER = "f2a:owner"  # the run that evaluates the configuration
CONTINUES = "f2a:continues"  # number of the trial of a crashed run that this one continues
DEFAULT = "f2a:default"  # the estimator's own values, if they lie outside the space

# Attributes of a study.
METRIC = "f2a:metric"  # which of several scores decides
FOLDS = "f2a:folds"  # number of folds
RUN = "f2a:run:"  # followed by the name of a run
USE = "f2a:use"  # where the seconds of the last search went
WINNER = "f2a:winner"  # the configuration that the last search recommends
FINGERPRINT = "f2a:fingerprint"  # data, splits, space and scoring of a search
VERSION = "f2a:version"

# Name of the parameter that chooses between several spaces of a search.
WHICH_SPACE = "which_space"


def configuration_key(params: Mapping[str, Any]) -> str:
    """What makes two trials the same configuration: their parameters as canonical JSON."""
    return json.dumps(params, sort_keys=True, default=repr)


def number_or(value: Any, default: float) -> float:
    """A finite number that is not negative, or the default."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    return float(value) if math.isfinite(value) and value >= 0 else default


def finite_or_none(seconds: float) -> float | None:
    """JSON has no infinity."""
    return seconds if math.isfinite(seconds) else None
