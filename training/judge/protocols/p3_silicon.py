"""P3: TTFT and TPOT of serving engines for unmeasured LLMs and unmeasured accelerators.

The rows are the 3,619 aggregated rows of aiconfigurator's silicon sample, of which 2,826 are distinct measurements.
Each distinct one is predicted once with its lineage, and once with its part number held out, in the folds of P4 and
P11; a published row takes the prediction of the measurement that it repeats. Methods train on the other rows of the
campaign, or of all campaigns. Rows that a written rule marks as faulty (`builders.campaigns.silicon.faults.FAULTS`)
are never used for training. They count in P3, not in P3_clean, which counts each measurement once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
import pandas as pd

from judge.peers.silicon_peers import load_silicon_index, source_row
from judge.protocols.campaign_rows import (
    CampaignRows,
    build_campaign_rows,
    load_campaign_rows,
    split_totals,
)
from judge.protocols.fold_lines import Fit, Progress, fit_predictor, map_folds
from judge.protocols.p4_p5_campaigns import N_FOLD
from judge.protocols.p11_p12_transfer import part_folds, part_numbers
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.targets import outcomes
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.learner.predictor import RoofcastPredictor

SCORED_METRICS: Final = {"tpot": "tpot_s", "ttft": "ttft_s"}
"""Columns of the metrics of the protocol."""

COLUMNS: Final = tuple(SCORED_METRICS.values())

SPLITS: Final = {"leave_one_lineage_out": "lineage", "leave_one_accelerator_out": "accelerator"}
"""Splits, and the column with one value per fold."""

HOPPER: Final = ("nvidia-h100-sxm-80gb", "nvidia-h200-sxm-141gb")
PARTS: Final = ("lineage", "engine", "accelerator", "weight_precision", "subset")
"""Columns of the dump whose values have scores of their own."""

_QUERY_COLUMNS: Final = ("model", "lineage", "accelerator", "engine", "weight_precision", "subset", "fault")


@dataclass(frozen=True)
class Fold:
    """Training and test rows of a fold.

    - `split`: Name in `SPLITS`.
    - `train`: Training rows of the campaign.
    - `everything`: Training rows of all campaigns, including `train`.
    - `test`: Rows to predict.
    - `fit`: Of roofcast's predictor.
    """

    split: str
    train: CampaignRows
    everything: CampaignRows
    test: CampaignRows
    fit: Fit = fit_predictor

    @cached_property
    def predictor(self) -> RoofcastPredictor:
        """Return roofcast's predictor fitted to `everything`, shared by the methods of a fold."""
        return self.fit(self.everything)


Method = Callable[[Fold], pd.DataFrame]
"""Function from a fold to predicted `ttft_s` and `tpot_s` of its test rows, NaN if unanswered."""


@dataclass(frozen=True, slots=True)
class SiliconCampaign:
    """Rows of P3.

    - `rows`: Distinct measurements; the index is the number of the published row. With additional columns `lineage`,
      `group` (the fold group), `fault` (the rule that marks a row as faulty, or empty) and `subset`.
    - `published`: One row per published row: `id`, `row` (the measurement that it is or repeats) and `is_own`, false
      for repeats.
    - `everything`: The rows of all campaigns.
    """

    rows: CampaignRows
    published: pd.DataFrame
    everything: CampaignRows


def load_silicon_campaign(everything: CampaignRows | None = None) -> SiliconCampaign:
    """Return the aggregated rows of the shipped campaign, published and distinct, and the rows of all campaigns."""
    rows = load_campaign_rows() if everything is None else everything
    return build_silicon_campaign(load_campaigns(["silicon"]), load_silicon_index(), load_catalog(), rows)


def build_silicon_campaign(
    measurements: pd.DataFrame, index: pd.DataFrame, catalog: Catalog, everything: CampaignRows | None = None
) -> SiliconCampaign:
    """Return P3's rows of measurements whose notes refer to rows of an index from `load_silicon_index`.

    Without `everything` methods train on `measurements` alone.
    """
    aggregated = index[index["mode"] == "agg"]
    published = pd.DataFrame(
        {
            "id": aggregated["id"],
            "row": aggregated["measured_in"],
            "is_own": aggregated["row"] == aggregated["measured_in"],
        }
    )
    table = measurements.set_index(measurements["note"].map(source_row).rename("row"))
    table = split_totals(table.loc[np.unique(published["row"])])
    specs = [catalog.models[name] for name in table["model"]]
    is_dense = np.array([spec.n_expert == 0 for spec in specs])
    is_subset = is_dense & table["accelerator"].isin(HOPPER) & (table["weight_precision"] == "fp8")
    table = table.assign(
        lineage=[spec.lineage for spec in specs],
        group=[spec.fold_group for spec in specs],
        fault=table["note"].str.extract(r"faulty: (\w+)", expand=False).fillna(""),
        subset=np.where(is_subset, "dense_hopper_fp8", "other"),
    )
    rows = CampaignRows(
        table, describe(table, catalog.models, catalog.accelerators), outcomes(table), table["lineage"]
    )
    if everything is None:
        everything = build_campaign_rows(measurements, catalog)
    return SiliconCampaign(rows, published, everything)


