"""Which measurements the predictor may learn from, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info, load_campaigns, load_quarantine_counts
from roofcast.data.campaigns.loader import CampaignInfo
from roofcast.data.catalog import Catalog
from roofcast.data.measurements.schema import KEY_COLUMNS, OUTCOME_COLUMNS
from roofcast.data.specs import AcceleratorSpec, ModelSpec
from roofcast.data.training_campaigns import (
    TRAINING_CAMPAIGNS,
    load_training_campaign_info,
    load_training_campaigns,
    load_training_quarantine_counts,
)
from roofcast.features.arrays import descriptor_arrays
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.validity.plausibility import implausible_rows, non_monotone_rows

TRAINING_RUN: Final = "training_run"
"""Rule of a run that trained a model: another table, of which no predictor learns."""

REACHED: Final = 0.9
"""Share of the request rate asked below which a queue grew: what was measured tells of the run's length."""


SAME_QUESTION: Final = ("model", "accelerator", "n_accelerator", "engine", "load", "statistic", "concurrency")
"""What two copies of one measurement share, besides lengths and rate to two digits; a campaign may leave out more."""

SAME_SETUP: Final = ("weight_precision", "tp", "pp", "dp", "ep", "speculation", "engine_version", "date")
"""What copies that share a single outcome must share too, where both state it."""

N_SAME_DIGIT: Final = 4
"""Significant digits to which the outcomes of two copies agree."""

N_ALONE_DIGIT: Final = 6
"""The same where they share a single outcome; offline throughputs of like machines agree to three or four."""

_THROUGHPUTS: Final = tuple(name for name in OUTCOME_COLUMNS if "throughput" in name)
_KINDS: Final = np.array(["throughput" if name in _THROUGHPUTS else name for name in OUTCOME_COLUMNS])


