from __future__ import annotations

import tracemalloc
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import SchemaError
from roofcast.data.importers import FORMATS, read_measurements
from roofcast.data.importers.roofcast_csv import iter_rows
from roofcast.data.importers.sources import Source
from roofcast.data.measurements.validation import row_ids
from tests.data.row_builders import many_rows
from tests.effort import n_example

HEADER = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,ttft_s,note"
LINE = "m,a,1,128,32,4,0.25,fine"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own.csv"


def read(file: Path, content: str | bytes) -> pd.DataFrame:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_measurements("roofcast_csv", [file], "ours")


def is_recognised(content: str) -> bool:
    return FORMATS["roofcast_csv"].recognises(content.encode())


def test_any_subset_of_columns_is_read(file: Path) -> None:
    table = read(file, f"{HEADER}\n{LINE}\n m , a ,2,1e3,32,4, 0.5 ,\n")
    assert table["n_accelerator"].tolist() == [1, 2]
    assert table["model"].tolist() == ["m", "m"]
    assert table["n_input_token"].tolist() == [128, 1000]
    assert set(table["campaign"]) == {"ours"}


def test_the_campaign_of_the_file_is_used(file: Path) -> None:
    table = read(file, f"{HEADER},campaign\n{LINE},theirs\n{LINE},\n")
    assert table["campaign"].tolist() == ["theirs", "ours"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n\n", ""])
def test_line_ends_and_a_byte_order_mark_are_ignored(file: Path, ending: str) -> None:
    assert len(read(file, b"\xef\xbb\xbf" + f"{HEADER}\n{LINE}{ending}".encode())) == 1


def test_blank_lines_are_no_rows(file: Path) -> None:
    assert len(read(file, f"{HEADER}\n\n{LINE}\n  \n{LINE}")) == 2


def test_rows_survive_writing_and_reading(file: Path) -> None:
    table = many_rows(200)
    table.to_csv(file, index=False)
    assert row_ids(read_measurements("roofcast_csv", [file], "other")) == row_ids(table)


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        ("m,a,1,128,32,4,nan,x", "ttft_s"),
        ("m,a,1,128,32,4,inf,x", "ttft_s"),
        ("m,a,1,128,32,4,-0.1,x", "ttft_s"),
        ("m,a,1,128,32,4,fast,x", "ttft_s"),
        ("m,a,-1,128,32,4,0.1,x", "n_accelerator"),
        ("m,a,1.5,128,32,4,0.1,x", "n_accelerator"),
        ("m,a,,128,32,4,0.1,x", "n_accelerator"),
        (",a,1,128,32,4,0.1,x", "model"),
        ('m,a,1,128,32,4,0.1,"=HYPERLINK(1)"', "note"),
        ("@m,a,1,128,32,4,0.1,x", "model"),
        ("m,a,1,128,32,4,,x", "ttft_s"),
        ("m,a,1,128,32,,0.1,x", "concurrency"),
        ("m,a,1,128", ""),
        (LINE + ",more", ""),
        ("m,a,1,128,32,4,0.1,a\x00b", ""),
        ('m,a,1,128,32,4,0.1,"open', ""),
    ],
)
def test_an_invalid_line_is_refused_with_file_line_and_field(file: Path, cells: str, field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read(file, f"{HEADER}\n{LINE}\n{LINE}\n{cells}\n{LINE}\n")
    assert (caught.value.source, caught.value.field) == ("own.csv", field)
    assert caught.value.line == 4


def test_a_line_break_in_quotes_is_a_space_and_counts_as_a_line(file: Path) -> None:
    split = LINE.replace("fine", '"two\n\nlines"')
    assert read(file, f"{HEADER}\n{split}\n{LINE}\n")["note"].tolist() == ["two  lines", "fine"]
    with pytest.raises(SchemaError, match=r"own\.csv, line 5: ttft_s: must be between"):
        read(file, f"{HEADER}\n{split}\n{LINE.replace('0.25', '-1')}\n")


def test_line_numbers_are_right_beyond_the_first_chunk(file: Path) -> None:
    lines = [LINE] * 12_345
    lines[12_000] = LINE.replace("0.25", "-1")
    with pytest.raises(SchemaError, match=r"own\.csv, line 12002: ttft_s: must be between"):
        read(file, "\n".join([HEADER, *lines]))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "line 1: is empty"),
        (b"\n\n", "line 1: is empty"),
        (HEADER.encode() + b"\n", "line 2: holds no row below its header"),
        (HEADER.encode() + b"\n\xff\xfe,a", "line 2: must be UTF-8"),
        (b"PK\x03\x04\x00\x00", "line 1: holds a NUL byte; is the file binary"),
        (b"x" * 70_000, "line 1: a line must be at most 65536 bytes long"),
        (b"status,latency_ms_per_token\n200,1\n", "status: |latency_ms_per_token: is not a column"),
        (HEADER.replace("ttft_s", "ttft_ms").encode() + f"\n{LINE}".encode(), "ttft_ms: .* give ttft_s, in seconds"),
        (HEADER.replace("note", "model").encode() + f"\n{LINE}".encode(), "model: is given twice"),
    ],
)
def test_other_files_are_refused(file: Path, content: bytes, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        read(file, content)


@settings(max_examples=n_example(40), deadline=None)
@given(cut=st.integers(min_value=0, max_value=3 * len(LINE)))
def test_a_truncated_file_yields_complete_lines_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "cut.csv"
    content = f"{HEADER}\n{LINE}\n{LINE}\n{LINE}"
    try:
        table = read(file, content[: len(content) - cut])
    except SchemaError:
        return
    assert len(table) == 1 + content[: len(content) - cut].strip().count("\n") - 1


@pytest.mark.slow
def test_memory_is_bounded_by_a_chunk_of_lines(file: Path) -> None:
    """A cell as text takes over 50 bytes, so this file as text would take 40 MB."""
    file.write_text("\n".join([HEADER, *([LINE] * 100_000)]))
    with file.open("rb") as stream:
        tracemalloc.start()
        try:
            assert sum(1 for _ in iter_rows(Source("own.csv", stream))) == 100_001
            _, peak_byte = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak_byte < 2 * 2**20


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_separator_is_refused_with_its_name(file: Path, mark: str, name: str) -> None:
    with pytest.raises(SchemaError, match=rf"own\.csv, line 1: has cells separated by {name}; save it with commas"):
        read(file, f"{HEADER}\n{LINE}\n".replace(",", mark))
    assert is_recognised(f"{HEADER}\n".replace(",", mark))


@pytest.mark.parametrize(
    ("content", "is_ours"),
    [
        (f"{HEADER}\n{LINE}", True),
        ("n_input_token,ttft_s\n", True),
        ("concurrency,latency\n", False),
        ('{"model": 1, "accelerator": 2}', False),
    ],
)
def test_a_file_is_recognised_by_its_columns(content: str, is_ours: bool) -> None:
    assert is_recognised(content) is is_ours


def test_the_error_names_all_missing_columns(file: Path) -> None:
    options = "--set accelerator=nvidia-h100-sxm-80gb --set n_accelerator=8 --set n_input_token=1024 --set engine="
    with pytest.raises(SchemaError, match=rf"own\.csv, line 3: accelerator: is not in the file; .* {options}vllm$"):
        read(file, "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,ttft_s\n"
             "m,a,1,9,9,1,0.1\nm,,,,9,1,0.1\n")  # fmt: skip


RUN = "model,accelerator,n_accelerator,n_input_token,n_output_token,concurrency,statistic"


@pytest.mark.parametrize(
    ("columns", "cells", "problem"),
    [
        ("e2e_s,request_throughput_per_s", "4000,2", "e2e_s: 2 requests/s, each of 4000 s, are 8e\\+03 in flight"),
        ("e2e_s,output_throughput_token_per_s", "4000,200", "e2e_s: 2 requests/s, each of 4000 s, are"),
        ("e2e_s,total_throughput_token_per_s", "4000,400", "e2e_s: 2 requests/s, each of 4000 s, are"),
        ("ttft_s,tpot_s,request_throughput_per_s", "30,4,2", "e2e_s: 2 requests/s, each of 426 s, are"),
        ("e2e_s,request_throughput_per_s", "0.004,2", "e2e_s: 2 requests/s, each of 0.004 s, are"),
        ("ttft_s,tpot_s", "250,20", "tpot_s: mean must be at most 5 s a token, got 20 s"),
        ("itl_s", "20", "itl_s: mean must be at most 5 s a token, got 20 s"),
        ("ttft_s,tpot_s,e2e_s", "0.1,0.02,2000", "e2e_s: E2E of 2000 s is far from TTFT"),
    ],
)
def test_milliseconds_in_place_of_seconds_are_refused(file: Path, columns: str, cells: str, problem: str) -> None:
    with pytest.raises(SchemaError, match=rf"own\.csv, line 3: {problem}.* are seconds and milliseconds confused"):
        read(
            file,
            f"{RUN},{columns}\nm,a,1,100,100,8,mean{',' * cells.count(',')},0.01\nm,a,1,100,100,8,mean,{cells}\n",
        )


def test_seconds_are_accepted(file: Path) -> None:
    columns = "ttft_s,tpot_s,e2e_s,request_throughput_per_s,output_throughput_token_per_s"
    assert len(read(file, f"{RUN},{columns}\nm,a,1,100,100,8,mean,0.1,0.039,4,2,200\n")) == 1
    assert len(read(file, f"{RUN},tpot_s\nm,a,1,100,100,8,p99,20\n")) == 1


@pytest.mark.parametrize("column", ["output_throughput_token_per_s", "request_throughput_per_s", "power_w"])
def test_a_throughput_has_no_percentile(file: Path, column: str) -> None:
    with pytest.raises(SchemaError, match=rf"own\.csv, line 2: {column}: belongs only in the row of statistic mean"):
        read(file, f"{RUN},{column}\nm,a,1,100,100,8,p99,20\n")
