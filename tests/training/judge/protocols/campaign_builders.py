"""Few rows of some shipped campaigns, a predictor that fits nothing, and the scoreboard of both."""

from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from judge.protocols import fold_lines
from judge.protocols.baselines import analytic_estimate
from judge.protocols.campaign_rows import (
    CampaignRows,
    build_campaign_rows,
    load_campaign_rows,
)
from judge.scoreboard import Scoreboard, run_scoreboard
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.queries import descriptor_arrays
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import CalibrationPoints

N_EACH = {"llm_pilot": 6, "dgx_spark": 2, "trtllm_overview": 3, "silicon": 12, "argonne": 1, "mlperf_inference": 6}
"""Rows of each model, by campaign."""

N_FOLD = 2


class GuessingPredictor:
    """The estimate, twice as high for every reference point given; bounds are a factor of 1 + level away."""

    fitted: ClassVar[list[pd.DataFrame]] = []
    """Descriptors that predictors of this kind were fitted to, newest last."""

    def __init__(self, _config: object, metrics: tuple[str, ...]) -> None:
        self.metrics_ = metrics
        self.coefficients_ = DEFAULT_COEFFICIENTS

    def fit(self, X: pd.DataFrame, _y: pd.DataFrame, _groups: pd.Series, *, stacks: pd.Series) -> Self:
        assert (stacks != "").all(), "whoever asks has none of the stacks that are published"
        self.fitted.append(X)
        return self

    def knows_stacks(self, names: pd.Series) -> npt.NDArray[np.bool_]:
        return np.zeros(len(names), dtype=bool)

    def predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return analytic_estimate(X, DEFAULT_COEFFICIENTS, self.metrics_)

    def predict_distribution(self, X: pd.DataFrame, points: CalibrationPoints | None = None) -> Prediction:
        n_given = 0 if points is None else len(points.X)
        value = analytic_estimate(X, DEFAULT_COEFFICIENTS, self.metrics_) * 2.0 ** (n_given > 0)
        whole: Any = estimate(descriptor_arrays(X), DEFAULT_COEFFICIENTS)
        medians = {str(metric): value[metric].to_numpy() for metric in value}
        ones, errors = {metric: np.ones(len(X)) for metric in medians}, dict.fromkeys(self.metrics_, _ErrorsByLevel())
        return Prediction(medians, ones, errors, medians, whole, X.to_numpy(), X.index)


class _ErrorsByLevel(GroupedConformal):
    """Errors whose quantile is the logarithm of 1 + level."""

    def __init__(self) -> None:
        pass

    def quantile(self, level: float) -> float:
        return float(np.log1p(level))


@cache
def all_campaign_rows() -> CampaignRows:
    """Return what the protocols really ask about; seconds, so once."""
    return load_campaign_rows()


@cache
def a_few_campaign_rows() -> CampaignRows:
    """Return rows that are sound, some that are faulty, and some beyond the estimate."""
    rows = load_campaigns(list(N_EACH))
    rows = rows.sort_values(["campaign", "model", "n_input_token", "concurrency"], kind="stable")
    place = rows.groupby(["campaign", "model"]).cumcount()
    return build_campaign_rows(rows[place < rows["campaign"].map(N_EACH)], load_catalog())


def a_campaign_board() -> Scoreboard:
    """Return the protocols of campaigns of these rows by the guessing predictor: see the fixture `campaign_board`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_lines, "RoofcastPredictor", GuessingPredictor)

        return run_scoreboard(["P4", "P5", "P7", "P8", "P10"], campaigns=a_few_campaign_rows(), n_fold=N_FOLD)


def error_figures(measured: pd.Series, predicted: pd.Series) -> list[float]:
    """Return mape, median_ape, within_25 and answered, without the code that is tested; NaN if nothing was asked."""
    if measured.empty:
        return [float("nan")] * 4
    error = np.abs(predicted.to_numpy() / measured.to_numpy() - 1)
    return [
        float(np.nanmean(error)), float(np.nanmedian(error)), float((error <= 0.25).mean()),
        float(np.isfinite(error).mean()),
    ]  # fmt: skip
