"""Logs of Megatron-LM and what descends from it: iterations, reported memory, and the printed arguments.

``training_log`` of ``megatron.training`` logs the mean time of an iteration since the last line, and once the memory
of one rank of each model-parallel group.
"""

from collections.abc import Mapping
from typing import Any, Final

from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.job_logs.run_log import (
    Hits,
    LogFormat,
    RunLog,
    Step,
    exhaustion_line,
    first_of,
    median_step,
)
from roofcast.data.units import BYTE_PER_MIB, s_from_ms

FRAMEWORK: Final = "megatron-lm"

_WORDS: Final = fact_table("tool_words")["megatron"]
_SHARDED: Final = "optim_grads_params"


def _read(hits: Hits, source: str) -> RunLog:
    arguments: dict[str, str] = {}
    for hit in hits["argument"]:
        arguments.setdefault(hit.groups[0], hit.groups[1].strip())  # other ranks print the same
    shape = _counts(arguments, _WORDS["shape"])
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
    cells: dict[str, Any] = dict(_counts(arguments, _WORDS["counts"]))
    if arguments.get("recompute_granularity") in _WORDS["recomputation"]:
        cells["recomputation"] = _WORDS["recomputation"][arguments["recompute_granularity"]]
    if cells.get("tp", 1) > 1 and "sequence_parallel" in arguments:
        cells["sequence_parallel"] = "on" if arguments["sequence_parallel"] == "True" else "off"
    if "use_distributed_optimizer" in arguments:
        is_sharded = arguments["use_distributed_optimizer"] == "True"
        is_whole = arguments.get("data_parallel_sharding_strategy") == _SHARDED
        cells["sharding"] = "fsdp" if is_whole else ("zero1" if is_sharded else "ddp")
    return cells | _precision(arguments)


def _precision(arguments: Mapping[str, str]) -> dict[str, str]:
    if arguments.get("fp8", "None") not in {"None", "False"}:
        recipe = _WORDS["recipes"].get(arguments.get("fp8_recipe", ""), "")
        return {"compute_precision": "fp8", "precision_recipe": recipe}
    precisions = {"bf16": "bf16", "fp16": "fp16"}
    return next(({"compute_precision": p} for name, p in precisions.items() if arguments.get(name) == "True"), {})


FORMAT: Final = LogFormat(FRAMEWORK, ("iteration", "split"), _read)
"""Where the batch ramps up, a run has the iterations of the largest."""
