"""P6: training runs of an unseen lineage, accelerator or stack.

Every run is predicted without training rows of its lineage, of its accelerator, or of its stack's owner; groups are
assigned to folds, largest first. Throughput is in tokens per second and accelerator. A run that did not fit is judged
by recall, one that ran by false alarms.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.protocols.fold_lines import Progress, interval_scores
from judge.protocols.jobs.p6_baselines import METHODS, RunMethod, RunPrediction
from judge.protocols.jobs.p6_methods import (
    TEN_RUNS,
    THREE_RUNS,
    RoofcastMethod,
    predict_with_references,
)
from roofcast.data.job_campaigns import FIRST_TRAINING_CAMPAIGNS
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.jobs.job_features import is_plain
from roofcast.training.jobs.job_table import OUT_OF_MEMORY, JobTable

IndexArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]

N_FOLD: Final = 10
THRESHOLD: Final = 0.5
"""Probability from which a run counts as predicted not to fit."""

FALSE_ALARM: Final = 0.05
"""Share of the runs that ran at which recall is compared."""

SPLITS: Final = ("leave_one_lineage_out", "leave_one_accelerator_out", "leave_one_stack_out")
REFERENCED: Final = (THREE_RUNS, TEN_RUNS)
QUANTITIES: Final = ("throughput", "memory")

_CONTEXT: Final = (
    "campaign",
    "stack",
    "model",
    "accelerator",
    "method",
    "n_accelerator",
    "compute_precision",
    "memory_kind",
)


def split_groups(rows: JobTable) -> dict[str, pd.Series]:
    """Return what is held out together, by split."""
    return dict(zip(SPLITS, (rows.groups, rows.measurements["accelerator"], rows.owners), strict=True))


def predict_training(
    rows: JobTable,
    methods: Mapping[str, RunMethod] = METHODS,
    progress: Progress | None = None,
    n_fold: int = N_FOLD,
) -> pd.DataFrame:
    """Return the dump of P6: one line for each split, row and judged quantity.

    `methods`: each sees the training rows whole, and the held-out rows, whose outcomes it must not read.

    Returns
    -------
    Columns `split`, `fold`, `row`, `group`, the context of the run, `is_plain`, `is_mixture`, `quantity`, `measured`,
    and ``by_NAME`` for each method, ``low_NAME`` and ``high_NAME`` for those with intervals. The quantity
    ``out_of_memory`` is 1 for runs that did not fit, and its predictions are probabilities.
    """
    lines: list[pd.DataFrame] = []
    for split, groups in split_groups(rows).items():
        folds = list(leave_one_group_out(groups, n_fold))
        for number, (train, test) in enumerate(folds, start=1):
            learnt, judged = rows.take(train), rows.take(test)
            predictions = {name: method(learnt, judged) for name, method in methods.items()}
            part = pd.concat(_lines(judged, test, predictions), ignore_index=True)
            lines.append(part.assign(split=split, fold=number))
            if progress:
                progress(f"training runs, {split}", number, len(folds))
    return pd.concat(lines, ignore_index=True)


def predict_referenced(
    rows: JobTable,
    method: RoofcastMethod,
    splits: Sequence[str] = REFERENCED,
    progress: Progress | None = None,
    n_fold: int = N_FOLD,
) -> pd.DataFrame:
    """Return lines as of `predict_training`, of roofcast with reference runs: see `predict_with_references`."""
    lines: list[pd.DataFrame] = []
    for split in splits:
        for fold, places, prediction in predict_with_references(rows, split, method, n_fold):
            part = pd.concat(_lines(rows.take(places), places, {"roofcast": prediction}), ignore_index=True)
            lines.append(part.assign(split=split, fold=fold))
            if progress:
                progress(f"training runs, {split}", fold, n_fold)
    return pd.concat(lines, ignore_index=True)


def _lines(judged: JobTable, places: IndexArray, predictions: Mapping[str, RunPrediction]) -> Iterator[pd.DataFrame]:
    measured = {
        "throughput": judged.measured_rate,
        "memory": judged.measured_memory,
        OUT_OF_MEMORY: judged.is_out_of_memory,
    }
    names = {"throughput": "rate", "memory": "memory", OUT_OF_MEMORY: "p_out_of_memory"}
    context = judged.measurements[list(_CONTEXT)].assign(
        row=places, group=judged.groups, owner=judged.owners,
        is_plain=is_plain(judged), is_mixture=np.broadcast_to(judged.jobs.model.n_expert > 0, len(places)),
    )  # fmt: skip
    for quantity, values in measured.items():
        known = np.isfinite(values)
        columns = {f"by_{name}": getattr(p, names[quantity])[known] for name, p in predictions.items()}
        columns |= {f"low_{name}": p.low[quantity][known] for name, p in predictions.items() if quantity in p.low}
        columns |= {f"high_{name}": p.high[quantity][known] for name, p in predictions.items() if quantity in p.high}
        yield context[known].assign(quantity=quantity, measured=values[known], **columns)


def predict_judges(rows: JobTable, judges: JobTable, methods: Mapping[str, RunMethod] = METHODS) -> pd.DataFrame:
    """Return predictions of published runs that no training reads, by methods that learnt from all other rows.

    Returns
    -------
    Context of the run, `table` (where it was published), `measured` and ``by_NAME`` tokens per second and accelerator
    """
    columns = {f"by_{name}": method(rows, judges).rate for name, method in methods.items()}
    context = judges.measurements[[*_CONTEXT, "recomputation"]]
    return context.assign(table=judges.measurements["note"], measured=judges.measured_rate, **columns)


def judge_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return the scores of `predict_judges` by published table and method."""
    return {
        str(table): {name: error_summary(of["measured"], of[f"by_{name}"]) for name in _method_names(dump)}
        for table, of in dump.groupby("table", sort=False)
    }


