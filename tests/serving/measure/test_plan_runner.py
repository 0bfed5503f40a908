import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from roofcast.serving.measure.guidellm import Endpoint, run_command
from roofcast.serving.measure.plan import PlannedRun, save_setup
from roofcast.serving.measure.plan_runner import PlanRunner
from tests.conditions import wait_until

STUB = Path(__file__).with_name("stub_guidellm.py")
SETUP = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": "1"}
RUNS = [PlannedRun(64, 16, concurrency) for concurrency in (1, 2, 4)]
ENDPOINT = Endpoint("http://127.0.0.1:1", "tiny-llama", "tiny-llama")


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the stub notes the loads that it runs."""
    path = tmp_path / "calls"
    monkeypatch.setenv("STUB_CALLS", str(path))
    return path


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Return the processes that the runner starts."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(Popen(*arguments, **options))  # noqa: S603  (the stub)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return started


def runner(
    folder: Path, seeds: list[int] | None = None, environment: dict[str, str] | None = None, login: str = ""
) -> PlanRunner:
    """Return a runner of the stub, which appends the seeds of the commands."""

    def command(run: PlannedRun, report: Path, seed: int) -> list[str]:
        if seeds is not None:
            seeds.append(seed)
        return [sys.executable, *run_command(str(STUB), ENDPOINT, run, report, max_s=60.0, seed=seed)]

    save_setup(folder, SETUP)
    return PlanRunner(folder, {"model:tiny-llama": SETUP["model"]} | SETUP, command, 60.0, environment, login=login)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_interrupted_plan_goes_on_where_it_stopped(
    tmp_path: Path, calls: Path, processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[str] = []
    monkeypatch.setenv("STUB_HANGS", "4")
    monkeypatch.setenv("STUB_PRINTS", "http://me:secret@127.0.0.1:1")
    wait, interrupts = Popen.wait, iter([KeyboardInterrupt])
    log = tmp_path / "out" / f"{RUNS[2].name}.1.log"

    def wait_for_interrupt(process: Popen[bytes], timeout: float | None = None) -> int:
        if len(processes) == len(RUNS) and (interrupt := next(interrupts, None)):
            wait_until(lambda: b"127.0.0.1" in log.read_bytes())
            raise interrupt
        return wait(process, timeout)

    monkeypatch.setattr(Popen, "wait", wait_for_interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner(tmp_path / "out", login="me:secret").measure(RUNS, lambda _, outcome: outcomes.append(outcome))
    assert outcomes == ["measured", "measured"]
    assert log.read_text().split() == ["http://127.0.0.1:1"]
    assert processes[2].returncode == -signal.SIGKILL
    assert is_gone(processes[2].pid)
    monkeypatch.delenv("STUB_HANGS")
    result = runner(tmp_path / "out").measure(RUNS, lambda _, outcome: outcomes.append(outcome))
    assert outcomes[2:] == ["measured before", "measured before", "measured"]
    assert (result.n_measured, result.n_skipped, result.failures) == (1, 2, {})
    assert [file.stem for file in result.files] == [run.name for run in RUNS]
    assert calls.read_text().split() == ["1", "2", "4", "4"]


def test_a_broken_report_is_measured_again(tmp_path: Path, calls: Path) -> None:
    runner(tmp_path / "out").measure(RUNS[:2], lambda *_: None)
    report = runner(tmp_path / "out").report(RUNS[1])
    report.write_text(report.read_text()[:1000])
    result = runner(tmp_path / "out").measure(RUNS[:2], lambda *_: None)
    assert (result.n_measured, result.n_skipped) == (1, 1)
    assert calls.read_text().split() == ["1", "2", "2"]
    assert runner(tmp_path / "out").is_measured(RUNS[1])


def test_each_run_attempt_and_folder_has_prompts_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setenv("STUB_FAILS", "2")
    runner(tmp_path / "out", seeds).measure(RUNS[:2], lambda *_: None)
    monkeypatch.delenv("STUB_FAILS")
    announced = runner(tmp_path / "out").next_command(RUNS[1])
    runner(tmp_path / "out", seeds).measure(RUNS[:2], lambda *_: None)
    assert f"kind=static,value={seeds[-1]}" in announced
    runner(tmp_path / "other").next_command(RUNS[0])
    runner(tmp_path / "other", seeds).next_command(RUNS[0])
    assert len(set(seeds)) == len(seeds) == 4


def test_a_process_gets_the_environment_of_the_runner(tmp_path: Path) -> None:
    files = runner(tmp_path / "out", environment={"STUB_FAILS": "1"}).measure(RUNS[:2], lambda *_: None).files
    assert [file.stem for file in files] == [RUNS[1].name]


def test_failed_runs_are_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_FAILS", "2")
    monkeypatch.setenv("STUB_ERRORS", "4")
    result = runner(tmp_path / "out").measure(RUNS, lambda *_: None)
    assert [*result.failures] == ["in64-out16-c2-n20", "in64-out16-c4-n20"]
    assert "exit status 3 and no report: the server closed the connection" in result.failures["in64-out16-c2-n20"]
    assert "no request succeeded" in result.failures["in64-out16-c4-n20"]
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json")) == ["in64-out16-c1-n20.json", "setup.json"]
    monkeypatch.delenv("STUB_FAILS")
    monkeypatch.delenv("STUB_ERRORS")
    again = runner(tmp_path / "out").measure(RUNS, lambda *_: None)
    assert (again.n_measured, again.n_skipped) == (2, 1)


def test_a_run_that_hangs_is_ended(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roofcast.serving.measure.plan_runner.STARTUP_S", 0.01)
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    failures = PlanRunner(tmp_path, SETUP, lambda *_: sleep, 0.0).measure(RUNS[:1], lambda *_: None).failures
    assert "did not end within" in failures["in64-out16-c1-n20"]
    assert processes[0].returncode == -signal.SIGKILL
    assert is_gone(processes[0].pid)
