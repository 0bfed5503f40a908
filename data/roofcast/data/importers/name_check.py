"""Unknown names in a file or in JSON rows: all of them in one error, with line and field, beside the wrong values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pandas as pd

from roofcast.data.errors import InputError, SchemaError, join_errors
from roofcast.data.measurements.table_rules import Lines, line_of

MAX_NAME: Final = 20
"""Unknown names for which similar ones are looked up, which takes milliseconds each."""

Find = Callable[[str], InputError | None]
"""Returns what is wrong with a name, None if it is known."""


class NameCheck:
    """Check of the names in rows while they are read; each unknown name counts once, where it occurs first.

    `unknown`: by column, what is wrong with a name that must be known. `doubtful`: the same of names that are stored
    even if unknown. They raise no error by themselves; if the import is refused for another reason, its error lists
    them too.
    """

    def __init__(self, unknown: Mapping[str, Find] | None = None, doubtful: Mapping[str, Find] | None = None) -> None:
        self._finders = {**(unknown or {}), **(doubtful or {})}
        self._doubtful = frozenset(doubtful or ())
        self._seen: set[tuple[str, str]] = set()
        self._errors: list[SchemaError] = []
        self._doubts: list[SchemaError] = []

    def check(self, columns: Mapping[str, Any] | pd.DataFrame, source: str, lines: Lines = 0) -> None:
        """Look for unknown names in columns of cells, or in one row; what is no text is left to the schema."""
        for name in self._finders:
            cells = columns.get(name)
            listed = list(cells) if isinstance(cells, Iterable) and not isinstance(cells, str) else [cells]
            for position, cell in enumerate(listed):
                if isinstance(cell, str) and cell.strip() and (name, cell) not in self._seen:
                    self._seen.add((name, cell))
                    self._add(name, cell, source, line_of(lines, position))

    def _add(self, column: str, name: str, source: str, line: int) -> None:
        n_before = len(self._errors) + len(self._doubts)
        if n_before > MAX_NAME or (problem := self._finders[column](name)) is None:
            return
        error = SchemaError(column, problem.problem, source, line)
        if n_before == MAX_NAME:
            error = SchemaError("", "further names are not checked", source)
        error.near = problem.near
        (self._doubts if column in self._doubtful else self._errors).append(error)

    @contextmanager
    def all_errors(self) -> Iterator[None]:
        """Join the unknown names with the error of the rows that are read within.

        Raises `SchemaError` if the rows are wrong, a name is unknown, or both.
        """
        try:
            yield
        except SchemaError as error:
            raise join_errors([error, *self._errors, *self._doubts]) from error
        if self._errors:
            raise join_errors([*self._errors, *self._doubts])
