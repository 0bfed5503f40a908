"""Columns of the measurement table: one row per run and statistic.

A run is one (model, accelerator, configuration, workload). Its row of statistic ``p95`` has the 95th percentile of
every latency; throughputs are means over the run and only in the row of statistic ``mean``.
"""

from __future__ import annotations

from typing import Final

from roofcast.data.measurements.column_types import Column, number, precision, required_number, required_text, text
from roofcast.data.specs import STATISTICS

LOADS: Final = ("closed_loop", "open_loop", "static_batch", "offline")
"""Arrival of requests: at a concurrency, at a rate, together as one batch, or all at once into a queue."""

STATUSES: Final = ("ok", "out_of_memory", "failed")
SPECULATIONS: Final = ("mtp", "eagle", "draft", "ngram")
NO_SPECULATION: Final = "none"
ACCEPTANCES: Final = ("acceptance_length", "draft_acceptance_ratio", "chain_acceptance_ratio")
"""Columns that say how much of the drafts is accepted, the one that counts first where several are given."""
SWITCHES: Final = ("on", "off")

_MAX_S: Final = 86_400.0

QUESTION_COLUMNS: Final = {
    "model": required_text(meaning="Catalogue name, path of a config.json, or owner/name on the Hugging Face hub"),
    "accelerator": required_text(meaning="Catalogue name"),
    "n_accelerator": required_number(1, 100_000, "Accelerators of the replica; 1 by default"),
    "engine": text(meaning="Such as vllm, sglang or trtllm"),
    "engine_version": text(meaning="Version of the engine; blank is the release of the date, or the newest"),
    "weight_precision": precision("Precision of the weights, by default the checkpoint's"),
    "kv_precision": precision("Precision of the KV cache"),
    "tp": number(1, 100_000, "Tensor parallelism; by default all accelerators that the other degrees leave"),
    "pp": number(1, 100_000, "Pipeline parallelism"),
    "dp": number(1, 100_000, "Data parallelism"),
    "ep": number(1, 100_000, "Expert parallelism"),
    "n_input_token": required_number(1e-9, 1e7, "Mean input tokens; 4k is 4,000"),
    "n_output_token": required_number(1, 1e7, "Mean output tokens"),
    "concurrency": number(1, 1e6, "Requests in flight"),
    "request_rate": number(1e-9, 1e6, "Requests per second"),
    "statistic": required_text(*STATISTICS, meaning="Statistic of the prediction"),
}
"""Configuration, workload and statistic: the question that the outcomes answer. Rates are per second."""

OUTCOME_COLUMNS: Final = {
    "ttft_s": number(1e-7, _MAX_S),
    "nttft_s_per_token": number(1e-9, _MAX_S),
    "itl_s": number(0, _MAX_S),
    "tpot_s": number(0, _MAX_S),
    "e2e_s": number(1e-7, _MAX_S),
    "output_throughput_token_per_s": number(1e-9, 1e9),
    "total_throughput_token_per_s": number(1e-9, 1e9),
    "request_throughput_per_s": number(1e-9, 1e8),
    "power_w": number(1e-3, 1e9),
    "memory_byte": number(1, 1e16),
}
"""Observed outcomes of the whole deployment; ``docs/METRICS.md`` defines them."""

MEAN_ONLY_COLUMNS: Final = (
    "output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s", "power_w",
    "memory_byte",
)  # fmt: skip
"""Outcomes of a run as a whole, only in its row of statistic `mean`."""

REFERENCE_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s", "itl_s", "e2e_s")
"""Outcomes that a reference measurement may state; it states at least one."""

