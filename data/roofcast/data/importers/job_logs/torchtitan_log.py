"""Logs of torchtitan: lines of its steps, of its device mesh, and of what it applies to the model.

``torchtitan.components.metrics`` logs tokens per second of one accelerator and the peak of reserved memory.
"""

import math
import re
from typing import Any, Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.job_logs.run_log import (
    Hit,
    Hits,
    LogFormat,
    RunLog,
    Step,
    exhaustion_line,
    first_of,
    median_step,
)
from roofcast.data.units import BYTE_PER_GIB

FRAMEWORK: Final = "torchtitan"

_DEGREES: Final = {"tp": "tensor", "pp": "pipeline", "cp": "context", "ep": "expert"}
_AXES: Final = re.compile(r"\s*(?:['\"]\w{1,20}['\"]\s*(?:,\s*|$)){0,12}")
_SIZES: Final = re.compile(r"\s*(?:\d{1,6}\s*(?:,\s*|$)){0,12}", re.ASCII)


def _read(hits: Hits, source: str) -> RunLog:
    steps = [Step(int(hit.groups[0]), hit.line, float(hit.groups[2].replace(",", ""))) for hit in hits["step"]]
    cells = {"framework": FRAMEWORK, "date": "".join(first_of(hits, "day")), **_settings(hits, source)}
    shape = dict(zip(("hidden_size", "n_layer"), map(int, first_of(hits, "shape")), strict=False))
    if line := exhaustion_line(hits, steps):
        return RunLog(cells | {"status": "out_of_memory"}, line, shape)
    rate = median_step(steps, "metrics.log_freq", source)
    peak_byte = max(float(hit.groups[1]) for hit in hits["step"]) * BYTE_PER_GIB
    cells |= {"memory_byte_per_accelerator": peak_byte, "memory_kind": "reserved"}
    return RunLog(cells, steps[-1].line, shape, rate)


def _settings(hits: Hits, source: str) -> dict[str, Any]:
    cells: dict[str, Any] = {name: first_of(hits, name)[0] for name in ("model", "accelerator") if hits[name]}
    degrees = _mesh(hits["mesh"][0], source) if hits["mesh"] else _configured(hits)
    cells |= {name: degrees[name] for name in ("tp", "pp", "cp", "ep", "dp") if name in degrees}
    split = degrees.get("tp", 1) * degrees.get("pp", 1) * degrees.get("cp", 1)
    if "dp" in degrees:
        cells["n_accelerator"] = split * degrees["dp"]
    if hits["batch"]:
        local, batch, accumulation, length = (int(group or 0) for group in first_of(hits, "batch"))
        cells |= {"n_global_batch_sequence": batch, "n_token_per_sequence": length}
        if degrees.get("pp", 1) == 1:
            cells["n_micro_batch_sequence"] = local
        if degrees and "dp" not in degrees and local * accumulation:
            cells["dp"] = batch // (local * accumulation)
            cells["n_accelerator"] = split * cells["dp"]
    if hits["sharding"]:
        cells |= {
            "sharding": first_of(hits, "sharding")[0].lower(),
            "recomputation": next(iter(first_of(hits, "recomputation")), "none"),
            "compiled": "on" if hits["compiled"] else "off",
        }
    return cells


def _mesh(hit: Hit, source: str) -> dict[str, int]:
    axes, sizes = hit.groups
    names, counts = re.findall(r"\w+", axes), re.findall(r"\d+", sizes)
    if not (_AXES.fullmatch(axes) and _SIZES.fullmatch(sizes) and len(names) == len(counts)):
        problem = f"the device mesh must have a size for each axis, got [{axes[:60]}], [{sizes[:60]}]; mend its line"
        raise SchemaError("n_accelerator", problem, source, hit.line)
    mesh = dict(zip(names, map(int, counts), strict=True))
    data = math.prod(size for name, size in mesh.items() if name.startswith("dp"))
    return {"tp": mesh.get("tp", 1), "pp": mesh.get("pp", 1), "cp": mesh.get("cp", 1), "dp": data}


def _configured(hits: Hits) -> dict[str, int]:
    config = {hit.groups[0]: int(hit.groups[1]) for hit in hits["degree"]}
    sizes = {name: config.get(f"{kind}_parallel_degree", 0) for name, kind in _DEGREES.items()}
    degrees = {name: size for name, size in sizes.items() if size}
    shard, replicate = (config.get(f"data_parallel_{kind}_degree", 0) for kind in ("shard", "replicate"))
    return degrees | ({"dp": shard * replicate} if min(shard, replicate) > 0 else {})


FORMAT: Final = LogFormat(FRAMEWORK, ("step", "batch"), _read)
"""A run that exhausted memory before its second logged step has that status."""
