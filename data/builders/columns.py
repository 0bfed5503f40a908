"""Columns of a recipe: how the value of one of our columns follows from the cells of a published row."""

import ast
import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from builders.figures import number, number_of
from builders.published import Cells
from roofcast.data.errors import SchemaError
from roofcast.data.units import (
    BYTE_PER_GB,
    BYTE_PER_GBIT,
    BYTE_PER_GIB,
    BYTE_PER_MB,
    BYTE_PER_MIB,
    FLOP_PER_TFLOP,
    S_PER_MS,
    S_PER_US,
    W_PER_KW,
    W_PER_MW,
)

UNITS: Final = {
    "s": 1.0, "ms": S_PER_MS, "us": S_PER_US, "mW": W_PER_MW, "kW": W_PER_KW, "TFLOP": FLOP_PER_TFLOP, "%": 0.01,
    "Gbit": BYTE_PER_GBIT, "MB": BYTE_PER_MB, "MiB": BYTE_PER_MIB, "GB": BYTE_PER_GB, "GiB": BYTE_PER_GIB,
}  # fmt: skip
"""Factor to the base unit by the name of the source's unit. ``1/x`` is the inverse of a figure instead."""

INVERSE: Final = "1/x"

_OPERATIONS: Final[Mapping[type, Callable[[float, float], float]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip

KEYS: Final = frozenset(
    "from compute match as count lower names search keep trim slug into day unit times per default".split()  # noqa: SIM905
)
"""Keys of a column's table, in the order in which they take effect; see ``data/builders/README.md``."""

Names = Mapping[str, Mapping[str, Any]]
"""The recipe's ``[names]``: for each table, source name to ours."""

_FIELD: Final = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")


def cell_of(cells: Cells, path: str) -> Any:
    """Return the cell at a column name or dotted path. Raises `KeyError` if the row has none."""
    if path in cells:
        return cells[path]
    value: Any = cells
    for part in path.split("."):
        if not isinstance(value, Mapping):
            raise KeyError(path)
        value = value[part]
    return value


def optional_cell(cells: Cells, path: str) -> Any:
    """Return the cell at a column name or dotted path; an empty text if it is blank or the row has none."""
    try:
        value = cell_of(cells, path)
    except KeyError:
        return ""
    return "" if is_blank(value) else value


def is_blank(value: object) -> bool:
    """Return whether a cell states nothing."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def fill(template: str, cells: Cells, *, is_loose: bool = False) -> str:
    """Return the template with each ``{column}`` replaced by its cell, and ``{column:format}`` by its number.

    A loose template leaves out what the row lacks; ``{{size} MFU}`` is the column that another column names.

    Raises `KeyError` if the row lacks a column.

    Examples
    --------
    >>> fill("{gpu}: {wall:g} s", {"gpu": "T4", "wall": "30.0"})
    'T4: 30 s'
    """

    def text(match: re.Match[str]) -> str:
        value = optional_cell(cells, match[1]) if is_loose else cell_of(cells, match[1])
        return format(as_number(value), match[2]) if match[2] else str(value)

    filled = _FIELD.sub(text, template)
    return _FIELD.sub(text, filled) if "{{" in template else filled


def as_number(value: object, *, is_loose: bool = False) -> float:
    """Return a cell as a number; nan if it is blank, or loosely if it does not hold exactly one number."""
    if isinstance(value, str):
        figure = number(value) if is_loose else number_of(value)
        return math.nan if figure is None else figure
    return math.nan if is_blank(value) else value  # type: ignore[return-value]


def value_of(spec: object, cells: Cells, names: Names, *, is_loose: bool = False) -> Any:
    """Return the value that a column's entry gives for a row; None if it is blank.

    `spec`: name of a source column, a template with braces, a table of `KEYS`, or a list of these: the first that is
    not blank counts. `is_loose`: whether a column that the row lacks, a name in no table, and a cell without a number
    are blank. Raises `SchemaError` if the row lacks the column, or its name is in no table, and the entry has no
    default.
    """
    if isinstance(spec, list) and any(isinstance(part, Mapping) for part in spec):
        values = (value_of(part, cells, names, is_loose=is_loose) for part in spec)
        return next((value for value in values if not is_blank(value)), None)
    entry: Mapping[str, Any] = spec if isinstance(spec, Mapping) else {"from": spec}
    compute = entry.get("compute")
    value = arithmetic(compute, cells) if compute else _source_value(entry, cells, is_loose=is_loose)
    if "match" in entry and not is_blank(value):
        found = re.search(entry["match"], str(value))
        groups = {str(n): text or "" for n, text in enumerate(found.groups(), start=1)} if found else {}
        value = fill(entry.get("as", "{1}"), groups) if found else None
    if "count" in entry:
        value = len(re.findall(entry["count"], str(value)))
    if entry.get("lower") and value is not None:
        value = str(value).lower()
    if not is_blank(value) and ("names" in entry or "search" in entry):
        value = _named(entry, str(value), names, is_loose=is_loose)
    if is_blank(value):
        return entry.get("default")
    value = _edited(entry, value, cells)
    if entry.keys() & {"unit", "times", "per"}:
        value = _converted(entry, as_number(value, is_loose=is_loose), cells)
    return value


def _edited(entry: Mapping[str, Any], value: Any, cells: Cells) -> Any:
    if "trim" in entry:
        value = re.sub(entry["trim"], "", str(value))
    if "slug" in entry:
        value = re.sub("[^a-z0-9]+", entry["slug"], str(value).lower()).strip(entry["slug"])
    if "day" in entry:
        value = dt.datetime.fromtimestamp(as_number(value) * UNITS[entry["day"]], dt.UTC).date().isoformat()
    if "into" in entry:
        value = fill(entry["into"], {**cells, "@value": value})
    return value


def _source_value(entry: Mapping[str, Any], cells: Cells, *, is_loose: bool) -> Any:
    sources = [entry["from"]] if isinstance(entry["from"], str) else entry["from"]
    value, is_stated = None, False
    for source in sources:
        try:
            value = fill(source, cells, is_loose=is_loose) if "{" in source else cell_of(cells, source)
        except KeyError:
            continue
        is_stated = True
        if not is_blank(value):
            return value
    if not is_stated and "default" not in entry and not is_loose:
        known = ", ".join(name for name in cells if not name.startswith("@"))[:300]
        raise SchemaError(str(sources[0]), f"no such column; the row has {known}", str(cells.get("@path", "")))
    return value


def _named(entry: Mapping[str, Any], text: str, names: Names, *, is_loose: bool) -> Any:
    kind = "names" if "names" in entry else "search"
    table = entry[kind] if isinstance(entry[kind], Mapping) else names.get(entry[kind], {})
    if kind == "names" and text in table:
        return table[text]
    if kind == "search":
        for pattern, name in table.items():
            if re.search(pattern, text):
                return name
    if entry.get("keep"):
        return text
    if "default" in entry or is_loose:
        return None
    label = entry[kind] if isinstance(entry[kind], str) else entry["from"]
    raise SchemaError(str(entry["from"]), f"{text!r} has no name: add it to [names.{label}] or give a default", "")


def _converted(entry: Mapping[str, Any], value: float, cells: Cells) -> float:
    unit = entry.get("unit")
    if unit == INVERSE:
        value = 1 / value
    elif unit:
        value *= UNITS[unit]
    if "times" in entry:
        value *= _operand(entry["times"], cells)
    if "per" in entry:
        value /= _operand(entry["per"], cells)
    return value


def _operand(operand: object, cells: Cells) -> float:
    return as_number(cell_of(cells, operand)) if isinstance(operand, str) else float(str(operand))


def arithmetic(expression: str, cells: Cells) -> float | None:
    """Return the value of an expression over ``{column}`` or ``{column|default}``; None if it lacks a number.

    Examples
    --------
    >>> arithmetic("{n} / {tp} / {pp|1} * 2", {"n": 8.0, "tp": "4"}), arithmetic("{n} * 2", {})
    (4.0, None)
    """
    operands: list[float] = []

    def operand(match: re.Match[str]) -> str:
        name, _, default = match[1].partition("|")
        value = as_number(optional_cell(cells, name), is_loose=True)
        operands.append(as_number(default) if math.isnan(value) else value)
        return f"({operands[-1]!r})"

    text = _FIELD.sub(operand, expression)
    return None if any(map(math.isnan, operands)) else _evaluated(ast.parse(text, mode="eval").body)


def _evaluated(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name) and node.id in UNITS:
        return UNITS[node.id]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "round":
        return float(round(_evaluated(node.args[0]), *map(ast.literal_eval, node.args[1:])))
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "max":
        return max(map(_evaluated, node.args))
    problem = f"must be +, -, *, /, //, round and max of numbers, columns and units, got {ast.unparse(node)}"
    raise SchemaError("computed", problem, "")
