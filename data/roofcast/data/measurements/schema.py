"""Columns of the measurement table: one row per run and statistic.

A run is one (model, accelerator, configuration, workload). Its row of statistic ``p95`` has the 95th percentile of
every latency; throughputs are means over the run and only in the row of statistic ``mean``.
"""

from typing import Final

from roofcast.data.measurements.column_types import of_role, read_columns

SCHEMA: Final = read_columns("inference_columns.csv")

LOADS: Final = SCHEMA["load"].choices
"""Arrival of requests: at a concurrency, at a rate, together as one batch, or all at once into a queue."""

NO_SPECULATION: Final = "none"
ACCEPTANCES: Final = ("acceptance_length", "draft_acceptance_ratio", "chain_acceptance_ratio")
"""Columns that say how much of the drafts is accepted, the one that counts first where several are given."""

QUESTION_COLUMNS: Final = of_role(SCHEMA, "question")
"""Configuration, workload and statistic: the question that the outcomes answer. Rates are per second."""

OUTCOME_COLUMNS: Final = of_role(SCHEMA, "outcome", "run outcome")
"""Observed outcomes of the whole deployment; ``docs/METRICS.md`` defines them."""

MEAN_ONLY_COLUMNS: Final = tuple(of_role(SCHEMA, "run outcome"))
"""Outcomes of a run as a whole, only in its row of statistic `mean`."""

REFERENCE_METRICS: Final = ("ttft_s", "tpot_s", "output_throughput_token_per_s", "itl_s", "e2e_s")
"""Outcomes that a reference measurement may state; it states at least one."""

CONTEXT_COLUMNS: Final = of_role(SCHEMA, "setting", "result")
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

RESULT_COLUMNS: Final = tuple(of_role(SCHEMA, "result"))
"""Context columns that are not part of a question: what a run reports, and its source."""

INPUT_COLUMNS: Final = of_role(SCHEMA, "question", "setting")
"""Columns of a prediction input: a measurement without its outcomes. `n_request` is the length of the predicted run.
Blank means a service in steady state, as recommendations assume; in a measured row it means an unknown length."""

MEASUREMENT_COLUMNS: Final = tuple(SCHEMA)
KEY_COLUMNS: Final = (*QUESTION_COLUMNS, "flash_attention", "load", "date", "campaign")

NUMBER_COLUMNS: Final = tuple(name for name, column in SCHEMA.items() if column.kind == "float")
