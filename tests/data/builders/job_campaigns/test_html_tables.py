from __future__ import annotations

from pathlib import Path

from builders.job_campaigns.html_tables import read_html_rows


def test_cells_that_span_rows_repeat(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(
        "<table>\n<tr><th>Model</th><th>GiB</th></tr>\n<tr><td rowspan=2>qwen</td><td>1</td></tr>\n"
        "<tr><td>2</td></tr>\n</table>\n<table><tr><td>x</td></tr></table>",
        encoding="utf-8",
    )
    rows = [(row.reference, row.table, row.cells) for row in read_html_rows(file)]
    assert rows == [
        ("page.md:2", 0, ("Model", "GiB")), ("page.md:3", 0, ("qwen", "1")), ("page.md:4", 0, ("qwen", "2")),
        ("page.md:6", 1, ("x",)),
    ]  # fmt: skip
