"""``roofcast predict`` of one question; files are in `test_newcomer` and `test_remote`."""

import json
from pathlib import Path

import pytest

from roofcast.serving.cli.commands.predict import MAX_REASON, prediction_text, question_text, support_text
from roofcast.serving.cli.console import WIDTH
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
    assert (answer["n_input_token"], answer["concurrency"]) == (120, 4), "numbers, as over HTTP"
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


OK = {"status": "ok", "reason": "", "assumed": "kv_precision graphs engine date"}
FAILED = [
    {"status": "invalid", "reason": f"tp: must divide {n}, got 3", "assumed": ""} for n in range(MAX_REASON + 2)
]


def text_of(*, why: bool) -> str:
    answers = [OK, *FAILED]
    return prediction_text(answers, range(2, 2 + len(answers)), Path("out.csv"), why=why)


def test_failed_rows_and_assumed_columns_are_folded_until_they_are_asked_for() -> None:
    folded, unfolded = text_of(why=False), text_of(why=True)

    assert folded.startswith(
        "5 invalid, 1 ok\n5 of 6 rows have no answer; the column `reason` of out.csv says why:\n"
    )
    assert "   line 3: tp: must divide 0, got 3" in folded
    assert "   and 2 more; --why names all" in folded
    assert "kv_precision (1), graphs (1), engine (1) and 1 more columns; --why names all" in " ".join(folded.split())
    assert "line 7: tp: must divide 4, got 3" in unfolded
    assert "date (1)" in unfolded
    assert "--why" not in unfolded
    assert max(map(len, (folded + unfolded).splitlines())) <= WIDTH


def test_a_table_without_failures_and_assumptions_has_one_line() -> None:
    assert prediction_text([OK | {"assumed": ""}], [2], Path("out.csv"), why=False) == "1 ok\n"


def test_an_answered_question_has_the_reason_to_doubt_it() -> None:
    question = {"model": "m", "accelerator": "l40s", "n_accelerator": "4"}
    answer = OK | {"tpot_s": 0.02, "tpot_s_lo": 0.01, "tpot_s_hi": 0.04, "outside": False, "reason": "tp spans nodes"}
    answer["support"] = "near"
    assert question_text(question, answer, 0.9).endswith("\ntp spans nodes\n")
    assert "None" not in question_text(question, answer | {"reason": None}, 0.9)


def test_an_answer_says_what_it_rests_on_and_who_measured_the_same() -> None:
    answer = {"support": "measured", "observed_ttft_s": None, "observed_tpot_s": 0.0141}
    answer |= {"observed_stack": "a lab/rig", "observed_engine_version": "0.5.12", "observed_date": "2026-06-03"}
    assert support_text(answer) == (
        "measured: TPOT 14.1 ms (a lab/rig, engine 0.5.12, 2026-06-03); --stack 'a lab/rig' answers as they run it"
    )
    asked = "measured: TPOT 14.1 ms (a lab/rig, engine 0.5.12, 2026-06-03)"
    assert support_text(answer, "a lab/rig") == support_text(answer, "a lab") == asked
    own = answer | {"observed_stack": None}
    assert support_text(own) == "measured: TPOT 14.1 ms (engine 0.5.12, 2026-06-03)"
    for support in ("near", "extrapolated"):
        assert support_text({"support": support}).startswith(f"{support}: ")
