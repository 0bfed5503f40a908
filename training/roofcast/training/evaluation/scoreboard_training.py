"""Section of the scoreboard page on P6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from roofcast.training.evaluation.markdown import format_number, markdown_table
from roofcast.training.evaluation.scoreboard import OWN, ProtocolResult
from roofcast.training.evaluation.scoreboard_campaigns import figure_table

_TRAINING: Final = """
## P6: training runs, {n_row:,} rates

Tokens per second and accelerator, and peak memory, of training and fine-tuning runs: each run is predicted without
training rows of its lineage, of its accelerator, or of its stack's owner. Encoders, padded samples and lengths that
no source states are not judged. *Median of stacks* is the median over stacks of their median errors. Of runs that did
not fit, *recall* is the share that was foreseen, *false alarm* the share of runs that ran although foreseen not to
fit.

Some priors of the core were set with these runs in view, so that its errors and those of roofcast, which corrects
it, are optimistic. Where the stack is not held out, a run names it, as in P4. *Three runs of the lineage* are of the
same accelerator, drawn once, with the lineage held out; *ten runs of the stack* likewise with its owner held out.
They condition the predictor without a fit and are not judged; groups with no more runs are left out. *Coverage* and
*width* (median ratio of the limits) are those of the 90 % interval.

The first table judges the first 21 campaigns, so that it compares from version to version; the second all of them.

| method | description |
| --- | --- |
| roofcast | the core times a learned correction: a Gaussian process of groups and parts, intervals |
| analytic_priors | the analytic core with its priors; an unknown plan is the fastest that fits |
| raw_trees | gradient boosting on raw descriptors of model, hardware and plan |
| nearest_measured | the MFU and memory of the nearest training row |
| constant_mfu | the median MFU of the training rows |
| conventional_mfu | an MFU of 40 % |
| states_alone | weights, gradients and optimizer states, compared with the memory |
"""

_INTERVAL: Final = ("coverage_90", "width_90")

_JUDGES: Final = """
### Published times of Megatron-LM on A100

No training reads these runs; each method learnt from all training campaigns.
"""


def training_section(results: Mapping[str, ProtocolResult]) -> str:
    """Return the section on P6."""
    tables = results["P6"].tables
    rates = tables["P6"][tables["P6"]["quantity"] == "throughput"]
    text = [_TRAINING.format(n_row=rates["row"].nunique()), figure_table("P6", results["P6"])]
    text += ["\n### All training campaigns\n", figure_table("P6_all", results["P6_all"])]
    text += ["\n### Training runs by campaign, stack out\n", _part_table(tables["P6_parts"], "campaign")]
    text += ["\n### Peak memory by its kind, stack out\n", _part_table(tables["P6_memory"], "memory_kind")]
    text += [_JUDGES, figure_table("P6_judges", results["P6_judges"])]
    return "\n".join(text)


def _part_table(parts: pd.DataFrame, by: str) -> str:
    shown = parts[parts["split"] == "leave_one_stack_out"]
    methods = [name.removesuffix("_median_ape") for name in parts.columns if name.endswith("_median_ape")]
    rows = [
        (
            *(str(row[by]) or "unstated", str(row["quantity"]), f"{row['n_row']:,}"),
            *(_cell(row, name) for name in methods),
            *(format_number(row[f"{OWN}_{score}"]) for score in _INTERVAL),
        )
        for _, row in shown.iterrows()
    ]
    head = [by, "quantity", "rows", *methods, *_INTERVAL]
    return markdown_table([name.replace("_", " ") for name in head], rows)


def _cell(row: pd.Series, method: str) -> str:
    return f"{format_number(row[f'{method}_mape'])} / {format_number(row[f'{method}_median_ape'])}"
