from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.overrides import (
    EXAMPLES,
    GIVABLE_COLUMNS,
    MissingColumnsError,
    check_given,
    check_known,
    fill,
)
from roofcast.data.importers.sources import files_of, start_of, without_twins
from roofcast.data.measurements.schema import OUTCOME_COLUMNS, QUESTION_COLUMNS
from tests.data.importers.clients import rows, sample
from tests.data.row_builders import LLM_PILOT_SAMPLES, a_table


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.csv"
    a_table().drop(columns="campaign").assign(engine="", accelerator="").to_csv(file, index=False)
    return file


def test_no_outcome_and_nothing_of_the_tables_own_can_be_given() -> None:
    assert not set(GIVABLE_COLUMNS) & {*OUTCOME_COLUMNS, "statistic", "campaign", "status", "derived"}
    assert set(EXAMPLES) <= set(GIVABLE_COLUMNS) & set(QUESTION_COLUMNS)
    for name in ("ttft_s", "statistic", "acelerator", ""):
        with pytest.raises(UnknownNameError, match="column: no "):
            check_given({name: "1"})
    with pytest.raises(UnknownNameError, match="did you mean 'accelerator'"):
        check_given({"acelerator": "x"})


@pytest.mark.parametrize("value", ["", "  ", None, float("nan")])
def test_a_blank_is_not_given(value: object) -> None:
    with pytest.raises(InputError, match="engine: must not be blank where it is given"):
        check_given({"engine": value})


@pytest.mark.parametrize("value", ["two", "nan", "inf", "1e999", [1]])
def test_what_must_be_a_number_is_one(value: object) -> None:
    with pytest.raises(InputError, match="tp: must be a number, got"):
        check_given({"tp": value})


def test_blanks_are_filled_and_the_same_twice_is_no_conflict() -> None:
    given = check_given({"tp": "2", "engine": "vllm", "accelerator": "a"})
    cells = {"tp": 2, "engine": float("nan"), "model": "m"}
    assert fill(cells, given, "run.json") == {"tp": 2, "engine": "vllm", "model": "m", "accelerator": "a"}


def test_a_conflict_names_file_line_and_field_and_how_to_rename() -> None:
    with pytest.raises(SchemaError) as caught:
        fill({"engine": "sglang"}, check_given({"engine": "vllm"}), "run.jsonl", 3)
    assert str(caught.value) == (
        "run.jsonl, line 3: engine: the file says 'sglang' and 'vllm' was given; leave it out, or give "
        "engine:sglang=vllm to rename it"
    )
    with pytest.raises(SchemaError) as caught:
        fill({"engine": "\ud800\x1b[2J"}, {"engine": "vllm"}, "run.json")
    assert str(caught.value).isprintable()
    assert fill({"engine": "sglang"}, {"engine:sglang": "vllm"}, "x") == {"engine": "vllm"}
    assert fill({"engine": "tgi"}, {"engine:sglang": "vllm"}, "x") == {"engine": "tgi"}


def test_all_that_a_row_must_have_is_asked_for_at_once() -> None:
    cells: dict[str, object] = {}
    for n_known, (column, example) in enumerate(EXAMPLES.items()):
        with pytest.raises(MissingColumnsError) as caught:
            check_known(cells, "run.json", 3)
        assert (caught.value.field, caught.value.source, caught.value.line) == (column, "run.json", 3)
        assert caught.value.columns == tuple(EXAMPLES)[n_known:]
        assert f"{column}: is not in the file; give what is missing, such as --set {column}=" in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
        cells[column] = example
    check_known(cells, "run.json")
    del cells["concurrency"]
    check_known({**cells, "request_rate": 4}, "run.json")
    check_known({**cells, "load": "offline"}, "run.json")


def test_every_format_takes_what_is_given(own: Path) -> None:
    table = read_measurements(None, [own], given={"engine": "vllm", "accelerator": "nvidia-l4-24gb"})
    assert table[["engine", "accelerator"]].iloc[0].tolist() == ["vllm", "nvidia-l4-24gb"]
    with pytest.raises(SchemaError, match=r"own\.csv, line 2: n_accelerator: the file says"):
        read_measurements(None, [own], given={"accelerator": "a", "n_accelerator": 3})
    pilot = read_measurements(None, [LLM_PILOT_SAMPLES], given={"note": "again"})
    assert set(pilot["note"]) == {"again"}
    with pytest.raises(SchemaError, match="engine: the file says 'tgis' and 'vllm' was given"):
        read_measurements(None, [LLM_PILOT_SAMPLES], given={"engine": "vllm"})


def test_nothing_but_the_asked_for_option_is_missing() -> None:
    with pytest.raises(SchemaError, match=r"accelerator: .* such as --set accelerator=nvidia-h100-sxm-80gb"):
        rows(sample("vllm_bench/default.json"), model=None, accelerator=None)
    assert isinstance(rows(sample("vllm_bench/default.json"), model=None), pd.DataFrame)


def test_folders_are_searched_for_any_of_the_suffixes(tmp_path: Path) -> None:
    for name in ("a.json", "a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text(name)
    files = files_of([tmp_path], ".json", ".csv")
    assert [file.name for file in files] == ["a.csv", "a.json", "b.csv"]
    assert [file.name for file in without_twins(files, ".json")] == ["a.json", "b.csv"]
    assert start_of(tmp_path / "a.json") == b"a.json"
    with pytest.raises(SchemaError, match=r"the folder holds no \*\.xml or \*\.jsonl file"):
        files_of([tmp_path], ".xml", ".jsonl")
