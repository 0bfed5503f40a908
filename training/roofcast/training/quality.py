"""Which measurements the predictor may learn from, and why not the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info, load_campaigns, load_quarantine
from roofcast.data.catalog import Catalog
from roofcast.data.schema import KEY_COLUMNS
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.batching import estimate
from roofcast.features.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.descriptors import describe
from roofcast.features.pipeline import arrays
from roofcast.features.plausibility import check_plausibility

LEARNT_LOADS: Final = ("closed_loop", "open_loop")
"""Loads that the estimate describes; a static batch or an offline queue is another process."""

REACHED: Final = 0.9
"""Share of the request rate asked below which a queue grew: what was measured tells of the run's length."""


def review(
    measurements: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the rows that must not be learnt from: columns `rule` and `detail`, index of `measurements`.

    Rules, the first that holds counts: ``not_ok``, ``unknown_model``, ``unknown_accelerator``, ``other_load``,
    ``published_fault``, ``disaggregated``, ``beyond_capacity``, ``impossible_split``, ``beyond_estimate``, and those
    of `roofcast.features.plausibility`.
    """
    found = pd.DataFrame({"rule": "", "detail": ""}, index=measurements.index, dtype=object)
    for rule, broken, detail in _plain_rules(measurements, models, accelerators):
        new = (broken & (found["rule"] == "")).to_numpy()
        found.loc[new, "rule"] = rule
        found.loc[new, "detail"] = detail[new]
    sound = measurements[found["rule"] == ""]
    if len(sound):
        descriptors = describe(sound, models, accelerators)
        found.update(_beyond_estimate(descriptors))
        found.update(check_plausibility(sound, descriptors))
    return found[found["rule"] != ""]


def _beyond_estimate(descriptors: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose request rate the estimate holds to be more than the replica serves.

    It has no finite queue to give for them, right or wrong, and there is nothing to learn a ratio over.
    """
    is_over = estimate(arrays(descriptors), DEFAULT_COEFFICIENTS).is_saturated
    detail = "the estimate takes the request rate to be more than the replica serves"
    return pd.DataFrame({"rule": "beyond_estimate", "detail": detail}, index=descriptors.index[is_over])


def reached_ratio(rows: pd.DataFrame) -> pd.Series:
    """Return the request rate that each run reached over the rate asked; NaN where it was not measured.

    Throughput stands in the row of statistic ``mean``; it holds for the run's other rows too.
    """
    run = [name for name in KEY_COLUMNS if name != "statistic"]
    throughput = rows.groupby(run, dropna=False)["request_throughput_per_s"].transform("max")
    return throughput / rows["request_rate"]


def campaign_report(catalog: Catalog) -> pd.DataFrame:
    """Return, per shipped campaign, what became of its published rows.

    Returns
    -------
    One row a campaign: published rows read and set aside, measurements kept, those that may be learnt from, and the
    rules with their counts: ``quarantine`` of published rows, ``not_learnt`` of measurements
    """
    rows = []
    for name in CAMPAIGNS:
        info, measurements = load_campaign_info(name), load_campaigns([name])
        set_aside = review(measurements, catalog.models, catalog.accelerators)
        rows.append(
            {
                "campaign": name,
                "n_read": info.n_read,
                "n_quarantined": info.n_quarantined,
                "n_kept": len(measurements),
                "n_learnable": len(measurements) - len(set_aside),
                "quarantine": _counts(load_quarantine(name)["reason"]),
                "not_learnt": _counts(set_aside["rule"]),
            }
        )
    return pd.DataFrame(rows)


def _counts(rules: pd.Series) -> str:
    return ", ".join(f"{rule} {n}" for rule, n in rules.value_counts().items())


def _plain_rules(
    rows: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> list[tuple[str, pd.Series, pd.Series]]:
    outer = rows["pp"].fillna(1) * rows["dp"].fillna(1)
    tp = rows["tp"].fillna(rows["n_accelerator"] / outer)
    split = tp * outer
    is_split_wrong = ~np.isclose(split, rows["n_accelerator"]) | (tp % 1 != 0) | (tp < 1)
    told = (
        "tp x pp x dp is " + split.map("{:g}".format) + " of " + rows["n_accelerator"].map("{:g} accelerators".format)
    )
    prefill = rows["n_prefill_accelerator"].map("{:g}".format)
    reached = reached_ratio(rows)
    return [
        ("not_ok", rows["status"] != "ok", rows["status"]),
        ("unknown_model", ~rows["model"].isin(list(models)), rows["model"]),
        ("unknown_accelerator", ~rows["accelerator"].isin(list(accelerators)), rows["accelerator"]),
        ("other_load", ~rows["load"].isin(LEARNT_LOADS), rows["load"]),
        ("published_fault", rows["note"].str.contains("faulty: ", regex=False), rows["note"]),
        (
            "disaggregated",
            rows["n_prefill_accelerator"].notna(),
            "prefill runs apart on " + prefill + " accelerators",
        ),
        (
            "beyond_capacity",
            reached < REACHED,
            "of the request rate asked, " + reached.map("{:.0%} was reached".format),
        ),
        ("impossible_split", pd.Series(is_split_wrong, index=rows.index), told),
    ]
