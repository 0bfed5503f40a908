"""Errors of the training estimate: ``python -m research.job_core``, with priors and with fitted coefficients.

Prints mean and median absolute percentage errors of tokens/s per accelerator by group, with the priors and with
coefficients of a robust fit that holds out lineages, accelerators or stacks.
"""

import argparse
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from research.megatron_tables import korthikanti_rows, narayanan_rows, time_errors
from roofcast.data.catalog import Catalog
from roofcast.data.job_campaigns import job_catalog, load_job_campaigns
from roofcast.features.jobs.plan_enumeration import PlanChoice, choose_plans
from roofcast.features.jobs.run_columns import JobRuns
from roofcast.features.jobs.run_table import build_jobs
from roofcast.features.jobs.step.job_coefficients import (
    DEFAULT_TRAINING_COEFFICIENTS,
    MEMORY_NAMES,
    TRAINING_NAMES,
    StepCoefficients,
    from_standard,
)
from roofcast.features.jobs.step.job_memory import estimate_memory
from roofcast.features.jobs.step.step import estimate_training, throughput_token_per_s
from roofcast.features.queries import FloatArray, take_rows
from roofcast.training.learner.robust_least_squares import levenberg_marquardt

ERROR_SCALE: Final = 0.10
MAX_STACK_WEIGHT: Final = 60.0
"""Rows that one stack counts as at most, with a square root beyond."""

N_FOLD: Final = 5
STEP: Final = 0.05
ENCODERS: Final = ("bert", "roberta", "mpnet", "t5", "transfo-xl")


@dataclass(frozen=True)
class Judged:
    """Rows with a rate, their chosen plans, and the groups that are held out."""

    rows: pd.DataFrame
    choice: PlanChoice
    target: FloatArray


def select_rows(rows: pd.DataFrame, catalog: Catalog) -> pd.DataFrame:
    """Return rows of decoders with a rate, a batch and a length, that count no padding."""
    types = rows["model"].map({name: spec.model_type for name, spec in catalog.models.items()})
    n_encoder = rows["model"].map({name: spec.n_encoder_layer for name, spec in catalog.models.items()})
    is_decoder = ~types.isin(ENCODERS) & (n_encoder == 0) & ~rows["model"].str.contains("bert|transformer-xl")
    has = rows["throughput_token_per_s"].notna() & (rows["status"] == "ok") & is_decoder
    has &= rows["n_token_per_sequence"].notna()
    has &= rows["packing"] != "padded"
    has &= ~(rows["note"].astype(str).str.contains("before PP fix") & (rows["pp"] > 1))
    return rows[has].reset_index(drop=True)


def judge(rows: pd.DataFrame, catalog: Catalog, c: StepCoefficients) -> Judged:
    """Return the rows with their fastest plans that fit."""
    jobs = build_jobs(rows, catalog.models, catalog.accelerators)
    target = rows["throughput_token_per_s"].to_numpy(float)
    return Judged(rows, choose_plans(jobs, c), target)


def log_errors(runs: JobRuns, target: FloatArray, c: StepCoefficients) -> FloatArray:
    """Return log(measured / estimated) tokens per second."""
    return np.asarray(np.log(target / throughput_token_per_s(runs, estimate_training(runs, c))))


def row_weights(stacks: pd.Series) -> FloatArray:
    """Return weights by which a stack counts as `MAX_STACK_WEIGHT` rows at most."""
    n = stacks.map(stacks.value_counts()).to_numpy(float)
    return np.minimum(1.0, MAX_STACK_WEIGHT / n)


def fit(
    residuals: Callable[[StepCoefficients], FloatArray], weight: FloatArray, names: Sequence[str]
) -> StepCoefficients:
    """Return the coefficients `names` of a robust fit under their priors; the others keep their medians."""
    index = [TRAINING_NAMES.index(name) for name in names]

    def coefficients(x: FloatArray) -> StepCoefficients:
        standard = np.zeros(len(TRAINING_NAMES))
        standard[index] = x
        return from_standard(standard)

    def jacobian(x: FloatArray, at: FloatArray) -> FloatArray:
        moved = [residuals(coefficients(x + STEP * unit)) for unit in np.eye(len(index))]
        return np.stack([(values - at) / STEP for values in moved], axis=1)

    return coefficients(levenberg_marquardt(lambda x: residuals(coefficients(x)), jacobian, len(index), weight))


def fit_time(runs: JobRuns, target: FloatArray, weight: FloatArray) -> StepCoefficients:
    """Return the coefficients of time fitted to tokens per second."""
    names = [name for name in TRAINING_NAMES if name not in MEMORY_NAMES]
    return fit(lambda c: log_errors(runs, target, c) / ERROR_SCALE, weight, names)


def hold_out(judged: Judged, groups: pd.Series, weight: FloatArray) -> FloatArray:
    """Return log errors of each row with coefficients fitted to other groups, in `N_FOLD` folds."""
    fold = groups.map(lambda name: zlib.crc32(str(name).encode()) % N_FOLD).to_numpy()
    errors = np.full(len(fold), np.nan)
    for k in range(N_FOLD):
        inside, outside = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        if len(inside) == 0:
            continue
        c = fit_time(take_rows(judged.choice.runs, outside), judged.target[outside], weight[outside])
        errors[inside] = log_errors(take_rows(judged.choice.runs, inside), judged.target[inside], c)
    return errors