CONTEXT_COLUMNS: Final = {
    "flash_attention": Column("bool", meaning="Whether attention is fused and unpadded: true by default"),
    "load": required_text(*LOADS, meaning="Arrival of requests, by default as concurrency or rate imply"),
    "status": required_text(*STATUSES),
    "n_node": number(1, 100_000, "Hosts of the replica"),
    "cp": number(1, 100_000, "Context parallelism"),
    "moe_tp": number(1, 100_000, "Tensor parallelism of the experts"),
    "n_prefill_accelerator": number(1, 100_000, "Accelerators of disaggregated prefill"),
    "n_decode_accelerator": number(1, 100_000, "Accelerators that decode, with disaggregated prefill"),
    "activation_precision": precision("Precision of the activations"),
    "speculation": text(NO_SPECULATION, *SPECULATIONS, meaning="Speculative decoding"),
    "n_speculative_token": number(0, 1000, "Speculated tokens per step"),
    "chain_acceptance_ratio": number(0, 1, "Probability that a speculated token is accepted, given those before it"),
    "draft_acceptance_ratio": number(0, 1, "Accepted over drafted tokens, as engines print it"),
    "acceptance_length": number(1, 1001, "Tokens of a step with speculation, the model's own among them"),
    "prefix_cache_ratio": number(0, 1, "Share of the input that the prefix cache holds"),
    "prefix_caching": text(*SWITCHES, meaning="Prefix cache"),
    "chunked_prefill": text(*SWITCHES, meaning="Prefill in chunks among decode steps"),
    "chunk_size_token": number(1, 1e7, "Most tokens of a step, such as vLLM's max-num-batched-tokens"),
    "max_num_seqs": number(1, 1e6, "Most sequences of a step"),
    "max_context_token": number(1, 1e9, "Longest request that the engine is configured for"),
    "gpu_memory_utilization": number(
        0.01, 1, "Share of an accelerator's memory for the engine, in the engine's sense"
    ),
    "n_gpu_layer": number(0, 1000, "Layers on the accelerators; the others are in the host's memory"),
    "n_cpu_moe": number(0, 1000, "Layers whose experts are in the host's memory"),
    "cpu_offload_gib": number(0, 1e4, "GiB of weights of each accelerator in the host's memory"),
    "graphs": text(*SWITCHES, meaning="CUDA or HIP graphs; off is eager execution"),
    "peer_to_peer": text(*SWITCHES, meaning="Whether accelerators read each other's memory"),
    "link_bandwidth_byte_per_s": number(1e6, 1e14, "Link bandwidth in place of the data sheet's, one direction"),
    "power_limit_w": number(1, 1e5, "Power limit of one accelerator"),
    "poll_interval_step": number(1, 100_000, "Decode steps between polls for new requests"),
    "stream_interval_token": number(1, 100_000, "Tokens of a streamed chunk"),
    "attention_dp_wait_step": number(0, 100_000, "Steps that a prompt waits until every attention rank has one"),
    "batch_wait_step": number(0, 100_000, "Steps that a prompt waits for others to join its prefill batch"),
    "lora_rank": number(1, 100_000, "Rank of the requests' LoRA adapter"),
    "length_variation": number(0, 1000, "Coefficient of variation of the output lengths; 0 if fixed"),
    "duration_s": number(0, 1e8),
    "n_request": number(0, 1e9, "Requests of the benchmark run; 1e9 for a service in steady state"),
    "n_failed": number(0, 1e9),
    "n_input_token_at_statistic": number(0, 1e7),
    "n_output_token_at_statistic": number(0, 1e7),
    "date": text(meaning="Day of the run, YYYY-MM-DD, YYYY-MM or YYYY; blank is that of the release"),
    "software": text(),
    "derived": text(),
    "campaign": required_text(),
    "stack": text(),
    "note": text(),
}
"""Context of a run, blank where unknown. `..._at_statistic` columns hold the row's statistic, such as p95, of the
request lengths. The prefill and decode accelerators of a disaggregated deployment add up to `n_accelerator`. `dp`
counts the groups of data-parallel attention; `moe_tp` and `ep` split the experts. `derived` names the outcomes that
were computed from others, separated by spaces.

Server settings by their names in engines: `chunk_size_token` is vLLM's ``max-num-batched-tokens``, SGLang's
``chunked-prefill-size``, TensorRT-LLM's ``max_num_tokens``; `poll_interval_step` SGLang's
``scheduler-recv-interval``; `stream_interval_token` ``stream-interval``; `attention_dp_wait_step` TensorRT-LLM's
``attention_dp_config.timeout_iters``; `batch_wait_step` its ``batch_wait_timeout_iters``; `max_num_seqs` and
`max_context_token` vLLM's ``max-num-seqs`` and ``max-model-len``; `graphs` is off with ``enforce-eager``;
`gpu_memory_utilization` is SGLang's ``mem-fraction-static`` and TensorRT-LLM's ``free_gpu_memory_fraction`` too;
`n_gpu_layer` and `n_cpu_moe` are llama.cpp's ``-ngl`` and ``--n-cpu-moe``, `cpu_offload_gib` is vLLM's and SGLang's
``cpu-offload-gb``.

`speculation` is ``none`` where it is known to be off, and blank beside drafted tokens where its kind is not known.
Three columns say how much of it is accepted: `acceptance_length`, the engines' *acceptance* or *accept length*;
`draft_acceptance_ratio`, their *acceptance rate*; and `chain_acceptance_ratio`, the probability of a token given that
those before it were accepted, which is higher than the rate where several are drafted.
`link_bandwidth_byte_per_s` is per accelerator and direction.

`stack` names who built, configured and measured the engine: laboratory, harness, build, settings and host, such as
``mlperf/nvidia``. Stacks whose names agree up to the first slash have one owner and are held out together.

`n_request` counts all requests sent, `n_failed` the failed ones among them."""

RESULT_COLUMNS: Final = (
    "status", "duration_s", "n_failed", "n_input_token_at_statistic", "n_output_token_at_statistic", "software",
    "derived", "campaign", "stack", "note",
)  # fmt: skip
"""Context columns that are not part of a question: what a run reports, and its source."""

INPUT_COLUMNS: Final = QUESTION_COLUMNS | {
    name: column for name, column in CONTEXT_COLUMNS.items() if name not in RESULT_COLUMNS
}
"""Columns of a prediction input: a measurement without its outcomes. `n_request` is the length of the predicted run.
Blank means the unknown length of a typical published run, which includes part of the startup; 1e9 means a service in
steady state, as recommendations assume."""

MEASUREMENT_COLUMNS: Final = (*QUESTION_COLUMNS, *OUTCOME_COLUMNS, *CONTEXT_COLUMNS)
KEY_COLUMNS: Final = (*QUESTION_COLUMNS, "flash_attention", "load", "date", "campaign")

SCHEMA: Final = {**QUESTION_COLUMNS, **OUTCOME_COLUMNS, **CONTEXT_COLUMNS}

NUMBER_COLUMNS: Final = tuple(name for name, column in SCHEMA.items() if column.kind == "float")

WHOLE_COLUMNS: Final = (
    "n_accelerator", "tp", "pp", "dp", "ep", "n_node", "cp", "moe_tp", "n_prefill_accelerator",
    "n_decode_accelerator", "chunk_size_token", "poll_interval_step", "stream_interval_token",
    "attention_dp_wait_step", "batch_wait_step",
)  # fmt: skip

DEFAULTS: Final[dict[str, object]] = {
    **dict.fromkeys((name for name, column in SCHEMA.items() if not column.is_nullable), ""),
    "statistic": "mean", "load": "", "status": "ok", "flash_attention": True,
}  # fmt: skip
