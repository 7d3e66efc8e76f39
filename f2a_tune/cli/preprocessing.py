"""The pipeline that converts a table with numbers, categories and missing values to numbers.

Numeric columns are imputed with the median and scaled. Categorical columns are imputed with the
most frequent value and one-hot encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

# Maximum number of categories per column; the rarest ones are merged into one.
MOST_CATEGORIES = 50


def prepared(estimator: Any, categorical: Sequence[Any], numeric: Sequence[Any]) -> Pipeline:
    """Return a pipeline of the preprocessing of these columns and the estimator."""
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent", keep_empty_features=True),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=MOST_CATEGORIES,
            sparse_output=False,
        ),
    )
    columns = [("numbers", numbers, list(numeric)), ("categories", categories, list(categorical))]
    return Pipeline([("prepare", ColumnTransformer(columns)), ("model", estimator)])