def ape(errors: FloatArray) -> FloatArray:
    """Return absolute percentage errors of the estimate from log(measured / estimated)."""
    return np.asarray(np.abs(np.exp(-errors) - 1.0))


def summarize(errors: FloatArray, groups: npt.ArrayLike) -> pd.DataFrame:
    """Return number, bias and errors by group."""
    frame = pd.DataFrame({"group": groups, "error": errors, "ape": ape(errors)})
    table = frame.groupby("group").agg(
        n=("ape", "size"), bias=("error", "median"), mean=("ape", "mean"), median=("ape", "median")
    )
    return table.round(3)


def memory_of_kind(runs: JobRuns, kind: pd.Series, c: StepCoefficients) -> FloatArray:
    """Return the estimated peak memory of the kind that each row states; reserved if it states none."""
    memory = estimate_memory(runs, c)
    choices = [memory.allocated, memory.device]
    return np.asarray(np.select([kind == "allocated", kind == "device"], choices, memory.reserved))


def print_memory_errors(rows: pd.DataFrame, catalog: Catalog) -> None:
    """Print errors of peak memory with priors, and with coefficients fitted to other stacks."""
    has = rows["memory_byte_per_accelerator"].notna() & (rows["status"] == "ok")
    has &= rows["n_token_per_sequence"].notna() & ~rows["model"].str.contains("bert")
    rows = rows[has].reset_index(drop=True)
    runs = choose_plans(build_jobs(rows, catalog.models, catalog.accelerators)).runs
    target, kind = rows["memory_byte_per_accelerator"].to_numpy(float), rows["memory_kind"]
    weight = row_weights(rows["campaign"])
    held_out = np.full(len(rows), np.nan)
    for campaign in rows["campaign"].unique():
        inside, outside = (
            np.flatnonzero(flags) for flags in (rows["campaign"] == campaign, rows["campaign"] != campaign)
        )
        others, other_kind = take_rows(runs, outside), kind.iloc[outside]

        def residuals(
            c: StepCoefficients, others: JobRuns = others, other_kind: pd.Series = other_kind,
            measured: FloatArray = target[outside],
        ) -> FloatArray:  # fmt: skip
            return np.asarray(np.log(measured / memory_of_kind(others, other_kind, c)) / ERROR_SCALE)

        c = fit(residuals, weight[outside], MEMORY_NAMES)
        held_out[inside] = np.log(target[inside] / memory_of_kind(take_rows(runs, inside), kind.iloc[inside], c))
    prior = np.log(target / memory_of_kind(runs, kind, DEFAULT_TRAINING_COEFFICIENTS))
    for name, errors in (("memory, prior", prior), ("memory, campaign out", held_out)):
        print(f"{name}: mean {ape(errors).mean():.3f} median {np.median(ape(errors)):.3f}")
        print(summarize(errors, rows["campaign"]).to_string())


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hold-out", nargs="*", default=[], help="lineage, accelerator, stack")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of tokens/s")
    options = parser.parse_args()
    rows, catalog = load_job_campaigns(), job_catalog()
    if options.memory:
        print_memory_errors(rows, catalog)
        return
    judged = judge(select_rows(rows, catalog), catalog, DEFAULT_TRAINING_COEFFICIENTS)
    stack = judged.rows["stack"].where(judged.rows["stack"] != "", judged.rows["campaign"])
    weight = row_weights(stack)
    prior = log_errors(judged.choice.runs, judged.target, DEFAULT_TRAINING_COEFFICIENTS)
    fitted = fit_time(judged.choice.runs, judged.target, weight)
    judged = judge(judged.rows, catalog, fitted)
    fitted = fit_time(judged.choice.runs, judged.target, weight)
    errors = {"prior": prior, "fitted": log_errors(judged.choice.runs, judged.target, fitted)}
    lineage = judged.rows["model"].map({name: spec.fold_group for name, spec in catalog.models.items()})
    groups = {"lineage": lineage, "accelerator": judged.rows["accelerator"], "stack": stack.str.split("/").str[0]}
    for name in options.hold_out:
        errors[f"{name} out"] = hold_out(judged, groups[name], weight)
    for name, values in errors.items():
        print(f"{name}: mean {np.nanmean(ape(values)):.3f} median {np.nanmedian(ape(values)):.3f}")
        medians = summarize(values, judged.rows["campaign"])
        print(medians.to_string(), "\nmedian of medians", medians["median"].median())
    for name in TRAINING_NAMES:
        print(f"{name:28s} {DEFAULT_TRAINING_COEFFICIENTS.value(name):10.4g} -> {fitted.value(name):10.4g}")
    for name, table in (("Korthikanti", korthikanti_rows()), ("Narayanan", narayanan_rows())):
        print(f"{name}: {np.abs(time_errors(*table, fitted)).mean():.3f} with fitted coefficients")


if __name__ == "__main__":
    main()
