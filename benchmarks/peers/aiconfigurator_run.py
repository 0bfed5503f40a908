"""Run aiconfigurator on the queries of protocol P3, and store its predictions and call times.

It runs in a separate environment without roofcast:

    python3 -m venv peer && peer/bin/pip install aiconfigurator==0.12.0
    peer/bin/python benchmarks/peers/aiconfigurator_run.py \
        data/roofcast/data/campaigns/silicon/rows.csv training/judge/peers/silicon/peer_aiconfigurator.csv

The queries are the campaign's aggregated rows, with repaired devices, parallelism and lengths, as roofcast gets them.
Equal queries run once. Results in the output file are reused if their query still exists, so an interrupted run can
continue. The order is shuffled by hash, so that partial results are a random sample.
"""

import argparse
import csv
import hashlib
import logging
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

QUERY: Final = (
    "mode", "model_path", "system_name", "backend_name", "isl", "osl", "batch_size", "tp_size", "pp_size",
    "attention_dp_size", "moe_tp_size", "moe_ep_size", "gemm_quant_mode", "moe_quant_mode", "kvcache_quant_mode",
    "nextn", "nextn_accepted",
)  # fmt: skip
"""Arguments of `cli_estimate`; blank for its default."""

COLUMNS: Final = ("row", *QUERY, "ttft_s", "tpot_s", "call_s", "status", "reason")
"""Output columns; `row` is that of `rows_index.csv`."""

MS_PER_S: Final = 1000.0

SYSTEMS: Final = {
    "nvidia-h100-sxm-80gb": "h100_sxm",
    "nvidia-h200-sxm-141gb": "h200_sxm",
    "nvidia-b200-sxm-180gb": "b200_sxm",
    "nvidia-b300-sxm-270gb": "b300_sxm",
    "nvidia-gb200": "gb200",
}

_FP8: Final = {"gemm_quant_mode": "fp8"}
_BLOCK: Final = {"gemm_quant_mode": "fp8_block", "moe_quant_mode": "fp8_block"}
_FP4: Final = {"gemm_quant_mode": "nvfp4"}

CHECKPOINTS: Final[dict[tuple[str, str], tuple[str, dict[str, str]]]] = {
    ("meta-llama/Llama-3.1-8B", "bf16"): ("meta-llama/Meta-Llama-3.1-8B", {}),
    ("meta-llama/Llama-3.1-8B", "fp8"): ("meta-llama/Meta-Llama-3.1-8B", _FP8),
    ("meta-llama/Llama-3.1-70B", "fp8"): ("nvidia/Llama-3.1-70B-Instruct-FP8", {}),
    ("meta-llama/Llama-3.1-70B", "fp4"): ("meta-llama/Meta-Llama-3.1-70B", _FP4),
    ("Qwen/Qwen3-32B", "bf16"): ("Qwen/Qwen3-32B", {}),
    ("Qwen/Qwen3-32B", "fp8"): ("Qwen/Qwen3-32B-FP8-Static-PerTensor", {}),
    ("Qwen/Qwen3-32B", "fp4"): ("Qwen/Qwen3-32B", _FP4),
    ("Qwen/Qwen3-235B-A22B", "fp8"): ("Qwen/Qwen3-235B-A22B-FP8", {}),
    ("Qwen/Qwen3.5-397B-A17B", "bf16"): ("Qwen/Qwen3.5-397B-A17B", {}),
    ("Qwen/Qwen3.5-397B-A17B", "fp8"): ("Qwen/Qwen3.5-397B-A17B", _BLOCK),
    ("Qwen/Qwen3.5-397B-A17B", "fp4"): ("nvidia/Qwen3.5-397B-A17B-NVFP4", {}),
    ("MiniMaxAI/MiniMax-M2.5", "fp8"): ("MiniMaxAI/MiniMax-M2.5", {}),
    ("MiniMaxAI/MiniMax-M2.5", "fp4"): ("nvidia/MiniMax-M2.5-NVFP4", {}),
    ("moonshotai/Kimi-K2.5", "int4"): ("moonshotai/Kimi-K2.5", {}),
    ("moonshotai/Kimi-K2.5", "fp4"): ("nvidia/Kimi-K2.5-NVFP4", {}),
    ("zai-org/GLM-5", "fp8"): ("zai-org/GLM-5-FP8", {}),
    ("zai-org/GLM-5", "fp4"): ("nvidia/GLM-5-NVFP4", {}),
    ("openai/gpt-oss-120b", "fp8"): ("openai/gpt-oss-120b", {}),
    ("openai/gpt-oss-120b", "fp4"): ("openai/gpt-oss-120b", {}),
    **{
        (f"deepseek-ai/{name}", precision): (checkpoint, {})
        for name in ("DeepSeek-R1", "DeepSeek-R1-0528", "DeepSeek-V3.1")
        for precision, checkpoint in (("fp8", "deepseek-ai/DeepSeek-R1"), ("fp4", "nvidia/DeepSeek-V3.1-NVFP4"))
    },
}
"""Checkpoint by model and precision, among those whose configuration ships with aiconfigurator; it infers the
kernels from the checkpoint. Modes are explicit if no checkpoint of the precision ships."""

