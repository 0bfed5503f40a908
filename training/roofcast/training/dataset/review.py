"""Review of measurements: rules that exclude rows from training."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info, load_campaigns, load_rejected_counts
from roofcast.data.campaigns.loader import CampaignInfo
from roofcast.data.catalog import Catalog
from roofcast.data.job_campaigns import (
    TRAINING_CAMPAIGNS,
    load_job_campaign_info,
    load_job_campaigns,
    load_job_rejected_counts,
)
from roofcast.data.measurements.schema import KEY_COLUMNS, OUTCOME_COLUMNS
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.queries import descriptor_arrays
from roofcast.features.validity.plausibility import implausible_rows, non_monotone_rows
from roofcast.training.dataset.stacks import is_uploaded, stack_owners

TRAINING_RUN: Final = "training_run"
"""Rule of training runs, which are in another table and not used by the predictor of serving."""

MIN_RATE_RATIO: Final = 0.9
"""Achieved share of the requested rate below which the queue grew, so that latencies depend on the length of the
run."""


COPY_COLUMNS: Final = ("model", "accelerator", "n_accelerator", "engine", "load", "statistic", "concurrency")
"""Columns that two copies of a measurement share, besides lengths and rate to two digits; a campaign may omit
others."""

COPY_SETUP_COLUMNS: Final = ("weight_precision", "tp", "pp", "dp", "ep", "speculation", "engine_version", "date")
"""Columns that copies with a single common outcome must share too, where both have them."""

N_COPY_DIGIT: Final = 4
"""Significant digits to which the outcomes of two copies agree."""

N_SINGLE_OUTCOME_DIGIT: Final = 6
"""The same for copies with a single common outcome; offline throughputs of similar machines agree to three or four
digits."""

_THROUGHPUTS: Final = tuple(name for name in OUTCOME_COLUMNS if "throughput" in name)
_KINDS: Final = np.array(["throughput" if name in _THROUGHPUTS else name for name in OUTCOME_COLUMNS])


def review(
    measurements: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the rows excluded from training: columns `rule` and `detail`, index of `measurements`.

    Rules, of which the first match counts: ``not_ok``, ``unknown_model``, ``unknown_accelerator``,
    ``published_fault``, ``near_duplicate``, ``not_monotone``, ``beyond_capacity``, ``impossible_split``,
    ``beyond_estimate``, and those of `roofcast.features.validity.plausibility`.
    """
    found = pd.DataFrame({"rule": "", "detail": ""}, index=measurements.index, dtype=object)
    for rule, broken, detail in _column_rules(measurements, models, accelerators):
        new = (broken & (found["rule"] == "")).to_numpy()
        found.loc[new, "rule"] = rule
        found.loc[new, "detail"] = detail[new]
    accepted = measurements[found["rule"] == ""]
    if len(accepted):
        descriptors = describe(accepted, models, accelerators)
        found.update(_beyond_estimate(descriptors))
        found.update(implausible_rows(accepted, descriptors))
    return found[found["rule"] != ""]


def _beyond_estimate(descriptors: pd.DataFrame) -> pd.DataFrame:
    # a small error of the estimated capacity decides whether a queue grows: there is no ratio to learn
    is_over = estimate(descriptor_arrays(descriptors), DEFAULT_COEFFICIENTS).is_saturated
    detail = "the request rate exceeds the estimated saturation rate of the replica"
    return pd.DataFrame({"rule": "beyond_estimate", "detail": detail}, index=descriptors.index[is_over])


def achieved_rate_ratio(rows: pd.DataFrame) -> pd.Series:
    """Return the achieved over the requested rate of each run; NaN without a measured throughput.

    Throughput is in the row of statistic ``mean`` and applies to the other rows of its run.
    """
    run = [name for name in KEY_COLUMNS if name != "statistic"]
    throughput = rows.groupby(run, dropna=False)["request_throughput_per_s"].transform("max")
    return throughput / rows["request_rate"]


