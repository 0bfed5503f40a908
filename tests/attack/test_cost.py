"""The cost of a request is bounded by its bytes: what it names wrongly is not looked up without end."""

import json
import time
from typing import Any

import pytest

from tests.serving.http_client import Client, a_demand, a_question

N_FIELD = 20_000
UNKNOWN = {f"unknown_field_of_some_length_{i}": 1 for i in range(N_FIELD)}
ROW = a_question()
MAX_CPU_S = 2.0
"""Seconds of processor time for such a body of a megabyte on a loaded machine; without a bound it is 19."""

JOB = {"model": ROW["model"], "accelerator": ROW["accelerator"]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/predictions", {"rows": [ROW], **UNKNOWN}, id="fields"),
        pytest.param("/v1/predictions", {"rows": [ROW | UNKNOWN]}, id="columns"),
        pytest.param("/v1/predictions", {"rows": [ROW | {f"x{i}": 1} for i in range(5000)]}, id="a column a row"),
        pytest.param("/v1/explanations", {"rows": [ROW | UNKNOWN]}, id="columns of an explanation"),
        pytest.param("/v1/predictions", {"rows": [ROW], "references": [ROW | UNKNOWN]}, id="columns of a reference"),
        pytest.param("/v1/recommendations", a_demand(**UNKNOWN), id="fields of a recommendation"),
        pytest.param("/v1/recommendations", a_demand(constraints=UNKNOWN), id="constraints"),
        pytest.param("/v1/training/predictions", {"rows": [JOB | UNKNOWN]}, id="columns of a job"),
        pytest.param("/v1/training/recommendations", UNKNOWN, id="fields of a job"),
    ],
)
def test_unknown_fields_cost_no_more_than_their_bytes(local: Client, path: str, body: dict[str, Any]) -> None:
    local.use_key(None)
    text = json.dumps(body)
    started_s = time.process_time()
    response = local.post_text(path, text)
    assert response.status_code in {200, 404, 422}
    assert len(response.content) < 100_000
    assert time.process_time() - started_s < MAX_CPU_S


def test_unknown_columns_of_lines_cost_no_more_than_their_bytes(local: Client) -> None:
    row = ROW | {f"x{i}": 1 for i in range(40)}
    lines = "\n".join([json.dumps(row)] * 1000)
    started_s = time.process_time()
    response = local.send("POST", "/v1/predictions", lines, {"content-type": "application/x-ndjson"})
    assert response.status_code == 200
    assert time.process_time() - started_s < MAX_CPU_S