CACHES: Final = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8"}
ACCEPTED: Final = (0.85, 0.3)
"""Conditional acceptance probability of each drafted token; later tokens are never accepted. aiconfigurator requires
the expected number; these are the defaults of its former interface."""

Query = dict[str, Any]
Key = tuple[str, ...]


def query_of(row: Mapping[str, str]) -> Query:
    """Return the arguments of `cli_estimate` for a row of the campaign.

    A total without known split is one prefill and one decode worker, each with half of the accelerators,
    data-parallel attention and expert parallelism.
    """
    checkpoint, modes = CHECKPOINTS[row["model"], row["weight_precision"]]
    cache = {"kvcache_quant_mode": CACHES[row["kv_precision"]]} if row["kv_precision"] else {}
    n_draft = int(float(row["n_speculative_token"] or 0))
    drafts = {"nextn": n_draft, "nextn_accepted": round(n_accepted(n_draft), 4)} if n_draft else {}
    return {
        "model_path": checkpoint,
        "system_name": SYSTEMS[row["accelerator"]],
        "backend_name": row["engine"],
        "isl": round(float(row["n_input_token"])),
        "osl": round(float(row["n_output_token"])),
        **(_split(row) if row["tp"] else _halves(row)),
        **modes,
        **cache,
        **drafts,
    }


def n_accepted(n_draft: int) -> float:
    """Return the expected number of accepted drafted tokens."""
    return sum(math.prod(ACCEPTED[: i + 1]) for i in range(min(n_draft, len(ACCEPTED))))


def _split(row: Mapping[str, str]) -> Query:
    tp, pp, dp, ep = (int(float(row[name] or 1)) for name in ("tp", "pp", "dp", "ep"))
    return {
        "tp_size": tp,
        "pp_size": pp,
        "attention_dp_size": dp,
        "moe_tp_size": int(float(row["moe_tp"] or tp * dp // ep)),
        "moe_ep_size": ep,
        "batch_size": math.ceil(float(row["concurrency"]) / dp),
    }


def _halves(row: Mapping[str, str]) -> Query:
    half = int(float(row["n_accelerator"])) // 2
    return {
        "mode": "disagg",
        "tp_size": 1,
        "pp_size": 1,
        "attention_dp_size": half,
        "moe_tp_size": 1,
        "moe_ep_size": half,
        "batch_size": math.ceil(float(row["concurrency"]) / half),
    }


def arguments(query: Query) -> Query:
    """Return the arguments of `cli_estimate`; in a disaggregated query the batch is that of the decode worker."""
    if query.get("mode") != "disagg":
        return query
    workers = {"prefill_num_workers": 1, "prefill_batch_size": 1, "decode_num_workers": 1}
    return {**query, **workers, "decode_batch_size": query["batch_size"]}


def run_query(query: Query) -> dict[str, object]:
    """Return aiconfigurator's prediction, or status ``unanswered`` with the reason if it fails."""
    from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]  # noqa: PLC0415 not here

    start = time.perf_counter()
    try:
        answer = cli_estimate(**arguments(query))
        ttft_s, tpot_s = float(answer.ttft) / MS_PER_S, float(answer.tpot) / MS_PER_S
        reason = "" if 0 < ttft_s < math.inf and 0 < tpot_s < math.inf else "no finite latency"
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split()).partition(' at /')[0][:100]}"
    call_s = round(time.perf_counter() - start, 3)
    if reason:
        return {"call_s": call_s, "status": "unanswered", "reason": reason}
    return {"ttft_s": f"{ttft_s:.6g}", "tpot_s": f"{tpot_s:.6g}", "call_s": call_s, "status": "ok"}


def queries(file: Path) -> dict[Key, tuple[Query, list[str]]]:
    """Return each query with the numbers of its rows, by `key_of`, in shuffled order."""
    by_key: dict[Key, tuple[Query, list[str]]] = {}
    for row in read(file):
        is_disaggregated = bool(row["n_prefill_accelerator"])
        if not is_disaggregated:
            query = query_of(row)
            number = row["note"].partition(";")[0].removeprefix("row ")
            by_key.setdefault(key_of(query), (query, []))[1].append(number)
    return dict(sorted(by_key.items(), key=lambda item: hashlib.blake2b(repr(item[0]).encode()).digest()))


def key_of(query: Mapping[str, object]) -> Key:
    """Return the cells of a query in the output file."""
    return tuple(str(query.get(name, "")) for name in QUERY)


def read(file: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file."""
    with file.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def main() -> None:
    """Run the queries that are not in the output file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="the campaign's rows.csv")
    parser.add_argument("out", type=Path, help="output CSV file")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    known = {key_of(row): row for row in read(options.out)} if options.out.exists() else {}
    queries_by_key = queries(options.rows)
    with options.out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for key in sorted(queries_by_key, key=lambda key: key not in known):
            query, numbers = queries_by_key[key]
            answer = known[key] if key in known else {**query, **run_query(query)}
            writer.writerows({**answer, "row": number} for number in numbers)
            stream.flush()


if __name__ == "__main__":
    main()
