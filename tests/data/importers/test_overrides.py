from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.errors import InputError, SchemaError, UnknownNameError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.overrides import (
    EXAMPLES,
    OVERRIDABLE_COLUMNS,
    MissingColumnsError,
    check_overrides,
    check_required,
    fill_blanks,
)
from roofcast.data.importers.sources import files_of, start_of, without_twins
from roofcast.data.measurements.schema import OUTCOME_COLUMNS, QUESTION_COLUMNS
from tests.data.importers.clients import rows, sample
from tests.data.row_builders import LLM_PILOT_SAMPLES, a_table


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    file = tmp_path / "own.csv"
    a_table().drop(columns="campaign").assign(engine="", accelerator="").to_csv(file, index=False)
    return file


def test_outcomes_and_columns_of_the_import_cannot_be_set() -> None:
    assert not set(OVERRIDABLE_COLUMNS) & {*OUTCOME_COLUMNS, "statistic", "campaign", "status", "derived"}
    assert set(EXAMPLES) <= set(OVERRIDABLE_COLUMNS) & set(QUESTION_COLUMNS)
    for name in ("ttft_s", "statistic", "acelerator", ""):
        with pytest.raises(UnknownNameError, match="column: no "):
            check_overrides({name: "1"})
    with pytest.raises(UnknownNameError, match="did you mean 'accelerator'"):
        check_overrides({"acelerator": "x"})


@pytest.mark.parametrize("value", ["", "  ", None, float("nan")])
def test_a_blank_override_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="engine: must not be blank; leave it out"):
        check_overrides({"engine": value})


@pytest.mark.parametrize("value", ["two", "nan", "inf", "1e999", [1]])
def test_a_number_column_refuses_other_values(value: object) -> None:
    with pytest.raises(InputError, match="tp: must be a number, got"):
        check_overrides({"tp": value})


def test_blanks_are_filled_and_equal_values_do_not_conflict() -> None:
    overrides = check_overrides({"tp": "2", "engine": "vllm", "accelerator": "a"})
    cells = {"tp": 2, "engine": float("nan"), "model": "m"}
    assert fill_blanks(cells, overrides, "run.json") == {"tp": 2, "engine": "vllm", "model": "m", "accelerator": "a"}


def test_the_error_of_a_conflict_has_file_line_field_and_how_to_rename() -> None:
    with pytest.raises(SchemaError) as caught:
        fill_blanks({"engine": "sglang"}, check_overrides({"engine": "vllm"}), "run.jsonl", 3)
    assert str(caught.value) == (
        "run.jsonl, line 3: engine: is 'sglang' in the file, but is set to 'vllm'; leave it out, or set "
        "engine:sglang=vllm to rename it"
    )
    with pytest.raises(SchemaError) as caught:
        fill_blanks({"engine": "\ud800\x1b[2J"}, {"engine": "vllm"}, "run.json")
    assert str(caught.value).isprintable()
    assert fill_blanks({"engine": "sglang"}, {"engine:sglang": "vllm"}, "x") == {"engine": "vllm"}
    assert fill_blanks({"engine": "tgi"}, {"engine:sglang": "vllm"}, "x") == {"engine": "tgi"}


def test_the_error_names_all_missing_columns() -> None:
    cells: dict[str, object] = {}
    for n_known, (column, example) in enumerate(EXAMPLES.items()):
        with pytest.raises(MissingColumnsError) as caught:
            check_required(cells, "run.json", 3)
        assert (caught.value.field, caught.value.source, caught.value.line) == (column, "run.json", 3)
        assert caught.value.columns == (*tuple(EXAMPLES)[n_known:], "engine")
        assert f"{column}: is not in the file; set what is missing, such as --set {column}=" in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
        cells[column] = example
    check_required(cells, "run.json")
    with pytest.raises(MissingColumnsError) as caught:
        check_required(cells | {"engine": "sglang", "model": ""}, "run.json")
    assert caught.value.columns == ("model",)
    del cells["concurrency"]
    check_required({**cells, "request_rate": 4}, "run.json")
    check_required({**cells, "load": "offline"}, "run.json")


def test_every_format_accepts_overrides(csv_file: Path) -> None:
    table = read_measurements(None, [csv_file], overrides={"engine": "vllm", "accelerator": "nvidia-l4-24gb"})
    assert table[["engine", "accelerator"]].iloc[0].tolist() == ["vllm", "nvidia-l4-24gb"]
    with pytest.raises(SchemaError, match=r"own\.csv, line 2: n_accelerator: is '1' in the file"):
        read_measurements(None, [csv_file], overrides={"accelerator": "a", "n_accelerator": 3})
    pilot = read_measurements(None, [LLM_PILOT_SAMPLES], overrides={"note": "again"})
    assert set(pilot["note"]) == {"again"}
    with pytest.raises(SchemaError, match="engine: is 'tgis' in the file, but is set to 'vllm'"):
        read_measurements(None, [LLM_PILOT_SAMPLES], overrides={"engine": "vllm"})


def test_the_error_names_only_the_missing_option() -> None:
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
