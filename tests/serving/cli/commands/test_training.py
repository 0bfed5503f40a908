from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from roofcast.serving.cli.job_options import JOB_OPTIONS
from roofcast.serving.training_jobs import service
from roofcast.serving.training_jobs.rows import JOB_COLUMNS
from tests.serving.http_client import Run
from tests.serving.training_jobs.builders import EstimatePredictor, a_job

WIDTH = 80


@pytest.fixture(autouse=True)
def estimate_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "load_shipped_training_predictor", EstimatePredictor)


def options(values: dict[str, Any]) -> list[str]:
    return [part for name, value in values.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def test_every_column_of_a_job_is_an_option() -> None:
    assert tuple(JOB_OPTIONS) == tuple(JOB_COLUMNS)


def test_one_job_is_printed_in_80_columns(run: Run) -> None:
    status, out, err = run("training", "predict", *options(a_job()))
    assert status == 0, err
    assert "tokens/s" in out
    assert "fits with probability" in out
    assert max(map(len, out.splitlines())) <= WIDTH


def test_one_job_as_json(run: Run) -> None:
    status, out, err = run("training", "predict", *options(a_job()), "--json", "--level", "0.9")
    assert status == 0, err
    assert json.loads(out)["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (options(a_job(n_accelerator=1)), "GB of optimizer"),
        (options(a_job(tp=3)), "tp: "),
        (["--model", "llama-3.1-8b"], "accelerator: must be given"),
        ([*options(a_job()), "--level", "2"], "level: "),
        ([*options(a_job()), "--out", "x.csv"], "requires --rows"),
    ],
)
def test_a_job_without_an_answer_ends_with_its_reason(run: Run, arguments: list[str], message: str) -> None:
    status, _, err = run("training", "predict", *arguments)
    assert status != 0
    assert message in " ".join(err.split())


def test_the_rows_of_a_file_are_answered(run: Run, tmp_path: Path) -> None:
    rows, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows.write_text(run("training", "predict", "--example")[1], encoding="utf-8")
    status, printed, err = run("training", "predict", "--rows", rows, "--out", out)
    assert (status, printed) == (0, "3 ok\n"), err
    with out.open(encoding="utf-8", newline="") as stream:
        answers = list(csv.DictReader(stream))
    assert [answer["status"] for answer in answers] == ["ok"] * 3
    assert all(float(answer["step_time_s"]) > 0 for answer in answers)
