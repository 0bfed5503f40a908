"""Errors of roofcast; any other exception that escapes is a bug."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

MAX_PROBLEM: Final = 10
"""Problems of one input that a message has; it counts the others."""

MAX_SIMILAR_LENGTH: Final = 200
"""Longest name for which similar ones are looked up."""

MAX_CANDIDATE: Final = 5
"""Candidates of an ambiguous name that a message lists."""

MAX_GIVEN: Final = 40
"""Characters of a wrong value that a message has."""

_SEPARATOR: Final = re.compile(r"[-_/ ]")
"""Between the words of a name."""


_SUGGESTIONS: Final[ContextVar[list[int] | None]] = ContextVar("suggestions", default=None)
"""Number of names for which similar ones may still be looked up, as the only element; None for any."""


def shorten(value: object, limit: int = 60) -> str:
    """Return what a message shows of a wrong value."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


class RoofcastError(Exception):
    """Base of all errors that a caller is expected to handle."""


class InputError(RoofcastError, ValueError):
    """A wrong value, with its field and the cure.

    - `field`: The field, as the caller wrote it; empty for the input as a whole.
    - `problem`: What was expected, what was given and how to fix it, in lower case.
    - `mentions`: Other fields that `problem` names, as it spells them.

    Examples
    --------
    >>> str(InputError("n_output_token", "must be at least 1, got 0"))
    'n_output_token: must be at least 1, got 0'
    """

    def __init__(self, field: str, problem: str, mentions: Sequence[str] = ()) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem
        self.mentions = tuple(mentions)
        self.given: str | None = None
        """The value that the caller wrote; None where there is no single one."""
        self.expected: list[str] = []
        """All values that the field takes, where they are few."""
        self.near: list[str] = []
        """Known names similar to a wrong one, the most similar first."""
        self.further: tuple[InputError, ...] = ()
        """The other problems of the same input."""

    def __str__(self) -> str:
        return join_problems([one.message for one in self.all])

    @property
    def all(self) -> tuple[InputError, ...]:
        """All problems of the input, this one first."""
        return (self, *(one for error in self.further for one in error.all))

    @property
    def message(self) -> str:
        """Message of this problem alone."""
        return f"{self.field}: {self.problem}" if self.field else self.problem


class UnknownNameError(InputError):
    """An unknown name of a model, accelerator, engine or the like; suggests near misses.

    Examples
    --------
    >>> str(UnknownNameError("accelerator", "nvidia-h10", ["nvidia-h100", "t4"]))
    "accelerator: no 'nvidia-h10' is known; did you mean 'nvidia-h100'?"
    >>> str(UnknownNameError("accelerator", "abacus", ["t4"], "`roofcast accelerators` lists them"))
    "accelerator: no 'abacus' is known; `roofcast accelerators` lists them"
    """

    def __init__(self, field: str, name: str, known: Iterable[str] = (), advice: str = "") -> None:
        names = sorted(set(known))
        near = near_misses(name, names)
        cure = f"did you mean {' or '.join(map(repr, near))}?" if near else advice
        super().__init__(field, f"no {name!r} is known{'; ' if cure else ''}{cure}")
        self.near = near
        self.name = name
        self.given = name
        self.args = (field, name, names, advice)


class AmbiguousNameError(UnknownNameError):
    """A name that may mean several; lists them.

    Examples
    --------
    >>> str(AmbiguousNameError("model", "gpt-oss", ["openai/gpt-oss-20b", "openai/gpt-oss-120b"]))
    "model: 'gpt-oss' may be openai/gpt-oss-20b or openai/gpt-oss-120b; name one"
    """

    def __init__(self, field: str, name: str, candidates: Sequence[str]) -> None:
        super().__init__(field, name)
        first, n_more = [*candidates[:MAX_CANDIDATE]], len(candidates) - MAX_CANDIDATE
        listed = " or ".join([", ".join(first[:-1]), first[-1]]) if len(first) > 1 else first[0]
        listed = f"{', '.join(first)} or one of {n_more} more" if n_more > 0 else listed
        self.problem = f"{name!r} may be {listed}; name one"
        self.near = first
        self.args = (field, name, candidates)


class NotAllowedError(InputError):
    """The input is valid, and the caller may not do it; names who may."""


