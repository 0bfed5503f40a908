"""Starts of servers of a recipe: rows under catalogue names, with what each may be judged on."""

import re
from pathlib import Path
from typing import Final

from builders.build_result import BuildResult
from builders.campaigns.assembly import catalog_ids, collect
from builders.columns import is_blank
from builders.published import Record
from builders.recipe import Recipe, Row, RowMaker
from roofcast.data.measurements.memory_schema import START_SCHEMA, validate_starts

_NUMBERS: Final = tuple(name for name, column in START_SCHEMA.items() if column.kind == "float")

UNLIKE_WEIGHTS: Final = re.compile(
    "requantised|REAP|mixed|settled total|w includes|weights rounded|differs between|page head|inferred from size"
    "|model (named|inferred)|checkpoint variant|variant from context|page says"
)
"""Doubts about which weights were loaded, or what their figure counts."""

UNLIKE_CACHE: Final = re.compile(
    "patched|custom|connector|fixed|another process|several servers|card (inferred|not|uncertain|from)|shim|plugin"
    "|util(isation)? (not|elsewhere)|utilisation in|elsewhere in the doc|forced|offload|override|fork|PR[0-9]"
    "|page says|text only|pool depends|which 128 GB|two nodes|on or off|model in page|quantisation and card"
    "|ESTIMATE_CUDAGRAPHS|to be read in the file"
)
"""Doubts about the card, the share of its memory or what else takes it; figures of forks with caches of their own."""


def assemble(recipe: Recipe, root: Path) -> BuildResult:
    """Build a campaign from the files under `root`; rows without a catalogue entry are rejected.

    Raises `SchemaError` if a file is missing or malformed, or a row breaks the schema.
    """
    maker = RowMaker(recipe, _NUMBERS)

    def rows_of(record: Record) -> list[Row]:
        judged = [{**row, "judged": judged_parts(row, _doubt(record))} for row in maker.rows(record)]
        return [{**row, **catalog_ids(recipe, row), **_split(row), "campaign": recipe.name} for row in judged]

    return collect(recipe, root, rows_of, validate_starts)


def _split(row: Row) -> Row:
    # Engines count the ranks of attention data parallelism among those of tensor parallelism.
    n, tp, dp = (float(row.get(name, 1)) for name in ("n_accelerator", "tp", "dp"))
    if tp * dp == n:
        return {}
    return {"tp": tp / dp, "dp": dp} if tp == n else {"dp": n / tp}


def _doubt(record: Record) -> str:
    cells = record.cells
    return f"{cells['doubt']} {cells['version']} {cells['model']}"


def judged_parts(row: Row, doubt: str) -> str:
    """Return which figures of a row may be judged; a doubt about its settings leaves those that need them out."""
    outcome = str(row.get("status", "ok"))
    is_known = not UNLIKE_WEIGHTS.search(doubt)
    is_set = is_known and not UNLIKE_CACHE.search(doubt)
    has = {name: not is_blank(row.get(name)) for name in START_SCHEMA}
    parts = {
        "weights": is_known and has["weight_byte_per_accelerator"],
        "cache": is_set and has["cache_byte_per_accelerator"] and outcome == "ok",
        "requests": is_set and has["n_full_request"] and has["max_context_token"] and outcome == "ok",
        "starts": is_set and outcome in {"ok", "out_of_memory"},
    }
    return " ".join(name for name, is_judged in parts.items() if is_judged)
