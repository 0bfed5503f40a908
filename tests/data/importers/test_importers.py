import shutil
from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers import FORMATS, detect_format, read_measurements
from roofcast.data.measurements.schema import OUTCOME_COLUMNS
from roofcast.data.specs import STATISTICS
from tests.data.importers.clients import rows, with_changes
from tests.data.row_builders import LLM_PILOT_SAMPLES, SAMPLES, a_table


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    file = tmp_path / "own.csv"
    a_table().drop(columns="campaign").to_csv(file, index=False)
    return file


def test_the_registry_lists_the_outcomes_of_each_format() -> None:
    for name, entry in FORMATS.items():
        assert entry.name == name
        assert entry.title
        assert set(entry.delivers) <= set(OUTCOME_COLUMNS)
        assert set(entry.statistics) <= set(STATISTICS)


def test_formats_are_detected_by_content(csv_file: Path) -> None:
    assert detect_format([csv_file]).name == "roofcast_csv"
    assert detect_format([LLM_PILOT_SAMPLES]).name == "llm_pilot"


def test_each_file_is_recognised_by_one_format(csv_file: Path) -> None:
    for file in [csv_file, *LLM_PILOT_SAMPLES.glob("*.csv")]:
        assert sum(entry.recognises(file.read_bytes()) for entry in FORMATS.values()) == 1


def test_the_campaign_is_named_after_the_format_by_default(csv_file: Path) -> None:
    assert set(read_measurements(None, [csv_file])["campaign"]) == {"roofcast_csv"}
    assert set(read_measurements("roofcast_csv", [csv_file], "mine")["campaign"]) == {"mine"}


def test_an_unknown_format_is_refused_with_similar_names(csv_file: Path) -> None:
    with pytest.raises(UnknownNameError, match="format: no 'llm_pilo' is known; did you mean 'llm_pilot'"):
        read_measurements("llm_pilo", [csv_file])


@pytest.mark.parametrize("name", [None, *FORMATS])
@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02\x03", b"a,b\n1,2\n", b"\xfd7zXZ\x00junk"])
def test_every_format_refuses_other_files(tmp_path: Path, name: str | None, content: bytes) -> None:
    file = tmp_path / "strange.csv"
    file.write_bytes(content)
    with pytest.raises(SchemaError, match=r"strange\.csv"):
        read_measurements(name, [file])


def test_one_invalid_file_refuses_the_import(csv_file: Path, tmp_path: Path) -> None:
    invalid = tmp_path / "zzz.csv"
    invalid.write_text(csv_file.read_text().replace("0.25", "-1"))
    with pytest.raises(SchemaError, match=r"zzz\.csv, line 2: ttft_s"):
        read_measurements(None, [tmp_path])


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file or folder"):
        read_measurements(None, [tmp_path / "gone.csv"])


def test_files_of_several_formats_are_refused(tmp_path: Path) -> None:
    for name in ("vllm_bench/default.json", "sglang_bench/sweep.jsonl"):
        shutil.copy(SAMPLES / name, tmp_path)
    with pytest.raises(SchemaError, match=r"several formats: .*vllm_bench.*sglang_bench.*each format by itself"):
        read_measurements(None, [tmp_path], "nightly")


def test_a_truncated_file_of_unknown_format_is_reported_as_truncated(tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text('{"backend": "vllm", "completed": 10')
    with pytest.raises(SchemaError, match=r"cut\.json, line 1: ends early: the file is truncated"):
        detect_format([file])


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vllm_bench/default.json", "model_id"),
        ("guidellm/rate.json", "metadata.guidellm_version"),
        ("aiperf/concurrency_2.json", "aiperf_version"),
    ],
)
def test_a_lone_surrogate_is_refused_with_its_field(tmp_path: Path, name: str, path: str) -> None:
    file = with_changes(name, tmp_path, {path: "a\ud800"})
    with pytest.raises(SchemaError, match=r"half of a surrogate pair, got 'a\\ud800'") as caught:
        rows(file, name=name.partition("/")[0])
    assert caught.value.field == path


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("vllm_bench/detailed.json", r"\d+"),
        ("inferencemax/agg_single_node.json", r"\d+"),
        ("llm_perf/benchmark.json", r"\d+"),
        ("sglang_bench/sweep.jsonl", "[123]"),
        ("aiperf/concurrency_2.jsonl", r"\d+"),
        ("guidellm/rate.csv", "[1-4]"),
    ],
)
def test_a_truncated_file_is_refused_with_its_line(tmp_path: Path, name: str, line: str) -> None:
    content = (SAMPLES / name).read_bytes()
    file = tmp_path / Path(name).name
    for n_byte in (len(content) // 100, len(content) // 2, len(content) - 30):
        file.write_bytes(content[:n_byte])
        with pytest.raises(
            SchemaError, match=rf"{file.name}(, line {line})?: (ends early|is not valid|must have|is no)"
        ):
            rows(file, name=name.partition("/")[0], model=None)
