"""Roofcast's own predictions for P1 and P2: each LLM's from a predictor that never saw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pandas as pd

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.coefficients import Coefficients
from roofcast.training.calibration import fit_coefficients
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset import TrainingSet, build_training_set
from roofcast.training.predictor import PointPredictor
from roofcast.training.validation import leave_one_group_out

METRICS: Final = ("nttft_s_per_token", "itl_s")
PROFILE_NAMES: Final = {
    "nvidia-t4-16gb": "T4",
    "nvidia-v100-pcie-16gb": "V100",
    "nvidia-a10-24gb": "A10",
    "nvidia-a100-pcie-40gb": "A100",
    "nvidia-h100-sxm-80gb": "H100",
}
"""Accelerators of the campaign by the names of its GPU profiles."""

_LENGTHS: Final = ("workload.n_input_token", "workload.n_output_token")


def llm_pilot_predictor(config: TrainingConfig | None = None) -> Callable[[int], pd.DataFrame]:
    """Return a function from a seed to predictions of LLM-Pilot's 528 points, leave-one-LLM-out.

    The held-out LLM's own request lengths depend on its tokenizer and on what it answers, so they are not used:
    every row takes the median lengths of the training LLMs, the workload being the same for all.
    """
    catalog = load_catalog()
    data = build_training_set(load_campaigns(["llm_pilot"]), catalog.models, catalog.accelerators)
    folds = list(leave_one_group_out(data.measurements["model"]))
    settings = config or TrainingConfig()
    calibrated: dict[int, Coefficients] = {}

    def predict(seed: int) -> pd.DataFrame:
        seeded = settings.model_copy(update={"seed": 1000 * seed})
        parts = []
        for i, (train, test) in enumerate(folds):
            lengths = data.X.iloc[train][list(_LENGTHS)].median()
            X = data.X.assign(**{name: float(lengths[name]) for name in _LENGTHS})
            groups, y = data.groups.iloc[train], data.y.iloc[train]
            if i not in calibrated:
                calibrated[i] = fit_coefficients(X.iloc[train], y, groups)
            predictor = PointPredictor(seeded, METRICS, calibrated[i]).fit(X.iloc[train], y, groups)
            asked = test[(data.measurements["statistic"] == "p50").to_numpy()[test]]
            parts.append(predictor.predict(X.iloc[asked]))
        return _points(data, pd.concat(parts))

    return predict


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
