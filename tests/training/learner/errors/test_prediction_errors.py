import numpy as np
import pandas as pd
import pytest

from roofcast.features.pipeline import METRICS
from roofcast.training.dataset.training_set import TrainingSet
from roofcast.training.learner.derived_metrics import E2E, THROUGHPUT
from roofcast.training.learner.errors.imputed_errors import impute_errors
from roofcast.training.learner.errors.prediction_errors import calibration_surprises
from roofcast.training.learner.ratio_model import RatioModel
from tests.training.builders import QUICK, synthetic

SLOWER = np.log(1.5)
MEAN = {"workload.is_mean": 1.0}
FEW_TOKENS = {"workload.n_output_token": 2.0, "workload.n_input_token": 8000.0}
OPEN_LOOP = {"workload.concurrency": np.nan, "workload.request_rate_per_s": 0.1}
TAIL = {"workload.quantile": 0.95}


@pytest.fixture(scope="module")
def data(subset: TrainingSet) -> TrainingSet:
    return synthetic(subset)


@pytest.fixture(scope="module")
def model(data: TrainingSet) -> RatioModel:
    """Return a model whose estimate is right."""
    return RatioModel(QUICK).fit(data.X, data.y, data.groups)


@pytest.mark.parametrize(
    ("measured", "changes", "imputed"),
    [
        (("itl_s",), {}, {"tpot_s"}),
        (("tpot_s",), {}, {"itl_s"}),
        ((E2E,), MEAN, {"tpot_s", "itl_s"}),
        ((E2E,), {}, set()),
        ((E2E,), MEAN | FEW_TOKENS, {"ttft_s"}),
        ((THROUGHPUT,), {}, {"tpot_s", "itl_s"}),
        (("ttft_s", THROUGHPUT), MEAN, {"tpot_s", "itl_s"}),
        (("ttft_s", THROUGHPUT), {}, set()),
        (("ttft_s", E2E), MEAN, {"tpot_s", "itl_s"}),
        (("tpot_s", E2E), MEAN | FEW_TOKENS, {"ttft_s", "itl_s"}),
        (("itl_s",), TAIL, set()),
        ((THROUGHPUT,), TAIL, set()),
        ((THROUGHPUT,), OPEN_LOOP, set()),
        (("ttft_s",), {}, set()),
        (("ttft_s", E2E), MEAN | {"workload.n_output_token": 1.0}, set()),
        (("ttft_s", "tpot_s", "itl_s", E2E), MEAN, set()),
    ],
)
def test_metrics_determine_the_errors_of_others(
    measured: tuple[str, ...], changes: dict[str, float], imputed: set[str], data: TrainingSet, model: RatioModel
) -> None:
    X = data.X.head(4).assign(**{"workload.is_mean": 0.0, "workload.concurrency": 4.0} | changes)
    prediction = model.predict_ratio(X)
    y = pd.DataFrame(np.nan, X.index, list(METRICS))
    for metric in measured:
        y[metric] = prediction.value[metric] * np.exp(-SLOWER if metric == THROUGHPUT else SLOWER)
    errors = impute_errors(X, y, prediction, prediction.value)
    assert errors.keys() == {"ttft_s", "tpot_s", "itl_s"}
    for metric, error in errors.items():
        np.testing.assert_allclose(error, np.full(4, SLOWER if metric in imputed else np.nan))


@pytest.mark.parametrize("measured", [E2E, THROUGHPUT])
def test_what_ttft_takes_of_a_mean_latency_is_no_error_of_tpot(measured: str, campaign: TrainingSet) -> None:
    model = RatioModel(QUICK).fit(campaign.X, campaign.y, campaign.groups)
    X = campaign.X.head(50).assign(**MEAN, **{"workload.concurrency": 4.0, "workload.quantile": 0.5})
    prediction = model.predict_ratio(X)
    n = len(X)
    shifts = {"ttft_s": np.full(n, np.log(5.0)), "tpot_s": np.full(n, SLOWER), "itl_s": np.zeros(n)}
    slower = prediction.apply_shifts(shifts | {m: np.zeros(n) for m in METRICS if m not in shifts})
    y = pd.DataFrame({m: slower[m] for m in ("ttft_s", measured)}, X.index).reindex(columns=list(METRICS))
    error = impute_errors(X, y, prediction, prediction.value)["tpot_s"]
    is_tpot = prediction.shares()[measured]["tpot_s"] >= 0.5
    assert is_tpot.any()
    np.testing.assert_allclose(error, np.where(is_tpot, SLOWER, np.nan), rtol=1e-6)


@pytest.mark.parametrize("changes", [{}, TAIL])
def test_medians_and_tails_do_not_add_up(changes: dict[str, float], data: TrainingSet, model: RatioModel) -> None:
    """E2E latency beside TTFT, in a reference that is no mean, corrects nothing else."""
    X = data.X.head(4).assign(**{"workload.is_mean": 0.0, "workload.concurrency": 4.0} | changes)
    prediction = model.predict_ratio(X)
    y = pd.DataFrame({m: 2 * prediction.value[m] for m in ("ttft_s", E2E)}, X.index)
    error = calibration_surprises(X, y, prediction, prediction.value)
    np.testing.assert_allclose(error["ttft_s"], np.log(2))
    assert np.isnan(error["tpot_s"]).all()


def test_a_latency_below_its_ttft_imputes_nothing(data: TrainingSet, model: RatioModel) -> None:
    prediction = model.predict_ratio(X := data.X.head(4).assign(**MEAN))
    latency = prediction.value[E2E]
    y = pd.DataFrame({"ttft_s": 2 * latency, E2E: latency}, X.index).reindex(columns=list(METRICS))
    assert np.isnan(impute_errors(X, y, prediction, prediction.value)["tpot_s"]).all()


def test_measured_errors_are_not_imputed(data: TrainingSet, model: RatioModel) -> None:
    prediction = model.predict_ratio(data.X)
    errors = impute_errors(data.X, data.y.assign(itl_s=2 * data.y["tpot_s"]), prediction, prediction.value)
    for error in errors.values():
        assert np.isnan(error).all()
