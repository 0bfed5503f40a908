import dataclasses

import pytest

from roofcast.features import fingerprint as fingerprint_module
from roofcast.features.columns import FEATURES
from roofcast.features.fingerprint import fingerprint


@pytest.mark.parametrize("change", [{"name": "model.depth"}, {"unit": "1"}, {"sign": -1}])
@pytest.mark.parametrize("table", ["DESCRIPTORS", "FEATURES"])
def test_the_fingerprint_changes_with_a_column(
    table: str, change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint()
    first, *rest = getattr(fingerprint_module, table)
    monkeypatch.setattr(fingerprint_module, table, (dataclasses.replace(first, **change), *rest))
    assert fingerprint() != before


@pytest.mark.parametrize("table", ["DESCRIPTORS", "FEATURES", "ENGINES", "PRECISIONS"])
def test_the_fingerprint_changes_with_the_order(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setattr(fingerprint_module, table, getattr(fingerprint_module, table)[::-1])
    assert fingerprint() != before


def test_the_fingerprint_ignores_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    monkeypatch.setattr(
        fingerprint_module, "FEATURES", tuple(dataclasses.replace(c, meaning="Else.") for c in FEATURES)
    )
    assert fingerprint() == before
