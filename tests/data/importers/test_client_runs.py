import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, table_of_runs
from roofcast.data.importers.name_check import NameCheck
from tests.data.importers.clients import SAMPLE_OVERRIDES

CELLS = {**SAMPLE_OVERRIDES, "n_input_token": 100.0, "n_output_token": 10.0}
MEAN = {"mean": {"ttft_s": 0.1, "e2e_s": 1.0}}


def table_of(run: Run) -> pd.DataFrame:
    return table_of_runs([run], "ours", {}, NameCheck())


@pytest.mark.parametrize("status", ["failed", "out_of_memory"])
def test_a_run_without_answers_is_a_row_of_its_status(status: str) -> None:
    run = Run("run.json", 0, CELLS | {"concurrency": 8.0, "status": status}, MEAN, {"request_throughput_per_s": 8.0})
    (row,) = table_of(run).to_dict("records")
    assert (row["status"], row["statistic"]) == (status, "mean")
    assert row["e2e_s"] != row["e2e_s"]


def test_littles_law_holds_without_a_duration() -> None:
    run = Run("run.json", 0, CELLS | {"concurrency": 8.0}, MEAN, {"request_throughput_per_s": 8.0})
    assert len(table_of(run)) == 1
    fast = Run("run.json", 0, run.cells, MEAN, {"request_throughput_per_s": 8000.0})
    with pytest.raises(SchemaError, match=r"e2e_s: 8000 requests/s, each of 1 s, are 8e\+03 in flight"):
        table_of(fast)
    open_loop = Run("run.json", 0, CELLS | {"request_rate": 9000.0}, MEAN, fast.totals)
    (note,) = table_of(open_loop)["note"]
    assert note == "asked for 9e+03 requests/s, reached 8e+03"


def test_failed_requests_are_neither_in_flight_nor_answered() -> None:
    """80 of 800 requests are answered in 10 s: 8 a second, each of a second and of ten tokens."""
    cells = CELLS | {"concurrency": 8.0, "n_request": 800.0, "n_failed": 720.0, "duration_s": 10.0}
    answered = Run("run.json", 0, cells, MEAN, {"output_throughput_token_per_s": 80.0})
    assert len(table_of(answered)) == 1
    everything = Run("run.json", 0, cells, MEAN, {"output_throughput_token_per_s": 800.0})
    with pytest.raises(SchemaError, match=r"800 tokens/s is far from 800 tokens in 10 s"):
        table_of(everything)
    with pytest.raises(SchemaError, match=r"e2e_s: 800 requests in 10 s, each of 1 s, are 80 in flight"):
        table_of(Run("run.json", 0, cells | {"n_failed": 0.0}, MEAN, answered.totals))
