"""JSON rows in the columns of the measurement table, as `POST /v1/measurements` receives them."""

from collections.abc import Mapping, Sequence

import pandas as pd

from roofcast.data.errors import SchemaError
from roofcast.data.importers.name_check import NameCheck
from roofcast.data.importers.run_plausibility import validate_plausible

SOURCE = "rows"
"""Name of the rows in messages; their lines count from 1."""


def read_json_rows(
    rows: Sequence[Mapping[str, object]], campaign: str, names: NameCheck | None = None
) -> pd.DataFrame:
    """Return the validated measurements of JSON rows: all of them or, on the first fault, none.

    A cell that is absent, null or an empty text takes the default of its column; `campaign` is that of rows without.

    Raises `SchemaError` if a row breaks the schema, its numbers contradict each other, or `names` refuses a name;
    names row and field.
    """
    names = names or NameCheck()
    for line, row in enumerate(rows, 1):
        names.check(row, SOURCE, line)
    with names.all_errors():
        return _read(rows, campaign)


def _read(rows: Sequence[Mapping[str, object]], campaign: str) -> pd.DataFrame:
    filled = [_fill(row, campaign, line) for line, row in enumerate(rows, 1)]
    columns = dict.fromkeys(name for row in filled for name in row)
    table = pd.DataFrame({name: [row.get(name) for row in filled] for name in columns}, dtype=object)
    return validate_plausible(table, SOURCE, lines=1)


def _fill(row: Mapping[str, object], campaign: str, line: int) -> dict[str, object]:
    for name, value in row.items():
        if isinstance(value, bool) and name != "flash_attention":
            raise SchemaError(name, f"must be a number or a text, got {str(value).lower()}", SOURCE, line)
    cells = {name: None if value == "" else value for name, value in row.items()}
    return {**cells, "campaign": cells.get("campaign") or campaign}
