"""A problem with a question: its status, the field that is wrong, and the cure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple, Self

from roofcast.data.errors import InputError, SchemaError, UnknownNameError, join_problems

if TYPE_CHECKING:
    from roofcast.data.measurements.cells import Finding


class Problem(NamedTuple):
    """Why a row of prediction input has no answer.

    - `status`: `invalid`, `unknown_name`, `does_not_fit` or `out_of_range`.
    - `field`: Column or request field at fault; empty for the row as a whole.
    - `message`: What is wrong, what was expected and how to fix it, without the field.
    - `further`: Other problems of the same row.

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
    further: tuple[Problem, ...] = ()

    @classmethod
    def from_error(cls, error: InputError) -> Self:
        """Return the problem that an input error states."""
        status = "unknown_name" if isinstance(error, UnknownNameError) else "invalid"
        return cls(status, error.field, error.problem)

    def __str__(self) -> str:
        return join_problems([one.text for one in (self, *self.further)])

    @property
    def text(self) -> str:
        """Field and message of this problem alone."""
        return f"{self.field}: {self.message}" if self.field else self.message

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields at fault."""
        return (self.field, *(one.field for one in self.further))

    def error(self, source: str = "", line: int = 0) -> SchemaError:
        """Return the problem as an error; `source` and `line` say where the row stands."""
        first, *others = (SchemaError(one.field, one.message, source, line) for one in (self, *self.further))
        first.further = tuple(InputError(error.field, error.problem) for error in others)
        return first


def add_problem(problems: list[Problem | None], i: int, problem: Problem | None, uses: Collection[str] = ()) -> None:
    """Add a problem to those of row i, unless its field or one that its check uses has one already."""
    first = problems[i]
    if problem is None or first is None:
        problems[i] = first or problem
    elif not {problem.field, *uses} & {*first.fields}:
        problems[i] = first._replace(further=(*first.further, problem))


def add_findings(problems: list[Problem | None], findings: Iterable[Finding]) -> None:
    """Add the problems that findings state to those of their rows, as `add_problem`."""
    for mask, field, problem, uses, status in findings:
        for i in mask.nonzero()[0].tolist():
            text = problem if isinstance(problem, str) else problem(i)
            add_problem(problems, i, Problem(status, field, text), uses)
