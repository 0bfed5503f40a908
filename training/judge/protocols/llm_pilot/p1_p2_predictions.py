"""Roofcast's predictions for P1 and P2, leave-one-LLM-out."""

from copy import copy
from typing import Final

import numpy as np
import pandas as pd

from judge.peers.llm_pilot_peers import load_tie_order
from judge.protocols.llm_pilot.capacity import FloatArray, LatencyTable, Rule
from judge.protocols.llm_pilot.expected_utility import expected_utility
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.training_set import TrainingSet, build_training_set
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.learner.ratio_model import RatioModel

N_DRAW: Final = 500
METRICS: Final = ("nttft_s_per_token", "itl_s")

STATISTICS: Final = ("p50", "mean")
"""Statistics of the rows that are learnt from: those that the question is about."""

SETTINGS: Final = TrainingConfig(n_member=3, max_depth=4)
"""One stack measured on one load has fewer groups and more interactions than all campaigns together."""
PROFILE_NAMES: Final = {
    "nvidia-t4-16gb": "T4",
    "nvidia-v100-pcie-16gb": "V100",
    "nvidia-a10-24gb": "A10",
    "nvidia-a100-pcie-40gb": "A100",
    "nvidia-h100-sxm-80gb": "H100",
}
"""GPU profile names of the campaign by accelerator."""

_LENGTHS: Final = ("workload.n_input_token", "workload.n_output_token")


class LlmPilotPredictor:
    """Leave-one-LLM-out predictions of LLM-Pilot's 528 points, and the decision rule on their distribution.

    The held-out LLM's request lengths depend on its tokenizer and answers, so they are not used: every row takes the
    median lengths of the training LLMs, because the workload is the same for all. Other campaigns are not used for
    training, nor are percentiles other than the median.

    The scoreboard uses ten seeds. Coefficients and the error distribution are fitted once per fold with the
    configured seed; other seeds fit other trees and draw other samples. `rule` chooses by expected utility over the
    samples, in which, as in the benchmark's score, a failed choice has no value.

    `config`: settings; None for `SETTINGS`.
    """

    def __init__(self, config: TrainingConfig | None = None) -> None:
        catalog = load_catalog()
        measured = load_campaigns(["llm_pilot"])
        central = measured[measured["statistic"].isin(STATISTICS)].reset_index(drop=True)
        self._data = build_training_set(central, catalog.models, catalog.accelerators)
        self._folds = list(leave_one_group_out(self._data.measurements["model"]))
        self._settings = config or SETTINGS
        self._fitted: dict[int, RoofcastPredictor] = {}
        self._seeded: dict[int, list[tuple[RoofcastPredictor, pd.DataFrame]]] = {}

    def __call__(self, seed: int) -> pd.DataFrame:
        """Return the points, as `decide` of `p1_p2_llm_pilot` takes them."""
        folds = self._predictors(seed)
        predicted = [predictor.predict_distribution(X).median for predictor, X in folds]
        return _points(self._data, pd.concat(predicted))

    def rule(self, seed: int) -> Rule:
        """Return the decision rule on the predictive distribution of this seed."""
        draws = {}
        for predictor, X in self._predictors(seed):
            values = predictor.sample(X, N_DRAW, seed=seed)
            points = _points(self._data, X.assign(**dict.fromkeys(METRICS, 0.0)))
            model = str(points["model"].iloc[0])
            draws[model] = _draw_table(model, points, *(values[metric] for metric in METRICS))
        return expected_utility(draws)

    def _predictors(self, seed: int) -> list[tuple[RoofcastPredictor, pd.DataFrame]]:
        """Return each fold's predictor and the medians that it predicts."""
        if seed not in self._seeded:
            self._seeded[seed] = [self._fold(i, seed) for i in range(len(self._folds))]
        return self._seeded[seed]

    def _fold(self, i: int, seed: int) -> tuple[RoofcastPredictor, pd.DataFrame]:
        data, (train, test) = self._data, self._folds[i]
        lengths = data.X.iloc[train][list(_LENGTHS)].median()
        X = data.X.assign(**{name: float(lengths[name]) for name in _LENGTHS})
        groups, y = data.groups.iloc[train], data.y.iloc[train]
        if i not in self._fitted:
            self._fitted[i] = RoofcastPredictor(self._settings, METRICS).fit(X.iloc[train], y, groups)
        predictor = copy(self._fitted[i])
        if seed:
            seeded = self._settings.model_copy(update={"seed": 1000 * seed})
            point = RatioModel(seeded, METRICS, predictor.coefficients_).fit(X.iloc[train], y, groups)
            predictor.regressors_ = point.regressors_
        return predictor, X.iloc[test[(data.measurements["statistic"] == "p50").to_numpy()[test]]]


def _draw_table(model: str, points: pd.DataFrame, nttft: FloatArray, itl: FloatArray) -> LatencyTable:
    profiles = load_tie_order()[model]
    users = np.sort(points["users"].unique()).astype(np.int64)
    row = pd.Index(profiles).get_indexer(pd.Index(points["profile"]))
    level = np.searchsorted(users, points["users"].to_numpy())
    grids = np.full((2, len(nttft), len(profiles), len(users)), np.nan)
    grids[0][:, row, level], grids[1][:, row, level] = nttft, itl
    return LatencyTable(model, profiles, users, *grids)


def _points(data: TrainingSet, predicted: pd.DataFrame) -> pd.DataFrame:
    rows = data.measurements.loc[predicted.index]
    count = rows["n_accelerator"].astype(int).astype(str)
    return pd.DataFrame(
        {
            "model": rows["model"],
            "profile": count + " x " + rows["accelerator"].map(PROFILE_NAMES),
            "users": rows["concurrency"].astype(int),
            **{metric: predicted[metric] for metric in METRICS},
        }
    ).reset_index(drop=True)
