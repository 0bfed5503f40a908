"""Logs of Megatron-LM and what descends from it: iterations, reported memory, and the printed arguments.

``training_log`` of ``megatron.training`` logs the mean time of an iteration since the last line, and once the memory
of one rank of each model-parallel group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from roofcast.data.importers.job_logs.run_log import (
    MIN_STEP,
    RunLog,
    Step,
    first_day,
    is_out_of_memory,
    median_step,
)
from roofcast.data.units import BYTE_PER_MIB, s_from_ms

FRAMEWORK: Final = "megatron-lm"
_ITERATION: Final = re.compile(r"\biteration\s+(\d+)/\s*\d+\s*\|.*elapsed time per iteration \(ms\):\s*([0-9.]+)")
_BATCH: Final = re.compile(r"global batch size:\s*(\d+)")
_MEMORY: Final = re.compile(r"memory \(MB\) \|.*\bmax reserved:\s*([0-9.]+)")
_ARGUMENT: Final = re.compile(r"(?:^|\s)([a-z0-9_]+) \.{2,} (.*?)\s*$")

_COUNTS: Final = {
    "world_size": "n_accelerator",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "virtual_pipeline_model_parallel_size": "vp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "data_parallel_size": "dp",
    "micro_batch_size": "n_micro_batch_sequence",
    "global_batch_size": "n_global_batch_sequence",
    "seq_length": "n_token_per_sequence",
}
"""Columns of the training table by argument."""

_SHAPE: Final = {"num_layers": "n_layer", "hidden_size": "hidden_size"}
_GRANULARITIES: Final = {"None": "none", "selective": "selective", "full": "full"}
_RECIPES: Final = {"tensorwise": "fp8-tensor", "blockwise": "fp8-block", "mxfp8": "mxfp8"}
_SHARDED: Final = "optim_grads_params"


def recognises(lines: Sequence[str]) -> bool:
    """Return whether the lines are a log of Megatron-LM."""
    return any(_ITERATION.search(line) for line in lines) or "tensor_model_parallel_size" in _arguments(lines)


def read(lines: Sequence[str], source: str) -> RunLog:
    """Return the run of a log; columns that it does not tell are absent.

    Where the batch ramps up, the iterations of the largest count. A run that exhausted memory before its second
    logged iteration has that status.

    Raises
    ------
    SchemaError
        If it logs fewer than two iterations, or fewer of the largest batch.
    """
    arguments = _arguments(lines)
    shape = {field: int(arguments[name]) for name, field in _SHAPE.items() if arguments.get(name, "").isdigit()}
    cells = {"framework": FRAMEWORK, "date": first_day(lines), **_settings(arguments)}
    iterations = [
        (Step(int(match[1]), i, s_from_ms(float(match[2]))), int(batch[1]) if (batch := _BATCH.search(line)) else 0)
        for i, line in enumerate(lines, start=1)
        if (match := _ITERATION.search(line))
    ]
    if len({step.number for step, _ in iterations}) < MIN_STEP and is_out_of_memory(lines):
        return RunLog(cells | {"status": "out_of_memory"}, len(lines), shape)
    largest = max((batch for _, batch in iterations), default=0)
    steps = [step for step, batch in iterations if batch == largest]
    cells["step_time_s"] = median_step(steps, "--log-interval", source)
    if largest:
        cells["n_global_batch_sequence"] = largest
    memory = [float(match[1]) for line in lines if (match := _MEMORY.search(line))]
    if memory:
        cells |= {"memory_byte_per_accelerator": max(memory) * BYTE_PER_MIB, "memory_kind": "reserved"}
    return RunLog(cells, steps[-1].line, shape)


def _arguments(lines: Sequence[str]) -> dict[str, str]:
    """Return the printed arguments, the first value of each: other ranks print the same."""
    arguments: dict[str, str] = {}
    for line in lines:
        if match := _ARGUMENT.search(line):
            arguments.setdefault(match[1], match[2])
    return arguments


def _settings(arguments: Mapping[str, str]) -> dict[str, Any]:
    cells: dict[str, Any] = {
        column: int(arguments[name]) for name, column in _COUNTS.items() if arguments.get(name, "").isdigit()
    }
    if arguments.get("recompute_granularity") in _GRANULARITIES:
        cells["recomputation"] = _GRANULARITIES[arguments["recompute_granularity"]]
    if cells.get("tp", 1) > 1 and "sequence_parallel" in arguments:
        cells["sequence_parallel"] = "on" if arguments["sequence_parallel"] == "True" else "off"
    if "use_distributed_optimizer" in arguments:
        is_sharded = arguments["use_distributed_optimizer"] == "True"
        is_whole = arguments.get("data_parallel_sharding_strategy") == _SHARDED
        cells["sharding"] = "fsdp" if is_whole else ("zero1" if is_sharded else "ddp")
    return cells | _precision(arguments)


def _precision(arguments: Mapping[str, str]) -> dict[str, str]:
    if arguments.get("fp8", "None") not in {"None", "False"}:
        recipe = _RECIPES.get(arguments.get("fp8_recipe", ""), "")
        return {"compute_precision": "fp8", "precision_recipe": recipe}
    precisions = {"bf16": "bf16", "fp16": "fp16"}
    return next(({"compute_precision": p} for name, p in precisions.items() if arguments.get(name) == "True"), {})
