import pytest

from roofcast.data.errors import SchemaError
from roofcast.serving.csv_table import parse_table


def test_a_row_has_the_line_on_which_it_starts() -> None:
    content = b'model,note\na,"one\ntwo\nthree"\n\nb,x\n"c","y\nz"\n'
    table = parse_table(content, "run.csv")
    assert table.lines == [2, 6, 7]
    assert [row[0] for row in table.rows] == ["a", "b", "c"]


def test_a_table_of_too_many_rows_is_refused_without_reading_further() -> None:
    content = b"model,note\na,1\nb,2\nc,3\nd,not,read\n"
    with pytest.raises(SchemaError, match="more than 2 rows"):
        parse_table(content, "run.csv", max_row=2)
    assert len(parse_table(content.partition(b"c,")[0], "run.csv", max_row=2).rows) == 2


@pytest.mark.parametrize("row", ["b", "b,x,y", 'b,"x\n', 'b,"x"y'])
def test_a_row_that_cannot_be_read_is_named_by_its_first_line(row: str) -> None:
    content = f'model,note\na,"one\ntwo"\n{row}\n'
    with pytest.raises(SchemaError, match="line 4"):
        parse_table(content.encode(), "run.csv")
