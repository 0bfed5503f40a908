"""Kind of each row of dstack's files, and what its file name states: machine, lengths and number of requests."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from builders.figures import number_of, round_figure
from builders.published import Cells, Record

_LENGTHS: Final = re.compile(r"_(?:req(?P<n>\d+)_)?(?:in|ip)(?P<i>\d+)_(?:out|op)(?P<o>\d+)_(?:np(?P<b>\d+))?")


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with their kind (blank of a copy), machine and duration, which identifies repeats."""
    for record in published:
        cells = record.cells
        duration = cells.get("duration") or cells.get("elapsed_time") or ""
        more = _described(cells) | {"run": round_figure(number_of(duration)) if duration else record.reference}
        name = f" {Path(cells['_path']).name}" if cells["@file"] == "raw_json_rows.csv" else ""
        yield Record(f"{record.reference}{name}", {**cells, **more})


def _described(cells: Cells) -> dict[str, Any]:
    if "prefill" in cells:
        n_worker_accelerator = 2 * int(cells["prefill"]) + 2 * int(cells["decode"])
        return {"kind": "ratio", "n_worker_accelerator": n_worker_accelerator, "n_failed": _n_failed(cells)}
    if cells["@file"] == "serving_blocks.csv":
        return {"kind": "block", "system": "8xMi300x"}
    if "batch_size" in cells and "input_len" in cells and "_path" not in cells:
        n_input, n_output, n_request = (number_of(cells[name]) for name in ("input_len", "output_len", "batch_size"))
        return _sized(n_input, n_output, n_request) | {"kind": "offline", "system": cells["gpu"], "has_system": True}
    if "_path" not in cells:
        return _rate(cells, cells.get("gpu") or "8xH100 1FP8-meta") | {"has_system": True}
    return _filed(cells, cells["_path"])


def _filed(cells: Cells, path: str) -> dict[str, Any]:
    if "/pd_ratio/" in path:
        return {"kind": "", "system": ""}
    system = "8xH100" if "8xH100" in path or "nvidia" in path else ("4xMi300x" if "/4Mi300x" in path else "8xMi300x")
    match = _LENGTHS.search(path)
    if match is None:
        return _rate(cells, system)
    sizes = _sized(float(match["i"]), float(match["o"]), float(match["n"] or match["b"]))
    return sizes | {"kind": "batch" if cells["avg_latency"] else "offline", "system": system}


def _sized(n_input: float, n_output: float, n_request: float) -> dict[str, Any]:
    sizes = {"n_input": n_input, "n_output": n_output, "n_request": n_request}
    return sizes | {"n_token": n_request * n_output}


def _rate(cells: Cells, system: str) -> dict[str, Any]:
    steps = cells.get("num-scheduler-step", "")
    name = cells.get("filename") or Path(cells.get("_path", "")).name
    note = "; ".join(filter(None, [system, f"{steps} scheduler steps" if steps else "", name]))
    return {"kind": "rate", "system": system, "name": name, "rate_note": note, "n_failed": _n_failed(cells)}


def _n_failed(cells: Cells) -> float:
    return number_of(cells["num_prompts"]) - number_of(cells["completed"])
