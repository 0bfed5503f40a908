"""LoadGen's ``mlperf_log_summary.txt``: the result of one run of MLPerf Inference.

It states no model, accelerator or input length: overrides supply them. Output length is tokens per second over
samples per second. An offline sample's latency counts from the start of the run, so this scenario delivers throughput
only.
A result that LoadGen calls invalid broke a rule of the submission (a latency limit, a minimum duration), but is a
measurement: its rows have a `note` with the broken rules. Accuracy runs are refused.
"""

import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import SchemaError
from roofcast.data.importers.client_runs import Run, join_cells
from roofcast.data.importers.fact_tables import fact_table
from roofcast.data.importers.format import Format
from roofcast.data.importers.json_input import Node, cell_node, read_text
from roofcast.data.importers.sources import Source, files_of, is_archive, start_of
from roofcast.data.specs import STATISTICS
from roofcast.data.units import S_PER_NS

MAX_LOG_BYTE: Final = 2**20
TITLE: Final = "MLPerf Results Summary"

_ERRORS: Final = re.compile(r"(No|[0-9]+) errors? encountered\b.*", re.IGNORECASE)


@dataclass(frozen=True)
class _Log:
    place: str
    values: dict[str, Node]
    n_error: int

    def __getitem__(self, names: str | tuple[str, ...]) -> Node:
        names = (names,) if isinstance(names, str) else names
        known = (self.values[name] for name in names if name in self.values)
        return next(known, Node(None, names[0], self.place))

    def number(self, *names: str) -> float:
        node = self[names]
        return cell_node(node.value or "", node.path, node.place, node.line).number()

    def required_number(self, *names: str) -> float:
        if self[names].is_blank:
            raise self[names].error("no such line, which this scenario has")
        return self.number(*names)


def _read_log(source: Source) -> _Log:
    content = source.stream.read(MAX_LOG_BYTE + 1)
    if len(content) > MAX_LOG_BYTE:
        raise SchemaError("", f"must be at most {MAX_LOG_BYTE} bytes", source.name)
    lines = read_text(Source(source.name, io.BytesIO(content))).splitlines()
    if not any(line.strip() == TITLE for line in lines):
        raise SchemaError("", f"is no summary of LoadGen: no line {TITLE!r}", source.name)
    ends = [match for line in lines if (match := _ERRORS.fullmatch(line.strip()))]
    if not ends:
        problem = "ends early: LoadGen's count of errors, its last line, is missing"
        raise SchemaError("", problem, source.name, len(lines))
    values: dict[str, Node] = {}
    for node in _iter_values(lines, source.name):
        first = values.setdefault(node.path, node)
        if first.value != node.value:
            raise node.error(f"is {first.value[:60]!a} in line {first.line} and {node.value[:60]!a} here")
    return _Log(source.name, values, sum(_count(match[1]) for match in ends))


def _iter_values(lines: list[str], place: str) -> Iterator[Node]:
    for number, line in enumerate(lines, start=1):
        name, colon, value = line.rpartition(":")
        name = " ".join(name.split())
        if colon and value.strip() and name and name.isascii() and name.isprintable() and not name.startswith("*"):
            yield Node(value.strip(), name, place, number)  # advice begins with a star


def _count(text: str) -> int:
    return 0 if text.lower() == "no" else min(int(text[:9]), 10**9)


SERVER: Final = "server"
OFFLINE: Final = "offline"
SINGLE: Final = "singlestream"
SCENARIOS: Final[dict[str, str]] = fact_table("tool_words")["mlperf"]["scenarios"]

MODES: Final = ("PerformanceOnly", "Performance", "SubmissionRun", "Submission")
"""Modes that measure speed."""

LATENCIES: Final = {
    "e2e_s": (("Mean latency (ns)",), "{} percentile latency (ns)"),
    "ttft_s": (("Mean First Token latency (ns)",), "{} percentile first token latency (ns)"),
    "tpot_s": (
        ("Mean Time per Output Token (ns)", "Mean Time to Output Token (ns)"),
        "{} percentile time to output token (ns)",
    ),
}
"""By column: names of its mean, newer logs first, and of its percentiles."""

_SAMPLES: Final = ("Completed samples per second", "Samples per second")
_TOKENS: Final = ("Completed tokens per second", "Tokens per second")
_RULES: Final = (
    "Performance constraints satisfied", "Min duration satisfied", "Min queries satisfied",
    "Early stopping satisfied",
)  # fmt: skip


