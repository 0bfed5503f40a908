from __future__ import annotations

import dataclasses

import pytest

from roofcast.features import columns
from roofcast.features.columns import DESCRIPTORS, FEATURES, Column, fingerprint


@pytest.mark.parametrize("table", [DESCRIPTORS, FEATURES], ids=["descriptors", "features"])
def test_names_are_unique(table: tuple[Column, ...]) -> None:
    assert len({column.name for column in table}) == len(table)


@pytest.mark.parametrize("column", [*DESCRIPTORS, *FEATURES], ids=lambda c: str(c.name))
def test_a_name_is_a_group_and_a_meaning(column: Column) -> None:
    assert column.group in {"model", "hardware", "config", "workload", "memory", "roofline"}
    assert column.name.count(".") == 1
    assert column.meaning.endswith(".")
    assert column.unit.startswith("log ") == column.name.endswith("_log")


def test_what_depends_on_the_answer_is_no_feature() -> None:
    assert {column.name for column in FEATURES if column.sign} == {"workload.quantile"}


def test_the_fingerprint_is_stable() -> None:
    assert fingerprint() == fingerprint()


@pytest.mark.parametrize("change", [{"name": "model.depth"}, {"unit": "1"}, {"sign": -1}])
@pytest.mark.parametrize("table", ["DESCRIPTORS", "FEATURES"])
def test_the_fingerprint_changes_with_a_column(
    table: str, change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint()
    first, *rest = getattr(columns, table)
    monkeypatch.setattr(columns, table, (dataclasses.replace(first, **change), *rest))
    assert fingerprint() != before


@pytest.mark.parametrize("table", ["DESCRIPTORS", "FEATURES"])
def test_the_fingerprint_changes_with_the_order(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setattr(columns, table, getattr(columns, table)[::-1])
    assert fingerprint() != before


def test_the_fingerprint_ignores_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setattr(columns, "FEATURES", tuple(dataclasses.replace(c, meaning="Else.") for c in FEATURES))
    assert fingerprint() == before
