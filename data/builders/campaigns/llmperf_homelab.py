"""Median run of each configuration in LLMPerf's data bases."""

import json
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from builders.published import Record
from roofcast.data.errors import SchemaError

SETS: Final = {
    "results.db": ("trelis/sglang", "sglang"),
    "results_vLLM.db": ("trelis/vllm", "vllm"),
    "results__results_cloud_single.db": ("tech_grandpa/runpod", ""),
    "results__results_homelab_single.db": ("tech_grandpa/homelab", ""),
    "results__results_various_models_mixed.db": ("tech_grandpa/homelab", ""),
}
"""Stack and engine of each data base; scripts/compare_frameworks.py of the repository names the engines of two."""

MIN_COUNT_RATIO: Final = 1.15
"""Least ratio of counted to requested output tokens where the requested number ended the answers: the client counts
with Llama 2's tokenizer, which takes 1.2 tokens for one of Llama 3's."""

N_LATENCY: Final = 3.0
"""Longest run in latencies of a request: two take the counted requests and those that their threads send next; the
client, which starts a process a request, may take one more, else fewer requests than it claims are in flight."""

S_PER_MIN: Final = 60.0


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield one record for the repeats of a configuration, and those that a rule rejects."""
    for base in published:
        repeats: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for run in _runs(base.cells["@source"]):
            repeats[run["model"], run["gpu_info"]].append(run)
        for runs in repeats.values():
            yield from _median(base.cells["@file"], runs)


def _runs(file: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        try:
            rows = connection.execute("select * from benchmark_runs order by timestamp").fetchall()
        except sqlite3.DatabaseError as error:
            raise SchemaError("", f"must be a data base of benchmark runs: {error}", file.name) from error
    return [dict(row) | json.loads(row["raw_results"]) for row in rows]


def _median(name: str, runs: list[dict[str, Any]]) -> Iterator[Record]:
    stack, engine = SETS[name]
    accepted = []
    for position, run in enumerate(runs):
        rule = _rule_against(run, is_first=engine != "vllm" and position == 0)
        if rule is None:
            accepted.append(run)
        else:
            yield Record(f"{name}:{run['id']}", run, rejection=rule)
    if accepted:
        first, n_input = accepted[0], statistics.median(map(_n_input_token, accepted))
        cells = first | {
            "engine": engine, "stack": "tech_grandpa/runpod" if first["gpu_info"].startswith("(runpod) ") else stack,
            "n_input": n_input, "cached_ratio": 1 - 1 / n_input, "tpot_s": statistics.median(map(_tpot_s, accepted)),
        }  # fmt: skip
        yield Record(f"{name}:{first['id']}", cells, n_published=len(accepted))


def _rule_against(run: Mapping[str, Any], *, is_first: bool) -> tuple[str, str] | None:
    if is_first:
        return "first_run", "its prompts are not in the cache yet, unlike later ones"
    if _count_ratio(run) < MIN_COUNT_RATIO:
        return "length_unknown", "answers end before the requested length"
    duration_s = run["completed_requests"] / run["completed_requests_per_min"] * S_PER_MIN
    if duration_s > N_LATENCY * run["mean_latency"]:
        detail = f"the run takes {duration_s:.3g} s, its requests {run['mean_latency']:.3g} s: they start one by one"
        return "client_bound", detail
    return None


def _count_ratio(run: Mapping[str, Any]) -> float:
    return float(run["results"]["number_output_tokens"]["mean"]) / float(run["mean_output_tokens"])


def _n_input_token(run: Mapping[str, Any]) -> float:
    return float(run["results"]["number_input_tokens"]["mean"]) / _count_ratio(run)


def _tpot_s(run: Mapping[str, Any]) -> float:
    return float(run["mean_latency"] - run["ttft"]) / (float(run["mean_output_tokens"]) - 1)
