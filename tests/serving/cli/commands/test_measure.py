import json
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from roofcast.serving.cli.commands import measure
from roofcast.serving.measure import guidellm, plan
from tests.serving.http_client import ACCELERATOR, MODEL, Run
from tests.serving.measure.test_plan_runner import STUB
from tests.serving.user_files import write_file

MEASURE = (
    "measure", "--target", "http://127.0.0.1:1", "--set", f"model={MODEL}", "--set", f"accelerator={ACCELERATOR}",
    "--set", "n_accelerator=1", "--set", "engine=vllm",
)  # fmt: skip
GRID = ("--isl", "64", "--osl", "16", "--concurrency", "1,2,4")


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the stub of GuideLLM as a command."""
    monkeypatch.setenv("STUB_CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(guidellm, "list_models", lambda *_: ["tiny-llama"])
    command = Path(write_file(tmp_path, "guidellm", f'#!/bin/sh\nexec {sys.executable} {STUB} "$@"\n'))
    command.chmod(0o755)
    return command


def test_a_plan_is_measured_imported_and_added_to_a_stack(
    run: Run, home: Path, tmp_path: Path, stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--out", tmp_path / "out", "--guidellm", stub, "--campaign", "mine", "--stack", "rack-7", "--json")
    monkeypatch.setenv("STUB_FAILS", "4")
    status, out, err = run(*MEASURE, *GRID, *options)
    assert status == 1, err
    answer = json.loads(out)
    assert [answer[name] for name in ("n_planned", "n_measured", "n_skipped", "n_failed")] == [3, 2, 0, 1]
    assert [*answer["failures"]] == ["in64-out16-c4-n20"]
    assert answer["import"]["campaign"] == ["mine"]
    assert answer["import"]["model"] == [MODEL]
    assert answer["stack"]["n_new"] == answer["import"]["n_new"] == 10
    assert "1 of 3 runs failed; the same command tries them again" in err
    monkeypatch.delenv("STUB_FAILS")
    answer = json.loads(run.ok(*MEASURE, *GRID, *options))
    assert [answer[name] for name in ("n_measured", "n_skipped", "n_failed")] == [1, 2, 0]
    assert (answer["import"]["n_new"], answer["import"]["n_known"]) == (5, 10)
    assert (tmp_path / "calls").read_text().split() == ["1", "2", "4", "4"]


def use_predictions(monkeypatch: pytest.MonkeyPatch, e2e_s: dict[str, float]) -> None:
    """Let a predictor answer with these latencies by run."""
    active = SimpleNamespace(bundle=SimpleNamespace(predictor=None))
    monkeypatch.setattr(measure, "load_predictor", lambda _: SimpleNamespace(active_model=active))
    monkeypatch.setattr(plan, "predict_e2e", lambda *_: e2e_s)


def test_a_dry_run_prints_the_commands_that_run(
    run: Run, tmp_path: Path, stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--isl", "64", "--osl", "16", "--out", tmp_path / "out", "--guidellm", stub, "--no-import")
    run.ok(*MEASURE, *options, "--concurrency", "1")
    status, out, err = run(*MEASURE, *options, "--concurrency", "1,64", "--dry-run")
    assert status == 0, err
    assert "in64-out16-c1-n20: measured before" in err
    assert "1 run, 320 requests, 25,600 tokens; at most 6 min" in err
    assert "the time is not predicted: no predictor is promoted" in err
    partial = tmp_path / "out" / "in64-out16-c64-n320.partial.json"
    line = (
        f"{stub} run --backend kind=openai_http,target=http://127.0.0.1:1,model=tiny-llama,"
        f"request_format=/v1/completions --tokenizer kind=huggingface_auto,model={MODEL} "
        "--data kind=synthetic_text,prompt_tokens=64,output_tokens=16 --profile kind=concurrent,streams=64 "
        "--constraint kind=max_requests,count=320 --constraint kind=max_duration,seconds=300 "
        f"--seed kind=static,value={zlib.crc32(f'{partial} 1'.encode())} --output kind=json,path={partial} "
        "--disable-console-interactive\n"
    )
    assert out == line
    use_predictions(monkeypatch, {"in64-out16-c64-n320": 3.0})
    totals = run.json(*MEASURE, *options, "--concurrency", "1,64", "--dry-run")
    assert (totals["n_run"], totals["n_request"], len(totals["commands"])) == (1, 320, 1)
    assert (totals["expected_s"], totals["most_s"]) == (25, 310)


def test_a_dry_run_without_endpoint_says_what_it_assumes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOFCAST_ENDPOINT_LOGIN", "me:secret")
    target = ("--guidellm", "/no/guidellm")
    status, out, err = run(*MEASURE, *GRID, *target, "--out", tmp_path / "out", "--dry-run")
    assert status == 0, err
    assert f"model={MODEL},request_format" in out
    assert f"the name of the served model is assumed to be {MODEL}" in " ".join(err.split())
    assert "GUIDELLM__SPEC__BACKEND__TARGET" in err
    assert "secret" not in out + err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_budget_chooses_once(run: Run, tmp_path: Path, stub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = iter([slice(2), slice(1, 3)])
    use_predictions(monkeypatch, {})
    monkeypatch.setattr(plan, "choose_runs", lambda plan, *_, **__: plan[next(chosen)])
    options = ("--budget", "2", "--out", tmp_path / "out", "--guidellm", stub, "--no-import")
    monkeypatch.setenv("STUB_FAILS", "2")
    assert run(*MEASURE, *GRID, *options)[0] == 1
    monkeypatch.delenv("STUB_FAILS")
    status, _, err = run(*MEASURE, *GRID, *options)
    assert status == 0, err
    assert "the 2 runs that an earlier call chose" in " ".join(err.split())
    assert (tmp_path / "calls").read_text().split() == ["1", "2", "2"]


@pytest.mark.parametrize("option", [("--tokenizer", "other"), ("--max-s", "60"), ("--target", "http://127.0.0.1:2")])
def test_a_folder_of_another_server_is_refused(run: Run, tmp_path: Path, stub: Path, option: tuple[str, str]) -> None:
    options = ("--isl", "64", "--osl", "16", "--concurrency", "1", "--out", tmp_path / "out", "--guidellm", stub)
    run.ok(*MEASURE, *options, "--no-import")
    assert "has runs of another setup" in run.error(*MEASURE, *options, "--no-import", *option)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--isl", "64", "--osl", "16"), "concurrency: is missing"),
        ((*GRID, "--set", "tp=two"), "tp: must be a number"),
        ((*GRID, "--target", "http://me:secret@h:1", "--guidellm", "/bin/true"), "target: has a user or password"),
        ((*GRID, "--set", "speed=2"), "column: no 'speed' is known"),
        ((*GRID, "--plan", "plan.csv"), "--n-input-token: cannot be combined with --plan"),
        ((*GRID[:-1], "1", "--set", "engine_version=1", "--guidellm", "/no/guidellm"), "pip install"),
        ((*GRID, "--stack", "a b"), "stack: must be up to 100 letters"),
    ],
)
def test_a_wrong_plan_is_an_error_before_any_run(run: Run, options: tuple[str, ...], problem: str) -> None:
    assert problem in run.error(*MEASURE, *options)
