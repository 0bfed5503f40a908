"""Rows of P3, P4, P5, P7 and P8: measurements of all campaigns with lineage, stack and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from judge.peers.silicon_peers import load_silicon_index, source_row
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.measurements.schema import KEY_COLUMNS
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.training.dataset.review import review
from roofcast.training.dataset.stacks import name_stacks, stack_owners
from roofcast.training.dataset.targets import outcomes
from roofcast.training.dataset.training_set import TRAINED_ON

UNANSWERED: Final = "beyond_estimate"
"""Review rule whose rows are scored as unanswered: near saturation their latency is that of the queue."""

EQUAL_RUN_RATIO: Final = 0.005
"""Relative difference of outcomes up to which rows of two campaigns are one run."""


@dataclass(frozen=True, slots=True)
class CampaignRows:
    """Measurements and their prediction input; the tables share one index.

    - `measurements`: With additional columns `lineage`; `rule`, the rule of `review.review` that excludes a row;
      `source`, the number of the published row of the silicon campaign; `n_published`, the number of P3's published
      rows that it represents; and `run`, shared by rows of several statistics, and by rows of several campaigns that
      published one run.
    - `X`: shape (n_row, n_descriptor)
    - `y`: shape (n_row, n_metric)
    - `groups`: shape (n_row,). Fold groups.
    """

    measurements: pd.DataFrame
    X: pd.DataFrame
    y: pd.DataFrame
    groups: pd.Series

    @property
    def stacks(self) -> pd.Series:
        """Stack of each row; no row is of the user's own stack."""
        return name_stacks(self.measurements)

    @property
    def owners(self) -> pd.Series:
        """Owner of each row's stack."""
        return stack_owners(self.stacks)

    @property
    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Whether a row may be used for training."""
        return np.asarray(self.measurements["rule"] == "")

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> CampaignRows:
        """Return a subset of the rows, by index or mask."""
        return CampaignRows(
            self.measurements.iloc[rows], self.X.iloc[rows], self.y.iloc[rows], self.groups.iloc[rows]
        )

    def of(self, campaigns: tuple[str, ...]) -> CampaignRows:
        """Return the rows of the given campaigns."""
        return self.take(self.measurements["campaign"].isin(campaigns).to_numpy())


def load_campaign_rows(catalog: Catalog | None = None) -> CampaignRows:
    """Return the rows of P4 and P5 from the shipped campaigns."""
    return build_campaign_rows(load_campaigns(TRAINED_ON), catalog or load_catalog())


def build_campaign_rows(measurements: pd.DataFrame, catalog: Catalog) -> CampaignRows:
    """Return the rows of P4 and P5: accepted measurements, P3's rows, and those of rule `UNANSWERED`."""
    rows = measurements.reset_index(drop=True)
    rules = review(rows, catalog.models, catalog.accelerators)["rule"].reindex(rows.index).fillna("")
    rows = _with_published(rows.assign(rule=rules))
    rows = split_totals(rows[rows["rule"].isin(["", UNANSWERED]) | (rows["n_published"] > 0)]).reset_index(drop=True)
    specs = catalog.models
    rows["lineage"] = rows["model"].map({name: spec.lineage for name, spec in specs.items()})
    rows["run"] = merge_equal_runs(
        rows, rows.groupby([n for n in KEY_COLUMNS if n != "statistic"], dropna=False).ngroup()
    )
    groups = rows["model"].map({name: spec.fold_group for name, spec in specs.items()}).rename("group")
    return CampaignRows(rows, describe(rows, specs, catalog.accelerators), outcomes(rows), groups)


def merge_equal_runs(rows: pd.DataFrame, run: pd.Series) -> pd.Series:
    """Return run numbers, with runs merged that have equal TTFT and TPOT in two campaigns.

    Campaigns may give one run different dates, versions or splits, so only its outcome identifies it.

    `rows`: with `lineage` and the columns of measurements. `run`: shape (n_row,): numbers of runs, from 0.
    """
    measured = rows[(rows["ttft_s"] > 0) & (rows["tpot_s"] > 0)]
    pairs = []
    for _, group in measured.groupby(["lineage", "accelerator", "weight_precision", "statistic"], dropna=False):
        campaign, of = group["campaign"].to_numpy(), run[group.index].to_numpy()
        if len(set(campaign)) > 1:
            outcome = np.log(group[["ttft_s", "tpot_s"]].to_numpy(dtype=float))
            is_near = (np.abs(outcome[:, None] - outcome) <= np.log1p(EQUAL_RUN_RATIO)).all(axis=2)
            pairs.append(of[np.argwhere(is_near & (campaign[:, None] != campaign))])
    first, second = np.concatenate([np.empty((0, 2), dtype=np.intp), *pairs]).T
    n_run = int(run.max()) + 1
    graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_run, n_run))
    return pd.Series(connected_components(graph, directed=False)[1][run], index=run.index)


def _with_published(rows: pd.DataFrame) -> pd.DataFrame:
    index = load_silicon_index()
    n_published = index.loc[index["mode"] == "agg", "measured_in"].value_counts()
    source = rows.loc[rows["campaign"] == "silicon", "note"].map(source_row).reindex(rows.index)
    return rows.assign(source=source, n_published=source.map(n_published).fillna(0).astype(int))


def split_totals(questions: pd.DataFrame) -> pd.DataFrame:
    """Return queries with half of the accelerators for prefill and half for decode where the split is unknown.

    Such a row gives the total of a disaggregated deployment as if it were one replica (`disaggregated_total`).

    Examples
    --------
    >>> rows = pd.DataFrame({"n_accelerator": [8.0, 36.0], "tp": [8.0, float("nan")], "note": ["", "faulty: "
    ...     "disaggregated_total"], "n_prefill_accelerator": float("nan"), "n_decode_accelerator": float("nan")})
    >>> split_totals(rows)[["n_prefill_accelerator", "n_decode_accelerator"]].iloc[1].tolist()
    [18.0, 18.0]
    """
    is_total = questions["note"].str.contains("disaggregated_total", regex=False)
    prefill = questions["n_accelerator"] // 2
    return questions.assign(
        n_prefill_accelerator=questions["n_prefill_accelerator"].mask(is_total, prefill),
        n_decode_accelerator=questions["n_decode_accelerator"].mask(is_total, questions["n_accelerator"] - prefill),
    )
