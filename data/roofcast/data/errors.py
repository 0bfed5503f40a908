"""Every error that roofcast raises on purpose; anything else that escapes is a bug."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RoofcastError(Exception):
    """Base of the tree: an outcome that a caller is expected to handle."""


class InputError(RoofcastError, ValueError):
    """The caller can mend it: a value that is wrong, with its field and the cure.

    Parameters
    ----------
    field
        Name of the offending field, as the caller wrote it; empty for the input as a whole.
    problem
        What was wanted, what was got and how to mend it, in lower case.

    Examples
    --------
    >>> str(InputError("n_output_token", "must be at least 1, got 0"))
    'n_output_token: must be at least 1, got 0'
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.field else self.problem


class UnknownNameError(InputError):
    """No such model, accelerator, engine or other named thing.

    Examples
    --------
    >>> str(UnknownNameError("accelerator", "nvidia-h10", ["nvidia-h100", "t4"]))
    "accelerator: no 'nvidia-h10' is known; did you mean 'nvidia-h100'?"
    """

    def __init__(self, field: str, name: str, known: Iterable[str] = ()) -> None:
        names = sorted(set(known))
        self.near = near_misses(name, names)
        cure = f"; did you mean {' or '.join(map(repr, self.near))}?" if self.near else ""
        super().__init__(field, f"no {name!r} is known{cure}")
        self.name = name
        self.args = (field, name, names)


class SchemaError(InputError):
    """A file or table breaks its schema; says where.

    Examples
    --------
    >>> str(SchemaError("ttft_s", "must be greater than 0, got -1", source="run.csv", line=7))
    'run.csv, line 7: ttft_s: must be greater than 0, got -1'
    """

    def __init__(self, field: str, problem: str, source: str = "", line: int = 0) -> None:
        super().__init__(field, problem)
        self.source = source
        self.line = line
        self.args = (field, problem, source, line)

    def __str__(self) -> str:
        place = ", ".join(filter(None, [self.source, f"line {self.line}" if self.line else ""]))
        return f"{place}: {super().__str__()}" if place else super().__str__()


class NoAnswerError(RoofcastError):
    """The question is sound but has no answer."""


class OutOfRangeError(NoAnswerError):
    """Beyond what can be answered for."""


class NotReadyError(RoofcastError):
    """No promoted model is loaded yet."""


def near_misses(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return up to `n` known names that look like `name`, best first; compared without case.

    Examples
    --------
    >>> near_misses("LLAMA-7", ["llama-7b", "llama-13b", "t5"])[0]
    'llama-7b'
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    wanted = name.lower()
    inside = [c for c in by_lower if len(wanted) > 2 and wanted in c]
    close = difflib.get_close_matches(wanted, by_lower, n=n, cutoff=0.5)
    ordered = dict.fromkeys([*sorted(inside, key=len), *close])
    return [by_lower[c] for c in ordered][:n]
