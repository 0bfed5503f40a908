"""`docs/METRICS.md` defines every outcome, statistic, load and delivery of a format."""

from pathlib import Path

import pytest

from codegen.docs_tables import TABLES, main, with_tables
from roofcast.data.importers import FORMATS
from roofcast.data.measurements.schema import MEAN_ONLY_COLUMNS, OUTCOME_COLUMNS, SCHEMA
from roofcast.data.specs import STATISTICS

TEXT = (Path(__file__).parents[2] / "docs" / "METRICS.md").read_text(encoding="utf-8")
REGENERATE = "python -m codegen.docs_tables docs/METRICS.md"


@pytest.mark.parametrize("name", [*OUTCOME_COLUMNS, *STATISTICS, *SCHEMA["load"].choices])
def test_every_outcome_statistic_and_load_is_defined(name: str) -> None:
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{name}` | "))
    if name in OUTCOME_COLUMNS:
        assert row.split("|")[4].strip() == ("mean" if name in MEAN_ONLY_COLUMNS else "mean and percentiles")


def test_the_table_of_formats_is_written_from_the_code() -> None:
    assert with_tables(TEXT, TABLES) == TEXT, f"run: {REGENERATE}"
    for entry in FORMATS.values():
        for column in entry.delivers:
            assert f"| `{entry.name}` | `{column}` |" in TEXT, f"run: {REGENERATE}"


def test_a_table_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "x.md"
    file.write_text("before\n<!-- formats -->\nold\n<!-- end -->\nafter\n")
    main([str(file)])
    lines = file.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    assert len(lines) == 6 + sum(len(entry.delivers) for entry in FORMATS.values())
