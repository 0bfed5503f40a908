"""Tree evaluations of a request, recorded and replayed: the part of its time that no other code can save."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from roofcast.training.learner.boosted_residual import ResidualRegressor


def record_tree_calls(job: Callable[[], Any]) -> Callable[[], None]:
    """Run a job, and return the call that repeats its tree evaluations by XGBoost and nothing else."""
    calls: list[tuple[ResidualRegressor, Any]] = []
    predict = ResidualRegressor.predict_unchecked

    def record(regressor: ResidualRegressor, X: Any) -> Any:
        calls.append((regressor, X))
        return predict(regressor, X)

    with patch.object(ResidualRegressor, "predict_unchecked", record):
        job()
    matrices = [(booster, X) for regressor, X in calls for booster in regressor.boosters_]

    def replay() -> None:
        for booster, X in matrices:
            booster.inplace_predict(X, validate_features=False)

    return replay