def _recognises(start: bytes) -> bool:
    return any(line.strip() == TITLE.encode() for line in start[:4096].splitlines())


def _runs(source: Source) -> Iterator[Run]:
    yield _run(_read_log(source))


def _select_files(paths: Sequence[Path], *suffixes: str) -> list[Path]:
    selected: list[Path] = []
    for path in paths:
        files = files_of([path], *suffixes)
        results = [f for f in files if is_archive(f) or _recognises(start_of(f))] if path.is_dir() else files
        selected += results or files
    return selected


def _run(log: _Log) -> Run:
    scenario = SCENARIOS.get(log["Scenario"].text(), "")
    if not scenario:
        raise log["Scenario"].error(f"must be one of {', '.join(SCENARIOS)}, got {log['Scenario'].text()[:60]!a}")
    if log["Mode"].text() not in MODES:
        raise log["Mode"].error(f"must measure speed, as {MODES[0]} does, got {log['Mode'].text()[:60]!a}")
    totals = _totals(log, scenario)
    cells = join_cells(_load(log, scenario), _length(log, scenario), {"software": "MLPerf LoadGen"}, _notes(log))
    statistics = {} if scenario == OFFLINE else {name: _latencies(log, name) for name in STATISTICS}
    return Run(log.place, 0, cells, statistics, totals)


def _load(log: _Log, scenario: str) -> dict[str, Any]:
    if scenario == SINGLE:
        return {"load": "closed_loop", "concurrency": 1.0}
    if scenario == SERVER:
        return {
            "load": "open_loop",
            "request_rate": log.required_number("Scheduled samples per second", "target_qps"),
        }
    n_sample = log.number("samples_per_query")
    duration_s = log.number("Max latency (ns)") * S_PER_NS
    counted = {"n_request": n_sample, "duration_s": duration_s} if n_sample > 0 and duration_s > 0 else {}
    return {"load": "offline", **counted}


def _totals(log: _Log, scenario: str) -> dict[str, float]:
    if scenario == SINGLE:
        samples, tokens = (log.number(f"{unit} w/ loadgen overhead") for unit in ("QPS", "TPS"))
    elif scenario == OFFLINE:
        samples, tokens = log.required_number(_SAMPLES[1]), log.number(_TOKENS[1])
    else:
        samples, tokens = log.required_number(_SAMPLES[0]), log.number(_TOKENS[0])
    # LoadGen prints 0 tokens if the system under test does not count them
    return {"request_throughput_per_s": samples, "output_throughput_token_per_s": tokens if tokens > 0 else math.nan}


def _length(log: _Log, scenario: str) -> dict[str, float]:
    without_overhead = (("QPS w/o loadgen overhead",), ("TPS w/o loadgen overhead",))
    samples, tokens = (
        log.number(*names) for names in (without_overhead if scenario == SINGLE else (_SAMPLES, _TOKENS))
    )
    return {"n_output_token": tokens / samples} if samples > 0 and tokens > 0 else {}


def _latencies(log: _Log, statistic: str) -> dict[str, float]:
    latencies = {}
    for column, (means, percentile) in LATENCIES.items():
        names = means if statistic == "mean" else (percentile.format(f"{float(statistic[1:]):.2f}"),)
        is_required = column == "e2e_s" and statistic == "mean"
        latencies[column] = (log.required_number(*names) if is_required else log.number(*names)) * S_PER_NS
    return latencies


def _notes(log: _Log) -> dict[str, str]:
    verdict = log["Result is"].text()
    if verdict not in ("VALID", "INVALID"):
        raise log["Result is"].error(f"must be VALID or INVALID, got {verdict[:60]!a}")
    broken = [rule.removesuffix(" satisfied").lower() for rule in _RULES if log[rule].text().upper() == "NO"]
    name = log["SUT name"].text()
    parts = [
        f"MLPerf {log['Scenario'].text()}",
        f"system under test {name[:100]}" if name.isprintable() and name else "",
        f"result INVALID: {', '.join(broken) or 'no rule named'}" if verdict == "INVALID" else "",
        f"LoadGen counted {log.n_error} errors" if log.n_error else "",
    ]
    return {"note": "; ".join(filter(None, parts))}


FORMAT: Final = Format("mlperf_summary", _runs, _recognises, select=_select_files)
"""The entry of the registry."""
