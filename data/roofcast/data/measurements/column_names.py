"""Names of columns and fields that people write, and the cure of one that is unknown."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from roofcast.data.errors import near_misses

MAX_LISTED: Final = 12
"""Longest list of names that a message shows."""

LONG_NAMES: Final = {
    "tensor_parallel": "tp",
    "pipeline_parallel": "pp",
    "data_parallel": "dp",
    "expert_parallel": "ep",
    "context_parallel": "cp",
}
"""Columns of questions by their other spelling, which rows may have in their place."""

ALIASES: Final = {
    "accelerator": "gpu gpu_type gpu_name gpu_model device device_name hardware instance_gpu",
    "n_accelerator": "gpus n_gpu n_gpus num_gpu num_gpus gpu_count n_device n_devices num_accelerators world_size",
    "model": "llm model_id model_name hf_model",
    "engine": "backend server framework inference_engine",
    "engine_version": "version backend_version vllm_version",
    "weight_precision": "precision dtype weight_dtype quantization quant",
    "weight_precisions": "precision precisions dtype quantization",
    "kv_precision": "kv_dtype kv_cache_dtype",
    "tp": "tensor_parallel tensor_parallel_size tp_size tp_degree",
    "pp": "pipeline_parallel pipeline_parallel_size pp_size pp_degree",
    "dp": "data_parallel data_parallel_size dp_size",
    "ep": "expert_parallel expert_parallel_size ep_size",
    "cp": "context_parallel context_parallel_size",
    "n_input_token": "isl input_len input_length input_tokens n_input_tokens prompt_len prompt_tokens prompt_length",
    "n_output_token": "osl output_len output_length output_tokens n_output_tokens completion_tokens max_tokens",
    "concurrency": "batch batch_size bs max_concurrency n_concurrent num_users users requests_in_flight",
    "users": "concurrency n_user n_users num_users",
    "request_rate": "rate qps rps request_rate_per_s requests_per_s arrival_rate",
    "request_rate_per_s": "rate qps rps request_rate arrival_rate",
    "n_request": "requests num_prompts n_prompts num_requests",
    "n_node": "nodes num_nodes nnodes",
    "max_nodes": "nodes max_node n_node",
    "max_usd_per_h": "budget max_cost",
    "e2e_s": "latency latency_s e2e_latency e2el request_latency",
    "itl_s": "inter_token_latency tbt",
    "tpot_s": "time_per_output_token",
    "ttft_s": "time_to_first_token",
    "output_throughput_token_per_s": "throughput output_throughput tokens_per_s token_per_s tps",
    "throughput_token_per_s": "throughput tokens_per_s token_per_s tps",
    "step_time_s": "step_time iteration_time",
    "n_token_per_sequence": "seq_len sequence_length seqlen max_seq_length max_length context_length",
    "n_global_batch_sequence": "global_batch_size gbs batch_size train_batch_size",
    "n_micro_batch_sequence": "micro_batch_size mbs per_device_train_batch_size",
    "n_gradient_accumulation": "gradient_accumulation gradient_accumulation_steps grad_accum",
    "adapter_rank": "lora_r lora_rank rank",
    "adapter_targets": "target_modules",
    "sharding": "zero zero_stage fsdp strategy",
    "recomputation": "gradient_checkpointing activation_checkpointing",
    "limits": "slo slos limit",
}
"""Other names of a column or field, by its name here; the words of benchmark tools and trainers."""


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
