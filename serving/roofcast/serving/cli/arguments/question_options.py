"""Options of one question, one for each column of a prediction input."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from roofcast.serving.cli.arguments.completion import (
    complete_accelerator,
    complete_column,
    complete_engine,
    complete_model,
)
from roofcast.serving.cli.arguments.options import Option

_OPTIONS: Final = {
    "model": Option(
        "Catalogue name, path of a config.json, or owner/name on the Hugging Face hub.", complete=complete_model
    ),
    "accelerator": Option("Catalogue name.", complete=complete_accelerator),
    "n_accelerator": Option("Accelerators of the replica; 1 by default.", default=""),
    "engine": Option("Such as vllm, sglang or trtllm.", default="", complete=complete_engine),
    "engine_version": Option("Version of the engine.", default=""),
    "weight_precision": Option("Precision of the weights; the checkpoint's by default.", default=""),
    "kv_precision": Option("Precision of the KV cache.", default=""),
    "tp": Option(
        "Tensor parallelism; by default all accelerators that the other degrees leave.",
        default="",
        names=("--tp", "--tensor-parallel"),
    ),
    "pp": Option("Pipeline parallelism.", default="", names=("--pp", "--pipeline-parallel")),
    "dp": Option("Data parallelism.", default="", names=("--dp", "--data-parallel")),
    "ep": Option("Expert parallelism.", default="", names=("--ep", "--expert-parallel")),
    "n_input_token": Option("Mean input tokens.", default="", names=("--n-input-token", "--isl")),
    "n_output_token": Option("Mean output tokens.", default="", names=("--n-output-token", "--osl")),
    "concurrency": Option("Requests in flight.", default=""),
    "request_rate": Option("Requests per second.", default="", names=("--request-rate", "--rate")),
    "statistic": Option("Statistic of the prediction: mean, p50, p90, p95 or p99.", default=""),
    "flash_attention": Option("Whether attention is fused and unpadded: true by default.", default=""),
    "load": Option(
        "closed_loop, open_loop, static_batch or offline; by default as concurrency or rate imply.", default=""
    ),
    "n_node": Option("Hosts of the replica.", default=""),
    "cp": Option("Context parallelism.", default="", names=("--cp", "--context-parallel")),
    "moe_tp": Option("Tensor parallelism of the experts.", default=""),
    "n_prefill_accelerator": Option("Accelerators of disaggregated prefill.", default=""),
    "n_decode_accelerator": Option("Accelerators that decode, with disaggregated prefill.", default=""),
    "activation_precision": Option("Precision of the activations.", default=""),
    "speculation": Option("Speculative decoding: none, mtp, eagle, draft or ngram.", default=""),
    "n_speculative_token": Option("Speculated tokens per step.", default=""),
    "acceptance_ratio": Option("Probability that a speculated token is accepted.", default=""),
    "prefix_cache_ratio": Option("Share of the input that the prefix cache holds.", default=""),
    "prefix_caching": Option("Prefix cache: on or off.", default=""),
    "chunked_prefill": Option("Prefill in chunks among decode steps: on or off.", default=""),
    "chunk_size_token": Option("Most tokens of a step, such as vLLM's max-num-batched-tokens.", default=""),
    "max_num_seqs": Option("Most sequences of a step.", default=""),
    "max_context_token": Option("Longest request that the engine is configured for.", default=""),
    "graphs": Option("CUDA or HIP graphs: on, or off for eager execution.", default=""),
    "peer_to_peer": Option("Whether accelerators read each other's memory: on or off.", default=""),
    "link_bandwidth_byte_per_s": Option("Link bandwidth in place of the data sheet's, one direction.", default=""),
    "power_limit_w": Option("Power limit of one accelerator.", default=""),
    "poll_interval_step": Option("Decode steps between polls for new requests.", default=""),
    "stream_interval_token": Option("Tokens of a streamed chunk.", default=""),
    "attention_dp_wait_step": Option("Steps that a prompt waits until every attention rank has one.", default=""),
    "batch_wait_step": Option("Steps that a prompt waits for others to join its prefill batch.", default=""),
    "lora_rank": Option("Rank of the requests' LoRA adapter.", default=""),
    "length_variation": Option("Coefficient of variation of the output lengths; 0 if fixed.", default=""),
    "n_request": Option("Requests of the benchmark run; 1e9 for a service in steady state.", default=""),
    "date": Option("Day of the run, YYYY-MM-DD, YYYY-MM or YYYY.", default=""),
}

QUESTION_OPTIONS: Final = {
    name: option if option.complete else replace(option, complete=complete_column(name))
    for name, option in _OPTIONS.items()
}
"""Options of one question: the columns of a row of ``predict``."""