def review(
    measurements: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the rows that must not be learnt from: columns `rule` and `detail`, index of `measurements`.

    Rules, the first that holds counts: ``not_ok``, ``unknown_model``, ``unknown_accelerator``, ``published_fault``,
    ``near_duplicate``, ``not_monotone``, ``beyond_capacity``, ``impossible_split``, ``beyond_estimate``, and those
    of `roofcast.features.validity.plausibility`.
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
        found.update(implausible_rows(sound, descriptors))
    return found[found["rule"] != ""]


def _beyond_estimate(descriptors: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose request rate the estimate holds to be more than the replica serves.

    It has no finite queue to give for them, right or wrong, and there is nothing to learn a ratio over.
    """
    is_over = estimate(descriptor_arrays(descriptors), DEFAULT_COEFFICIENTS).is_saturated
    detail = "the estimate takes the request rate to be more than the replica serves"
    return pd.DataFrame({"rule": "beyond_estimate", "detail": detail}, index=descriptors.index[is_over])


def reached_ratio(rows: pd.DataFrame) -> pd.Series:
    """Return the request rate that each run reached over the rate asked; NaN where it was not measured.

    Throughput stands in the row of statistic ``mean``; it holds for the run's other rows too.
    """
    run = [name for name in KEY_COLUMNS if name != "statistic"]
    throughput = rows.groupby(run, dropna=False)["request_throughput_per_s"].transform("max")
    return throughput / rows["request_rate"]


def near_duplicates(rows: pd.DataFrame) -> pd.Series:
    """Return, for each row that repeats an earlier one, what names that one; index of the repeats alone.

    Two rows are copies if they ask the same and all measured outcomes that both state agree to `N_SAME_DIGIT` digits.
    A single outcome can do so by chance: it must agree to `N_ALONE_DIGIT` digits, and nothing of the setup differ.
    Throughputs are one outcome, as lengths turn one into the other; of an open loop they do not count, since the rate
    sets them. Of copies the first stands.
    """
    question = [rows[name] for name in SAME_QUESTION]
    question += [rows[name].map("{:.1e}".format) for name in ("n_input_token", "n_output_token", "request_rate")]
    group = rows.groupby(question, dropna=False, sort=False).ngroup()
    outcomes = _measured_outcomes(rows)
    has_neighbour = pd.Series(False, index=rows.index)
    for name in outcomes:
        told = pd.DataFrame({"group": group, "value": outcomes[name]}).dropna().sort_values(["group", "value"])
        is_near = (told["group"].diff() == 0) & (told["value"].diff() <= _rtol(N_SAME_DIGIT) * told["value"])
        is_near |= is_near.shift(-1, fill_value=False)
        has_neighbour[is_near.index[is_near]] = True
    found: dict[object, str] = {}
    for _, some in rows[has_neighbour].groupby(group[has_neighbour], sort=False):
        found |= _copies(some, outcomes.loc[some.index].to_numpy(dtype=float))
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
    """Return the row that each copy in a group of one question repeats, by the copy's index."""
    setup = group[list(SAME_SETUP)].astype(object).where(lambda cells: cells.notna() & (cells != "")).to_numpy()
    first: dict[int, int] = {}
    kinds = np.array([kind == _KINDS for kind in np.unique(_KINDS)]).T
    for j in range(1, len(group)):
        is_told = ~np.isnan(outcomes[:j]) & ~np.isnan(outcomes[j])
        is_alone = ((is_told @ kinds) > 0).sum(axis=1) == 1
        rtol = np.where(is_alone, _rtol(N_ALONE_DIGIT), _rtol(N_SAME_DIGIT))[:, None]
        is_close = np.abs(outcomes[:j] - outcomes[j]) <= rtol * np.abs(outcomes[j])
        for i in np.flatnonzero((is_close | ~is_told).all(axis=1) & is_told.any(axis=1)).tolist():
            if i not in first and not (is_alone[i] and _differ(setup[i], setup[j])):
                first[j] = i
                break
    names = (group["campaign"] + ", " + group["note"].where(group["note"] != "", group.index.astype(str))).tolist()
    return {group.index[j]: names[i] for j, i in first.items()}


def _differ(one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]) -> bool:
    is_both = ~(pd.isna(one) | pd.isna(other))
    return bool((one[is_both] != other[is_both]).any())


def campaign_report(catalog: Catalog) -> pd.DataFrame:
    """Return, per shipped campaign, what became of its published rows.

    Returns
    -------
    One row a campaign: published rows read and set aside, measurements kept, those that may be learnt from, and the
    rules with their counts: ``quarantine`` of published rows, ``not_learnt`` of measurements. Campaigns of training
    runs come last: the predictor is of serving, and every row of theirs is a `TRAINING_RUN` to it
    """
    everything, runs = load_campaigns(), load_training_campaigns()
    rules = review(everything, catalog.models, catalog.accelerators)["rule"].reindex(everything.index, fill_value="")
    serving = [
        _row(load_campaign_info(name), load_quarantine_counts(name), rules[everything["campaign"] == name])
        for name in CAMPAIGNS
    ]
    training = [
        _row(
            load_training_campaign_info(name),
            load_training_quarantine_counts(name),
            pd.Series(TRAINING_RUN, index=runs.index[runs["campaign"] == name]),
        )
        for name in TRAINING_CAMPAIGNS
    ]
    return pd.DataFrame([*serving, *training])


def _row(info: CampaignInfo, quarantine: Mapping[str, int], rules: pd.Series) -> dict[str, object]:
    """Return a campaign's row of the report; `rules` has one for each measurement, blank if it may be learnt from."""
    return {
        "campaign": info.name,
        "n_read": info.n_read,
        "n_quarantined": info.n_quarantined,
        "n_kept": len(rules),
        "n_learnable": int((rules == "").sum()),
        "quarantine": _counts(quarantine.items()),
        "not_learnt": _counts(rules[rules != ""].value_counts().items()),
    }


def _counts(rules: Iterable[tuple[object, int]]) -> str:
    return ", ".join(f"{rule} {n}" for rule, n in rules)


def _plain_rules(
    rows: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> list[tuple[str, pd.Series, pd.Series]]:
    outer = rows["pp"].fillna(1) * rows["dp"].fillna(1)
    tp = rows["tp"].fillna(rows["n_accelerator"] / outer)
    split = tp * outer
    is_apart = rows["n_prefill_accelerator"].notna()  # the split is that of one decode worker
    is_split_wrong = (~np.isclose(split, rows["n_accelerator"]) | (tp % 1 != 0) | (tp < 1)) & ~is_apart
    told = (
        "tp x pp x dp is " + split.map("{:g}".format) + " of " + rows["n_accelerator"].map("{:g} accelerators".format)
    )
    reached = reached_ratio(rows)
    is_faulty = rows["note"].str.contains("faulty: ", regex=False)
    is_sound = (rows["status"] == "ok") & ~is_faulty
    copies = near_duplicates(rows[is_sound]).reindex(rows.index)
    is_own = is_sound & copies.isna() & rows["n_prefill_accelerator"].isna()  # of others, speculation is not told
    is_out = pd.Series(non_monotone_rows(rows[is_own]), index=rows.index[is_own]).reindex(
        rows.index, fill_value=False
    )
    return [
        ("not_ok", rows["status"] != "ok", rows["status"]),
        ("unknown_model", ~rows["model"].isin(list(models)), rows["model"]),
        ("unknown_accelerator", ~rows["accelerator"].isin(list(accelerators)), rows["accelerator"]),
        ("published_fault", is_faulty, rows["note"]),
        ("near_duplicate", copies.notna(), "the measurement of " + copies.fillna("")),
        ("not_monotone", is_out, pd.Series("a step is much faster with more requests in flight", index=rows.index)),
        (
            "beyond_capacity",
            reached < REACHED,
            "of the request rate asked, " + reached.map("{:.0%} was reached".format),
        ),
        ("impossible_split", pd.Series(is_split_wrong, index=rows.index), told),
    ]
