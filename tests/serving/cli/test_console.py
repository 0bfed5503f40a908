"""How far a retraining is, and an output that nobody reads."""

from __future__ import annotations

import datetime as dt
import io
import os
import sys

import pytest
from rich.console import Console

from roofcast.serving.cli import console
from roofcast.serving.cli.console import report_errors, show, track, track_retraining


def retrain(n_round: int) -> None:
    shown = track_retraining()
    for _ in range(n_round):
        assert list(shown("ab", 2, "held-out lineages")) == ["a", "b"]


def on_terminal(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> io.StringIO:
    said = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=said, force_terminal=is_terminal, width=100))
    return said


def test_elsewhere_every_part_of_a_retraining_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = on_terminal(monkeypatch, is_terminal=False)
    retrain(2)
    assert said.getvalue().splitlines() == [
        "loading the measurements",
        "candidate, held-out lineages: 1 of 2",
        "candidate, held-out lineages: 2 of 2",
        "fitting the candidate to all measurements",
        "champion, held-out lineages: 1 of 2",
        "champion, held-out lineages: 2 of 2",
        "comparing",
    ]


def test_on_a_terminal_a_retraining_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    said = on_terminal(monkeypatch, is_terminal=True)
    retrain(1)
    assert "candidate, held-out lineages" in said.getvalue()
    assert "100%" in said.getvalue()
    assert "1 of 2" not in said.getvalue()


def test_a_bar_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    said = on_terminal(monkeypatch, is_terminal=False)
    assert list(track([1, 2])) == [1, 2]
    assert said.getvalue() == ""


def test_a_table_tells_times_to_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=said, width=100))
    show([{"made": dt.datetime(2026, 11, 22, 5, 0, 39, 364856, dt.UTC)}], as_json=False)
    assert said.getvalue().split("\n")[1].strip() == "2026-11-22 05:00 UTC"


def test_a_reader_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with report_errors():
            print("listed")
        monkeypatch.undo()
