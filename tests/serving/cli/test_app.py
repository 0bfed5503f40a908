import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.data.store.measurement_store import MeasurementStore
from roofcast.serving.predict.row_answers import ANSWER_COLUMNS
from roofcast.training.lifecycle.learned_targets import LEARNED_TARGETS
from tests.data.row_builders import SAMPLES
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Client, Run, a_demand
from tests.training.builders import QUIET, learning_from

HEADER = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic,ttft_s"
LINE = f"{MODEL},{ACCELERATOR},1,120,20,16,p50,0.061"


def recommend(*more: str | Path, model: str | Path = MODEL) -> tuple[str | Path, ...]:
    """Return the arguments of a recommendation."""
    limits = ("--slo", "nttft:p50<=100ms", "--slo", "itl:p50<=50ms")
    return ("recommend", "--model", model, "--isl", "120", "--osl", "20", *limits, *more)


def predict_csv(run: Run, tmp_path: Path, text: str | bytes) -> tuple[int, str, pd.DataFrame | None]:
    """Return the status, standard error and the answers of ``predict`` for a CSV."""
    (tmp_path / "in.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    status, _, err = run("predict", "--rows", tmp_path / "in.csv", "--out", tmp_path / "out.csv")
    out = tmp_path / "out.csv"
    return status, err, pd.read_csv(out, dtype=str, keep_default_na=False) if out.exists() else None


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", ["formats", "models", "accelerators", "offers", "campaigns"])
def test_every_listing_is_a_table_or_json(run: Run, command: str) -> None:
    rows = run.json(command)
    assert rows
    assert all(isinstance(row, dict) for row in rows)
    assert str(next(iter(rows[0].values())))[:8] in run.ok(command)


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_the_command_and_the_service_recommend_the_same(run: Run, shared: Client, tmp_path: Path) -> None:
    (tmp_path / "my-14b").mkdir()
    (tmp_path / "my-14b" / "config.json").write_text(json.dumps(CONFIG))
    expected = shared.post("/v1/recommendations", a_demand(n_rejection=500)).json()
    for path in (tmp_path / "my-14b", tmp_path / "my-14b" / "config.json"):
        assert json.loads(run.ok(*recommend("--users", "200", "--json", model=path))) == expected


@pytest.mark.usefixtures("home")
def test_a_recommendation_fits_in_80_columns(run: Run) -> None:
    demand = ("--rate", "3", "--provider", "aws", "--pricing", "spot", "--pricing", "on_demand")
    for more, reasons in (((), False), (("--why",), True)):
        out = run.ok(*recommend(*demand, *more))
        assert "least cost first" in out
        assert ("per million input tokens" in out) == reasons
        assert max(map(len, out.splitlines())) <= 80


@pytest.mark.usefixtures("home")
def test_names_of_files_are_names_of_options(run: Run) -> None:
    short = ("--isl", "120", "--osl", "20", "--rate", "3", "--slo", "itl:p50<=50ms", "--nodes", "1", "--top", "1")
    names = {
        "isl": "n_input_token", "osl": "n_output_token", "rate": "request_rate_per_s", "slo": "limit",
        "nodes": "max_nodes", "top": "n_entry",
    }  # fmt: skip
    long = [f"--{names[part[2:]]}" if part.startswith("--") else part for part in short]
    first, second = (run("recommend", "--model", MODEL, *demand, "--json") for demand in (short, long))
    assert first[0] == 0, first
    assert first == second


@pytest.mark.usefixtures("home")
def test_owned_nodes_are_one_inventory_option_each(run: Run) -> None:
    inventory = ("--inventory", "h100-sxm-80gb=16,8,1.5", "--inventory", "a100-sxm-80gb=4,1,0", "--top", "50")
    answer = run.json(*recommend("--users", "20", "--provider", "lambda", *inventory))
    entries = [entry for entry in answer["entries"] if entry["provider"] == "owned"]
    assert {entry["instance_type"]: entry["price_usd_per_h"] for entry in entries} == {
        "8x nvidia-h100-sxm-80gb": 12.0, "1x nvidia-a100-sxm-80gb": 0.0,
    }  # fmt: skip
    answer = run.json(*recommend("--users", "20", "--provider", "owned", *inventory))
    assert {entry["provider"] for entry in answer["entries"]} == {"owned"}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (("--deadline", "1"), 2, "deadline-h needs"),
        (("--users", "nan"), 2, "--users"),
        (("--users", "1", "--isl", "200000"), 2, "exceeds the model's context"),
        (("--users", "1", "--slo", "fast"), 2, "must look like"),
        (("--users", "1", "--level", "0.95"), 1, "ask for at most 0.900"),
        (("--users", "1", "--inventory", "h100-sxm-80gb=16"), 2, "inventory: must be ACCELERATOR=COUNT,PER_NODE,USD"),
        (("--users", "1", "--inventory", "h100-sxm-80gb=15,8,1"), 2, "must be a multiple of n_per_node"),
        (("--users", "1", "--inventory", "h10=16,8,1"), 2, "--inventory number 1, accelerator: no 'h10' is known"),
    ],
)
def test_an_invalid_demand_is_one_line_on_standard_error_and_a_status(
    run: Run, more: tuple[str, ...], status: int, message: str
) -> None:
    assert message in run.error(*recommend(*more), status=status)


