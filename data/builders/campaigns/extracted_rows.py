"""Rows of an extraction with one line for each statistic of a run, whose columns are those of many sources."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from builders.campaigns.llama_bench import generation_row, prompt_row
from builders.figures import number_of
from builders.published import Cells, Record, RejectionError
from builders.recipe import Row
from roofcast.data.measurements.schema import MEAN_ONLY_COLUMNS
from roofcast.data.specs import STATISTICS

LATENCIES: Final = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
THROUGHPUTS: Final = ("output_throughput_token_per_s", "total_throughput_token_per_s", "request_throughput_per_s")
NUMBERS: Final = (
    "n_accelerator", "tp", "pp", "dp", "ep", "n_input_token", "n_output_token", "concurrency", "request_rate",
    "n_request", "max_num_seqs",
)  # fmt: skip

_SINGLE: Final = "single"
"""Statistic of a run of one request."""

_PRECISIONS: Final[Mapping[str, str]] = {
    r"^bf16$": "bf16", r"^f(p)?16$": "fp16", r"^(nv|mx)?fp4$": "fp4", r"^(mx)?fp8(_e4m3)?$": "fp8",
    r"^(q8_0|w8a8|int8)$": "int8", r"^((ud-)?q4_\w+|iq4_\w+|awq|gptq|int4)$": "int4",
}  # fmt: skip
"""Our name by a pattern of theirs; of quantised files that of most tensors."""

_LOADS: Final = {
    "closed_loop": "closed_loop",
    "open_loop": "open_loop",
    "burst": "offline",
    "offline": "static_batch",
}
_SWITCHES: Final = {"true": "on", "false": "off"}
_NOTES: Final = {"variant": 60, "note": 160, "doubt": 160}
"""Most characters of each text that becomes a note."""

_STATED: Final = {
    "gpu_memory_utilization": re.compile(r"\bgpu[-_]memory[-_]utilization[ =](0\.\d+)"),
    "chunk_size_token": re.compile(r"\bmax[-_]num[-_]batched[-_]tokens[ =](\d+)"),
    "max_context_token": re.compile(r"\bmax[-_]model[-_]len[ =](\d+)"),
}
"""Settings that notes state by their names in vLLM."""

_SHARED_PREFIX: Final = re.compile(r"prefixes, hit rate not told|share most of their text")
"""Texts of `doubt` about prompts that share a prefix, where the share that the cache held is not stated."""

_DRAFTED: Final = re.compile(r"(\d+)-1-\d+|(\d+) steps?|(\d+) tokens?|gamma (\d+)|, (\d+) token")
"""Number of drafted tokens in a cell of `speculation`, in one of its spellings."""

_ACCEPTED: Final = re.compile(r"accepted (?:length )?(\d+\.\d+)")
"""Acceptance length in a cell of `speculation`."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each run, with its lines as ``@lines``."""
    outcomes = {"statistic", *LATENCIES, *THROUGHPUTS, "power_w"}

    def run_of(record: Record) -> tuple[str, ...]:
        own = {"queue_wait_s", "prefill_s", "decode_s", "frontend_wait_s", "doubt", "note", "workload"}
        return tuple(str(cell) for name, cell in record.columns.items() if name not in outcomes | own)

    for _, group in itertools.groupby(published, run_of):
        lines: list[Record] = []
        for record in group:
            if record.cells["statistic"] in {line.cells["statistic"] for line in lines}:
                yield _run(lines)
                lines = []
            lines.append(record)
        yield _run(lines)


def _run(lines: list[Record]) -> Record:
    return Record(lines[0].reference, {**lines[0].cells, "@lines": [one.cells for one in lines]}, len(lines))


def rows(cells: Cells, common: Row) -> Iterable[Row]:
    """Return the rows of a run.

    Raises `RejectionError` if the arrival of requests, a precision, the replicas, the cached share or the speculation
    cannot be stated.
    """
    run = {name: number_of(cells[name]) for name in NUMBERS if cells[name]} | _settings(cells) | common
    if cells["load"] == "offline":
        return _bench_rows(cells, run)
    lines: list[Mapping[str, Any]] = cells["@lines"]
    by_statistic: dict[str, Row] = {}
    for line in lines:
        statistic = "mean" if line["statistic"] == _SINGLE else line["statistic"]
        latencies = {name: number_of(line[name]) for name in LATENCIES if line[name]}
        totals = {name: number_of(line[name]) for name in (*THROUGHPUTS, "power_w") if line.get(name)}
        by_statistic.setdefault(statistic, {}).update(latencies)
        by_statistic.setdefault("mean", {}).update({n: v for n, v in totals.items() if n in MEAN_ONLY_COLUMNS})
    return [{**run, "statistic": name, **by_statistic[name]} for name in STATISTICS if by_statistic.get(name)]


