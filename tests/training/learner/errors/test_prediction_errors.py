from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.derived_metrics import E2E, THROUGHPUT
from roofcast.training.learner.errors.prediction_errors import imputed_errors
from roofcast.training.learner.ratio_model import RatioModel
from tests.training.builders import QUICK, synthetic

SLOWER = np.log(1.5)
MEAN = {"workload.is_mean": 1.0}
FEW_TOKENS = {"workload.n_output_token": 2.0, "workload.n_input_token": 8000.0}


@pytest.mark.parametrize(
    ("measured", "changes", "expected"),
    [
        ("itl_s", {}, {"tpot_s": SLOWER}),
        ("tpot_s", {}, {"itl_s": SLOWER}),
        (E2E, MEAN, {"tpot_s": SLOWER}),
        (E2E, {}, {}),
        (E2E, MEAN | FEW_TOKENS, {"ttft_s": SLOWER}),
        (THROUGHPUT, {}, {"tpot_s": -SLOWER}),
        ("itl_s", {"workload.quantile": 0.95}, {}),
        (THROUGHPUT, {"workload.concurrency": np.nan, "workload.request_rate_per_s": 0.1}, {}),
        ("ttft_s", {}, {}),
    ],
)
def test_one_metric_determines_the_error_of_another(
    measured: str, changes: dict[str, float], expected: dict[str, float], subset: TrainingSet
) -> None:
    data = synthetic(subset)
    model = RatioModel(QUICK).fit(data.X, data.y, data.groups)
    X = data.X.head(4).assign(**{"workload.is_mean": 0.0, "workload.concurrency": 4.0} | changes)
    prediction = model.predict_ratio(X)
    y = pd.DataFrame(np.nan, X.index, list(METRICS))
    y[measured] = prediction.value[measured] * 1.5
    errors = imputed_errors(X, y, prediction, prediction.value)
    assert errors.keys() == {"ttft_s", "tpot_s", "itl_s"}
    for metric, error in errors.items():
        np.testing.assert_allclose(error, np.full(4, expected.get(metric, np.nan)))


def test_measured_errors_are_not_imputed(subset: TrainingSet) -> None:
    data = synthetic(subset)
    prediction = RatioModel(QUICK).fit(data.X, data.y, data.groups).predict_ratio(data.X)
    errors = imputed_errors(data.X, data.y.assign(itl_s=2 * data.y["tpot_s"]), prediction, prediction.value)
    for error in errors.values():
        assert np.isnan(error).all()