@pytest.mark.usefixtures("home")
def test_the_rows_of_a_bulk_prediction_are_returned_unchanged(run: Run, tmp_path: Path) -> None:
    text = (
        "concurrency,model,accelerator,n_input_token,n_output_token,statistic,engine\n"
        f"16,{MODEL},{ACCELERATOR},120,20,p95,vllm\n"
        f",{MODEL}, {ACCELERATOR} ,120.0,20,,\n"
        f'16,"no,such",{ACCELERATOR},120,20,p95,vllm\n'
        f"-1,{MODEL},{ACCELERATOR},120,20,p95,vllm\n"
    )
    status, _, answers = predict_csv(run, tmp_path, text)
    assert status == 0
    assert answers is not None
    lines = list(csv.reader(text.splitlines()))
    assert answers.columns.tolist() == [*lines[0], *ANSWER_COLUMNS]
    assert answers[lines[0]].to_numpy().tolist() == lines[1:]
    assert answers["status"].tolist() == ["ok", "ok", "unknown_name", "invalid"]
    assert (answers["ttft_s"] == "").tolist() == [False, False, True, True]
    assert answers["outside"].isin(["True", "False"]).all()
    assert run.json("predict", "--rows", tmp_path / "in.csv", "--out", tmp_path / "out.csv") == {
        "ok": 2,
        "unknown_name": 1,
        "invalid": 1,
    }


@pytest.mark.usefixtures("home")
def test_a_measurement_table_is_a_table_of_questions(run: Run, tmp_path: Path) -> None:
    text = (
        "model,accelerator,n_input_token,n_output_token,concurrency,load,n_request,ttft_s,status,campaign,note\n"
        f"{MODEL},{ACCELERATOR},120,20,16,closed_loop,160,0.06,ok,mine,a note\n"
        f"{MODEL},{ACCELERATOR},120,20,,offline,160,,ok,mine,\n"
    )
    status, _, answers = predict_csv(run, tmp_path, text)
    assert status == 0
    assert answers is not None
    header = text.partition("\n")[0].replace("ttft_s", "measured_ttft_s").replace("status", "measured_status")
    assert answers.columns.tolist() == [*header.split(","), *ANSWER_COLUMNS, "ttft_s_error"]
    assert answers["measured_ttft_s"].tolist() == ["0.06", ""]
    error = float(answers["ttft_s"].iloc[0]) / 0.06 - 1
    assert float(answers["ttft_s_error"].iloc[0]) == pytest.approx(error)
    assert answers["ttft_s_error"].iloc[1] == ""
    assert answers["status"].tolist() == ["ok", "ok"]
    reference = ("--reference", tmp_path / "in.csv")
    (tmp_path / "in.csv").write_text("\n".join(text.splitlines()[:2]))
    run.ok("predict", "--rows", tmp_path / "in.csv", "--out", tmp_path / "out.csv", *reference)
    assert "ttft_s_uncalibrated" in pd.read_csv(tmp_path / "out.csv")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "in.csv, line 1: is empty"),
        ("model,accelerator,n_input_token,n_output_token\n", "there are none; give at least one"),
        (
            "model,accelerator,n_input_token,n_output_token\nx,y,1,1\n",
            "none has an answer; the first: model: no 'x'",
        ),
        ("model,gpu,TP\nx,y,1\n", "gpu: is not an input column; did you mean accelerator? error: TP: is not"),
        (f"model,accelerator\n{MODEL},{ACCELERATOR}\n{MODEL}\n", "in.csv, line 3: must have 2 cells"),
        (b"model,accelerator\n\xff,y\n", "in.csv: cannot be read: it is not UTF-8 text"),
    ],
)
def test_a_csv_without_answers_is_an_error(run: Run, tmp_path: Path, text: str | bytes, message: str) -> None:
    status, err, _ = predict_csv(run, tmp_path, text)
    assert status == 2
    assert message in " ".join(err.split())


