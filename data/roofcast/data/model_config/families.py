"""Conventions of model families that `config.json` does not state, and types that are no text model."""

import csv
import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from roofcast.data.errors import InputError

Bias = Literal["none", "qkv", "all"]
Gate = Literal["", "element", "head"]

T5_TYPES: Final = frozenset({"t5", "mt5", "umt5", "longt5"})


@dataclasses.dataclass(frozen=True, slots=True)
class Family:
    """Conventions of a model family.

    `is_tied` is the default of `tie_word_embeddings`; with `is_mqa`, one key-value head is the default; with
    `is_four_h`, four times the hidden size is the width of the MLP. `window_every` applies where the config lists no
    layer types: 1 makes every layer sliding, n all but every n-th. `gate` is that of attention's output: a product
    with a vector or with a number for each head.
    A type with a `refusal` is no text model, or one that cannot be counted.
    """

    is_gated: bool = True
    bias: Bias = "none"
    n_norm: int = 2
    has_qk_norm: bool = False
    is_tied: bool = False
    has_learned_positions: bool = False
    is_mqa: bool = False
    is_four_h: bool = False
    window_every: int = 0
    gate: Gate = ""
    refusal: str = ""


@functools.cache
def load_families() -> Mapping[str, Family]:
    """Return the families of ``families.csv`` by `model_type`; a blank cell is the default."""
    with Path(__file__).with_name("families.csv").open(encoding="utf-8", newline="") as stream:
        return {row.pop("model_type"): Family(**_parse(row)) for row in csv.DictReader(stream)}


def _parse(row: dict[str, str]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, cell in row.items():
        if cell:
            cells[name] = cell == "true" if cell in {"true", "false"} else int(cell) if cell.isdigit() else cell
    return cells


def find_family(model_type: str) -> Family | None:
    """Return the family, or None for an unknown type, whose config is read by the usual field names.

    Raises `InputError` if the type is no language model, or one whose weights cannot be counted.

    Examples
    --------
    >>> find_family("whisper")
    Traceback (most recent call last):
    ...
    roofcast.data.errors.InputError: model_type: 'whisper' is a speech model; give a decoder-only or T5-like model
    """
    family = load_families().get(model_type)
    if family and family.refusal:
        raise InputError("model_type", f"{model_type!r} is {family.refusal}; give a decoder-only or T5-like model")
    return family
