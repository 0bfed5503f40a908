"""``roofcast predict`` of one question; files are in `test_newcomer` and `test_remote`."""

import json
from pathlib import Path

import pytest

from roofcast.serving.cli.text.text_tables import WIDTH
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Run
from tests.serving.user_files import write_file

QUESTION = ("--accelerator", ACCELERATOR, "--n-input-token", "120", "--n-output-token", "20", "--concurrency", "4")
HEADER = "model,accelerator,n_input_token,n_output_token,concurrency"

pytestmark = pytest.mark.usefixtures("home")


def test_one_question_is_answered_as_its_row_of_a_file(run: Run, tmp_path: Path) -> None:
    rows, out = (
        write_file(tmp_path, "rows.csv", f"{HEADER}\n{MODEL},{ACCELERATOR},0.12k,20,4\n"),
        tmp_path / "out.csv",
    )
    run.ok("predict", "--rows", rows, "--out", out)
    header, cells = (line.split(",") for line in out.read_text().splitlines())
    status, text, err = run("predict", "--model", MODEL, *QUESTION, "--json")
    answer = json.loads(text)
    assert (status, err, answer["status"]) == (0, "", "ok")
    for name in ("ttft_s", "ttft_s_lo", "tpot_s", "tpot_s_hi"):
        assert answer[name] == pytest.approx(float(cells[header.index(name)]))


def test_one_question_has_a_table_with_its_level(run: Run) -> None:
    text = run.ok("predict", "--model", MODEL, *QUESTION, "--level", "0.5")
    assert "interval of 50%" in text
    assert [line.split()[0] for line in text.splitlines()[2:4]] == ["TTFT", "TPOT"]
    assert "assumed, as not given: " in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_own_runs_are_shown_beside_the_prediction_without_them(run: Run, tmp_path: Path) -> None:
    header = "model,accelerator,n_input_token,n_output_token,concurrency,tpot_s"
    references = write_file(tmp_path, "own.csv", f"{header}\n{MODEL},{ACCELERATOR},120,20,1,0.02\n")
    text = run.ok("predict", "--model", MODEL, *QUESTION, "--reference", references)
    assert "without own runs" in text.splitlines()[1]
    assert "uncalibrated" not in text
    (line,) = (line for line in text.splitlines() if line.startswith("TPOT"))
    assert line.count(" ms (") == 2


def test_the_models_of_a_file_may_be_files(run: Run, tmp_path: Path) -> None:
    config = write_file(tmp_path, "config.json", json.dumps(CONFIG))
    lines = [HEADER, *(f"{model},{ACCELERATOR},120,20,4" for model in (config, MODEL, config))]
    rows, out = write_file(tmp_path, "rows.csv", "\n".join(lines)), tmp_path / "out.csv"
    assert run.json("predict", "--rows", rows, "--out", out) == {"ok": 3}
    header, first, other, last = (line.split(",") for line in out.read_text().splitlines())
    tpot = header.index("tpot_s")
    assert (first[0], first[tpot]) == (str(config), last[tpot])
    assert first[tpot] != other[tpot]


def test_a_path_without_a_file_names_its_line(run: Run, tmp_path: Path) -> None:
    rows = write_file(
        tmp_path, "rows.csv", f"{HEADER}\n{MODEL},{ACCELERATOR},120,20,4\n./no.json,{ACCELERATOR},1,1,1\n"
    )
    assert "rows.csv, line 3: model: no such file or folder: './no.json'" in run.error(
        "predict", "--rows", rows, "--out", tmp_path / "out.csv"
    )
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "rows: must be given, or the options of one question"),
        (("--out", "x.csv", *QUESTION), "out: requires --rows"),
        (("--rows", "x.csv"), "out: must be given with --rows"),
        (("--rows", "x.csv", "--out", "y.csv", "--tp", "2"), "tp: cannot be combined with --rows"),
        (("--model", MODEL, "--accelerator", ACCELERATOR), "--n-input-token: must be given"),
    ],
)
def test_a_question_and_a_file_exclude_each_other(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    assert problem in run.error("predict", *arguments)


def test_a_question_that_does_not_fit_names_the_option_that_helps(run: Run) -> None:
    part = ("--accelerator", "nvidia-l40s-48gb", "--engine", "llama.cpp", "--weight-precision", "bf16")
    error = run.error("predict", "--model", "Qwen/Qwen3-32B", *part, "--isl", "120", "--osl", "20")
    assert error.rstrip().endswith("a lower --n-gpu-layer")