def near_duplicates(rows: pd.DataFrame) -> pd.Series:
    """Return, for each row that repeats an earlier row, a description of the earlier one; index of the repeats.

    Two rows are copies if `COPY_COLUMNS` are equal and all outcomes that both have agree to `N_COPY_DIGIT` digits. A
    single outcome can agree by chance: it must agree to `N_SINGLE_OUTCOME_DIGIT` digits, with no difference in the
    setup. All throughputs count as one outcome, because lengths convert between them; in open loops they do not
    count, because the rate sets them. The first of the copies is kept.

    A row stored by an API key repeats rows of that key and those that no key stored, wherever they stand; it removes
    no row of others.
    """
    rows = rows.iloc[np.argsort(is_uploaded(rows["stack"]).to_numpy(dtype=bool), kind="stable")]
    key = [rows[name] for name in COPY_COLUMNS]
    key += [rows[name].map("{:.1e}".format) for name in ("n_input_token", "n_output_token", "request_rate")]
    group = rows.groupby(key, dropna=False, sort=False).ngroup()
    outcomes = _measured_outcomes(rows)
    has_neighbour = pd.Series(False, index=rows.index)
    for name in outcomes:
        table = pd.DataFrame({"group": group, "value": outcomes[name]}).dropna().sort_values(["group", "value"])
        is_near = (table["group"].diff() == 0) & (table["value"].diff() <= _rtol(N_COPY_DIGIT) * table["value"])
        is_near |= is_near.shift(-1, fill_value=False)
        has_neighbour[is_near.index[is_near]] = True
    found: dict[object, str] = {}
    for _, subset in rows[has_neighbour].groupby(group[has_neighbour], sort=False):
        found |= _copies(subset, outcomes.loc[subset.index].to_numpy(dtype=float))
    return pd.Series(found, dtype=object)


def _rtol(n_digit: int) -> float:
    return 0.5 * 10.0 ** (1 - n_digit)


def _measured_outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    outcomes = rows[list(OUTCOME_COLUMNS)].astype(float).copy()
    derived = rows["derived"].str.split()
    for name in OUTCOME_COLUMNS:
        is_set = (rows["load"] == "open_loop") & (name in _THROUGHPUTS)
        outcomes[name] = outcomes[name].mask(is_set | derived.map(lambda names, name=name: name in names))
    return outcomes


def _copies(group: pd.DataFrame, outcomes: npt.NDArray[np.float64]) -> dict[object, str]:
    setup = (
        group[list(COPY_SETUP_COLUMNS)].astype(object).where(lambda cells: cells.notna() & (cells != "")).to_numpy()
    )
    owner = stack_owners(group["stack"]).where(is_uploaded(group["stack"]), "").to_numpy()
    first: dict[int, int] = {}
    kinds = np.array([kind == _KINDS for kind in np.unique(_KINDS)]).T
    for j in range(1, len(group)):
        has_both = ~np.isnan(outcomes[:j]) & ~np.isnan(outcomes[j])
        is_single = ((has_both @ kinds) > 0).sum(axis=1) == 1
        rtol = np.where(is_single, _rtol(N_SINGLE_OUTCOME_DIGIT), _rtol(N_COPY_DIGIT))[:, None]
        is_close = np.abs(outcomes[:j] - outcomes[j]) <= rtol * np.abs(outcomes[j])
        is_near = (is_close | ~has_both).all(axis=1) & has_both.any(axis=1)
        is_comparable = (owner[:j] == "") | (owner[:j] == owner[j])
        for i in np.flatnonzero(is_near & is_comparable).tolist():
            if i not in first and not (is_single[i] and _differ(setup[i], setup[j])):
                first[j] = i
                break
    names = (group["campaign"] + ", " + group["note"].where(group["note"] != "", group.index.astype(str))).tolist()
    return {group.index[j]: names[i] for j, i in first.items()}


