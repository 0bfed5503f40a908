"""A problem with a question: its status, the field that is wrong, and the cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Self

from roofcast.data.errors import InputError, SchemaError, UnknownNameError

if TYPE_CHECKING:
    from roofcast.features.descriptors.prediction_input import ColumnArray


class Problem(NamedTuple):
    """Why a row of prediction input has no answer.

    Parameters
    ----------
    status
        `invalid`, `unknown_name`, `does_not_fit` or `out_of_range`.
    field
        Column or request field at fault; empty for the row as a whole.
    message
        What is wrong, what was expected and how to fix it, without the field.

    Examples
    --------
    >>> problem = Problem("invalid", "tp", "must divide the model's 32 attention heads, got 3")
    >>> str(problem)
    "tp: must divide the model's 32 attention heads, got 3"
    >>> problem.error("run.csv", 7)
    SchemaError('tp', "must divide the model's 32 attention heads, got 3", 'run.csv', 7)
    """

    status: str
    field: str
    message: str

    @classmethod
    def from_error(cls, error: InputError) -> Self:
        """Return the problem that an input error states."""
        status = "unknown_name" if isinstance(error, UnknownNameError) else "invalid"
        return cls(status, error.field, error.problem)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def error(self, source: str = "", line: int = 0) -> SchemaError:
        """Return the problem as an error; `source` and `line` say where the row stands."""
        return SchemaError(self.field, self.message, source, line)


def add_problems(
    problems: list[Problem | None], mask: ColumnArray, status: str, field: str, message: str | Callable[[int], str]
) -> None:
    """Give the rows of a mask this problem where they have none yet; `message` may depend on the row's index."""
    for i in mask.nonzero()[0].tolist():
        if problems[i] is None:
            problems[i] = Problem(status, field, message if isinstance(message, str) else message(i))
