"""Roofcast's predictor of training jobs as a method of P6, alone and with reference runs."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.protocols.jobs.p6_baselines import RunPrediction
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.stacks import name_stacks
from roofcast.training.jobs.job_predictor import JobPredictor
from roofcast.training.jobs.job_table import JobTable

IndexArray = npt.NDArray[np.intp]

COVERAGE: Final = 0.9
N_LINEAGE_REFERENCE: Final = 3
N_STACK_REFERENCE: Final = 10
THREE_RUNS: Final = "three_runs_of_the_lineage"
TEN_RUNS: Final = "ten_runs_of_the_stack"


class RoofcastMethod:
    """The core and its learned correction; the owner of a stack counts where it was learnt from.

    Each fit is kept, so that references condition it without another one.
    """

    def __init__(self) -> None:
        self._fitted: dict[bytes, JobPredictor] = {}

    def __call__(self, train: JobTable, queries: JobTable) -> RunPrediction:
        """Predict the second rows from the first."""
        return predict_runs(self.fit(train), queries)

    def fit(self, train: JobTable) -> JobPredictor:
        """Return the predictor fitted to rows."""
        rows = pd.util.hash_pandas_object(train.measurements, index=False).to_numpy().tobytes()
        if rows not in self._fitted:
            self._fitted[rows] = JobPredictor().fit_rows(train)
        return self._fitted[rows]


def predict_runs(predictor: JobPredictor, queries: JobTable) -> RunPrediction:
    """Return the prediction of runs with intervals of `COVERAGE`, or less where few groups were measured."""
    coverage = min(COVERAGE, predictor.highest_coverage)
    p = predictor.predict_table(queries, coverage=coverage)
    return RunPrediction(
        p.token_per_s_per_accelerator, p.peak_memory_byte, 1.0 - p.p_fits,
        low={"throughput": p.token_per_s_per_accelerator_low, "memory": p.peak_memory_byte_low},
        high={"throughput": p.token_per_s_per_accelerator_high, "memory": p.peak_memory_byte_high},
    )  # fmt: skip


def reference_cells(rows: JobTable) -> dict[str, tuple[pd.Series, pd.Series, int]]:
    """Return, by split, what is held out, the cell that references are drawn from, and their number."""
    accelerator = rows.groups.astype(str) + " on " + rows.measurements["accelerator"]
    return {
        THREE_RUNS: (rows.groups, accelerator, N_LINEAGE_REFERENCE),
        TEN_RUNS: (rows.owners, name_stacks(rows.measurements), N_STACK_REFERENCE),
    }


def predict_with_references(
    rows: JobTable, split: str, method: RoofcastMethod, n_fold: int
) -> Iterator[tuple[int, IndexArray, RunPrediction]]:
    """Yield fold, rows and their prediction with reference runs of their own cell, drawn once; these are not judged.

    Cells with no more rows than references are left out.
    """
    groups, cells, n = reference_cells(rows)[split]
    generator = np.random.default_rng(0)
    for fold, (train, test) in enumerate(leave_one_group_out(groups, n_fold), start=1):
        predictor = method.fit(rows.take(train))
        for _, places in pd.Series(test).groupby(cells.iloc[test].to_numpy()):
            known = places.to_numpy()[_is_measured(rows.take(places.to_numpy()))]
            if len(known) <= n:
                continue
            order = generator.permutation(known)
            references, judged = order[:n], np.sort(order[n:])
            conditioned = predictor.with_reference_rows(rows.take(references))
            yield fold, judged, predict_runs(conditioned, rows.take(judged))


def _is_measured(rows: JobTable) -> npt.NDArray[np.bool_]:
    return np.isfinite(rows.measured_rate) | np.isfinite(rows.measured_memory)
