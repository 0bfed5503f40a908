"""Names of columns and fields that people write, and the cure of one that is unknown."""

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from roofcast.data.errors import near_misses

MAX_LISTED: Final = 12
"""Longest list of names that a message shows."""

_NAMES: Final = tomllib.loads(Path(__file__).with_name("column_aliases.toml").read_text(encoding="utf-8"))

LONG_NAMES: Final[Mapping[str, str]] = _NAMES["long"]
"""Columns of questions by their other spelling, which rows may have in their place."""

ALIASES: Final[Mapping[str, str]] = _NAMES["aliases"]
"""Other names of a column or field, parted by blanks, by its name here."""


def column_cure(name: str, known: Collection[str]) -> str:
    """Return how to mend the name of an unknown column or field.

    Examples
    --------
    >>> column_cure("ttft_ms", ["ttft_s"]), column_cure("n_request", ["n_requests"]), column_cure("x", ["tp", "pp"])
    ('give ttft_s, in seconds', 'did you mean n_requests?', 'there are tp, pp')
    >>> column_cure("GPU", ["model", "accelerator"])
    'did you mean accelerator?'
    """
    in_seconds = name.removesuffix("_ms") + "_s"
    if name.endswith("_ms") and in_seconds in known:
        return f"give {in_seconds}, in seconds"
    if near := similar_columns(name, known):
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(known)}" if len(known) <= MAX_LISTED else "`roofcast reference` lists the names"


def similar_columns(name: str, known: Collection[str]) -> list[str]:
    """Return the known names that an unknown one may stand for: its other spelling or name, or else similar ones.

    Examples
    --------
    >>> similar_columns("Input Tokens", ["n_input_token", "tp"]), similar_columns("tpot", ["tpot_s", "tp"])
    (['n_input_token'], ['tpot_s'])
    """
    return same_columns(name, known) or near_misses(name, known)


def same_columns(name: str, known: Collection[str]) -> list[str]:
    """Return the known names of which an unknown one is another spelling, or else another name.

    Examples
    --------
    >>> same_columns("Precisions", ["weight_precisions"]), same_columns("weight_precision", ["weight_precisions"])
    (['weight_precisions'], [])
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    same = [one for one in known if plain in {one.lower(), one.lower().removesuffix("_s")}]
    return same or [one for one in known if plain in ALIASES.get(one, "").split()]