class SchemaError(InputError):
    """A file or table breaks its schema; names file, line and field.

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

    @property
    def message(self) -> str:
        """Message of this problem alone, with its place."""
        place = ", ".join(filter(None, [self.source, f"line {self.line}" if self.line else ""]))
        return f"{place}: {super().message}" if place else super().message


ErrorT = TypeVar("ErrorT", bound=InputError)


class NoAnswerError(RoofcastError):
    """The input is valid but has no answer."""


class OutOfRangeError(NoAnswerError):
    """The input is outside the range that can be predicted."""


class NotReadyError(RoofcastError):
    """The service or its store is not ready: no promoted model, or no usable database or state folder."""


def join_errors(errors: Sequence[ErrorT]) -> ErrorT:
    """Return the first of several errors of one input, with the others as its further ones.

    Examples
    --------
    >>> str(join_errors([InputError("tp", "must be given"), InputError("pp", "must be given")]))
    'tp: must be given; pp: must be given'
    """
    first, *others = errors
    further: list[InputError] = [*first.further, *(one for error in others for one in error.all)]
    distinct = {one.message: one for one in reversed(further) if one.message != first.message}
    first.further = tuple(reversed(distinct.values()))
    return first


def choice_error(field: str, given: str, choices: Iterable[str]) -> InputError:
    """Return the error of a value that is none of a field's few choices, with the similar ones.

    Examples
    --------
    >>> str(choice_error("method", "lor", ["full", "lora", "qlora"]))
    "method: must be one of full, lora, qlora, got 'lor'; did you mean lora or qlora?"
    """
    expected = [one for one in choices if one]
    near = near_misses(given, expected)
    guess = f"; did you mean {' or '.join(near)}?" if near else ""
    error = InputError(field, f"must be one of {', '.join(expected)}, got {given[:MAX_GIVEN]!r}{guess}")
    error.given, error.expected, error.near = given, expected, near
    return error


def join_problems(messages: Sequence[str]) -> str:
    """Return up to `MAX_PROBLEM` messages in one text, and how many more there are.

    Examples
    --------
    >>> join_problems(["a is wrong"]), join_problems([*"abcdefghijkl"])
    ('a is wrong', 'a; b; c; d; e; f; g; h; i; j; and 2 more problems')
    """
    n_more = len(messages) - MAX_PROBLEM
    more = [f"and {n_more} more problem{'s' * (n_more > 1)}"] if n_more > 0 else []
    return "; ".join([*messages[:MAX_PROBLEM], *more])


def near_misses(name: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Return up to `n` known names similar to `name`, the best first, compared without case.

    The words of a known name that is longer are compared too, as many in a row as `name` has.

    Examples
    --------
    >>> near_misses("LLAMA-7", ["llama-7b", "llama-13b", "t5"])[0]
    'llama-7b'
    >>> near_misses("h1000", ["nvidia-h100-sxm-80gb", "nvidia-a10-24gb"])
    ['nvidia-h100-sxm-80gb']
    """
    if len(name) > MAX_SIMILAR_LENGTH or not _take_suggestion():
        return []
    by_lower = {candidate.lower(): candidate for candidate in known}
    lower = name.lower()
    containing = [candidate for candidate in by_lower if len(lower) > 2 and lower in candidate]
    close = difflib.get_close_matches(lower, by_lower, n=n, cutoff=0.5)
    words = _SEPARATOR.split(lower)
    by_words = _by_words(by_lower, len(words))
    close_words = difflib.get_close_matches("-".join(words), by_words, n=n, cutoff=0.75)
    within = [candidate for part in close_words for candidate in by_words[part]]
    ordered = dict.fromkeys([*sorted(containing, key=len), *close, *within])
    return [by_lower[c] for c in ordered][:n]


@contextmanager
def limit_suggestions(n: int) -> Iterator[None]:
    """Look up similar names for at most `n` names in the block and its threads: a name costs up to milliseconds.

    Examples
    --------
    >>> with limit_suggestions(1):
    ...     near_misses("llama-7", ["llama-7b"]), near_misses("llama-7", ["llama-7b"])
    (['llama-7b'], [])
    """
    token = _SUGGESTIONS.set([n])
    try:
        yield
    finally:
        _SUGGESTIONS.reset(token)


def _take_suggestion() -> bool:
    left = _SUGGESTIONS.get()
    if left is None:
        return True
    left[0] -= 1
    return left[0] >= 0


def _by_words(names: Iterable[str], n_word: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=len):
        words = _SEPARATOR.split(name)
        for start in range(len(words) - n_word + 1):
            found.setdefault("-".join(words[start : start + n_word]), []).append(name)
    return found
