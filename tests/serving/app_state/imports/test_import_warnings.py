"""Doubts about imported rows are named by column."""

import pandas as pd

from roofcast.serving.app_state.imports.import_warnings import count_failed_runs, import_warnings


def test_each_doubt_is_a_warning() -> None:
    table = pd.DataFrame(
        {
            "engine": ["", "vlm", "vllm"],
            "campaign": ["llm_pilot", "mine", "mine"],
            "status": ["ok", "failed", "ok"],
            "n_failed": [1.0, 5.0, float("nan")],
            "n_request": [8.0, 5.0, 8.0],
        }
    )

    blank, unknown, shipped, failed, part = import_warnings(table)

    assert count_failed_runs(table) == 1
    assert blank.startswith("engine: is blank in 1 of 3 rows")
    assert "'vlm' is not an engine" in unknown
    assert "did you mean vllm?" in unknown
    assert "'llm_pilot' is also the name of a shipped campaign" in shipped
    assert failed.startswith("status: 1 failed run (1 failed)")
    assert part == "n_failed: 1 row of runs with failed requests, of a run up to 12.5%"
