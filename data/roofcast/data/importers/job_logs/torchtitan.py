"""Logs of torchtitan: lines of its steps, of its device mesh, and of what it applies to the model.

``torchtitan.components.metrics`` logs tokens per second of one accelerator and the peak of reserved memory.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from roofcast.data.importers.job_logs.run_log import (
    MIN_STEP,
    RunLog,
    Step,
    first_day,
    is_out_of_memory,
    median_step,
)
from roofcast.data.units import BYTE_PER_GIB

FRAMEWORK: Final = "torchtitan"
_STEP: Final = re.compile(
    r"(?<!validate )\bstep:\s*(\d+)\s+loss:.*?memory:\s*([0-9.]+)GiB\([0-9.]+%\)\s+tps:\s*([0-9,]+)"
)
_BATCH: Final = re.compile(
    r"local batch size (\d+), global batch size (\d+)(?:, gradient accumulation steps (\d+))?, sequence length (\d+)"
)
_MESH: Final = re.compile(r"Building \d+-D device mesh with (\[[^\]]*\]), (\[[^\]]*\])")
_MODEL: Final = re.compile(r"Model (\S+ \S+) size: ([0-9,]+) total parameters")
_DEVICE: Final = re.compile(r"(?:CUDA|XPU|HIP) capacity: (.+?) with [0-9.]+GiB memory")
_SHAPE: Final = re.compile(r"\bdim=(\d+), n_layers=(\d+)")
_RECOMPUTATION: Final = re.compile(r"Applied (full|selective) activation checkpointing")
_SHARDING: Final = re.compile(r"Applied (FSDP|HSDP|DDP) to the model")
_COMPILED: Final = re.compile(r"Compiling each TransformerBlock with torch\.compile")
_CONFIG: Final = re.compile(r"Running with (?:args|configs): (\{.*)")

_DEGREES: Final = {
    "tp": "tensor_parallel_degree",
    "pp": "pipeline_parallel_degree",
    "cp": "context_parallel_degree",
    "ep": "expert_parallel_degree",
}


def recognises(lines: Sequence[str]) -> bool:
    """Return whether the lines are a log of torchtitan."""
    return any(_STEP.search(line) or _BATCH.search(line) for line in lines)


def read(lines: Sequence[str], source: str) -> RunLog:
    """Return the run of a log; columns that it does not tell are absent.

    A run that exhausted memory before its second logged step has that status.

    Raises
    ------
    SchemaError
        If it logs fewer than two steps.
    """
    matches = [(i, match) for i, line in enumerate(lines, start=1) if (match := _STEP.search(line))]
    steps = [Step(int(match[1]), i, float(match[3].replace(",", ""))) for i, match in matches]
    cells = {"framework": FRAMEWORK, "date": first_day(lines), **_settings("\n".join(lines))}
    if len({step.number for step in steps}) < MIN_STEP and is_out_of_memory(lines):
        return RunLog(cells | {"status": "out_of_memory"}, len(lines), _shape(lines))
    rate = median_step(steps, "metrics.log_freq", source)
    peak_byte = max(float(match[2]) for _, match in matches) * BYTE_PER_GIB
    cells |= {"memory_byte_per_accelerator": peak_byte, "memory_kind": "reserved"}
    return RunLog(cells, steps[-1].line, _shape(lines), rate)


def _settings(text: str) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, pattern in (("model", _MODEL), ("accelerator", _DEVICE)):
        if match := pattern.search(text):
            cells[name] = match[1]
    degrees = _degrees(text)
    cells |= {name: degrees[name] for name in ("tp", "pp", "cp", "ep", "dp") if name in degrees}
    split = degrees.get("tp", 1) * degrees.get("pp", 1) * degrees.get("cp", 1)
    if "dp" in degrees:
        cells["n_accelerator"] = split * degrees["dp"]
    if match := _BATCH.search(text):
        local, batch, accumulation, length = (int(group) if group else 0 for group in match.groups())
        cells |= {"n_global_batch_sequence": batch, "n_token_per_sequence": length}
        if degrees.get("pp", 1) == 1:
            cells["n_micro_batch_sequence"] = local
        if degrees and "dp" not in degrees and accumulation:
            cells["dp"] = batch // (local * accumulation)
            cells["n_accelerator"] = split * cells["dp"]
    if match := _SHARDING.search(text):
        recomputation = _RECOMPUTATION.search(text)
        cells |= {
            "sharding": match[1].lower(),
            "recomputation": recomputation[1] if recomputation else "none",
            "compiled": "on" if _COMPILED.search(text) else "off",
        }
    return cells


def _degrees(text: str) -> dict[str, int]:
    """Return the sizes of the splits that the device mesh or the printed configuration tells."""
    if match := _MESH.search(text):
        names, sizes = (ast.literal_eval(group) for group in match.groups())
        mesh = dict(zip(names, sizes, strict=True))
        data = math.prod(size for name, size in mesh.items() if name.startswith("dp"))
        return {"tp": mesh.get("tp", 1), "pp": mesh.get("pp", 1), "cp": mesh.get("cp", 1), "dp": data}
    config = dict(_leaves(_config(text)))
    degrees = {name: int(config[key]) for name, key in _DEGREES.items() if key in config}
    shard, replicate = (int(config.get(f"data_parallel_{kind}_degree", -1)) for kind in ("shard", "replicate"))
    return degrees | ({"dp": shard * replicate} if min(shard, replicate) > 0 else {})


def _config(text: str) -> Any:
    """Return the printed configuration, JSON or a Python dictionary; empty if there is none that can be read."""
    if not (match := _CONFIG.search(text)):
        return {}
    start = match.start(1)
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except json.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(text[start : text.find("\n", start)])
    except (ValueError, SyntaxError):
        return {}


def _leaves(config: Any) -> Iterator[tuple[str, Any]]:
    for name, value in config.items() if isinstance(config, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        elif isinstance(value, int | float):
            yield str(name), value


def _shape(lines: Sequence[str]) -> dict[str, int]:
    match = next((match for line in lines if (match := _SHAPE.search(line))), None)
    return {"hidden_size": int(match[1]), "n_layer": int(match[2])} if match else {}
