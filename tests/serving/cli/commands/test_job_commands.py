import csv
from pathlib import Path
from typing import Any, get_args

import pytest

from roofcast.serving.cli.job_text import REASON_TEXT, _near_ties
from roofcast.serving.composition import Service
from roofcast.serving.jobs.job_messages import MissReason
from tests.data.importers.job_logs.test_job_logs import MEGATRON, TORCHTITAN
from tests.serving.http_client import Run
from tests.serving.jobs.builders import a_job, an_estimate_model

WIDTH = 80


@pytest.fixture(autouse=True)
def estimate_predictor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Service, "job_model", an_estimate_model())


def options(values: dict[str, Any]) -> list[str]:
    return [part for name, value in values.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def test_one_job_echoes_numbers_as_over_http(run: Run) -> None:
    answer = run.json("training", "predict", *options(a_job(n_accelerator=8)))
    assert (answer["status"], answer["n_accelerator"]) == ("ok", 8)


def test_one_job_is_printed_in_80_columns(run: Run) -> None:
    out = run.ok("training", "predict", *options(a_job()))
    assert "tokens/s" in out
    assert "fits with probability" in out
    assert max(map(len, out.splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (options(a_job(n_accelerator=1, framework="torchtitan", offload="none")), "GB of optimizer"),
        (options(a_job(tp=3)), "tp: "),
        (["--model", "llama-3.1-8b"], "accelerator: must be given"),
        ([*options(a_job()), "--level", "2"], "level: "),
        ([*options(a_job()), "--out", "x.csv"], "requires --rows"),
    ],
)
def test_a_job_without_an_answer_ends_with_its_reason(run: Run, arguments: list[str], message: str) -> None:
    assert message in run.error("training", "predict", *arguments)


def test_the_rows_of_a_file_are_answered(run: Run, tmp_path: Path) -> None:
    rows, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows.write_text(run("training", "predict", "--example")[1], encoding="utf-8")
    assert run.ok("training", "predict", "--rows", rows, "--out", out) == "3 ok\n"
    with out.open(encoding="utf-8", newline="") as stream:
        answers = list(csv.DictReader(stream))
    assert [answer["status"] for answer in answers] == ["ok"] * 3
    assert all(float(answer["step_time_s"]) > 0 for answer in answers)


DEMAND = ("--model", "llama-3.1-8b", "--tokens", "2e7", "--method", "qlora", "--accelerator", "rtx-4090-24gb")


def test_a_recommendation_is_printed_in_80_columns(run: Run) -> None:
    text, _, launch = run.ok(
        "training", "recommend", *DEMAND, "--accelerator", "l4-24gb", "--why", "--launch", "accelerate"
    ).partition("# entry 1")
    assert "1 x nvidia-rtx-4090-24gb" in text
    assert "memory in GB" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "--load_in_4bit" in launch


def test_accelerators_without_an_entry_are_counted_by_reason(run: Run) -> None:
    others = ("--accelerator", "l4-24gb", "--accelerator", "h100-sxm-80gb", "--accelerator", "aws-inferentia2")
    out = run.ok("training", "recommend", *DEMAND, *others, "--n-entry", "1")
    counts = "--why has the details 2 not cheaper than the entries (--n-entry shows more) 1 unfit to train this job"
    assert f"3 other accelerators of these offers without an entry; {counts}" in " ".join(out.split())


def test_defaults_near_ties_and_the_age_of_prices_are_always_shown(run: Run) -> None:
    text = " ".join(run.ok("training", "recommend", *DEMAND, "--accelerator", "l4-24gb", "--epochs", "1").split())
    assert (
        "assumed, as not given: sequences of 2048 tokens, 128 sequences a step, adapters of rank 16, on queries and "
        "values; --why has what else" in text
    )
    assert "USD/h, price of 20" in text
    given = ("--seq-len", "1024", "--batch", "8", "--adapter-rank", "8", "--adapter-targets", "q", "--epochs", "1")
    assert "as not given" not in run("training", "recommend", *DEMAND, *given)[1]


def test_entries_of_costs_within_each_others_intervals_are_near_ties() -> None:
    entries = [{"rank": rank, "ties_first": tie} for rank, tie in ((1, True), (2, True), (3, False), (4, True))]
    (text,) = _near_ties(entries)
    assert text.startswith("\nnear ties with entry 1: 2, 4; each cost")
    assert [*_near_ties(entries[:1])] == []


def test_every_reason_of_a_miss_has_a_text() -> None:
    assert set(REASON_TEXT) == set(get_args(MissReason))


def test_a_recommendation_without_entries_says_why(run: Run) -> None:
    out = run.ok("training", "recommend", *DEMAND, "--method", "full", "--model", "llama-3.1-405b")
    assert "no hardware runs the job" in out
    assert "the leanest plan of 64 needs" in out


@pytest.mark.parametrize("name", ["predict", "recommend"])
def test_the_commands_have_a_flat_name_too(run: Run, name: str) -> None:
    assert run(f"train-{name}", "--help")[1].split("\n", 3)[3] == run("training", name, "--help")[1].split("\n", 3)[3]


def test_references_are_read_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("model,accelerator,n_token_per_sequence\nllama-3.1-8b,l4-24gb,2048\n", encoding="utf-8")
    for command in (("recommend", *DEMAND), ("predict", *options(a_job()))):
        assert "--reference number 1: must state what was measured" in run.error(
            "training", *command, "--reference", file
        )


def test_a_log_is_one_measured_job(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(TORCHTITAN, encoding="utf-8")
    (summary,) = run.json("training", "import", log, "--set", "model=llama-3.1-8b")
    assert (summary["n_row"], summary["n_new"]) == (1, 1)
    (row,) = run.json("measurements", "--target", "training")
    assert (row["model"], row["accelerator"]) == ("meta-llama/Llama-3.1-8B", "nvidia-h100-sxm-80gb")
    assert row["throughput_token_per_s"] == 48_800.0


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        (MEGATRON, ["accelerator=h200"], "run.log, line 23: model: is not in the log; set it, such as --set model="),
        ("loss 3.1\n", [], "is neither CSV nor a log of torchtitan or megatron-lm"),
    ],
)
def test_a_log_that_cannot_be_read_says_what_is_missing(
    run: Run, tmp_path: Path, text: str, given: list[str], message: str
) -> None:
    log = tmp_path / "run.log"
    log.write_text(text, encoding="utf-8")
    assert message in run.error("training", "import", log, *(part for one in given for part in ("--set", one)))


def test_values_fill_the_blank_cells_of_a_table(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    cells = "8,torchtitan,4096,32,56000"
    file.write_text(
        "n_accelerator,framework,n_token_per_sequence,n_global_batch_sequence,throughput_token_per_s\n" + cells,
        encoding="utf-8",
    )
    given = ("--set", "model=llama-3.1-8b", "--set", "accelerator=h100-sxm-80gb")
    run.ok("training", "import", file, *given, "--dry-run")
    assert "jobs.csv, line 2: n_accelerator: is '8' in the file, but is set to '16'" in run.error(
        "training", "import", file, *given, "--set", "n_accelerator=16"
    )
