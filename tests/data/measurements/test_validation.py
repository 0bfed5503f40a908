import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.errors import SchemaError
from roofcast.data.measurements.schema import MEASUREMENT_COLUMNS, NUMBER_COLUMNS, OUTCOME_COLUMNS
from roofcast.data.measurements.validation import row_ids, validate_measurements
from tests.data.row_builders import a_row, a_table, many_rows
from tests.effort import n_example


def test_blanks_are_filled_in_the_order_of_the_schema() -> None:
    checked = validate_measurements(a_table())
    assert tuple(checked.columns) == MEASUREMENT_COLUMNS
    row = checked.iloc[0]
    assert row["load"] == "closed_loop"
    assert row["status"] == "ok"
    assert row["engine"] == ""
    assert bool(row["flash_attention"]) is True
    assert math.isnan(row["tp"])


def test_load_follows_from_the_request_rate() -> None:
    checked = validate_measurements(a_table(a_row(concurrency=None, request_rate=2.5), a_row(concurrency="4")))
    assert checked["load"].tolist() == ["open_loop", "closed_loop"]


def test_an_empty_table_has_the_column_types() -> None:
    checked = validate_measurements(pd.DataFrame({"model": []}))
    assert len(checked) == 0
    assert tuple(checked.columns) == MEASUREMENT_COLUMNS
    assert all(checked[name].dtype == float for name in NUMBER_COLUMNS)
    assert row_ids(checked) == []


def test_an_absent_column_is_one_of_blanks() -> None:
    table = a_table(a_row(), a_row(concurrency=None, request_rate=2.0))
    absent = [name for name in MEASUREMENT_COLUMNS if name not in table]
    assert len(absent) > 40
    pd.testing.assert_frame_equal(
        validate_measurements(table.assign(**dict.fromkeys(absent))), validate_measurements(table)
    )


def test_validating_twice_changes_nothing() -> None:
    once = many_rows(50)
    pd.testing.assert_frame_equal(validate_measurements(once), once)


def test_the_first_wrong_value_of_each_column_is_reported() -> None:
    rows = a_row(), a_row(ttft_s="fast", statistic="median"), a_row(ttft_s="slow", note="=1")
    with pytest.raises(SchemaError) as error:
        validate_measurements(a_table(*rows), "run.csv", 2)
    first, *further = error.value.all
    assert first.message == "run.csv, line 3: ttft_s: must be a number, got 'fast'"
    assert str(error.value) == "; ".join([first.message, *(one.message for one in further)])
    assert [one.message.split(": ")[:2] for one in further] == [
        ["run.csv, line 3", "statistic"],
        ["run.csv, line 4", "note"],
    ]


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("n_accelerator", 0, "must be between 1 and 100000, got 0.0"),
        ("n_accelerator", 1.5, "must be a whole number"),
        ("n_accelerator", None, "must be given, got a blank"),
        ("n_input_token", -1, "must be between 1e-09 and 1e+07, got -1.0"),
        ("ttft_s", math.inf, "must be between 1e-07 and 86400, got inf"),
        ("ttft_s", "inf", "must be between 1e-07 and 86400, got inf"),
        ("ttft_s", "nan", "must be a number, got 'nan'"),
        ("ttft_s", "fast", "must be a number, got 'fast'"),
        ("ttft_s", 10**400, "must hold numbers alone"),
        ("ttft_s", [1], "must be a number, got [1]"),
        ("model", "", "must be a text of 1 to 400 characters, got a blank"),
        ("model", None, "must be a text of 1 to 400 characters, got a blank"),
        ("model", " x", "must not begin or end with a space"),
        ("model", "m" * 5000, "must be a text of 1 to 400 characters"),
        *(("model", f"a{c}b", "no control or invisible character") for c in "\t\n\x00\u202e\x7f\ud800"),
        *(("note", text, "a spreadsheet would run as a formula") for text in ("=1+1", "+x", "-x", "@cmd")),
        ("statistic", "p42", "must be one of mean, p50, p90, p95, p99, got 'p42'"),
        ("load", "bursty", "must be one of closed_loop, open_loop, static_batch, offline, got 'bursty'"),
        ("date", "2025-13-01", "must be a date such as 2025-03-31"),
        ("date", "yesterday", "must be a date such as 2025-03-31"),
        ("date", "2025-W01-1", "must be a date such as 2025-03-31"),
        ("flash_attention", "maybe", "must be true or false, got 'maybe'"),
        ("flash_attention", 2, "must be true or false, got 2"),
    ],
)
def test_invalid_values_are_refused_with_file_line_and_field(field: str, value: object, problem: str) -> None:
    table = a_table(a_row(), a_row(**{field: value}))
    with pytest.raises(SchemaError) as caught:
        validate_measurements(table, "run.csv", lines=2)
    assert caught.value.field == field
    assert problem in str(caught.value)
    assert caught.value.source == "run.csv"
    assert caught.value.line == (0 if "numbers alone" in problem else 3)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"n_request": 3, "n_failed": 4}, "n_failed: must not exceed n_request"),
        ({"n_prefill_accelerator": 5, "n_decode_accelerator": 7}, "n_prefill_accelerator: must add up"),
        ({"derived": "ttft_s speed"}, "derived: must name outcome columns"),
        ({"ttft_ms": 1}, "give ttft_s, in seconds"),
        ({"modell": 1}, "did you mean model"),
        ({"zzzzzz": 1}, "`roofcast reference` lists the names"),
        ({"gpu_type": 1}, "did you mean accelerator"),
        ({"TP": 1}, r"did you mean tp\?"),
    ],
)
def test_inconsistent_cells_and_unknown_columns_are_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        validate_measurements(a_table(a_row(**changes)))


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        *(("flash_attention", value, True) for value in ("true", "1", 1, True, "")),
        *(("flash_attention", value, False) for value in ("FALSE", "0", 0.0)),
        *(("date", date, date) for date in ("", "2024", "2024-02", "2024-02-29")),
        *(("model", name, name) for name in ("模型/七十亿", "Ünïcode/模-7b", "модель")),
    ],
)
def test_valid_values_are_parsed(column: str, value: object, stored: object) -> None:
    table = a_table(a_row(**{column: value}), a_row(flash_attention="true"))
    assert validate_measurements(table)[column].iloc[0] == stored


