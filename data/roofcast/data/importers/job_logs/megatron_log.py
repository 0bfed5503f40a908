"""Logs of Megatron-LM and what descends from it: iterations, reported memory, and the printed arguments.

``training_log`` of ``megatron.training`` logs the mean time of an iteration since the last line, and once the memory
of one rank of each model-parallel group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.importers.job_logs.run_log import (
    COUNT,
    NUMBER,
    Hits,
    LogFormat,
    Pattern,
    RunLog,
    Step,
    exhaustion_line,
    first_of,
    median_step,
)
from roofcast.data.units import BYTE_PER_MIB, s_from_ms

FRAMEWORK: Final = "megatron-lm"

_PATTERNS: Final = {
    "iteration": Pattern.of(
        "elapsed time per iteration",
        rf"\biteration\s{{1,20}}{COUNT}/\s{{0,20}}\d{{1,9}}\s{{0,20}}\|.{{0,300}}?"
        rf"elapsed time per iteration \(ms\):\s{{0,20}}{NUMBER}"
        rf"(?:.{{0,600}}?global batch size:\s{{0,20}}{COUNT})?",
    ),
    "memory": Pattern.of("max reserved:", rf"memory \(MB\) \|.{{0,300}}?\bmax reserved:\s{{0,20}}{NUMBER}"),
    "split": Pattern.of("tensor_model_parallel_size", r"(?:^|\s)tensor_model_parallel_size \.{2}"),
    "argument": Pattern.of(" ..", r"(?:^|\s)([a-z0-9_]{1,80}) \.{2,200} (.{0,400})$"),
}

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


def _read(hits: Hits, source: str) -> RunLog:
    arguments: dict[str, str] = {}
    for hit in hits["argument"]:
        arguments.setdefault(hit.groups[0], hit.groups[1].strip())  # other ranks print the same
    shape = _counts(arguments, _SHAPE)
    cells = {"framework": FRAMEWORK, "date": "".join(first_of(hits, "day")), **_settings(arguments)}
    largest = max((int(hit.groups[2] or 0) for hit in hits["iteration"]), default=0)
    iterations = [Step(int(hit.groups[0]), hit.line, s_from_ms(float(hit.groups[1]))) for hit in hits["iteration"]]
    if line := exhaustion_line(hits, iterations):
        return RunLog(cells | {"status": "out_of_memory"}, line, shape)
    is_full = [int(hit.groups[2] or 0) == largest for hit in hits["iteration"]]  # the batch may ramp up
    steps = [step for step, is_largest in zip(iterations, is_full, strict=True) if is_largest]
    cells["step_time_s"] = median_step(steps, "--log-interval", source)
    if largest:
        cells["n_global_batch_sequence"] = largest
    memory = [float(hit.groups[0]) for hit in hits["memory"]]
    if memory:
        cells |= {"memory_byte_per_accelerator": max(memory) * BYTE_PER_MIB, "memory_kind": "reserved"}
    return RunLog(cells, steps[-1].line, shape)


def _counts(arguments: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, int]:
    texts = {column: arguments.get(name, "") for name, column in columns.items()}
    return {
        column: int(text) for column, text in texts.items() if text.isdecimal() and text.isascii() and len(text) < 10
    }


def _settings(arguments: Mapping[str, str]) -> dict[str, Any]:
    cells: dict[str, Any] = dict(_counts(arguments, _COUNTS))
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


FORMAT: Final = LogFormat(_PATTERNS, ("iteration", "split"), _read)
"""Where the batch ramps up, a run has the iterations of the largest."""
