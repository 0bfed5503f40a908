"""A single test over many rows of shipped data, in place of one case per row."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def for_every(rows: Iterable[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Return a decorator that runs a test on every row and fails once, with the failure of each row.

    A row is named by its ``id`` or ``name``, if it has one.
    """
    cases = list(rows)

    def decorate(check: Callable[[T], None]) -> Callable[[], None]:
        def check_rows() -> None:
            assert cases, "there are no rows to check"
            failures = {}
            for row in cases:
                try:
                    check(row)
                except Exception as error:
                    failures[_name_of(row)] = f"{type(error).__name__}: {error}"
            assert not failures, "\n".join(f"{name}: {problem}" for name, problem in failures.items())

        check_rows.__name__, check_rows.__doc__ = check.__name__, check.__doc__
        check_rows.__module__, check_rows.__qualname__ = check.__module__, check.__qualname__
        return check_rows

    return decorate


def _name_of(row: object) -> str:
    return str(getattr(row, "id", None) or getattr(row, "name", None) or row)
