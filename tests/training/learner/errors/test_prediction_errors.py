from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.derived_metrics import E2E, THROUGHPUT
from roofcast.training.learner.errors.prediction_errors import impute_errors
from roofcast.training.learner.ratio_model import RatioModel
from tests.training.builders import QUICK, synthetic

SLOWER = np.log(1.5)
MEAN = {"workload.is_mean": 1.0}
FEW_TOKENS = {"workload.n_output_token": 2.0, "workload.n_input_token": 8000.0}
OPEN_LOOP = {"workload.concurrency": np.nan, "workload.request_rate_per_s": 0.1}
TAIL = {"workload.quantile": 0.95}


@pytest.mark.parametrize(
    ("measured", "changes", "imputed"),
    [
        (("itl_s",), {}, {"tpot_s"}),
        (("tpot_s",), {}, {"itl_s"}),
        ((E2E,), MEAN, {"tpot_s", "itl_s"}),
        ((E2E,), {}, set()),
        ((E2E,), MEAN | FEW_TOKENS, {"ttft_s"}),
        ((THROUGHPUT,), {}, {"tpot_s", "itl_s"}),
        (("ttft_s", THROUGHPUT), {}, {"tpot_s", "itl_s"}),
        (("ttft_s", E2E), MEAN, {"tpot_s", "itl_s"}),
        (("tpot_s", E2E), MEAN | FEW_TOKENS, {"ttft_s", "itl_s"}),
        (("itl_s",), TAIL, set()),
        ((THROUGHPUT,), TAIL, set()),
        ((THROUGHPUT,), OPEN_LOOP, set()),
        (("ttft_s",), {}, set()),
        (("ttft_s", "tpot_s", "itl_s", E2E), MEAN, set()),
    ],
)
def test_metrics_determine_the_errors_of_others(
    measured: tuple[str, ...], changes: dict[str, float], imputed: set[str], subset: TrainingSet
) -> None:
    data = synthetic(subset)
    model = RatioModel(QUICK).fit(data.X, data.y, data.groups)
    X = data.X.head(4).assign(**{"workload.is_mean": 0.0, "workload.concurrency": 4.0} | changes)
    prediction = model.predict_ratio(X)
    y = pd.DataFrame(np.nan, X.index, list(METRICS))
    for metric in measured:
        y[metric] = prediction.value[metric] * np.exp(-SLOWER if metric == THROUGHPUT else SLOWER)
    errors = impute_errors(X, y, prediction, prediction.value)
    assert errors.keys() == {"ttft_s", "tpot_s", "itl_s"}
    for metric, error in errors.items():
        np.testing.assert_allclose(error, np.full(4, SLOWER if metric in imputed else np.nan))


def test_what_ttft_explains_of_a_latency_is_not_an_error_of_tpot(subset: TrainingSet) -> None:
    data = synthetic(subset)
    model = RatioModel(QUICK).fit(data.X, data.y, data.groups)
    X = data.X.head(4).assign(**{"workload.concurrency": 4.0})
    prediction = model.predict_ratio(X)
    share = prediction.shares()[THROUGHPUT]["ttft_s"]
    y = pd.DataFrame(np.nan, X.index, list(METRICS))
    y["ttft_s"] = prediction.value["ttft_s"] * np.exp(SLOWER)
    y[THROUGHPUT] = prediction.value[THROUGHPUT] * np.exp(-share * SLOWER)
    errors = impute_errors(X, y, prediction, prediction.value)
    np.testing.assert_allclose(errors["tpot_s"], 0.0, atol=1e-12)


def test_measured_errors_are_not_imputed(subset: TrainingSet) -> None:
    data = synthetic(subset)
    prediction = RatioModel(QUICK).fit(data.X, data.y, data.groups).predict_ratio(data.X)
    errors = impute_errors(data.X, data.y.assign(itl_s=2 * data.y["tpot_s"]), prediction, prediction.value)
    for error in errors.values():
        assert np.isnan(error).all()
