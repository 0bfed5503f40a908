"""Joins the logs of MLPerf Inference v6.0 to their systems: those of the result table, and of a description."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builders.campaigns.mlperf_inference import LENGTHS, benchmark_of, data_set_lengths, n_chip, stack_of
from builders.columns import is_blank
from builders.figures import number_of, round_figure
from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.campaigns import load_campaigns
from roofcast.data.importers import read_measurements

MODELS: Final = {
    "llama2-70b": "meta-llama/Llama-2-70b-hf",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "llama3.1-405b": "meta-llama/Llama-3.1-405B",
    "llama3.1-8b": "meta-llama/Llama-3.1-8B",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "gpt-oss-120b": "openai/gpt-oss-120b",
}
INPUT_LENGTHS: Final = {**LENGTHS, "gpt-oss-120b": "gpt-oss.csv"}
"""gpt-oss has no reference answers; its outputs are counted in each log."""

SOCKETS: Final = {"GNR_128C": ("intel-xeon-6-granite-rapids", 2)}
"""Processor and sockets by a part of the system's name: the catalogue's Xeon 6 is the one of 128 cores."""

RESULT_TOLERANCE: Final = 1e-5
"""Relative tolerance between a log's and the table's result, which has six digits."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield a record for each log."""
    lengths: list[Cells] = []
    table: list[Cells] = []
    descriptions: dict[tuple[str, ...], Cells] = {}
    logs: list[Record] = []
    for record in published:
        cells = record.cells
        if "@text" in cells:
            logs.append(record)
        elif "source_url" in cells:
            _, submitter, _, system, benchmark, *_ = cells["source_url"].partition("/main/")[2].split("/")
            descriptions[submitter, system, benchmark_of(benchmark)] = cells
        elif "round" in cells:
            table += [cells] if cells["round"] == "v6.0" else []
        else:
            lengths.append(cells)
    n_input, variations = data_set_lengths(lengths, INPUT_LENGTHS)
    runs = [log.having(**_read(log, n_input)) for log in logs]
    machines, shipped = _machines(runs, table), _shipped_results()
    for run in runs:
        key = (run.cells["submitter"], run.cells["system"])
        description = descriptions.get((*key, run.cells["benchmark"]), {})
        machine, result = machines.get(key, {}), _result(run.cells["stack"], run.cells["mean"])
        yield run.having(
            variation=variations.get(run.cells["benchmark"]), is_known=result in shipped, machine=machine,
            description=description, software=description.get("software", ""),
            **_chips(run.cells["system"], machine),
        )  # fmt: skip


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the importer's rows; without the throughput that `mlperf_inference` has."""
    rows = [{**row, **common} for row in cells["rows"]]
    if cells["is_known"]:
        rows[0].pop("output_throughput_token_per_s")
    return rows


def _read(log: Record, n_input: Mapping[str, float]) -> dict[str, Any]:
    _, submitter, _, system, name, scenario, *_ = log.cells["@file"].split("__")
    benchmark = benchmark_of(name)
    overrides: dict[str, object] = {
        "model": MODELS[benchmark], "accelerator": system, "n_accelerator": 1.0, "n_input_token": n_input[benchmark],
    }  # fmt: skip
    table = read_measurements("mlperf_summary", [log.cells["@source"]], "mlperf_v60_logs", overrides=overrides)
    every = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    known = [{n: v for n, v in row.items() if n != "software" and not is_blank(v)} for row in every]
    return {
        "submitter": submitter, "system": system, "benchmark": benchmark, "scenario": scenario.capitalize(),
        "stack": stack_of(submitter), "rows": known, "mean": every[0],
    }  # fmt: skip


def _machines(runs: list[Record], table: list[Cells]) -> dict[tuple[str, str], Cells]:
    machines: dict[tuple[str, str], Cells] = {}
    by_run = defaultdict(list)
    for cells in table:
        by_run[cells["org"], benchmark_of(cells["model"]), cells["scenario"]].append(cells)
    for run in runs:
        mean, submitter = run.cells["mean"], run.cells["submitter"]
        results = [mean["output_throughput_token_per_s"], mean["request_throughput_per_s"]]
        for cells in by_run[submitter, run.cells["benchmark"], run.cells["scenario"]]:
            if any(abs(number_of(cells["result"]) / result - 1.0) <= RESULT_TOLERANCE for result in results):
                machines.setdefault((submitter, run.cells["system"]), cells)
    return machines


def _shipped_results() -> set[tuple[object, ...]]:
    rows = load_campaigns(["mlperf_inference"])
    return {_result(row["stack"], row) for row in rows[rows["date"] == "2026"].to_dict("records")}


def _result(stack: str, row: Mapping[Any, Any]) -> tuple[object, ...]:
    return stack, row["model"], row["load"], round_figure(row["output_throughput_token_per_s"])


def _chips(system: str, machine: Cells) -> dict[str, Any]:
    card = machine.get("accel", "")
    processor = next((socket for part, socket in SOCKETS.items() if part in system), None)
    accelerator, n = processor or (card or system, int(number_of(machine.get("n_accel", "1"))))
    text = f"{machine.get('system', '')} {card}"
    return {"accelerator": accelerator, "n": max(n, 1) * n_chip(card), "machine_text": text}