def silicon_folds(campaign: SiliconCampaign, fit: Fit = fit_predictor) -> Iterator[Fold]:
    """Yield all folds of all splits: those of P4 and of P11 that have rows of the campaign.

    The accelerators, or all lineages of the held-out fold groups, are excluded from every campaign.
    """
    rows, everything = campaign.rows, campaign.everything
    can_train = (rows.measurements["fault"] == "").to_numpy()
    group, part = rows.measurements["group"], part_numbers(rows.measurements["accelerator"])
    by_split = {
        "leave_one_lineage_out": (
            (group.isin(everything.groups.iloc[test]), train)
            for train, test in leave_one_group_out(everything.groups, N_FOLD)
        ),
        "leave_one_accelerator_out": (
            (part.isin(names), np.flatnonzero(is_kept)) for names, is_kept in part_folds(everything)
        ),
    }
    for split, folds in by_split.items():
        for is_held_out, train in folds:
            is_test = is_held_out.to_numpy()
            if is_test.any():
                others = everything.take(train[everything.is_sound[train]])
                own = rows.take(np.flatnonzero(can_train & ~is_test))
                yield Fold(split, own, others, rows.take(np.flatnonzero(is_test)), fit)


def predict_silicon(
    campaign: SiliconCampaign,
    methods: Mapping[str, Method],
    progress: Progress | None = None,
    fit: Fit = fit_predictor,
) -> pd.DataFrame:
    """Return the dump of P3: the prediction of each published row by each method under each split.

    Returns
    -------
    One row per split, method and published row with `fold` (what was held out), `id`, `row`, `is_clean`, the query,
    measured `ttft_s` and `tpot_s`, and `predicted_ttft_s` and `predicted_tpot_s`
    """
    table = map_folds(partial(_predict_fold, methods), [*silicon_folds(campaign, fit)], progress, "silicon")
    table = table.merge(campaign.published, on="row")
    table["is_clean"] = table["is_own"] & (table["fault"] == "")
    first = ["split", "fold", "method", "id", "row", "is_clean"]
    return table[first + [name for name in table if name not in {*first, "is_own"}]]


def _predict_fold(methods: Mapping[str, Method], fold: Fold) -> pd.DataFrame:
    parts = []
    for name, method in methods.items():
        predicted = method(fold)[list(COLUMNS)].add_prefix("predicted_")
        lines = fold.test.measurements[[*_QUERY_COLUMNS, *COLUMNS]].join(predicted)
        parts.append(lines.assign(split=fold.split, fold=lines[SPLITS[fold.split]], method=name))
    return pd.concat(parts).reset_index()


def silicon_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return the scores of a dump, or a subset of it, by split, method and metric.

    Examples
    --------
    >>> dump = pd.DataFrame({"split": ["leave_one_lineage_out"], "method": ["m"], "ttft_s": [1.0], "tpot_s": [0.01],
    ...                      "predicted_ttft_s": [1.5], "predicted_tpot_s": [float("nan")]})
    >>> silicon_figures(dump)["leave_one_lineage_out"]["m"]["ttft"]
    {'mape': 0.5, 'median_ape': 0.5, 'within_25': 0.0, 'answered': 1.0}
    """
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for (split, method), rows in dump.groupby(["split", "method"], sort=False):
        figures.setdefault(str(split), {})[str(method)] = {
            metric: error_summary(rows[column], rows[f"predicted_{column}"])
            for metric, column in SCORED_METRICS.items()
        }
    return figures


def figures_by_part(dump: pd.DataFrame) -> pd.DataFrame:
    """Return scores by lineage, engine, accelerator, precision and subset, of all rows and of clean ones.

    In addition to `PARTS`, ``answered_by`` has the rows that a method answers if these are not all rows: all methods
    are scored on them, so that no method is compared on easier rows than another.

    Returns
    -------
    Columns `protocol` (``P3`` or ``P3_clean``), `split`, `by`, `part`, `method`, `metric`, `n_row` and the scores
    """
    lines = []
    for protocol, rows in (("P3", dump), ("P3_clean", dump[dump["is_clean"]])):
        for by, name, part in [*_parts(rows), *_answered(rows)]:
            for split, methods in silicon_figures(part).items():
                n_row = int((part["split"] == split).sum() / len(methods))
                lines += [
                    {"protocol": protocol, "split": split, "by": by, "part": name, "method": method}
                    | {"metric": metric, "n_row": n_row, **values}
                    for method, figures in methods.items()
                    for metric, values in figures.items()
                ]
    return pd.DataFrame(lines)


def _parts(dump: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    return [(by, str(name), part) for by in PARTS for name, part in dump.groupby(by)]


def _answered(dump: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    predicted = [f"predicted_{column}" for column in SCORED_METRICS.values()]
    has_answer = dump[predicted].notna().all(axis=1)
    parts = []
    for method, rows in dump[has_answer].groupby("method"):
        if len(rows) < (dump["method"] == method).sum():
            parts.append(("answered_by", str(method), dump[dump["id"].isin(rows["id"])]))
    return parts
