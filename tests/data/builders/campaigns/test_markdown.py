from __future__ import annotations

from pathlib import Path

import pytest

from builders.campaigns.markdown import read_markdown_rows
from roofcast.data.errors import SchemaError

TEXT = r"""# Report

## GB10
Text before.

### Decode
| Depth | a \| b |
|---:|:---|
| 128 | 61.6 |
| 512 | x \| y |

| not a table |

## B200
| Depth |
| --- |
| 1 |
"""


def test_rows_have_headings_and_cells(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_text(TEXT)
    rows = list(read_markdown_rows(file))
    assert [row.reference for row in rows] == ["report.md:9", "report.md:10", "report.md:17"]
    assert [row.headings for row in rows] == [*[("Report", "GB10", "Decode")] * 2, ("Report", "B200")]
    assert rows[1].cells == {"Depth": "512", "a | b": "x | y"}


def test_row_of_another_length_raises_schema_error(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_text("| a | b |\n|---|---|\n| 1 |\n")
    with pytest.raises(SchemaError, match="line 3: must have 2 cells"):
        list(read_markdown_rows(file))


def test_row_of_another_length_has_no_cells_where_allowed(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_text("| a | b |\n|---|---|\n| 1 |\n| c |\n|---|\n| 2 |\n")
    rows = list(read_markdown_rows(file, is_strict=False))
    assert [row.cells for row in rows] == [{}, {"c": "2"}]


def test_missing_file_raises_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such file"):
        list(read_markdown_rows(tmp_path / "report.md"))
