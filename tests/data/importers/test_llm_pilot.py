import csv
import json
import random
import statistics
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers import FORMATS, detect_format, read_measurements
from roofcast.data.importers.llm_pilot import ACCELERATORS, FLASH_ATTENTION
from roofcast.data.measurements.validation import row_ids
from tests.data.row_builders import LLM_PILOT_SAMPLES

FILES = sorted(LLM_PILOT_SAMPLES.glob("*.csv"))
CRASHING = next(file for file in FILES if "neox" in file.name)
RUN = """status,model,num_users,n_gpus,gpu_type,start_timestamp,experiment_duration_s,n_input_tokens,n_output_tokens,\
latency_ms_per_token
200,m,2,1,T4,1700000000000,10,100,3,"[0, 1000, 1000, 1000]"
"""


def requests_of(file: Path) -> list[dict[str, Any]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def completed_of(file: Path) -> list[dict[str, Any]]:
    return [
        row | {"list": json.loads(row["latency_ms_per_token"])} for row in requests_of(file) if row["status"] == "200"
    ]


def rows_of(file: Path) -> pd.DataFrame:
    return read_measurements("llm_pilot", [file], "pilot").set_index("statistic")


def with_line(file: Path, line: int, old: str, new: str) -> bytes:
    lines = file.read_text().splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return "".join(lines).encode()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_medians_are_those_of_the_requests(file: Path) -> None:
    done = completed_of(file)
    row = rows_of(file).loc["p50"]
    nttft = statistics.median(r["list"][1] / float(r["n_input_tokens"]) for r in done)
    assert row["nttft_s_per_token"] == pytest.approx(nttft / 1000, rel=1e-5)
    assert row["ttft_s"] == pytest.approx(statistics.median(r["list"][1] for r in done) / 1000, rel=1e-5)
    assert row["itl_s"] == pytest.approx(
        statistics.median(gap for r in done for gap in r["list"][2:]) / 1000, rel=1e-5
    )
    assert row["e2e_s"] == pytest.approx(statistics.median(sum(r["list"]) for r in done) / 1000, rel=1e-5)
    assert row["tpot_s"] == pytest.approx(
        statistics.median(statistics.mean(r["list"][2:]) for r in done if r["list"][2:]) / 1000, rel=1e-5
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_throughput_counts_tokens_within_the_duration(file: Path) -> None:
    start_ms = min(float(row["start_timestamp"]) for row in requests_of(file))
    duration_s = 0.0
    n_token = 0.0
    n_request = 0
    for row in completed_of(file):
        duration_s = float(row["experiment_duration_s"])
        arrived = float(row["start_timestamp"]) + row["list"][0]
        n_inside = 0
        for gap in row["list"][1:]:
            arrived += gap
            n_inside += arrived <= start_ms + duration_s * 1000
        n_token += float(row["n_output_tokens"]) * n_inside / (len(row["list"]) - 1)
        n_request += arrived <= start_ms + duration_s * 1000
    mean = rows_of(file).loc["mean"]
    assert mean["output_throughput_token_per_s"] == pytest.approx(n_token / duration_s, rel=1e-5)
    assert mean["request_throughput_per_s"] == pytest.approx(n_request / duration_s, rel=1e-5)


def test_throughput_excludes_tokens_after_the_duration(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text(RUN + '200,m,2,1,T4,1700000007000,10,100,4,"[1000, 1000, 1000, 1000, 1000]"\n')
    mean = rows_of(file).loc["mean"]
    assert mean["output_throughput_token_per_s"] == pytest.approx((3 + 2) / 10)
    assert mean["request_throughput_per_s"] == pytest.approx(1 / 10)


@pytest.mark.parametrize("numbers", ["0,1,T4,1700000000000,10,100,3", "2,1,T4,1700000000000,10,0,3"])
def test_a_number_of_0_is_refused(tmp_path: Path, numbers: str) -> None:
    (file := tmp_path / "run.csv").write_text(RUN.replace("2,1,T4,1700000000000,10,100,3", numbers))
    with pytest.raises(SchemaError, match=r"line 2: n\w+s: must be a number of at least 1, got 0"):
        read_measurements("llm_pilot", [file], "pilot")


def test_a_request_without_a_token_is_counted_as_failed(tmp_path: Path) -> None:
    (file := tmp_path / "run.csv").write_text(RUN + '200,m,2,1,T4,1700000000000,10,100,3,"[5]"\n')
    assert rows_of(file)[["n_request", "n_failed"]].iloc[0].tolist() == [2, 1]


def test_a_run_has_a_row_per_statistic_and_throughput_in_the_mean_alone() -> None:
    rows = rows_of(CRASHING)
    assert list(rows.index) == ["mean", "p50", "p90", "p95", "p99"]
    assert rows["output_throughput_token_per_s"].notna().tolist() == [True, False, False, False, False]
    assert (rows["ttft_s"].drop("mean").diff().dropna() >= 0).all()


def test_the_configuration_is_that_of_the_campaign() -> None:
    row = rows_of(CRASHING).loc["mean"]
    assert row["model"] == "EleutherAI/gpt-neox-20b"
    assert row["accelerator"] == "nvidia-h100-sxm-80gb"
    assert (row["n_accelerator"], row["tp"], row["concurrency"]) == (1, 1, 128)
    assert (row["engine"], row["weight_precision"], row["kv_precision"]) == ("tgis", "fp16", "fp16")
    assert row["load"] == "closed_loop"
    assert row["date"] == "2023-10-12"
    assert row["flash_attention"]


def test_failed_requests_are_counted_but_not_timed() -> None:
    row = rows_of(CRASHING).loc["mean"]
    assert row["n_request"] == 30
    assert row["n_failed"] == 5


def test_models_have_catalogue_ids_and_t5_has_no_flash_attention() -> None:
    rows = read_measurements("llm_pilot", [LLM_PILOT_SAMPLES], "pilot")
    flash = dict(zip(rows["model"], rows["flash_attention"], strict=True))
    assert flash == {"EleutherAI/gpt-neox-20b": True, "google/flan-t5-xl": False, "huggyllama/llama-7b": True}
    assert len(FLASH_ATTENTION) == 10
    assert len(ACCELERATORS) == 5


def test_folder_files_and_archive_give_the_same_rows(tmp_path: Path) -> None:
    file = tmp_path / "raw.tar.xz"
    with tarfile.open(file, "w:xz") as archive:
        archive.add(LLM_PILOT_SAMPLES, arcname="raw")
    ids = [
        sorted(row_ids(read_measurements("llm_pilot", paths, "pilot")))
        for paths in ([LLM_PILOT_SAMPLES], FILES, [file], FILES[::-1])
    ]
    assert ids[0] == ids[1] == ids[2] == ids[3]
    assert detect_format([file]).name == "llm_pilot"


def test_the_progress_callback_gets_every_file() -> None:
    names: list[str] = []

    def watch(sources: Any) -> Any:
        for source in sources:
            names.append(source.name)
            yield source

    read_measurements("llm_pilot", [LLM_PILOT_SAMPLES], "pilot", watch)
    assert names == [file.name for file in FILES]


def test_a_truncated_line_is_refused_with_its_number(tmp_path: Path) -> None:
    lines = FILES[0].read_bytes().splitlines(keepends=True)
    file = tmp_path / "run.csv"
    for line in (2, 11, 31):
        for share in (0.02, 0.1, 0.2, 0.3, 0.5, 0.7, 0.95):
            text = lines[line - 1]
            file.write_bytes(b"".join(lines[: line - 1]) + text[: int(len(text) * share)])
            with pytest.raises(SchemaError) as caught:
                read_measurements("llm_pilot", [file], "pilot")
            assert (caught.value.source, caught.value.line) == ("run.csv", line)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (",200,", ",ok,", "status"),
        ("H100", "H101", "gpu_type"),
        (",EleutherAI/gpt-neox-20b,", ",another,", "model"),
        (",128,", ",64,", "num_users"),
        ('"[', '"[-', "latency_ms_per_token"),
        ('"[', '"[NaN, ', "latency_ms_per_token"),
        ('"[', '"[[', "latency_ms_per_token"),
        ('"[', '"[true, ', "latency_ms_per_token"),
        ('"[', '"', "latency_ms_per_token"),
        ('"[', '"' + "[" * 5000, "latency_ms_per_token"),
    ],
)
def test_an_invalid_line_is_refused_with_line_and_field(tmp_path: Path, old: str, new: str, field: str) -> None:
    file = tmp_path / "run.csv"
    file.write_bytes(with_line(CRASHING, 7, old, new))
    with pytest.raises(SchemaError) as caught:
        read_measurements("llm_pilot", [file], "pilot")
    assert caught.value.field == field
    assert (caught.value.source, caught.value.line) == ("run.csv", 7)


def test_lines_with_more_cells_than_the_header_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    header, *lines = CRASHING.read_text().splitlines(keepends=True)
    file.write_text(header + "".join("7," + line for line in lines))
    with pytest.raises(SchemaError, match=r"run\.csv, line 2: must have 19 cells as the header has, got 20"):
        read_measurements("llm_pilot", [file], "pilot")


def test_damaged_files_are_refused_or_valid(tmp_path: Path) -> None:
    rng = random.Random(0)  # noqa: S311
    file = tmp_path / "run.csv"
    original = CRASHING.read_bytes()
    n_refused = 0
    for _ in range(60):
        content = bytearray(original)
        for _ in range(rng.choice([1, 3, 20])):
            place = rng.randrange(len(content))
            content[place : place + rng.choice([0, 1, 40])] = rng.choice(
                [b"", b",", b'"', b"\n", b"[", b"nan", b"-", b"1e999", b"\x00", b"\xff", b"9" * 30, b"\r"]
            )
        file.write_bytes(content)
        try:
            assert len(read_measurements("llm_pilot", [file], "pilot")) == 5
        except SchemaError as error:
            n_refused += 1
            assert error.source == "run.csv"  # noqa: PT017
    assert n_refused > 20


def test_an_unknown_gpu_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text(CRASHING.read_text().replace(",H100,", ",L4,"))
    with pytest.raises(SchemaError, match="gpu_type: must be one of T4, V100, A10, A100, H100, got 'L4'"):
        read_measurements("llm_pilot", [file], "pilot")


def test_a_run_without_a_completed_request_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    lines = CRASHING.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], *lines[-5:]]))
    with pytest.raises(SchemaError, match="no request completed"):
        read_measurements("llm_pilot", [file], "pilot")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"model,ttft\nx,1\n", "status: no such column: this is no raw file of LLM-Pilot"),
        (bytes(range(256)) * 20, "must be UTF-8|no such column|not valid CSV|another number"),
        (CRASHING.read_bytes().split(b"\n")[0] + b"\n", "holds no request below its header"),
        (b"a,b\n1,2\n1,2,3\n", "no such column|another number of cells"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "run.csv"
    file.write_bytes(content)
    assert FORMATS["llm_pilot"].recognises(content) is (b"latency_ms" in content)
    with pytest.raises(SchemaError, match=problem) as caught:
        read_measurements("llm_pilot", [file], "pilot")
    assert caught.value.source == "run.csv"
