"""Predicted against actual: measurements beside a predictor's answers and intervals."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.stacks import UPLOADED, name_stacks
from roofcast.training.dataset.targets import outcomes
from roofcast.training.learner.predictor import RoofcastPredictor

METRICS: Final = ("ttft_s", "tpot_s", "itl_s", "output_throughput_token_per_s")
"""Metrics that are compared; E2E latency follows from the others."""

LEAST_VALUE: Final = 1e-9
"""Least measured or predicted value that is compared, in the metric's unit: ratios stay finite."""

KINDS: Final = ("accelerator", "engine_version", "lineage", "stack")
"""Kinds of groups of measurements."""

CONFIGURATION: Final = ("model", "accelerator", "n_accelerator", "engine", "weight_precision", "stack")
"""Columns whose rows have errors in common, so that they count as one observation."""

SCORE_NUMBERS: Final = ("measured", "predicted", "width", "log_error")
SCORE_COLUMNS: Final = ("row", "metric", "configuration", *KINDS, *SCORE_NUMBERS)


def owned_stacks(rows: pd.DataFrame) -> pd.Series:
    """Return the stack of each row, which starts with the API key that stored it, if one did."""
    stacks, is_upload = name_stacks(rows), rows["uploader"] != ""
    return stacks.mask(is_upload, UPLOADED + rows["uploader"] + "/" + stacks)


def name_version(rows: pd.DataFrame) -> pd.Series:
    """Return engine and version of each row, such as ``vllm 0.26.0``."""
    engine = rows["engine"].mask(rows["engine"] == "", "unknown engine")
    version = rows["engine_version"].mask(rows["engine_version"] == "", "of unknown version")
    return engine + " " + version


def score_predictions(
    rows: pd.DataFrame,
    predictor: RoofcastPredictor,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
    level: float,
) -> pd.DataFrame:
    """Return one line for each row and measured metric of `METRICS`.

    Left out are failed runs, outcomes that the source derived, values below `LEAST_VALUE`, and rows whose request
    rate exceeds the estimated capacity, where a queue grows with the length of the run.

    `rows`: measurements with the column `uploader`, a unique index, models and accelerators of the catalogue. Raises
    `OutOfRangeError` if the predictor cannot support the level.

    Returns
    -------
    Columns `SCORE_COLUMNS`: `row` (index of `rows`), `metric`, `configuration` (a number), `KINDS`, `measured`,
    `predicted`, `width` (half the logarithmic interval), and `log_error` (of measured over predicted)
    """
    if rows.empty:
        return pd.DataFrame(columns=[*SCORE_COLUMNS]).astype(dict.fromkeys(SCORE_NUMBERS, float))
    stack = owned_stacks(rows)
    groups = pd.DataFrame(
        {
            "row": rows.index,
            "accelerator": rows["accelerator"],
            "engine_version": name_version(rows),
            "lineage": rows["model"].map({name: spec.lineage for name, spec in models.items()}),
            "stack": stack,
            "configuration": rows.assign(stack=stack).groupby(list(CONFIGURATION), dropna=False).ngroup(),
        }
    )
    prediction = predictor.predict_distribution(describe(rows, models, accelerators), metrics=METRICS)
    low, high = prediction.interval(level)
    measured, is_stable = outcomes(rows), ~prediction.estimate.is_saturated
    parts = []
    for metric in (name for name in METRICS if name in prediction.median):
        truth = measured[metric].to_numpy(dtype=float)
        values = groups.assign(
            metric=metric,
            measured=truth,
            predicted=prediction.median[metric].to_numpy(),
            width=np.log(high[metric].to_numpy() / low[metric].to_numpy()) / 2,
        )
        is_comparable = (values[["measured", "predicted"]] >= LEAST_VALUE).all(axis=1)
        parts.append(values[is_comparable & is_stable])
    scored = pd.concat(parts, ignore_index=True)
    return scored.assign(log_error=np.log(scored["measured"] / scored["predicted"]))
