"""MLPerf Inference v6.0: the closed division's language-model logs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, records_of, round_figure
from builders.campaigns.mlperf_inference import (
    ACCELERATORS,
    DATES,
    LENGTHS,
    MODELS,
    TABLES,
    benchmark_of,
    lengths_of,
    n_chip,
    stack_of,
)
from builders.campaigns.mlperf_inference import RAW as TABLES_RAW
from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.client_runs import variation_of

RAW: Final = Path("campaigns_2026_11") / "raw" / "mlperf_v60_logs"
DESCRIPTIONS: Final = Path("campaigns_2026_11") / "rows" / "mlperf_v60_logs.csv"
ROUND: Final = "v6.0"

INPUT_LENGTHS: Final = {**LENGTHS, "gpt-oss-120b": "gpt-oss.csv"}
"""Files of the data sets' token lengths. gpt-oss has no reference answers; its outputs are counted in each log."""

SYSTEM_ACCELERATORS: Final = {
    **ACCELERATORS,
    "AMD Instinct MI355X 288GB HBM3e (Power Cap 1000 W)": "amd-mi355x-288gb",
}
SOCKETS: Final = {"GNR_128C": ("intel-xeon-6-granite-rapids", 2)}
"""Processor and sockets by a part of the system's name: the catalogue's Xeon 6 is the one of 128 cores."""

ENGINES: Final = (("llmboost", "llmboost"), ("tensorrt", "trtllm"), ("vllm", "vllm"), ("llm-d", "vllm"))
"""Engine by a mark in software or system. PyTorch alone names no engine; llm-d runs vLLM."""

NO_SOFTWARE: Final = ("N/A", "TODO")

RESULT_TOLERANCE: Final = 1e-5
"""Relative tolerance between a log's and the table's result, which has six digits."""

Key = tuple[str, str]
"""Submitter and name of the system."""


@dataclass(frozen=True)
class _Log:
    """One log: its place, and the importer's rows by statistic."""

    reference: str
    submitter: str
    system: str
    benchmark: str
    scenario: str
    rows: list[dict[str, Any]]

    @property
    def mean(self) -> dict[str, Any]:
        return self.rows[0]


def build_mlperf_v60_logs(root: Path) -> BuildResult:
    """Build the campaign from its logs and the round's result table under `root`.

    Raises
    ------
    SchemaError
        If a file is missing or malformed.
    """
    folder = root / TABLES_RAW / "dataset_token_lengths"
    n_input = {name: float(lengths_of(folder / file, "input_length").mean()) for name, file in INPUT_LENGTHS.items()}
    variations = {name: variation_of(lengths_of(folder / file, "output_length")) for name, file in LENGTHS.items()}
    logs = list(_logs(root / RAW, n_input))
    if not logs:
        raise SchemaError("", "has no logs", str(RAW))
    table = [cells for _, cells in records_of(root / TABLES_RAW / TABLES) if cells["round"] == ROUND]
    machines = _machines(logs, table)
    descriptions = _descriptions(root / DESCRIPTIONS)
    shipped = _shipped_results()
    builder = CampaignBuilder("mlperf_v60_logs", accelerators=SYSTEM_ACCELERATORS)
    for log in logs:
        is_known = _result(stack_of(log.submitter), MODELS[log.benchmark], log.mean) in shipped
        rejection = _rejection(builder, log, is_known)
        if rejection is not None:
            builder.reject(log.reference, *rejection)
            continue
        machine = machines.get((log.submitter, log.system), {})
        description = descriptions.get((log.submitter, log.system, log.benchmark), {})
        common = _deployment(log, machine, description)
        if log.benchmark in variations:
            common["length_variation"] = variations[log.benchmark]
        rows = [{**_known(row), **common} for row in log.rows]
        if is_known:
            rows[0].pop("output_throughput_token_per_s")
        builder.add(log.reference, rows)
    return builder.build()


