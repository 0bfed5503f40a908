"""Bulk requests of Parquet: columns, types, and files that are refused before they are unpacked."""

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.serving.http.bulk.chunks import N_ROW
from roofcast.serving.http.bulk.parquet_reader import read_parquet
from tests.serving.http_client import Client, a_full_question, a_question, problem_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PATH = "/v1/predictions"
PARQUET = "application/vnd.apache.parquet"


def file_of(columns: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), sink, **options)
    return sink.getvalue()


def columns_of(n_row: int = 1, **changes: Any) -> dict[str, Any]:
    columns = {name: [value] * n_row for name, value in a_question().items()} | changes
    return {name: values for name, values in columns.items() if values is not None}


def post(client: Client, body: bytes, **headers: str) -> httpx.Response:
    return client.send("POST", PATH, body, {"content-type": PARQUET, **headers})


def table_of(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == PARQUET
    return pq.read_table(io.BytesIO(response.content))


def test_a_file_has_the_answers_of_json_rows(shared: Client) -> None:
    columns = columns_of(30, n_input_token=list(range(1, 31)), model=["nobody", *[a_question()["model"]] * 29])
    answers = table_of(post(shared, file_of(columns)))
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    expected = shared.post(PATH, {"rows": rows}).json()
    expected["rows"][0]["reason"] = "row 1: " + expected["rows"][0]["reason"]
    assert answers.to_pylist() == expected["rows"]
    assert answers.schema.metadata[b"roofcast.predictor_version"].decode() == expected["predictor_version"]


def test_a_file_has_every_column_of_a_question(shared: Client) -> None:
    rows = [a_full_question(), a_question(load="offline", concurrency=None)]
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    answered = table_of(post(shared, file_of(columns)))
    assert answered["status"].to_pylist() == ["ok", "ok"]
    expected = shared.post(PATH, {"rows": rows}).json()["rows"]
    assert [row["tpot_s"] for row in expected] == answered["tpot_s"].to_pylist()
    lines = "\n".join(map(json.dumps, rows))
    converted = table_of(
        shared.send("POST", PATH, lines, {"content-type": "application/x-ndjson", "accept": PARQUET})
    )
    assert converted["flash_attention"].to_pylist() == [True, None]


def test_input_columns_are_returned_in_order_and_type_over_chunks(shared: Client) -> None:
    n_row = N_ROW + 2
    questions = pa.table(
        {
            "statistic": pa.array(["p50", None] * (n_row // 2)).dictionary_encode(),
            "n_output_token": pa.array([20] * n_row, pa.uint16()),
            "accelerator": pa.array(["nvidia-a100-pcie-80gb"] * n_row, pa.large_string()),
            "n_input_token": pa.array(range(1, n_row + 1), pa.int32()),
            "model": ["meta-llama/Llama-3.1-8B"] * n_row,
            "concurrency": pa.array([1.5] * n_row, pa.float32()),
            "engine": pa.nulls(n_row),
        }
    )
    answers = table_of(post(shared, file_of(questions, row_group_size=1000, compression="zstd")))
    assert answers.column_names[: len(questions.column_names)] == questions.column_names
    assert answers.column_names[-1] == "assumed"
    assert answers["n_input_token"].to_pylist() == list(range(1, n_row + 1))
    assert answers.schema.field("n_output_token").type == pa.uint16()
    assert answers["statistic"].to_pylist() == questions["statistic"].to_pylist()
    assert set(answers["status"].to_pylist()) == {"ok"}


@pytest.mark.parametrize(
    "kind",
    [
        *(pytest.param(k, marks=pytest.mark.slow) for k in (pa.float64(), pa.int8(), pa.bool_())),
        pa.timestamp("s"),
        pa.null(),
    ],
    ids=str,
)
def test_a_blank_text_column_may_have_any_type(shared: Client, kind: Any) -> None:
    answers = table_of(post(shared, file_of(columns_of(2, engine_version=pa.nulls(2, kind)))))
    assert answers["status"].to_pylist() == ["ok", "ok"]
    assert answers["engine_version"].to_pylist() == [None, None]


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json"])
def test_a_file_can_be_answered_with_json(shared: Client, kind: str) -> None:
    response = post(shared, file_of(columns_of(2, tp=pa.array([None, 1.0]))), accept=kind)
    assert response.headers["content-type"] == kind
    rows = response.json()["rows"] if kind.endswith("/json") else [json.loads(x) for x in response.text.splitlines()]
    assert [row["tp"] for row in rows] == [None, 1.0]
    assert rows[0]["ttft_s"] == rows[1]["ttft_s"]


def test_lines_can_be_answered_with_a_file(shared: Client) -> None:
    lines = "\n".join(map(json.dumps, [a_question(), a_question(tp="two"), {"x": 1}, a_question(engine=True)]))
    headers = {"content-type": "application/x-ndjson", "accept": PARQUET}
    answers = table_of(shared.send("POST", PATH, lines, headers))
    assert answers.column_names[: len(INPUT_COLUMNS)] == list(INPUT_COLUMNS)
    assert answers["status"].to_pylist()[:3] == ["ok", "invalid", "invalid"]
    assert answers["tp"].to_pylist() == [None] * 4
    assert answers["reason"][2].as_py().startswith("line 3: x: is not an input column")


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "no readable Parquet file"),
    "text": (lambda: b'{"model": 1}\n' * 9, "no readable Parquet file"),
    "cut": (lambda: file_of(columns_of(100))[:-9], "no readable Parquet file"),
    "no start": (lambda: file_of(columns_of(100))[-300:], "no readable Parquet file"),
    "footer": (lambda: b"PAR1" + b"\xff" * 40 + struct.pack("<I", 40) + b"PAR1", "no readable Parquet file"),
    "footer size": (lambda: b"PAR1" + b"\0" * 40 + struct.pack("<I", 2**31) + b"PAR1", "no readable Parquet file"),
    "no row": (lambda: file_of(columns_of(0)), "there is no row"),
    "unknown": (lambda: file_of(columns_of(ttft_s=[1.0])), "ttft_s: is not an input column"),
    "misspelt": (lambda: file_of(columns_of(n_request_=[1.0])), "n_request_: is not an input column; did you mean"),
    "flag": (
        lambda: file_of(columns_of(flash_attention=["true"])),
        "flash_attention: must be a column of truth values",
    ),
    "missing": (lambda: file_of(columns_of(model=None)), "model: is missing; it must be a column"),
    "text for number": (lambda: file_of(columns_of(tp=["1"])), "tp: must be a column of numbers, got string"),
    "number for some text": (
        lambda: file_of(columns_of(2, engine_version=[None, 0.6])),
        "engine_version: must be a column of texts",
    ),
    "number for text": (lambda: file_of(columns_of(model=[1])), "model: must be a column of texts, got int64"),
    "date": (lambda: file_of(columns_of(tp=pa.array([1], pa.timestamp("s")))), "tp: must be a column of numbers"),
    "bytes": (lambda: file_of(columns_of(model=[b"a"])), "model: must be a column of texts, got binary"),
    "list": (lambda: file_of(columns_of(model=[["a"]])), "model: must be a column of texts, got list"),
    "struct": (lambda: file_of(columns_of(tp=[{"a": 1}])), "tp: must be a column of numbers, got struct"),
    "twice": (
        lambda: file_of(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["model"] * 2)),
        "model: is given twice",
    ),
    "rows": (lambda: file_of(columns_of(200_001)), "must be at most 200000 rows"),
    "long text": (lambda: file_of(columns_of(9, model=["x" * 2000] * 9)), "model: must be at most 1000 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_file_is_refused(shared: Client, name: str) -> None:
    body, reason = REFUSED[name]
    detail = problem_of(post(shared, body()), 422)["detail"]
    assert reason in detail, detail


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


def test_a_file_is_refused_for_its_pages_if_its_footer_says_that_it_is_small() -> None:
    body = file_of(columns_of(model=["x" * 3_000_000]), compression="zstd", write_statistics=False)
    file = pq.ParquetFile(io.BytesIO(body)).metadata.row_group(0)
    (size,) = {
        file.column(j).total_uncompressed_size
        for j in range(file.num_columns)
        if file.column(j).path_in_schema == "model"
    }
    declared = _varint(2 * size)
    small = bytes([120 | 128, *[128] * (len(declared) - 2), 0])
    assert body.count(declared) >= 1
    forged = b"".join([head := body[: body.rindex(declared)], small, body[len(head) + len(small) :]])
    with pytest.raises(InputError, match="too large when unpacked"):
        next(read_parquet(io.BytesIO(forged), 10, max_byte=1_000_000))


def test_a_file_that_unpacks_to_too_many_bytes_is_refused_before_it_is_unpacked() -> None:
    body = file_of(columns_of(50_000, n_input_token=[float(i) for i in range(50_000)]), compression="gzip")
    assert len(next(read_parquet(io.BytesIO(body), 50_000)).numbers) == N_ROW
    with pytest.raises(InputError, match="too large when unpacked"):
        next(read_parquet(io.BytesIO(body), 50_000, max_byte=100_000))


def test_delta_encoded_texts_that_unpack_to_gigabytes_are_refused(shared: Client) -> None:
    """Each text adds one letter to the one before: two bytes per row in the file, gigabytes in memory."""
    texts = ["x" * i for i in range(1, 2_000)]
    table = pa.table({"model": texts, "accelerator": texts[:1] * len(texts)})
    body = file_of(table, use_dictionary=False, column_encoding={"model": "DELTA_BYTE_ARRAY"}, compression="zstd")
    assert len(body) < 1_000_000
    assert "is encoded as DELTA_BYTE_ARRAY" in problem_of(post(shared, body), 422)["detail"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_both_versions_and_many_row_groups_are_read(version: str) -> None:
    columns = columns_of(3_000, n_input_token=[float(i + 1) for i in range(3_000)], tp=[None, 1.0] * 1_500)
    options = {"data_page_size": 500, "row_group_size": 700, "compression": "gzip", "data_page_version": version}
    for delta in ({}, {"use_dictionary": False, "column_encoding": {"concurrency": "DELTA_BINARY_PACKED"}}):
        columns["concurrency"] = pa.array([4] * 3_000, pa.int32())
        body = file_of(columns, **options, **delta)
        assert sum(len(chunk.numbers) for chunk in read_parquet(io.BytesIO(body), 3_000)) == 3_000


@pytest.mark.parametrize("from_end", [20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(65, 400, 45))])
def test_a_file_with_a_damaged_byte_is_refused_or_answered(shared: Client, from_end: int) -> None:
    body = bytearray(file_of(columns_of(40, n_input_token=list(range(1, 41))), compression="none"))
    body[-from_end] ^= 0x55
    response = post(shared, bytes(body), accept="application/json")
    assert response.status_code in {200, 422}, response.text


def test_a_column_has_its_long_spelling_in_files_and_lines(shared: Client) -> None:
    files = [file_of(columns_of() | {"n_accelerator": [2], name: [2]}) for name in ("tp", "tensor_parallel")]
    line = json.dumps(a_question(n_accelerator=2) | {"tensor_parallel": 2}).encode()
    headers = {"content-type": "application/x-ndjson", "accept": PARQUET}
    responses = [*(post(shared, file) for file in files), shared.send("POST", PATH, line, headers)]
    short, long, of_line = (pq.read_table(io.BytesIO(one.content)).to_pylist()[0] for one in responses)
    assert short["tpot_s"] == long["tpot_s"] == of_line["tpot_s"]
    assert (long["tensor_parallel"], of_line["tp"]) == (2, 2)
