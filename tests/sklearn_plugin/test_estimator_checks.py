"""scikit-learn's checks of estimators, on the four searches that it checks of its own."""

import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from f2a_tune.sklearn_plugin import F2ASearchCV

OPTIONS = {"cv": 2, "error_score": "raise", "random_state": 0, "time_budget": 300}
# As scikit-learn expects of its own searches.
EXPECTED = {
    "check_supervised_y_2d": "DataConversionWarning not caught",
    "check_requires_y_none": "Doesn't fail gracefully",
}


CLASSIFIER = F2ASearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, **OPTIONS)
OTHERS = [
    F2ASearchCV(Ridge(), {"alpha": [0.1, 1.0]}, **OPTIONS),
    F2ASearchCV(make_pipeline(PCA(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, **OPTIONS),
    F2ASearchCV(
        make_pipeline(PCA(), LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        **OPTIONS,
    ),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CLASSIFIER], expected_failed_checks=lambda _: EXPECTED)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(OTHERS, expected_failed_checks=lambda _: EXPECTED)
def test_checks_of_other_searches(estimator, check):
    check(estimator)


def test_texts_reach_the_estimator():
    search = F2ASearchCV(
        make_pipeline(TfidfVectorizer(), LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        **OPTIONS,
    )
    texts = ["a good day", "a bad day", "good and fine", "bad and worse"] * 3
    assert search.fit(texts, [1, 0, 1, 0] * 3).predict(["good"]) == [1]