def _logs(folder: Path, n_input: Mapping[str, float]) -> Iterator[_Log]:
    for file in sorted(folder.glob("*.txt")):
        _, submitter, _, system, name, scenario, *_ = file.name.split("__")
        benchmark = benchmark_of(name)
        overrides: dict[str, object] = {
            "model": MODELS[benchmark], "accelerator": system, "n_accelerator": 1.0,
            "n_input_token": n_input[benchmark],
        }  # fmt: skip
        table = read_measurements("mlperf_summary", [file], "mlperf_v60_logs", overrides=overrides)
        rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
        yield _Log(file.name.removesuffix(".txt"), submitter, system, benchmark, scenario.capitalize(), rows)


def _machines(logs: list[_Log], table: list[dict[str, str]]) -> dict[Key, dict[str, str]]:
    """Return the table's row of each system: that of any of its logs whose result the table has.

    Xeon results of the table are in samples per second, the others in tokens per second.
    """
    machines: dict[Key, dict[str, str]] = {}
    by_run = defaultdict(list)
    for cells in table:
        by_run[cells["org"], benchmark_of(cells["model"]), cells["scenario"]].append(cells)
    for log in logs:
        results = [log.mean["output_throughput_token_per_s"], log.mean["request_throughput_per_s"]]
        for cells in by_run[log.submitter, log.benchmark, log.scenario]:
            if any(abs(number_of(cells["result"]) / result - 1.0) <= RESULT_TOLERANCE for result in results):
                machines.setdefault((log.submitter, log.system), cells)
    return machines


def _descriptions(file: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """Return engine, precision and software by submitter, system and benchmark."""
    descriptions = {}
    for _, cells in records_of(file):
        _, submitter, _, system, benchmark, *_ = cells["source_url"].partition("/main/")[2].split("/")
        descriptions[submitter, system, benchmark_of(benchmark)] = cells
    return descriptions


def _shipped_results() -> set[tuple[object, ...]]:
    rows = load_campaigns(["mlperf_inference"])
    rows = rows[rows["date"] == DATES[ROUND]]
    return {_result(row["stack"], row["model"], row) for row in rows.to_dict("records")}


def _result(stack: str, model: str, row: Mapping[Any, Any]) -> tuple[object, ...]:
    return stack, model, row["load"], round_figure(row["output_throughput_token_per_s"])


def _rejection(builder: CampaignBuilder, log: _Log, is_known: bool) -> tuple[str, str] | None:
    run = (log.submitter, log.system, log.benchmark, log.scenario, log.mean["request_throughput_per_s"])
    if "INVALID" in log.mean["note"]:
        return "invalid_result", log.mean["note"]
    if not builder.is_new(*run):
        return "same_run_twice", "entered for both accuracy targets"
    if is_known and log.mean["load"] == "offline":
        return "repeats_other_campaign", "mlperf_inference has its throughput"
    return None


def _deployment(log: _Log, machine: Mapping[str, str], description: Mapping[str, str]) -> Row:
    card = machine.get("accel", "")
    text = f"{machine.get('system', '')} {card}"
    software = description.get("software", "")
    processor = next((socket for part, socket in SOCKETS.items() if part in log.system), None)
    accelerator, n = processor or (card or log.system, int(number_of(machine.get("n_accel", "1"))))
    engine = next((name for mark, name in ENGINES if mark in f"{software} {text}".lower()), "")
    limit = re.search(r"(\d+) ?W\b", text)
    version = re.search(r"vLLM (\d\S*)", software.replace(",", " "))
    row: Row = {
        "accelerator": accelerator, "n_accelerator": max(n, 1) * n_chip(card),
        "n_node": int(number_of(machine.get("nodes", "1"))),
        "engine": engine, "engine_version": version[1] if version and engine == "vllm" else "",
        "weight_precision": description.get("weight_precision", ""),
        "software": "" if software in NO_SOFTWARE else software,
        "date": DATES[ROUND], "stack": stack_of(log.submitter),
        "note": f"{ROUND} {log.submitter}, {log.system}, {log.scenario}",
    }  # fmt: skip
    return row | ({"power_limit_w": float(limit[1])} if limit else {})


def _known(row: Mapping[str, Any]) -> Row:
    return {name: value for name, value in row.items() if value == value and value != ""}  # noqa: PLR0124
