"""Columns of the measurement table: one row per run and statistic.

A run is one (model, accelerator, configuration, workload). Its row of statistic ``p95`` has the 95th percentile of
every latency; throughputs are means over the run and only in the row of statistic ``mean``.
"""

from __future__ import annotations

from typing import Final

from roofcast.data.measurements.column_types import Column, number, required_number, required_text, text
from roofcast.data.specs import PRECISIONS, STATISTICS

LOADS: Final = ("closed_loop", "open_loop", "static_batch", "offline")
"""Arrival of requests: at a concurrency, at a rate, together as one batch, or all at once into a queue."""

STATUSES: Final = ("ok", "out_of_memory", "failed")
SPECULATIONS: Final = ("mtp", "eagle", "draft", "ngram")
NO_SPECULATION: Final = "none"
SWITCHES: Final = ("on", "off")

_MAX_S: Final = 86_400.0

QUESTION_COLUMNS: Final = {
    "model": required_text(),
    "accelerator": required_text(),
    "n_accelerator": required_number(1, 100_000),
    "engine": text(),
    "engine_version": text(),
    "weight_precision": text(*PRECISIONS),
    "kv_precision": text(*PRECISIONS),
    "tp": number(1, 100_000),
    "pp": number(1, 100_000),
    "dp": number(1, 100_000),
    "ep": number(1, 100_000),
    "n_input_token": required_number(1e-9, 1e7),
    "n_output_token": required_number(1, 1e7),
    "concurrency": number(1, 1e6),
    "request_rate": number(1e-9, 1e6),
    "statistic": required_text(*STATISTICS),
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
    "flash_attention": Column("bool"),
    "load": required_text(*LOADS),
    "status": required_text(*STATUSES),
    "n_node": number(1, 100_000),
    "cp": number(1, 100_000),
    "moe_tp": number(1, 100_000),
    "n_prefill_accelerator": number(1, 100_000),
    "n_decode_accelerator": number(1, 100_000),
    "activation_precision": text(*PRECISIONS),
    "speculation": text(NO_SPECULATION, *SPECULATIONS),
    "n_speculative_token": number(0, 1000),
    "acceptance_ratio": number(0, 1),
    "prefix_cache_ratio": number(0, 1),
    "prefix_caching": text(*SWITCHES),
    "chunked_prefill": text(*SWITCHES),
    "chunk_size_token": number(1, 1e7),
    "max_num_seqs": number(1, 1e6),
    "max_context_token": number(1, 1e9),
    "graphs": text(*SWITCHES),
    "peer_to_peer": text(*SWITCHES),
    "link_bandwidth_byte_per_s": number(1e6, 1e14),
    "power_limit_w": number(1, 1e5),
    "poll_interval_step": number(1, 100_000),
    "stream_interval_token": number(1, 100_000),
    "attention_dp_wait_step": number(0, 100_000),
    "batch_wait_step": number(0, 100_000),
    "lora_rank": number(1, 100_000),
    "length_variation": number(0, 1000),
    "duration_s": number(0, 1e8),
    "n_request": number(0, 1e9),
    "n_failed": number(0, 1e9),
    "n_input_token_at_statistic": number(0, 1e7),
    "n_output_token_at_statistic": number(0, 1e7),
    "date": text(),
    "software": text(),
    "derived": text(),
    "campaign": required_text(),
    "stack": text(),
    "note": text(),
}
"""Context of a run, blank where unknown. `..._at_statistic` columns hold the row's statistic, such as p95, of the
request lengths. The prefill and decode accelerators of a disaggregated deployment add up to `n_accelerator`. `dp`
counts the groups of data-parallel attention; `moe_tp` and `ep` split the experts. `derived` names the outcomes that
were computed from others, separated by spaces. `length_variation` is the coefficient of variation of the output
lengths: 0 if all are equal.

Server settings, in steps of the decode loop or in tokens: `chunk_size_token` is the largest number of tokens of a
step (vLLM's ``max-num-batched-tokens``, SGLang's ``chunked-prefill-size``, TensorRT-LLM's ``max_num_tokens``);
`poll_interval_step` the decode steps between polls for new requests (SGLang's ``scheduler-recv-interval``);
`stream_interval_token` the tokens of a streamed chunk (``stream-interval``); `attention_dp_wait_step` the largest
number of steps that a prompt waits until every rank of attention has one (TensorRT-LLM's
``attention_dp_config.timeout_iters``); `batch_wait_step` the largest number that it waits for other
prompts of its prefill batch (``batch_wait_timeout_iters``).

`speculation` is ``none`` where it is known to be off; `acceptance_ratio` is the probability that a speculated token
is accepted, given that those before it were.
`max_num_seqs` limits the sequences of a step, `max_context_token` the length of one (vLLM's ``max-num-seqs`` and
``max-model-len``). `graphs` is off for an engine that launches each kernel from the host (``enforce-eager``).
`peer_to_peer` says whether accelerators of a host read each other's memory directly; `link_bandwidth_byte_per_s`
overrides the data sheet's, per accelerator and direction, and `power_limit_w` the thermal design power of one.

`stack` names who built, configured and measured the engine: laboratory, harness, build, settings and host, such as
``mlperf/nvidia``. Stacks whose names agree up to the first slash have one owner and are held out together.

`n_request` counts all requests sent, `n_failed` the failed ones among them. `date` is the day of the measurement,
`YYYY-MM-DD`, or its known part (`YYYY-MM`, `YYYY`)."""

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
