"""Joins the speeds of prompt and tokens of a configuration, each of which is a published row."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from builders.figures import number_of
from builders.published import Record
from roofcast.data.errors import SchemaError

HOSTS: Final = {"results_full.jsonl": "CPU of GB10", "results_x86.jsonl": "part of a Sapphire Rapids"}
PRECISIONS: Final = {"Q4_K_M": "int4", "Q8_0": "int8", "BF16": "bf16", "q4k": "int4", "q8_0": "int8"}
ENGINES: Final = {"mistralrs": "mistral.rs", "llamacpp": "llama.cpp"}
COLUMNS: Final = {"mistral.rs ": "mistral.rs", "llama.cpp ": "llama.cpp", "vLLM ": "vllm"}
"""Engine by the beginning of a column of the report."""

N_OUTPUT_TOKEN: Final = 256
DATES: Final = {"mistral.rs": "2026-06-01", "llama.cpp": "2026-05-31", "vllm": "2026-05-31"}

_TABLE: Final = re.compile(r"(Q4_K_M|Q8_0|BF16) (Prefill|Decode)")

Configuration = tuple[tuple[str, Any], ...]


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each configuration; of the logs of development its last speeds."""
    speeds: dict[Configuration, dict[str, tuple[str, float]]] = defaultdict(dict)
    for record in published:
        name = record.cells["@file"].rpartition("__")[2]
        if "@headings" in record.cells:
            for cells, mode, speed in _reported(record):
                reference = f"{record.reference} {cells['engine']}"
                speeds[tuple(cells.items())][mode] = reference, speed
            continue
        reference, quant = f"{name}:{record.cells['@line']}", record.cells["quant"]
        if quant not in PRECISIONS:
            yield Record(reference, {}).rejected(
                "unknown_precision", f"{quant} is none of the precisions of the table"
            )
            continue
        modes = speeds[tuple(_logged(record, HOSTS[name]).items())]
        if record.cells["mode"] in modes:
            superseded = Record(modes[record.cells["mode"]][0], {})
            yield superseded.rejected("superseded", "a later row has the same configuration")
        modes[record.cells["mode"]] = reference, record.cells["tps"]
    for configuration, modes in speeds.items():
        by_mode = {mode: speed for mode, (_, speed) in modes.items()}
        cells = dict(configuration) | {"prefill": "", "decode": "", **by_mode}
        cells["n_output"] = N_OUTPUT_TOKEN if "decode" in by_mode else 1
        yield Record(next(iter(modes.values()))[0], cells, n_published=len(modes))


def _reported(record: Record) -> Iterator[tuple[dict[str, Any], str, float]]:
    table = _TABLE.fullmatch(record.cells["@heading"])
    if table is None:
        return
    engines = {
        name: engine
        for name in record.columns
        for start, engine in COLUMNS.items()
        if name.startswith(start) and not name.endswith("speedup")
    }
    if not engines:
        raise SchemaError("", "must have a column of an engine's speed", record.reference)
    mode, (*_, host, model, _title) = table[2].lower(), record.cells["@headings"]
    n_input = number_of(record.cells["Length" if mode == "prefill" else "Depth"])
    for column, engine in engines.items():
        cells = {"report": True, "engine": engine, "host": host, "model": model, "n_input": n_input}
        cells |= {"precision": PRECISIONS[table[1]], "n_request": 3, "date": DATES[engine]}
        yield cells, mode, number_of(record.cells[column])


def _logged(record: Record, host: str) -> dict[str, Any]:
    run = record.cells
    return {
        "engine": ENGINES[run["engine"]], "host": host, "model": run["model"], "precision": PRECISIONS[run["quant"]],
        "n_input": run["length"], "flash_attention": run.get("note") != "fa=0",
        "n_request": run.get("iterations", ""), "date": "2026",
    }  # fmt: skip
