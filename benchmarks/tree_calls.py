"""Record and replay of a request's tree evaluations: the lower bound of its latency."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from xgboost import Booster

from roofcast.training.learner.boosted_trees import ResidualRegressor


def record_tree_calls(job: Callable[[], Any]) -> Callable[[], None]:
    """Run a job and return a function that repeats only its XGBoost evaluations."""
    calls: list[tuple[ResidualRegressor, Any]] = []
    predict = ResidualRegressor.predict_unchecked

    def record(regressor: ResidualRegressor, X: Any) -> Any:
        calls.append((regressor, X))
        return predict(regressor, X)

    with patch.object(ResidualRegressor, "predict_unchecked", record):
        job()
    matrices = [
        (Booster({"nthread": regressor.n_jobs}, model_file=bytearray(member)), X)
        for regressor, X in calls
        for member in regressor.members_
    ]

    def replay() -> None:
        for booster, X in matrices:
            booster.inplace_predict(X, validate_features=False)

    return replay
