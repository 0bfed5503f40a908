"""``roofcast drift`` and the comparison of an import."""

import json
from pathlib import Path

import pytest

from tests.serving.http_client import ACCELERATOR, MODEL, Run
from tests.serving.user_files import write_file

HEADER = "model,accelerator,n_accelerator,engine,n_input_token,n_output_token,concurrency,statistic,itl_s,date\n"
RUN = f"{MODEL},{ACCELERATOR},1,vllm,120,20,16,mean,"


@pytest.mark.slow
def test_the_exit_status_tells_drift_from_its_absence_and_from_errors(run: Run, home: Path, tmp_path: Path) -> None:
    first = write_file(tmp_path, "first.csv", f"{HEADER}{RUN}0.0132,2026-11-15\n")
    assert run.json("import", "auto", first)[0]["drift"]["n_compared"] == 1
    out = run.ok("drift")
    assert "predicted against actual, 1 row that version 1 has not learnt; a p-value near 0 is a sign of drift" in (
        " ".join(out.split())
    )
    assert "within the intervals of 90%" in " ".join(out.split())
    second = write_file(tmp_path, "second.csv", f"{HEADER}{RUN}0.0396,2026-11-23\n")
    text = " ".join(run.ok("import", "auto", second).split())
    assert "13.2 ms on 2026-11-15" in text
    assert "no recorded setting differs" in text
    status, out, err = run("drift", "--json")
    assert (status, json.loads(out)["is_drift"]) == (1, True), err
    assert "drift: itl_s of all rows" in run("drift")[2]
    run.ok("drift", "--max-change", "4")
    assert "import_id" in run.error("drift", "--import", "nothing")
    assert run("drift", "--days", "0")[0] == run("drift", "--days", "36501")[0] == 2


def test_a_crash_and_a_comparison_of_nothing_are_no_drift(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert "nothing was compared" in run.error("drift")
    monkeypatch.setattr("roofcast.serving.drift.import_drift.report_days", None)
    assert run("drift")[0] == 2
    assert "the comparison failed" in caplog.text


def test_an_import_need_not_be_compared(run: Run, home: Path, tmp_path: Path) -> None:
    file = write_file(tmp_path, "own.csv", f"{HEADER}{RUN}0.0132,2026-11-15\n")
    assert run.json("import", "auto", file, "--no-compare")[0]["drift"] is None
