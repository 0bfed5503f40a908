import pytest

from tests.every_row import for_every


def test_failing_rows_alone_are_listed() -> None:
    @for_every([1, 2, 3])
    def is_even(row: int) -> None:
        assert row % 2 == 0

    with pytest.raises(AssertionError) as caught:
        is_even()
    assert [line.split(":")[0] for line in str(caught.value).splitlines() if ": AssertionError" in line] == ["1", "3"]


def test_a_test_over_no_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no rows"):
        for_every([])(lambda _: None)()
