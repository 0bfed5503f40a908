from __future__ import annotations

import json
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from judge.page import FOLDER, write_page
from judge.protocols.jobs import p6_methods
from judge.protocols.jobs.p6_baselines import (
    METHODS,
    RunPrediction,
    constant_mfu,
)
from judge.protocols.jobs.p6_jobs import (
    REFERENCED,
    SPLITS,
    of_first_job_campaigns,
    predict_referenced,
    predict_training,
    training_figures,
    training_parts,
)
from judge.scoreboard import run_scoreboard
from roofcast.data.job_campaigns import load_job_campaigns
from roofcast.data.measurements.job_validation import validate_training_measurements
from roofcast.training.jobs.job_predictor import JobPrediction
from roofcast.training.jobs.job_table import JobTable, build_job_table

CHEAP = {name: METHODS[name] for name in ("constant_mfu", "nearest_measured", "states_alone")}


@pytest.fixture(scope="module")
def rows() -> JobTable:
    table = load_job_campaigns(["torchtitan", "fms_fsdp", "dgxc_benchmarking", "fsdp_qlora", "kempner_forge"])
    return build_job_table(table.iloc[::3])


@pytest.fixture(scope="module")
def dump(rows: JobTable) -> pd.DataFrame:
    return predict_training(rows, CHEAP, n_fold=2)


def a_run(**changes: object) -> dict[str, object]:
    return {
        "model": "meta-llama/Llama-2-7b-hf", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8,
        "n_global_batch_sequence": 128, "n_token_per_sequence": 4096, "throughput_token_per_s": 80_000.0,
        "n_micro_batch_sequence": 1, "memory_byte_per_accelerator": 5e10, "campaign": "ours", "stack": "lab/a",
    } | changes  # fmt: skip


def run_rows(*changes: dict[str, object]) -> JobTable:
    return build_job_table(validate_training_measurements(pd.DataFrame([a_run(**c) for c in changes])))


def test_rates_are_judged_where_the_work_is_known() -> None:
    rows = run_rows(
        {}, {"packing": "padded"}, {"n_token_per_sequence": None}, {"model": "google-bert/bert-large-uncased"}
    )
    assert rows.measured_rate[0] == 10_000.0
    assert np.isnan(rows.measured_rate[1:]).all()


def test_a_run_that_did_not_fit_is_judged_with_a_micro_batch() -> None:
    failed: dict[str, object] = {
        "status": "out_of_memory",
        "throughput_token_per_s": None,
        "memory_byte_per_accelerator": None,
    }
    rows = run_rows({}, failed, failed | {"n_micro_batch_sequence": None}, failed | {"status": "failed"})
    assert rows.is_out_of_memory[:2].tolist() == [0.0, 1.0]
    assert np.isnan(rows.is_out_of_memory[2:]).all()
    assert np.isnan(rows.measured_memory[1:]).all()


def test_no_row_of_the_held_out_group_is_learnt_from(rows: JobTable) -> None:
    seen: list[tuple[set[str], set[str]]] = []

    def spy(train: JobTable, queries: JobTable) -> RunPrediction:
        seen.append((set(train.owners), set(queries.owners)))
        return constant_mfu(train, queries)

    lines = predict_training(rows, {"spy": spy}, n_fold=3)
    by_stack = seen[-lines.loc[lines["split"] == "leave_one_stack_out", "fold"].nunique() :]
    assert all(not train & judged for train, judged in by_stack)
    assert set.union(*(judged for _, judged in by_stack)) == set(rows.owners)


def test_every_split_judges_every_row_once(rows: JobTable, dump: pd.DataFrame) -> None:
    n_judged = np.isfinite(rows.measured_rate).sum()
    for split in SPLITS:
        lines = dump[(dump["split"] == split) & (dump["quantity"] == "throughput")]
        assert len(lines) == lines["row"].nunique() == n_judged
        assert lines["by_constant_mfu"].gt(0).all()


def test_figures_are_those_of_the_dump(dump: pd.DataFrame) -> None:
    figures = training_figures(dump)
    lines = dump[(dump["split"] == SPLITS[0]) & (dump["quantity"] == "throughput")]
    errors = (lines["by_nearest_measured"] - lines["measured"]).abs() / lines["measured"]
    scores = figures[SPLITS[0]]["nearest_measured"]["throughput"]
    assert (scores["mape"], scores["median_ape"]) == pytest.approx((errors.mean(), errors.median()))
    assert math.isnan(figures[SPLITS[0]]["constant_mfu"]["memory"]["mape"])
    assert set(figures[SPLITS[0]]["states_alone"]["out_of_memory"]) == {
        "recall",
        "false_alarm",
        "recall_at_5",
        "n_failed",
        "n_ran",
    }