def _differ(one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]) -> bool:
    is_both = ~(pd.isna(one) | pd.isna(other))
    return bool((one[is_both] != other[is_both]).any())


def campaign_report(catalog: Catalog) -> pd.DataFrame:
    """Return, per shipped campaign, the numbers of rows published, excluded and used for training.

    Returns
    -------
    One row a campaign: published rows read and rejected, measurements, measurements usable for training, and the
    rules with their counts: ``rejected`` of published rows, ``not_learnt`` of measurements. Campaigns of training
    runs come last; each of their rows has the rule `TRAINING_RUN`
    """
    measurements, runs = load_campaigns(), load_job_campaigns()
    rules = review(measurements, catalog.models, catalog.accelerators)["rule"].reindex(
        measurements.index, fill_value=""
    )
    serving = [
        _row(load_campaign_info(name), load_rejected_counts(name), rules[measurements["campaign"] == name])
        for name in CAMPAIGNS
    ]
    training = [
        _row(
            load_job_campaign_info(name),
            load_job_rejected_counts(name),
            pd.Series(TRAINING_RUN, index=runs.index[runs["campaign"] == name]),
        )
        for name in TRAINING_CAMPAIGNS
    ]
    return pd.DataFrame([*serving, *training])


def _row(info: CampaignInfo, rejected: Mapping[str, int], rules: pd.Series) -> dict[str, object]:
    return {
        "campaign": info.name,
        "n_read": info.n_read,
        "n_rejected": info.n_rejected,
        "n_kept": len(rules),
        "n_learnable": int((rules == "").sum()),
        "rejected": _counts(rejected.items()),
        "not_learnt": _counts(rules[rules != ""].value_counts().items()),
    }


def _counts(rules: Iterable[tuple[object, int]]) -> str:
    return ", ".join(f"{rule} {n}" for rule, n in rules)


def _column_rules(
    rows: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> list[tuple[str, pd.Series, pd.Series]]:
    outer = rows["pp"].fillna(1) * rows["dp"].fillna(1)
    tp = rows["tp"].fillna(rows["n_accelerator"] / outer)
    split = tp * outer
    is_apart = rows["n_prefill_accelerator"].notna()  # their split is that of one decode worker
    is_split_wrong = (~np.isclose(split, rows["n_accelerator"]) | (tp % 1 != 0) | (tp < 1)) & ~is_apart
    split_detail = (
        "tp x pp x dp is " + split.map("{:g}".format) + " of " + rows["n_accelerator"].map("{:g} accelerators".format)
    )
    rate_ratio = achieved_rate_ratio(rows)
    is_faulty = rows["note"].str.contains("faulty: ", regex=False)
    is_sound = (rows["status"] == "ok") & ~is_faulty
    copies = near_duplicates(rows[is_sound]).reindex(rows.index)
    is_own = (
        is_sound & copies.isna() & rows["n_prefill_accelerator"].isna()
    )  # disaggregated rows do not state speculation
    is_out = pd.Series(non_monotone_rows(rows[is_own]), index=rows.index[is_own]).reindex(
        rows.index, fill_value=False
    )
    return [
        ("not_ok", rows["status"] != "ok", rows["status"]),
        ("unknown_model", ~rows["model"].isin(list(models)), rows["model"]),
        ("unknown_accelerator", ~rows["accelerator"].isin(list(accelerators)), rows["accelerator"]),
        ("published_fault", is_faulty, rows["note"]),
        ("near_duplicate", copies.notna(), "repeats " + copies.fillna("")),
        ("not_monotone", is_out, pd.Series("a step is much faster at a higher concurrency", index=rows.index)),
        (
            "beyond_capacity",
            rate_ratio < MIN_RATE_RATIO,
            rate_ratio.map("{:.0%} of the request rate was achieved".format),
        ),
        ("impossible_split", pd.Series(is_split_wrong, index=rows.index), split_detail),
    ]