def test_a_repeated_column_is_refused() -> None:
    table = a_table()
    table.insert(0, "model", "x", allow_duplicates=True)
    with pytest.raises(SchemaError, match="given twice"):
        validate_measurements(table)


@pytest.mark.parametrize(
    ("blank", "exception", "problem"),
    [
        ({"ttft_s": None}, {"status": "out_of_memory"}, "at least one outcome"),
        ({"concurrency": None}, {"load": "offline"}, "give concurrency or request_rate"),
    ],
)
def test_outcome_and_load_are_required(blank: dict[str, object], exception: dict[str, object], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        validate_measurements(a_table(a_row(**blank)))
    assert len(validate_measurements(a_table(a_row(**blank | exception)))) == 1


def test_row_ids_depend_on_all_columns_alone() -> None:
    table = many_rows(30)
    ids = row_ids(table)
    assert len(set(ids)) == 30
    assert row_ids(table.iloc[::-1]) == ids[::-1]
    for name in OUTCOME_COLUMNS:
        assert not set(row_ids(table.assign(**{name: 0.125}))) & set(ids)


def test_row_ids_are_pinned() -> None:
    """With another id, an import would store every known row again."""
    assert row_ids(validate_measurements(a_table())) == ["1568b624e3e993c7dc40e75c5275a43e"]


@settings(max_examples=n_example(8), deadline=None)
@given(values=st.lists(st.floats(min_value=1e-7, max_value=86_400), min_size=1, max_size=50))
def test_numbers_survive_as_text(values: list[float]) -> None:
    as_numbers = validate_measurements(a_table(*(a_row(ttft_s=value) for value in values)))
    as_texts = validate_measurements(a_table(*(a_row(ttft_s=repr(value)) for value in values)))
    assert row_ids(as_numbers) == row_ids(as_texts)


@settings(max_examples=n_example(20), deadline=None)
@given(text=st.text(max_size=500))
def test_any_text_is_unchanged_or_refused(text: str) -> None:
    try:
        checked = validate_measurements(a_table(a_row(note=text)))
    except SchemaError as error:
        assert error.field == "note"  # noqa: PT017
    else:
        assert checked["note"].tolist() == [text]