@pytest.mark.usefixtures("home")
def test_unreadable_and_unwritable_files_are_errors(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"model,accelerator,n_input_token,n_output_token\n{MODEL},{ACCELERATOR},9,9\n")
    for rows, out in ((tmp_path / "none.csv", "out.csv"), (tmp_path / "in.csv", tmp_path / "no" / "out.csv")):
        assert "cannot be" in run.error("predict", "--rows", rows, "--out", out)


def test_without_a_champion_the_status_is_1(run: Run, empty_home: Path, tmp_path: Path) -> None:
    shutil.copytree(empty_home, tmp_path / "home")
    assert "run `roofcast retrain`" in run.error(*recommend("--users", "1"), status=1)


def test_rows_are_imported_once(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text(f"{HEADER}\n{LINE}\n{LINE.replace(',16,', ',32,')}\n")
    for n_new in (2, 0):
        (report,) = run.json("import", "auto", file, "--campaign", "mine")
        assert (report["format"], report["campaign"], report["is_kept"]) == ("roofcast_csv", ["mine"], True)
        assert (report["n_row"], report["n_new"], report["n_known"]) == (2, n_new, 2 - n_new)
    _, out, _ = run("campaigns", "--json")
    assert {"name": "mine", "n_row": 2, "licence": "", "source": "imported here"} in json.loads(out)


@pytest.mark.parametrize(
    ("format_", "text", "message"),
    [
        ("auto", f"{HEADER}\n{LINE}\n{LINE[:40]}", "own.csv, line 3: must have 8 cells"),
        (
            "roofcast_csv",
            f"{HEADER}\n{LINE}\n{LINE.replace(MODEL, 'unknown/model')}\n",
            "no 'unknown/model' is known",
        ),
        ("llm_pilots", f"{HEADER}\n{LINE}\n", "format: no 'llm_pilots' is known; did you mean 'llm_pilot'"),
    ],
)
def test_an_invalid_file_stores_no_row(run: Run, tmp_path: Path, format_: str, text: str, message: str) -> None:
    valid = tmp_path / "valid.csv"
    valid.write_text(f"{HEADER}\n{LINE}\n")
    file = tmp_path / "own.csv"
    file.write_text(text)
    paths = (file,) if format_ == "auto" else (valid, file)
    assert message in run.error("import", format_, *paths)
    with MeasurementStore().migrate() as store:
        assert store.count() == 0


def test_an_import_registers_models(run: Run, tmp_path: Path) -> None:
    file, config = tmp_path / "own.csv", tmp_path / "my.json"
    file.write_text(f"{HEADER}\n{LINE.replace(MODEL, 'mine')}\n")
    config.write_text(json.dumps(CONFIG))
    run.ok("import", "auto", file, "--model-config", f"mine={config}")
    assert "mine" in {row["id"] for row in run.json("models")}
    for invalid, message in ((f"{MODEL}={config}", "is taken"), ("mine", "NAME=PATH"), ("mine=/none", "cannot read")):
        assert message in run.error("import", "auto", file, "--model-config", invalid)


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_retrain_promote_and_rollback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LEARNED_TARGETS, "inference", learning_from(QUIET, ["llm_pilot"]))
    monkeypatch.setenv("ROOFCAST_TRAINING", '{"n_member": 1, "n_estimators": 2, "calibrate": false}')
    report: dict[str, Any] = run.json("retrain")
    assert report["version"] == "2"
    assert run("promote", "2")[1].startswith("version 2 is in service")
    assert run.json("rollback")["version"] == "1"
    assert run.json("promote", "2")["version"] == "2"
    assert run("rollback")[1].startswith("version 1 is in service")
    assert "version: no '9' is known" in run.error("promote", "9")


def test_set_fills_in_columns_that_a_benchmark_file_lacks(run: Run) -> None:
    file = SAMPLES / "vllm_bench" / "default.json"
    overrides = ["--set", "accelerator=h100-sxm-80gb", "--set", "n_accelerator=1"]
    assert "--set accelerator=" in run.error("import", "auto", file)
    assert run.json("import", "auto", file, *overrides, "--campaign", "nightly")[0]["n_new"] > 0
    for invalid, problem in (
        ("accelerator", "COLUMN=VALUE"),
        ("acelerator=x", "did you mean"),
        ("ttft_s=1", "ttft_s"),
    ):
        assert problem in run.error("import", "auto", file, "--set", invalid)
    assert "twice" in run.error("import", "auto", file, *overrides, "--set", "n_accelerator=2")
