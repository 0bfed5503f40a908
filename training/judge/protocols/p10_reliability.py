"""P10: whether the stated probability of meeting limits holds, and what renting by it costs, on P7's predictions.

Limits on TTFT and TPOT are `FACTORS` of the predicted value. Factors of the measured value would make even an ideal
predictor look timid: within a bounded range such limits depend on its error. The candidates of a decision are the
configurations with which one owner measured an LLM at a workload and load; the limits are factors of their median
TTFT and TPOT.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr, ndtri

from judge.decision_metrics import mean_overspend, overspends
from judge.protocols.fold_lines import LEVELS, scored_lines
from judge.protocols.regret import HARDWARE
from roofcast.training.dataset.stacks import stack_owners

FloatArray = npt.NDArray[np.float64]

METRICS: Final = ("ttft", "tpot")
FACTORS: Final = tuple(float(factor) for factor in np.geomspace(0.5, 3.0, 24).round(3))
CONFIDENCE: Final = 0.8
"""Least probability of both limits at which a candidate is rented."""

LEAST_LIMITS: Final = 100
"""Limits that a decile must have for its gap to count."""

QUESTION: Final = (
    "owner", "model", "statistic", "n_input_token", "n_output_token", "load", "concurrency", "request_rate",
)  # fmt: skip
DECISION: Final = (*QUESTION, "factor")
"""What the candidates of a decision share."""

_LEVELS: Final = tuple(f"{100 * level:.0f}" for level in LEVELS)
_QUANTILES: Final = (*(f"low_{n}" for n in reversed(_LEVELS)), "predicted", *(f"high_{n}" for n in _LEVELS))
_SCORES: Final = ndtri(
    [*((1 - level) / 2 for level in reversed(LEVELS)), 0.5, *((1 + level) / 2 for level in LEVELS)]
)


def p_below(lines: pd.DataFrame, limit: FloatArray) -> FloatArray:
    """Return the stated probability that the metric of each line is at most its limit.

    Normal scores are interpolated between the logarithms of the quantiles that the dump has, and extrapolated.

    Examples
    --------
    >>> bounds = {"low_90": 0.25, "low_80": 0.4, "low_50": 0.5, "high_50": 2.0, "high_80": 2.5, "high_90": 4.0}
    >>> p_below(pd.DataFrame([bounds | {"predicted": 1.0}] * 3), np.array([0.5, 1.0, 4.0])).round(3).tolist()
    [0.25, 0.5, 0.95]
    """
    steps = 1e-9 * np.arange(len(_QUANTILES))  # quantiles may be equal where a bound clips them
    known = np.maximum.accumulate(np.log(lines[list(_QUANTILES)].to_numpy(dtype=float)), axis=1) + steps
    wanted, each = np.log(np.asarray(limit, dtype=float)), np.arange(len(known))
    left = (known[:, 1:-1] <= wanted[:, None]).sum(axis=1)
    share = (wanted - known[each, left]) / (known[each, left + 1] - known[each, left])
    return np.asarray(ndtr(_SCORES[left] + share * (_SCORES[left + 1] - _SCORES[left])), dtype=np.float64)


def state_limits(dump: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each limit: the line's keys, `factor`, `said` (the probability) and `happened`."""
    lines = scored_lines(dump)
    lines = lines[lines["metric"].isin(METRICS) & lines["predicted"].notna()]
    keys = lines[["fold", "row", "stack", "metric"]]
    tables = []
    for factor in FACTORS:
        limit = factor * lines["predicted"].to_numpy(dtype=float)
        happened = lines["measured"].to_numpy(dtype=float) <= limit
        tables.append(keys.assign(factor=factor, said=p_below(lines, limit), happened=happened))
    return pd.concat(tables, ignore_index=True)


def reliability_parts(limits: pd.DataFrame) -> pd.DataFrame:
    """Return the stated and the observed frequency by metric and decile of the stated probability.

    Returns
    -------
    Columns `metric`, `decile` (from 0), `n`, `said`, `happened` and `gap`, the second less the first
    """
    decile = (10 * limits["said"]).astype(int).clip(upper=9).rename("decile")
    by_decile = limits.groupby(["metric", decile], sort=False).agg(
        n=("said", "size"), said=("said", "mean"), happened=("happened", "mean")
    )
    return by_decile.assign(gap=by_decile["happened"] - by_decile["said"]).sort_index().reset_index()


