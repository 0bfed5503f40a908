"""Errors of request models: each part of pydantic's error as an `InputError`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from roofcast.data.errors import MAX_GIVEN, InputError, choice_error, join_errors

_QUOTED: Final = re.compile(r"'([^']*)'")
"""A choice in pydantic's text of those that it expects."""

_SCALARS: Final = (str, int, float, type(None))


def validation_error(error: ValidationError) -> InputError:
    """Return the error of all fields that a request model refuses.

    Parts of a path with a space are tags of alternatives, such as `a mean`.
    """
    errors = []
    for part in error.errors():
        names = [str(name) for name in part["loc"] if name != "" and " " not in str(name)]
        errors += part_errors(part, ".".join(names))
    return join_errors(errors)


def part_errors(part: Mapping[str, Any], field: str) -> list[InputError]:
    """Return the errors of one part of a pydantic error, whose place is this field."""
    cause = part.get("ctx", {}).get("error")
    if isinstance(cause, InputError) and not any(one.field for one in cause.all):
        return [InputError(field, one.problem, one.mentions) for one in cause.all]
    if part["type"] == "literal_error":
        return [choice_error(field, str(part["input"]), _QUOTED.findall(part["ctx"]["expected"]))]
    message = str(part["msg"]).removeprefix("Value error, ")
    error = InputError(field, message[:1].lower() + message[1:])
    if part["type"] not in {"missing", "value_error", "extra_forbidden"} and isinstance(part["input"], _SCALARS):
        error.given = str(part["input"])
        value = part["input"][:MAX_GIVEN] if isinstance(part["input"], str) else part["input"]
        error.problem += f", got {value!r}"
        error.args = (error.field, error.problem)
    return [error]