def of_first_job_campaigns(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the campaigns that the headline figures judge."""
    return dump[dump["campaign"].isin(FIRST_TRAINING_CAMPAIGNS)]


def of_ordinary_trainers(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of ordinary trainers: Trainer, TRL, PEFT, DeepSpeed, torchtune, unsloth and those unknown."""
    return dump[dump["is_plain"]]


def training_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Return P6's scores of a dump by split, method and quantity.

    Errors are pooled over rows; ``median_of_stacks`` is the median over stacks of their median errors, and
    ``median_by_owner`` and ``coverage_by_owner`` give each owner one vote. Runs that did not fit have ``recall`` and
    ``false_alarm``, with their numbers, and ``recall_at_5`` at the threshold with 5 % false alarms.
    """
    figures: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for split, lines in dump.groupby("split", sort=False):
        names = [name for name in _method_names(dump) if lines[f"by_{name}"].notna().any()]
        figures[str(split)] = {name: _scores(lines, f"by_{name}") for name in names}
    return figures


def _method_names(dump: pd.DataFrame) -> list[str]:
    return [name.removeprefix("by_") for name in dump.columns if name.startswith("by_")]


def _scores(lines: pd.DataFrame, column: str) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for quantity in QUANTITIES:
        part = lines[lines["quantity"] == quantity]
        by_stack = [error_summary(of["measured"], of[column])["median_ape"] for _, of in part.groupby("stack")]
        summary = error_summary(part["measured"], part[column])
        median = float(np.nanmedian(by_stack)) if np.isfinite(by_stack).any() else float("nan")
        scores[quantity] = summary | {"median_of_stacks": median} | _owner_scores(part, column)
        scores[quantity] |= _interval_scores(part, column.removeprefix("by_"))
    part = lines[lines["quantity"] == OUT_OF_MEMORY]
    return scores | {OUT_OF_MEMORY: fit_scores(part["measured"].to_numpy(), part[column].to_numpy())}


def _owner_scores(lines: pd.DataFrame, column: str) -> dict[str, float]:
    weight = 1.0 / lines.groupby("owner")["owner"].transform("size").to_numpy()
    ape = np.abs(lines[column] / lines["measured"] - 1.0).to_numpy()
    order = np.argsort(ape)
    mass = np.cumsum(weight[order])
    scores = {"median_by_owner": float(ape[order][np.searchsorted(mass, mass[-1] / 2.0)])} if len(ape) else {}
    low, high = (column.replace("by_", prefix, 1) for prefix in ("low_", "high_"))
    if low in lines and lines[low].notna().any():
        inside = lines["measured"].between(lines[low], lines[high])
        scores["coverage_by_owner"] = float(np.average(inside, weights=weight))
    return scores


def _interval_scores(lines: pd.DataFrame, name: str) -> dict[str, float]:
    """Return the scores of a method's interval; empty without one."""
    has_interval = f"low_{name}" in lines and lines[f"low_{name}"].notna().any()
    return interval_scores(lines, name) if has_interval else {}


def fit_scores(measured: FloatArray, probability: FloatArray) -> dict[str, float]:
    """Return recall of runs that did not fit and share of false alarms among those that ran.

    Examples
    --------
    >>> fit_scores(np.array([1.0, 1.0, 0.0, 0.0]), np.array([0.9, 0.2, 0.1, 0.6]))
    {'recall': 0.5, 'false_alarm': 0.5, 'recall_at_5': 0.5, 'n_failed': 2.0, 'n_ran': 2.0}
    """
    alarm, failed = probability >= THRESHOLD, measured > 0.0
    counts = float(failed.sum()), float((~failed).sum())
    limit = np.quantile(probability[~failed], 1.0 - FALSE_ALARM, method="higher") if counts[1] else np.nan
    return {
        "recall": float(alarm[failed].mean()) if counts[0] else float("nan"),
        "false_alarm": float(alarm[~failed].mean()) if counts[1] else float("nan"),
        "recall_at_5": float((probability[failed] > limit).mean()) if min(counts) else float("nan"),
        "n_failed": counts[0],
        "n_ran": counts[1],
    }


def training_parts(dump: pd.DataFrame, by: str = "campaign") -> pd.DataFrame:
    """Return P6's errors of each part of the rows.

    `by`: column of the dump: ``campaign``, ``owner``, ``method``, ``is_mixture`` or ``memory_kind``.

    Returns
    -------
    Columns `split`, the part, `quantity`, `n_row`, and `mape` and `median_ape` of each method as ``NAME_mape`` and
    ``NAME_median_ape``, with `interval_scores` of those with intervals
    """
    table: list[dict[str, object]] = []
    lines = dump[dump["quantity"].isin(QUANTITIES)]
    for (split, part, quantity), of in lines.groupby(["split", by, "quantity"], sort=True):
        line: dict[str, object] = {"split": split, by: part, "quantity": quantity, "n_row": len(of)}
        for name in _method_names(dump):
            summary = error_summary(of["measured"], of[f"by_{name}"])
            line |= {f"{name}_{score}": summary[score] for score in ("mape", "median_ape")}
            line |= {f"{name}_{score}": value for score, value in _interval_scores(of, name).items()}
        table.append(line)
    return pd.DataFrame(table)
