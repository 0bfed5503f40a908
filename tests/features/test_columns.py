import pytest

from roofcast.features.columns import DESCRIPTORS, FEATURES, Column
from tests.every_row import for_every


@pytest.mark.parametrize("table", [DESCRIPTORS, FEATURES], ids=["descriptors", "features"])
def test_names_are_unique(table: tuple[Column, ...]) -> None:
    assert len({column.name for column in table}) == len(table)


@for_every([*DESCRIPTORS, *FEATURES])
def test_a_name_is_a_group_and_a_meaning(column: Column) -> None:
    assert column.name.partition(".")[0] in {"model", "hardware", "config", "workload", "memory", "roofline"}
    assert column.name.count(".") == 1
    assert column.meaning.endswith(".")
    assert column.unit.startswith("log ") == column.name.endswith("_log")


def test_what_depends_on_the_answer_is_no_feature() -> None:
    assert {column.name for column in FEATURES if column.sign} == {"workload.quantile"}