def _bench_rows(cells: Cells, run: Row) -> list[Row]:
    depth = number_of(cells.get("kv_depth") or "0")
    rows = []
    if cells["ttft_s"]:
        n, ttft_s = run["n_input_token"], number_of(cells["ttft_s"])
        cached = {"prefix_cache_ratio": depth / (n + depth)} if depth else {}
        rows.append({**prompt_row(n, n / ttft_s), "n_input_token": n + depth, **cached})
    if cells["tpot_s"]:
        row = generation_row(run["n_output_token"], 1 / number_of(cells["tpot_s"]))
        rows.append({**row, "n_input_token": 1 + depth})
    return [{**run, "concurrency": 1, "statistic": "mean", **row} for row in rows]


def _settings(cells: Cells) -> Row:
    if cells["load"] not in _LOADS or (cells["load"] == "open_loop" and not cells["request_rate"]):
        raise RejectionError("load", f"arrival {cells['load']} without a rate")
    if _SHARED_PREFIX.search(cells["doubt"]):
        raise RejectionError("prefix", "the share of the prompts that the cache holds is not stated")
    version = re.match(r"v?(\d+\.\d[\w.+]*|b\d+)", cells["engine_version"])
    texts = (str(cells.get(name, ""))[:length].strip() for name, length in _NOTES.items())
    note = "; ".join(filter(None, texts))
    row: Row = {
        "model": cells["model"], "accelerator": cells["accelerator"], "engine": cells["engine"],
        "engine_version": version[1] if version else "", "load": _LOADS[cells["load"]], "date": cells["date"],
        "weight_precision": _precision(cells["weight_precision"]), "kv_precision": _precision(cells["kv_precision"]),
        "chunked_prefill": _SWITCHES.get(cells["chunked_prefill"], ""),
        "prefix_caching": _SWITCHES.get(cells["prefix_caching"], ""),
        "graphs": "off" if cells["eager"] == "true" else "", "note": note, **_speculation(cells["speculation"]),
    }  # fmt: skip
    row |= {name: float(stated[1]) for name, text in _STATED.items() if (stated := text.search(cells["note"]))}
    row |= _pools(cells)
    if hits := cells.get("prefix_hit_rate"):
        row["prefix_cache_ratio"] = number_of(hits)
    return {name: value for name, value in row.items() if value != ""}


def _pools(cells: Cells) -> Row:
    if cells.get("disaggregated") != "true":
        if cells.get("disaggregated") and number_of(cells["dp"] or "1") > 1:
            raise RejectionError("replicas", f"{cells['dp']} engines behind a router")
        return {}
    prefill, decode = (number_of(cells[f"{k}_replicas"]) * number_of(cells[f"{k}_tp"]) for k in ("p", "d"))
    return {"n_prefill_accelerator": prefill, "n_decode_accelerator": decode, "tp": number_of(cells["d_tp"])}


def _precision(text: str) -> str:
    if not text:
        return ""
    name = next((ours for theirs, ours in _PRECISIONS.items() if re.search(theirs, text)), "")
    if not name:
        raise RejectionError("unknown_precision", text)
    return name


def _speculation(text: str) -> Row:
    if text in {"", "none"}:
        return {"speculation": text}
    kind = next((kind for word, kind in (("MTP", "mtp"), ("EAGLE3", "eagle")) if word in text.upper()), "")
    drafted, accepted = _DRAFTED.search(text), _ACCEPTED.search(text)
    if not drafted:
        raise RejectionError("speculation", f"{text}: the number of drafted tokens is not stated")
    row: Row = {"speculation": kind, "n_speculative_token": float(next(filter(None, drafted.groups())))}
    return row | ({"acceptance_length": float(accepted[1])} if accepted else {})
