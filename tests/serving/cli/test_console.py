"""Progress of a retraining, tables, and a closed standard output."""

import datetime as dt
import io
import os
import sys

import pytest
from rich.console import Console

from roofcast.serving.cli import console
from roofcast.serving.cli.console import WIDTH, report_errors, show, table_text, track, track_retraining


def retrain(*labels: str) -> None:
    progress = track_retraining()
    for label in labels:
        assert list(progress("ab", 2, label)) == ["a", "b"]


def redirect_errors(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> io.StringIO:
    output = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=output, force_terminal=is_terminal, width=100))
    return output


def test_without_a_terminal_each_step_of_a_retraining_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    output = redirect_errors(monkeypatch, is_terminal=False)
    retrain("held-out lineages", "held-out stacks", "held-out lineages")
    assert output.getvalue().splitlines() == [
        "loading the measurements",
        "candidate, held-out lineages: 1 of 2",
        "candidate, held-out lineages: 2 of 2",
        "candidate, held-out lineages: done",
        "candidate, held-out stacks: 1 of 2",
        "candidate, held-out stacks: 2 of 2",
        "candidate, held-out stacks: done",
        "champion, held-out lineages: 1 of 2",
        "champion, held-out lineages: 2 of 2",
        "champion, held-out lineages: done",
    ]


def test_on_a_terminal_a_retraining_has_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    output = redirect_errors(monkeypatch, is_terminal=True)
    retrain("held-out lineages")
    assert "candidate, held-out lineages" in output.getvalue()
    assert "100%" in output.getvalue()
    assert "1 of 2" not in output.getvalue()


def test_without_a_terminal_there_is_no_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    output = redirect_errors(monkeypatch, is_terminal=False)
    assert list(track([1, 2])) == [1, 2]
    assert output.getvalue() == ""


def test_a_table_shows_times_to_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=output, width=100))
    show([{"made": dt.datetime(2026, 11, 22, 5, 0, 39, 364856, dt.UTC)}], as_json=False)
    assert output.getvalue().split("\n")[1].strip() == "2026-11-22 05:00 UTC"


def test_a_closed_standard_output_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with report_errors():
            print("listed")
        monkeypatch.undo()


WIDE = {"model": "owner/a-model-of-a-long-name", "accelerator": "nvidia-h100-sxm-80gb", "engine": "vllm", "note": ""}


def test_a_wide_table_names_what_is_equal_in_all_rows_once() -> None:
    text = table_text([{**WIDE, "concurrency": n, "import_id": "f" * 32} for n in (16, 32)])

    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.count("nvidia-h100-sxm-80gb") == 1
    assert "note" not in text
    assert text.splitlines()[-3:] == ["concurrency", "16", "32"]


def test_a_table_that_stays_too_wide_becomes_a_paragraph_for_each_row() -> None:
    rows = [{name: f"{name}-{n}-of-some-length" for name in ("model", "accelerator", "engine", "key")} for n in "ab"]
    text = table_text(rows)

    assert max(map(len, text.splitlines())) <= WIDTH
    assert [line.split(",")[0] for line in text.splitlines() if not line.startswith(" ")] == [
        "model model-a-of-some-length",
        "model model-b-of-some-length",
    ]


def test_a_table_of_equal_rows_keeps_its_columns() -> None:
    assert "the same in each row" not in table_text([WIDE, WIDE], 40)


def test_a_wide_table_has_a_part_for_each_group() -> None:
    rows = [
        {"provider": provider, "accelerator": "a" * 50, "price": n, "as_of": "b" * 20}
        for provider, n in zip("xyy", (1, 2, 3), strict=True)
    ]
    first, second = table_text(rows, WIDTH, ["provider"]).split("\n\n")

    assert first.startswith("provider x")
    assert second.splitlines()[0].startswith("the same in each row: provider y")
    assert second.splitlines()[-3:] == ["price", "2", "3"]
    assert "the same" not in table_text(rows, 200, ["provider"])