def test_parts_count_their_rows(dump: pd.DataFrame) -> None:
    parts = training_parts(dump)
    throughput = parts[(parts["quantity"] == "throughput") & (parts["split"] == SPLITS[0])]
    assert throughput["n_row"].sum() == len(dump[(dump["split"] == SPLITS[0]) & (dump["quantity"] == "throughput")])
    assert set(training_parts(dump, "is_mixture")["is_mixture"]) <= {True, False}


def test_headline_lines_are_of_the_first_campaigns(dump: pd.DataFrame) -> None:
    assert set(of_first_job_campaigns(dump)["campaign"]) == {"torchtitan", "fms_fsdp", "dgxc_benchmarking"}


@pytest.mark.parametrize("name", ["analytic_priors", "raw_trees"])
def test_baselines_answer_every_row(name: str, rows: JobTable) -> None:
    prediction = METHODS[name](rows, rows)
    assert np.isfinite(prediction.rate).all()
    assert np.isfinite(prediction.memory).all()
    assert ((prediction.p_out_of_memory >= 0) & (prediction.p_out_of_memory <= 1)).all()


class CorePredictor:
    """The core with a fixed interval in place of the fitted predictor, whose fits take seconds."""

    highest_coverage = 0.9
    n_reference: ClassVar[list[int]] = []

    def fit_rows(self, _rows: JobTable) -> CorePredictor:
        return self

    def with_reference_rows(self, rows: JobTable) -> CorePredictor:
        self.n_reference.append(len(rows.measurements))
        return self

    def predict_table(self, table: JobTable, *, coverage: float) -> JobPrediction:
        rate, memory = table.estimated_rate, table.memory.reserved
        p_fits = np.full(len(table), coverage)
        return JobPrediction(
            rate, rate / 2, 2 * rate, memory, memory / 2, 2 * memory, p_fits, np.zeros(len(table), dtype=bool)
        )


@pytest.fixture
def core_predictor(monkeypatch: pytest.MonkeyPatch) -> type[CorePredictor]:
    monkeypatch.setattr(p6_methods, "JobPredictor", CorePredictor)
    CorePredictor.n_reference.clear()
    return CorePredictor


def test_intervals_are_judged_by_coverage_and_width(rows: JobTable, core_predictor: type[CorePredictor]) -> None:
    queries = rows.take(np.arange(40))
    dump = predict_training(queries, {"roofcast": p6_methods.RoofcastMethod()}, n_fold=2)
    scores = training_figures(dump)[SPLITS[0]]["roofcast"]["throughput"]
    lines = dump[(dump["split"] == SPLITS[0]) & (dump["quantity"] == "throughput")]
    ratio = lines["measured"] / lines["by_roofcast"]
    assert scores["coverage_90"] == ratio.between(0.5, 2).mean()
    assert scores["width_90"] == pytest.approx(4.0)
    assert not core_predictor.n_reference


def test_references_of_the_cell_are_not_judged(rows: JobTable, core_predictor: type[CorePredictor]) -> None:
    dump = predict_referenced(rows, p6_methods.RoofcastMethod(), [p6_methods.THREE_RUNS], n_fold=2)
    assert set(core_predictor.n_reference) == {3}
    cells = dump.groupby(["group", "accelerator"], sort=False)["row"].nunique()
    table = rows.measurements.assign(group=rows.groups)
    table = table[np.isfinite(rows.measured_rate) | np.isfinite(rows.measured_memory)]
    sizes = table.groupby(["group", "accelerator"]).size()
    assert (cells == sizes[cells.index] - 3).all()
    assert set(cells.index) == set(sizes.index[sizes > 3])


def test_scoreboard_and_page_hold_p6(rows: JobTable, tmp_path: Path, core_predictor: type[CorePredictor]) -> None:
    board = run_scoreboard(["P6"], training=rows.take(np.arange(0, len(rows.measurements), 4)), n_fold=2)
    figures = json.loads(board.to_json())
    assert list(figures) == ["P6", "P6_all", "P6_ordinary", "P6_judges"]
    assert set(figures["P6_judges"]) == {"Korthikanti et al. 2022, table 5", "Narayanan et al. 2021, table 1"}
    assert set(figures["P6"]) <= {*SPLITS, *REFERENCED}
    assert set(figures["P6"][SPLITS[0]]) == {"roofcast", *METHODS}
    assert core_predictor.n_reference
    assert {path.name for path in board.dump(tmp_path)} == {
        *("P6.csv", "P6_parts.csv", "P6_memory.csv", "P6_judges.csv")
    }
    page = write_page(board, tmp_path, "2026-11-27")[0]
    text = page.read_text(encoding="utf-8")
    assert "## P6: training and fine-tuning jobs" in text
    assert (tmp_path / FOLDER / "P6_memory.csv").read_text().startswith("split,memory_kind,quantity,n_row,")


def test_memory_is_of_the_kind_that_the_row_states() -> None:
    rows = run_rows({"memory_kind": "allocated"}, {"memory_kind": ""}, {"memory_kind": "device"})
    allocated, reserved, device = rows.estimated_memory
    assert allocated < reserved < device
