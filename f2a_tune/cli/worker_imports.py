"""Imports that workers of ``f2a-tune tune`` need before the first fit.

Importing this module also preprocesses a tiny table. Libraries import some of their modules on
first use, which every new worker would otherwise have to repeat.
"""

from __future__ import annotations

import pandas
import sklearn.ensemble
import sklearn.linear_model
import sklearn.neighbors
import sklearn.neural_network
import sklearn.svm  # noqa: F401

import f2a_tune.sklearn_plugin.fold  # noqa: F401
from f2a_tune.cli.preprocessing import prepared

_table = pandas.DataFrame({"number": [0.0, 1.0, 2.0], "text": ["a", "b", "a"]})
prepared("passthrough", ["text"], ["number"]).fit(_table)
