"""Bulk requests of NDJSON, and responses of all media types."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.http.app import create_app
from roofcast.serving.http.bulk.chunks import N_ROW
from roofcast.serving.http.bulk.ndjson import MAX_LINE_BYTE
from roofcast.serving.http.routes import predictions
from tests.serving.http_client import Client, a_full_question, a_measurement, a_question, problem_of, running

PATH = "/v1/predictions"
NDJSON = "application/x-ndjson"


def lines_of(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def post(client: Client, body: bytes, query: str = "", **headers: str) -> httpx.Response:
    return client.send("POST", PATH + query, body, {"content-type": NDJSON, **headers})


def rows_of(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == NDJSON
    assert response.headers["x-predictor-version"]
    return [json.loads(line) for line in response.text.split("\n")[:-1]]


def test_lines_have_every_column_of_a_question(shared: Client) -> None:
    rows = [a_full_question(), a_question(load="offline", concurrency=None)]
    expected = shared.post(PATH, {"rows": rows, "level": 0.5}).json()["rows"]
    assert [row["status"] for row in expected] == ["ok", "ok"]
    for row, line in zip(expected, rows_of(post(shared, lines_of(*rows), "?level=0.5")), strict=True):
        assert {name: row[name] for name in line} == line


def test_answers_are_in_order_over_chunks(shared: Client) -> None:
    rows = [a_question(n_input_token=1 + i) for i in range(N_ROW + 3)]
    answers = rows_of(post(shared, lines_of(*rows)))
    assert [row["n_input_token"] for row in answers] == [row["n_input_token"] for row in rows]
    assert {row["status"] for row in answers} == {"ok"}


def test_an_invalid_line_has_a_reason_with_its_number(shared: Client) -> None:
    valid = json.dumps(a_question())
    invalid = {
        "{": "line 2: is no valid JSON",
        "[1]": "line 3: must be an object of fields, got list",
        '{"tp": 1, "tp": 2}': "line 4: tp: is given twice",
        '{"chunk_size": 1}': "line 5: chunk_size: is not an input column; did you mean chunk_size_token",
        '{"model": ["a"]}': "line 6: model: must be a number, a text",
        '{"model": NaN}': "line 7: NaN is no JSON number",
        '{"model": "\\u0000"}': "line 8: model: contains NUL",
        json.dumps({"model": "x" * 1001}): "line 9: model: must be at most 1000 characters",
        json.dumps({"model": "x" * MAX_LINE_BYTE}): f"line 10: must be at most {MAX_LINE_BYTE} bytes",
        "{}": "line 11: model: ",
        '{"model": "\udcff"}': "line 12: must be UTF-8 text",
        json.dumps(a_question(model="nobody")): "line 13: model: no 'nobody' is known",
        json.dumps(a_question(n_input_token="many")): "line 14: n_input_token: ",  # noqa: S106
        f"{valid}, {valid}": "line 15: is no valid JSON",
        '{"a":' * 5000: "line 16: ",
    }
    text = "\n".join([valid, *invalid, "", "  ", valid])
    answers = rows_of(post(shared, text.encode("utf-8", "surrogateescape")))
    assert [row["status"] == "ok" for row in answers] == [True, *[False] * len(invalid), True]
    for row, reason in zip(answers[1:], invalid.values(), strict=False):
        assert row["reason"].startswith(reason), row
        assert row["ttft_s"] is None


def test_lines_may_end_in_crlf_and_the_last_without_a_line_break(shared: Client) -> None:
    body = "\ufeff" + json.dumps(a_question()) + " \r\n\r\n" + json.dumps(a_question())
    assert [row["status"] for row in rows_of(post(shared, body.encode()))] == ["ok", "ok"]


def test_lines_can_be_answered_with_json(shared: Client) -> None:
    answers = post(shared, lines_of(a_question(), a_question()), accept="application/json").json()
    assert answers == shared.post(PATH, {"rows": [a_question()] * 2}).json()


def test_json_can_be_answered_with_lines(shared: Client) -> None:
    body = json.dumps({"rows": [a_question(tp=None)], "level": 0.6})
    response = shared.send("POST", PATH, body, {"content-type": "application/json", "accept": NDJSON})
    assert rows_of(response) == shared.post(f"{PATH}?level=0.6", {"rows": [a_question(tp=None)]}).json()["rows"]


def test_references_are_query_parameters(shared: Client) -> None:
    reference = {name: value for name, value in a_measurement().items() if name != "campaign"}
    query = str(httpx.QueryParams({"reference": json.dumps(reference)}))
    (row,) = rows_of(post(shared, lines_of(a_question()), f"?{query}"))
    assert row["ttft_s"] != row["ttft_s_uncalibrated"]
    assert [row] == shared.post(PATH, {"rows": [a_question()], "references": [reference]}).json()["rows"]
    assert [row] == shared.post(f"{PATH}?{query}", {"rows": [a_question()]}).json()["rows"]
    assert problem_of(post(shared, b"{}", "?reference=[]"), 422)["field"] == "reference"


@pytest.mark.parametrize("body", [b"", b"\n \r\n"])
def test_a_body_without_a_line_is_refused(shared: Client, body: bytes) -> None:
    assert "there is no line" in problem_of(post(shared, body), 422)["detail"]


def test_errors_of_the_whole_request_have_a_status(shared: Client) -> None:
    body = lines_of(a_question())
    assert "ask for at most 0.9" in problem_of(post(shared, b"{}" + body, "?level=0.99"), 409)["detail"]
    assert problem_of(post(shared, body, "?level=2"), 422)["field"] == "level"
    problem_of(post(shared, body, accept="text/csv"), 406)
    problem_of(post(shared, body, **{"content-encoding": "gzip"}), 415)
    problem_of(shared.send("POST", "/v1/explanations", body, {"content-type": NDJSON}), 415)


def test_parquet_is_refused_without_pyarrow(shared: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "has_parquet", lambda: False)
    parquet = "application/vnd.apache.parquet"
    response = shared.send("POST", PATH, b"PAR1", {"content-type": parquet})
    assert "needs pyarrow" in problem_of(response, 415)["detail"]
    problem_of(post(shared, lines_of(a_question()), accept=parquet), 415)
    body = json.dumps({"rows": [a_question()]})
    headers = {"content-type": "application/json", "accept": parquet}
    problem_of(shared.send("POST", PATH, body, headers), 415)


def test_bulk_requests_have_their_own_limits(home: Path) -> None:
    settings = Settings(home=home, poll_s=3600, max_body_byte=1000, max_bulk_byte=2000, max_bulk_row=5)
    with running(create_app(settings)) as client:
        assert len(rows_of(post(client, lines_of(a_question()) + b" " * 1500))) == 1
        assert "over 2000 bytes" in problem_of(post(client, b" " * 2001), 413)["detail"]
        assert "over 1000 bytes" in problem_of(client.post(PATH, [0] * 1001), 413)["detail"]
        assert "at most 5 lines, got 6" in problem_of(post(client, b"{}\n" * 6), 422)["detail"]


def test_rows_of_bulk_requests_are_counted(shared: Client) -> None:
    def count_predictions() -> float:
        text = shared.get("/metrics").text
        (line,) = [line for line in text.splitlines() if line.startswith('roofcast_predictions_total{status="ok"}')]
        return float(line.split()[-1])

    before = count_predictions()
    post(shared, lines_of(a_question(), a_question(), {"model": 1}))
    assert count_predictions() == before + 2
