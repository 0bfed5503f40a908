"""TOML files of users, read within bounds; every error names the file and, where TOML is wrong, the line."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import SchemaError

MAX_TOML_BYTE: Final = 1_000_000

_PLACE: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")


def read_toml_text(file: Path) -> str:
    """Return the text of a file. Raises `SchemaError` if it cannot be read, is too large or not UTF-8."""
    try:
        with file.open("rb") as stream:
            body = stream.read(MAX_TOML_BYTE + 1)
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SchemaError("", "must be UTF-8 text", file.name) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SchemaError("", f"cannot be read: {reason.lower()}", file.name) from error
    if len(body) > MAX_TOML_BYTE:
        raise SchemaError("", f"must be at most {MAX_TOML_BYTE} bytes", file.name)
    return text


def parse_toml(text: str, source: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    r"""Return the fields of a TOML text. Raises `SchemaError` if it is no TOML.

    Examples
    --------
    >>> parse_toml("year = 2024\nyear = 2025", "mine.toml")
    Traceback (most recent call last):
    ...
    roofcast.data.errors.SchemaError: mine.toml, line 2: is no valid TOML: cannot overwrite a value
    """
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        problem = str(error).replace(place[0], "") if place else str(error)
        line = int(place[1] or len(text.splitlines())) if place else 0
        raise SchemaError("", f"is no valid TOML: {problem[:1].lower()}{problem[1:200]}", source, line) from error
    except (RecursionError, ValueError) as error:
        raise SchemaError("", "is no valid TOML: nested too deeply, or a number too long", source) from error
