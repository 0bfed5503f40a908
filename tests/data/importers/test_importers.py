from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.data.importers import FORMATS, detect_format, read_measurements
from roofcast.data.measurements.schema import OUTCOME_COLUMNS
from roofcast.data.specs import STATISTICS
from tests.data.importers.clients import changed, rows
from tests.data.row_builders import LLM_PILOT_SAMPLES, SAMPLES, a_table


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.csv"
    a_table().drop(columns="campaign").to_csv(file, index=False)
    return file


def test_the_registry_lists_the_outcomes_of_each_format() -> None:
    for name, entry in FORMATS.items():
        assert entry.name == name
        assert entry.title
        assert set(entry.delivers) <= set(OUTCOME_COLUMNS)
        assert set(entry.statistics) <= set(STATISTICS)


def test_formats_are_detected_by_content(own: Path) -> None:
    assert detect_format([own]).name == "roofcast_csv"
    assert detect_format([LLM_PILOT_SAMPLES]).name == "llm_pilot"


def test_no_two_formats_recognise_one_file(own: Path) -> None:
    for file in [own, *LLM_PILOT_SAMPLES.glob("*.csv")]:
        assert sum(entry.recognises(file) for entry in FORMATS.values()) == 1


def test_the_campaign_is_named_after_the_format_by_default(own: Path) -> None:
    assert set(read_measurements(None, [own])["campaign"]) == {"roofcast_csv"}
    assert set(read_measurements("roofcast_csv", [own], "mine")["campaign"]) == {"mine"}


def test_an_unknown_format_lists_near_misses(own: Path) -> None:
    with pytest.raises(UnknownNameError, match="format: no 'llm_pilo' is known; did you mean 'llm_pilot'"):
        read_measurements("llm_pilo", [own])


@pytest.mark.parametrize("name", [None, *FORMATS])
@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02\x03", b"a,b\n1,2\n", b"\xfd7zXZ\x00junk"])
def test_every_format_refuses_other_files(tmp_path: Path, name: str | None, content: bytes) -> None:
    file = tmp_path / "strange.csv"
    file.write_bytes(content)
    with pytest.raises(SchemaError, match=r"strange\.csv"):
        read_measurements(name, [file])


def test_one_bad_file_among_good_ones_gives_nothing(own: Path, tmp_path: Path) -> None:
    bad = tmp_path / "zzz.csv"
    bad.write_text(own.read_text().replace("0.25", "-1"))
    with pytest.raises(SchemaError, match=r"zzz\.csv, line 2: ttft_s"):
        read_measurements(None, [tmp_path])


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file or folder"):
        read_measurements(None, [tmp_path / "gone.csv"])


def test_files_of_several_formats_are_refused_rather_than_passed_over(tmp_path: Path) -> None:
    for name in ("vllm_bench/default.json", "sglang_bench/sweep.jsonl"):
        shutil.copy(SAMPLES / name, tmp_path)
    with pytest.raises(SchemaError, match=r"several formats: .*vllm_bench.*sglang_bench.*each format by itself"):
        read_measurements(None, [tmp_path], "nightly")


def test_a_file_that_was_cut_says_so_without_a_format(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text('{"backend": "vllm", "completed": 10')
    with pytest.raises(SchemaError, match=r"cut\.json, line 1: ends early: the file is truncated"):
        detect_format([cut])


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vllm_bench/default.json", "model_id"),
        ("guidellm/rate.json", "metadata.guidellm_version"),
        ("aiperf/concurrency_2.json", "aiperf_version"),
    ],
)
def test_half_a_surrogate_pair_is_refused_with_its_field(tmp_path: Path, name: str, path: str) -> None:
    file = changed(name, tmp_path, {path: "a\ud800"})
    with pytest.raises(SchemaError, match=r"half of a surrogate pair, got 'a\\ud800'") as refused:
        rows(file, name=name.partition("/")[0])
    assert refused.value.field == path
