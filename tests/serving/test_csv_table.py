from __future__ import annotations

import pytest

from roofcast.data.errors import SchemaError
from roofcast.serving.csv_table import parse_table


def test_a_row_has_the_line_on_which_it_starts() -> None:
    content = b'model,note\na,"one\ntwo\nthree"\n\nb,x\n"c","y\nz"\n'
    table = parse_table(content, "run.csv")
    assert table.lines == [2, 6, 7]
    assert [row[0] for row in table.rows] == ["a", "b", "c"]


@pytest.mark.parametrize("row", ["b", "b,x,y", 'b,"x\n', 'b,"x"y'])
def test_a_row_that_cannot_be_read_is_named_by_its_first_line(row: str) -> None:
    content = f'model,note\na,"one\ntwo"\n{row}\n'
    with pytest.raises(SchemaError, match="line 4"):
        parse_table(content.encode(), "run.csv")
