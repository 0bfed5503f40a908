"""Feature importance for analyses: gain of trees, and shifts of predictions when facts are permuted."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from xgboost import Booster

from roofcast.features.columns import FEATURE_NAMES
from roofcast.training.learner.boosted_trees import ResidualRegressor
from roofcast.training.learner.ratio_model import RatioModel


def gain_importance(regressor: ResidualRegressor, names: Sequence[str] = FEATURE_NAMES) -> pd.Series:
    """Return each column's share of the training gain of all members; the shares sum to 1.

    Gain is measured on training rows, so a column that identifies an LLM scores as high as one that explains it.

    `names`: shape (n_column,): names of the columns, in order.
    """
    total = np.zeros(len(names))
    for member in regressor.members_:
        scores = Booster(model_file=bytearray(member)).get_score(importance_type="total_gain")
        total += np.array([scores.get(f"f{i}", 0.0) for i in range(len(names))], dtype=float)
    return pd.Series(total / max(total.sum(), np.finfo(float).tiny), index=list(names), name="gain")


def permutation_shifts(
    predictor: RatioModel, X: pd.DataFrame, blocks: Mapping[str, Sequence[str]], *, n_repeat: int = 2, seed: int = 0
) -> pd.DataFrame:
    """Return how far predictions move when blocks of descriptors take the values of another row.

    No measurement is used, so rows that the predictor learnt are as good as others.

    `X`: shape (n_row, n_descriptor). `blocks`: descriptors by block; those of a block move together.

    Returns
    -------
    Index ``(metric, block)``; medians over rows and permutations of absolute logarithmic shifts of the `prediction`
    and of its `correction`, the ratio of prediction to estimate
    """
    rng = np.random.default_rng(seed)
    before = predictor.predict_ratio(X)
    shifts: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(n_repeat):
        order = rng.permutation(len(X))
        for block, columns in blocks.items():
            drawn = X[list(columns)].iloc[order].to_numpy()
            after = predictor.predict_ratio(X.assign(**dict(zip(columns, drawn.T, strict=True))))
            for metric, value in after.value.items():
                total = np.log(value / before.value[metric])
                correction = total - np.log(after.estimates[metric] / before.estimates[metric])
                parts = [float(np.nanmedian(np.abs(part))) for part in (total, correction)]
                shifts.setdefault((metric, block), []).append(parts)
    means = {key: np.mean(parts, axis=0) for key, parts in shifts.items()}
    table = pd.DataFrame.from_dict(means, orient="index", columns=["prediction", "correction"])
    table.index = pd.MultiIndex.from_tuples(table.index, names=["metric", "block"])
    return table