def rent(dump: pd.DataFrame, price_usd_per_h: Mapping[str, float]) -> pd.DataFrame:
    """Return the candidates of all decisions, from P7's dump.

    `price_usd_per_h`: of one accelerator, by id; accelerators without a price are excluded.

    Returns
    -------
    One row per candidate and factor: `DECISION`, `HARDWARE`, `cost_usd_per_h`, `said` (the probability of both
    limits) and `happened`. A decision has candidates on two kinds of `HARDWARE`, and one that meets the limits.
    """
    lines = scored_lines(dump)
    ttft, tpot = (lines[(lines["metric"] == m) & lines["predicted"].notna()].set_index("row") for m in METRICS)
    ttft = ttft[ttft.index.isin(tpot.index) & ttft["accelerator"].isin(list(price_usd_per_h))]
    of_metric = (ttft, tpot.loc[ttft.index])
    table = ttft.assign(
        owner=stack_owners(ttft["stack"]),
        cost_usd_per_h=ttft["accelerator"].map(dict(price_usd_per_h)).astype(float) * ttft["n_accelerator"],
    )[[*QUESTION, *HARDWARE, "cost_usd_per_h"]]
    question = table.groupby(list(QUESTION), dropna=False).ngroup()
    typical = [of["measured"].groupby(question).transform("median") for of in of_metric]
    tables = []
    for factor in FACTORS:
        said, happened = np.ones(len(table)), np.ones(len(table), dtype=bool)
        for of, median in zip(of_metric, typical, strict=True):
            limit = (factor * median).to_numpy(dtype=float)
            said, happened = said * p_below(of, limit), happened & (of["measured"] <= limit).to_numpy()
        tables.append(table.assign(factor=factor, said=said, happened=happened))
    candidates = pd.concat(tables).reset_index()
    by_decision = candidates.groupby(list(DECISION), dropna=False)
    hardware = candidates.groupby(list(HARDWARE)).ngroup()
    has_choice = hardware.groupby(by_decision.ngroup()).transform("nunique") > 1
    return candidates[has_choice & by_decision["happened"].transform("any")].reset_index(drop=True)


def decision_figures(candidates: pd.DataFrame) -> dict[str, float]:
    """Return the scores of renting the cheapest candidate at `CONFIDENCE`.

    Examples
    --------
    >>> candidates = pd.DataFrame({"cost_usd_per_h": [2.0, 3.0], "said": [0.7, 0.9], "happened": True})
    >>> decision_figures(candidates.assign(**dict.fromkeys(DECISION, 0)))
    {'overspend_80': 0.5, 'success_80': 1.0, 'answered_80': 1.0, 'n_decision': 1}
    """
    keys = list(DECISION)
    least = candidates[candidates["happened"]].groupby(keys, dropna=False)["cost_usd_per_h"].min()
    trusted = candidates[candidates["said"] >= CONFIDENCE]
    rented = trusted.loc[trusted.groupby(keys, dropna=False)["cost_usd_per_h"].idxmin()].set_index(keys)
    overspend = overspends(rented["cost_usd_per_h"], least.loc[rented.index])
    return {
        "overspend_80": mean_overspend(overspend, rented["happened"]),
        "success_80": float(rented["happened"].astype(float).mean()),
        "answered_80": len(rented) / max(len(least), 1),
        "n_decision": len(least),
    }


def reliability_figures(limits: pd.DataFrame, candidates: pd.DataFrame) -> dict[str, object]:
    """Return P10's scores: by metric, and of the decisions.

    ``largest_gap`` is that of the deciles with at least `LEAST_LIMITS` limits, ``brier`` the mean squared error.
    """
    parts, figures = reliability_parts(limits), {}
    for metric, of_metric in limits.groupby("metric", sort=False):
        gaps = parts.loc[(parts["metric"] == metric) & (parts["n"] >= LEAST_LIMITS), "gap"]
        brier = ((of_metric["said"] - of_metric["happened"]) ** 2).mean()
        figures[str(metric)] = {
            "largest_gap": float(gaps.abs().max()), "brier": float(brier), "n_limit": len(of_metric)
        }  # fmt: skip
    return {**figures, **decision_figures(candidates)}
