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
from roofcast.serving.cli.arguments.options import Option, number_option

_OPTIONS: Final = {
    "model": Option(
        "Catalogue name, path of a config.json, or owner/name on the Hugging Face hub.", complete=complete_model
    ),
    "accelerator": Option("Catalogue name.", complete=complete_accelerator),
    "n_accelerator": number_option("Accelerators of the replica; 1 by default."),
    "engine": Option("Such as vllm, sglang or trtllm.", default="", complete=complete_engine),
    "engine_version": Option("Version of the engine.", default=""),
    "weight_precision": Option("Precision of the weights; the checkpoint's by default.", default=""),
    "kv_precision": Option("Precision of the KV cache.", default=""),
    "tp": number_option(
        "Tensor parallelism; by default all accelerators that the other degrees leave.",
        names=("--tp", "--tensor-parallel"),
    ),
    "pp": number_option("Pipeline parallelism.", names=("--pp", "--pipeline-parallel")),
    "dp": number_option("Data parallelism.", names=("--dp", "--data-parallel")),
    "ep": number_option("Expert parallelism.", names=("--ep", "--expert-parallel")),
    "n_input_token": number_option("Mean input tokens; 4k is 4,000.", names=("--n-input-token", "--isl")),
    "n_output_token": number_option("Mean output tokens.", names=("--n-output-token", "--osl")),
    "concurrency": number_option("Requests in flight."),
    "request_rate": number_option("Requests per second.", names=("--request-rate", "--rate")),
    "statistic": Option("Statistic of the prediction: mean, p50, p90, p95 or p99.", default=""),
    "flash_attention": Option("Whether attention is fused and unpadded: true by default.", default=""),
    "load": Option(
        "closed_loop, open_loop, static_batch or offline; by default as concurrency or rate imply.", default=""
    ),
    "n_node": number_option("Hosts of the replica."),
    "cp": number_option("Context parallelism.", names=("--cp", "--context-parallel")),
    "moe_tp": number_option("Tensor parallelism of the experts."),
    "n_prefill_accelerator": number_option("Accelerators of disaggregated prefill."),
    "n_decode_accelerator": number_option("Accelerators that decode, with disaggregated prefill."),
    "activation_precision": Option("Precision of the activations.", default=""),
    "speculation": Option("Speculative decoding: none, mtp, eagle, draft or ngram.", default=""),
    "n_speculative_token": number_option("Speculated tokens per step."),
    "acceptance_ratio": number_option("Probability that a speculated token is accepted."),
    "prefix_cache_ratio": number_option("Share of the input that the prefix cache holds."),
    "prefix_caching": Option("Prefix cache: on or off.", default=""),
    "chunked_prefill": Option("Prefill in chunks among decode steps: on or off.", default=""),
    "chunk_size_token": number_option("Most tokens of a step, such as vLLM's max-num-batched-tokens."),
    "max_num_seqs": number_option("Most sequences of a step."),
    "max_context_token": number_option("Longest request that the engine is configured for."),
    "graphs": Option("CUDA or HIP graphs: on, or off for eager execution.", default=""),
    "peer_to_peer": Option("Whether accelerators read each other's memory: on or off.", default=""),
    "link_bandwidth_byte_per_s": number_option("Link bandwidth in place of the data sheet's, one direction."),
    "power_limit_w": number_option("Power limit of one accelerator."),
    "poll_interval_step": number_option("Decode steps between polls for new requests."),
    "stream_interval_token": number_option("Tokens of a streamed chunk."),
    "attention_dp_wait_step": number_option("Steps that a prompt waits until every attention rank has one."),
    "batch_wait_step": number_option("Steps that a prompt waits for others to join its prefill batch."),
    "lora_rank": number_option("Rank of the requests' LoRA adapter."),
    "length_variation": number_option("Coefficient of variation of the output lengths; 0 if fixed."),
    "n_request": number_option("Requests of the benchmark run; 1e9 for a service in steady state."),
    "date": Option("Day of the run, YYYY-MM-DD, YYYY-MM or YYYY.", default=""),
}

QUESTION_OPTIONS: Final = {
    name: option if option.complete else replace(option, complete=complete_column(name))
    for name, option in _OPTIONS.items()
}
"""Options of one question: the columns of a row of ``predict``."""
