"""TOML file of a user's accelerator, in the units of data sheets."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from roofcast.data.catalog.sheet_units import PEAK_COLUMNS, fields_in_si, with_peaks
from roofcast.data.errors import InputError, SchemaError, near_misses
from roofcast.data.specs import AcceleratorSpec
from roofcast.data.toml_file import parse_toml, read_toml_text

_SHEET_FIELDS: Final[Mapping[str, str]] = {
    "memory_byte": "memory_gib",
    "bandwidth_byte_per_s": "bandwidth_gb_per_s",
    "link_bandwidth_byte_per_s": "link_bandwidth_gb_per_s",
    "l2_byte": "l2_mib",
}
_SPEC_FIELDS: Final = frozenset(AcceleratorSpec.model_fields) - {*_SHEET_FIELDS, "peak_flop_per_s"}
FIELDS: Final = (*sorted(_SPEC_FIELDS), *_SHEET_FIELDS.values(), *PEAK_COLUMNS)


def accelerator_template() -> str:
    """Return an example file with every field explained.

    Examples
    --------
    >>> parse_accelerator(accelerator_template()).memory_byte / 2**30
    96.0
    """
    return Path(__file__).with_name("accelerator_template.toml").read_text(encoding="utf-8")


def load_accelerator_file(path: Path | str) -> AcceleratorSpec:
    """Return the accelerator of a TOML file.

    Its numbers are not checked; `catalog.accelerator_lint` does that.

    Raises `SchemaError` if the file cannot be read, is too large, is no TOML, or a field is unknown, missing or
    wrong; names file, line and field.
    """
    file = Path(path)
    return parse_accelerator(read_toml_text(file), file.name)


def parse_accelerator(text: str, source: str = "accelerator.toml") -> AcceleratorSpec:
    """Return the accelerator of a TOML text.

    Raises `SchemaError` if it is no TOML, or a field is unknown, missing or wrong; names line and field.

    Examples
    --------
    >>> parse_accelerator("memory_gb = 80", "mine.toml")
    Traceback (most recent call last):
    ...
    roofcast.data.errors.SchemaError: mine.toml, line 1: memory_gb: is no field; did you mean memory_gib?
    """
    fields = parse_toml(text, source)
    for name in fields:
        if name not in FIELDS:
            near = near_misses(name, FIELDS, n=1)
            cure = f"; did you mean {near[0]}?" if near else f"; the fields are {', '.join(FIELDS)}"
            _refuse(text, source, name, f"is no field{cure}")
    try:
        for name, value in fields.items():
            _check_kind(name, value)
        return AcceleratorSpec.parse(with_peaks(fields_in_si(fields)))
    except InputError as error:
        _refuse(text, source, _sheet_field(error.field), error.problem)


def _check_kind(name: str, value: object) -> None:
    has_unit = name in _SHEET_FIELDS.values() or name in PEAK_COLUMNS
    if isinstance(value, bool) or (has_unit and not isinstance(value, int | float)):
        raise InputError(name, f"must be a number without quotes, got a {type(value).__name__}")
    if isinstance(value, str) and not value.isprintable():
        raise InputError(name, "must be printable text on one line")
    if name == "id" and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", str(value)):
        raise InputError(name, "must be made of letters, digits and the signs - . _ +, and begin with none of these")


def _sheet_field(field: str) -> str:
    precision = field.removeprefix("peak_flop_per_s.")
    return f"peak_{precision}_tflop_per_s" if precision != field else _SHEET_FIELDS.get(field, field)


def _refuse(text: str, source: str, field: str, problem: str) -> NoReturn:
    lines = enumerate(text.splitlines(), start=1)
    pattern = rf'\s*"?{re.escape(field)}"?\s*[=.]'
    line = next((n for n, content in lines if re.match(pattern, content)), 0) if field else 0
    raise SchemaError(field, problem, source, line)
