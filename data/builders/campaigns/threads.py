"""Runs that were read from public threads: rows of a table with this package's columns, joined by run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from builders.campaigns.campaign_builder import Row, number_of, records_of, rows_by_statistic
from builders.campaigns.vllm_bench_files import offline_throughput
from roofcast.data.measurements.schema import NUMBER_COLUMNS, OUTCOME_COLUMNS, SCHEMA
from roofcast.data.specs import PRECISIONS

TABLES: Final = Path("campaigns_2026_11") / "rows"

ENGINES: Final = {
    "vllm (tenstorrent fork)": "vllm",
    "llama.cpp (prism-ml fork)": "llama.cpp",
    "tensorrt-llm": "trtllm",
}
"""Engine by the table's name, where it differs."""

SPEED_TOLERANCE: Final = 0.02
"""Relative difference below which a throughput is the inverse of TPOT, rounded."""

_SWITCHES: Final = {"true": "on", "false": "off", "": ""}
_THROUGHPUTS: Final = ("output_throughput_token_per_s", "total_throughput_token_per_s")
_SETTINGS: Final = {
    "max_num_seqs": re.compile(r"max-num-seqs? (\d+)"),
    "max_context_token": re.compile(r"max-model-len (\d+)"),
    "chunk_size_token": re.compile(r"(?:max-num-batched-tokens|n_ubatch) (\d+)"),
    "lora_rank": re.compile(r"LoRA rank (\d+)"),
    "n_node": re.compile(r"(\d+) Spark nodes"),
}
"""Server settings that a note states."""


@dataclass(frozen=True)
class ThreadRun:
    """Run of a thread: its cells, and its outcomes by statistic."""

    reference: str
    cells: dict[str, str]
    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def thread(self) -> str:
        """Address of the thread without the comment."""
        return self.cells["source_url"].partition("#")[0]

    def rejection(self) -> tuple[str, str] | None:
        """Return the rejection of a run whose lengths or precision are not stated; None if they are.

        A blank precision without doubt is that of the checkpoint.
        """
        cells = self.cells
        if not cells["n_input_token"] or not cells["n_output_token"]:
            return "no_lengths", "a request length is not stated"
        is_stated = cells["weight_precision"] != "" or "precision" not in cells["doubt"]
        if not is_stated or cells["weight_precision"] not in ("", *PRECISIONS):
            return "unknown_precision", cells["weight_precision"] or cells["doubt"]
        return None

    def rows(self, stack: str) -> list[Row]:
        """Return the rows of the run, one per statistic; throughputs are in that of the mean.

        The throughput of a static batch is left out where it is the speed of its generation, without the prompt.
        """
        outcomes = {name: {c: number_of(text) for c, text in cells.items()} for name, cells in self.outcomes.items()}
        mean = outcomes.setdefault("mean", {})
        for column in _THROUGHPUTS:
            values = [cells.pop(column) for cells in outcomes.values() if column in cells]
            mean[column] = next((value for value in values if not math.isnan(value)), math.nan)
        if self.cells["load"] == "static_batch" and "tpot_s" in mean:
            speed = number_of(self.cells["concurrency"]) / mean["tpot_s"]
            if math.isclose(mean[_THROUGHPUTS[0]], speed, rel_tol=SPEED_TOLERANCE):
                mean[_THROUGHPUTS[0]] = math.nan
        by_statistic: dict[str, Row] = {name: dict(cells) for name, cells in outcomes.items()}
        return offline_throughput(rows_by_statistic(self._common(stack), by_statistic))

    def _common(self, stack: str) -> Row:
        cells = self.cells
        common: Row = {
            name: number_of(text) if name in NUMBER_COLUMNS else text
            for name, text in cells.items()
            if text and name in SCHEMA and name not in {"stack", "speculation", "chunked_prefill", "prefix_caching"}
        }
        speculation, _, n_token = cells["speculation"].partition(" ")
        eager = cells.get("eager", "")
        common |= {
            "accelerator": cells["gpu"], "engine": ENGINES.get(cells["engine"], cells["engine"]), "stack": stack,
            "load": "offline" if cells["load"] == "burst" else cells["load"],
            "n_input_token": max(number_of(cells["n_input_token"]), 1.0), "speculation": speculation,
            "n_speculative_token": number_of(n_token), "graphs": "off" if eager == "true" else "",
            "chunked_prefill": _SWITCHES[cells.get("chunked_prefill", "")],
            "prefix_caching": _SWITCHES[cells.get("prefix_caching", "")],
            "note": "; ".join(filter(None, (_thread_name(self.thread), cells["note"])))[:160].strip(),
        }  # fmt: skip
        matches = {name: pattern.search(cells["note"]) for name, pattern in _SETTINGS.items()}
        return common | {name: float(match[1]) for name, match in matches.items() if match}


def _thread_name(address: str) -> str:
    return re.sub(r"^https?://[^/]+/", "", address)


def read_runs(file: Path) -> Iterator[ThreadRun]:
    """Yield the runs of a table: adjacent rows that differ only in statistic and outcomes.

    Raises
    ------
    SchemaError
        If the file is missing.
    """
    run: ThreadRun | None = None
    for reference, cells in records_of(file):
        outcomes = {name: cells.pop(name) for name in OUTCOME_COLUMNS if name in cells}
        statistic = cells.pop("statistic")
        if run is not None and (cells != run.cells or statistic in run.outcomes):
            yield run
            run = None
        run = run or ThreadRun(reference, cells)
        run.outcomes[statistic] = outcomes
    if run is not None:
        yield run
