"""Paired comparison of two predictors on measurements that neither has learnt."""

from typing import Annotated, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from roofcast.data.specs import Spec
from roofcast.training.drift.groups import SIGNIFICANCE, TESTED, Key, groups_of
from roofcast.training.drift.prediction_scores import KINDS
from roofcast.training.drift.significance import p_values_of_groups

SHARED: Final = ("row", "metric", "configuration", *KINDS, "measured")

Verdict = Literal["better", "worse", "no difference found", "not tested"]


class PairedErrors(Spec):
    """Errors of champion and challenger on the same rows of one group and metric."""

    kind: str
    name: str
    metric: str
    n_row: int
    n_configuration: int
    champion_median_ape: Annotated[float, Field(description="Median absolute percentage error, as a fraction.")]
    challenger_median_ape: float
    champion_bias: Annotated[float, Field(description="Median of measured / predicted.")]
    challenger_bias: float
    n_nearer: Annotated[int, Field(description="Configurations to which the challenger is nearer.")]
    p_value: Annotated[
        float | None, Field(description="Wilcoxon's signed-rank test over configurations, after Holm's correction.")
    ]
    verdict: Annotated[Verdict, Field(description="Of the challenger, at a significance of 5 % for all groups.")]


class ChallengerErrors(Spec):
    """Errors of the challenger beside the champion's, on rows that neither has learnt."""

    version: str
    n_compared: int
    n_learnt: Annotated[int, Field(description="Rows that the challenger has learnt and the champion has not.")]
    errors: list[PairedErrors]


def compare_errors(champion: pd.DataFrame, challenger: pd.DataFrame) -> list[PairedErrors]:
    """Return the errors of both by group and metric.

    `champion` and `challenger`: as of `score_predictions`; rows and metrics that only one of them has are left out.

    Notes
    -----
    One observation is the difference of the two median absolute log errors of a configuration.

    References
    ----------
    F. Wilcoxon, "Individual Comparisons by Ranking Methods", Biometrics Bulletin 1(6), 1945.
    """
    if champion.empty or challenger.empty:
        return []
    columns = ["row", "metric", "predicted", "log_error"]
    pairs = champion[[*SHARED, "predicted", "log_error"]].merge(
        challenger[columns], on=["row", "metric"], suffixes=("", "_challenger")
    )
    pairs = pairs.assign(error=pairs["log_error"].abs(), error_challenger=pairs["log_error_challenger"].abs())
    groups = groups_of(pairs)
    differences = {key: _differences(part) for key, part in groups}
    tested: dict[Key, Key] = {key: (key[0], *part.index) for key, part in groups if key[1] in TESTED}
    p_values = p_values_of_groups(tested, lambda key: _p_value(differences[key]))
    return [_paired(key, part, differences[key], p_values.get(key)) for key, part in groups]


def _differences(part: pd.DataFrame) -> npt.NDArray[np.float64]:
    medians = part.groupby("configuration")[["error", "error_challenger"]].median()
    return (medians["error_challenger"] - medians["error"]).to_numpy(dtype=float)


def _p_value(differences: npt.NDArray[np.float64]) -> float:
    from scipy.stats import wilcoxon  # noqa: PLC0415  (scipy.stats takes longer to import than a prediction takes)

    changed = differences[differences != 0]
    return float(wilcoxon(changed).pvalue) if len(changed) else 1.0


def _paired(
    key: Key, part: pd.DataFrame, differences: npt.NDArray[np.float64], p_value: float | None
) -> PairedErrors:
    metric, kind, name = map(str, key)
    verdict: Verdict = "not tested" if p_value is None else "no difference found"
    if p_value is not None and p_value < SIGNIFICANCE:
        verdict = "better" if np.median(differences) < 0 else "worse"
    ape = {suffix: (part[f"predicted{suffix}"] / part["measured"] - 1).abs() for suffix in ("", "_challenger")}
    return PairedErrors(
        kind=kind,
        name=name,
        metric=metric,
        n_row=len(part),
        n_configuration=len(differences),
        champion_median_ape=float(ape[""].median()),
        challenger_median_ape=float(ape["_challenger"].median()),
        champion_bias=float(np.exp(part["log_error"].median())),
        challenger_bias=float(np.exp(part["log_error_challenger"].median())),
        n_nearer=int((differences < 0).sum()),
        p_value=p_value,
        verdict=verdict,
    )
