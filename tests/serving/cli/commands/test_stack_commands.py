import csv
import re
from pathlib import Path
from typing import Any

import pytest

from roofcast.serving.cli.commands.stack_commands import stack_verdict
from tests.serving.http_client import ACCELERATOR, MODEL, Run
from tests.serving.user_files import write_file

HEADER = "model,accelerator,n_accelerator,engine,n_input_token,n_output_token,concurrency,load,statistic,tpot_s\n"
RUNS = "".join(f"{MODEL},{ACCELERATOR},1,vllm,120,20,{c},closed_loop,mean,0.06\n" for c in (8, 16, 32))
QUESTION = (
    "--model", MODEL, "--accelerator", ACCELERATOR, "--engine", "vllm", "--n-input-token", "120",
    "--n-output-token", "20", "--concurrency", "16",
)  # fmt: skip


@pytest.mark.slow
def test_a_stack_calibrates_predictions_explanations_and_sweeps(run: Run, home: Path, tmp_path: Path) -> None:
    own = write_file(tmp_path, "own.csv", HEADER + RUNS)
    assert run.json("stacks", "add", "rack-7", own) == [{"name": "rack-7", "n_new": 3, "n_known": 0, "n_row": 3}]
    assert run.json("stacks", "list")[0]["name"] == "rack-7"
    report = run.json("stacks", "show", "rack-7", "--n", "1")
    assert report["n_run"] == 3
    (tpot,) = (one for one in report["errors"] if one["metric"] == "tpot_s")
    assert tpot["after"]["median_ape"] < tpot["before"]["median_ape"]
    assert "with its other runs" in run("stacks", "show", "rack-7", "--n", "0")[1]
    rows = write_file(
        tmp_path, "in.csv", "".join(HEADER.rpartition(",")[:1]) + "\n" + RUNS.splitlines()[0][:-5] + "\n"
    )
    run.ok("predict", "--rows", rows, "--out", tmp_path / "out.csv", "--stack", "rack-7")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        (answer,) = csv.DictReader(stream)
    assert float(answer["tpot_s"]) > 1.2 * float(answer["tpot_s_uncalibrated"])
    assert (
        run.json("explain", *QUESTION, "--stack", "rack-7")["prediction"]["tpot_s"]["contributions"]["references"]
        > 0.1
    )
    as_measured, other = run.json("whatif", *QUESTION, "--sweep", "bandwidth=1,2", "--stack", "rack-7")
    assert as_measured["tpot_s_predicted"] > as_measured["tpot_s_uncalibrated"]
    assert other["tpot_s_predicted"] == other["tpot_s_uncalibrated"], "it is another accelerator"
    text = " ".join(run("whatif", *QUESTION, "--sweep", "bandwidth=1,2", "--stack", "rack-7")[1].split())
    assert re.search(r"TPOT estimated [\d.]+ ms.* TPOT predicted [\d.]+ ms, TPOT without the stack [\d.]+ ms", text)
    assert "uncalibrated" not in text
    assert run.json("stacks", "remove", "rack-7") == [{"name": "rack-7", "n_row": 3}]


def test_an_unknown_stack_is_an_error(run: Run, home: Path) -> None:
    assert "stack: no 'rack-8' is known" in run.error("explain", *QUESTION, "--stack", "rack-8")
    assert "`roofcast stacks list`" in run.error("explain", *QUESTION, "--stack", "like-no-other")


def test_a_file_without_metrics_is_an_error(run: Run, home: Path, tmp_path: Path) -> None:
    own = write_file(tmp_path, "own.csv", HEADER.replace("tpot_s", "power_w") + RUNS.replace("0.06", "300"))
    assert "FILE: no row has a TTFT" in run.error("stacks", "add", "rack-7", own)


def errors_of(metric: str, before: float, after: float | None) -> dict[str, Any]:
    return {"metric": metric, "before": {"median_ape": before}, "after": after and {"median_ape": after}}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ([("ttft_s", 0.23, 0.07), ("tpot_s", 0.2, 0.1)], "the profile helps:"),
        ([("ttft_s", 0.23, 0.07), ("tpot_s", 0.1, 0.2)], "the profile helps in part:"),
        ([("output_throughput_token_per_s", 0.1, 0.2)], "20% instead of 10% in output throughput"),
        ([("tpot_s", 0.1, 0.2)], "the profile does not help:"),
        ([("tpot_s", 0.1, None)], "one run cannot say"),
    ],
)
def test_the_verdict_compares_errors_with_and_without_the_profile(changes: list[Any], verdict: str) -> None:
    assert verdict in stack_verdict({"errors": [errors_of(*change) for change in changes]})
