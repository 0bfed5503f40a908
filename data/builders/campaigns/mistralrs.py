"""mistral.rs's release benchmarks: one sequence at a time against llama.cpp and vLLM, over the prompt's length."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of
from builders.campaigns.markdown import MarkdownRow, read_markdown_rows
from roofcast.data.errors import SchemaError

RAW: Final = Path("campaigns_2026_11") / "raw" / "mistralrs"
REPORT: Final = "releases__v0.8.2__report.md"
CPU_FILES: Final = {
    "releases__v0.9.0__raw__results_full.jsonl": "CPU of GB10",
    "releases__v0.9.0__raw__results_x86.jsonl": "part of a Sapphire Rapids",
}

MODELS: Final = {
    "Gemma 4 E4B": "google/gemma-4-E4B-it", "Gemma 4 26B-A4B": "google/gemma-4-26B-A4B-it",
    "qwen3-4b": "Qwen/Qwen3-4B", "gemma4-e4b": "google/gemma-4-E4B-it", "lfm2.5-230m": "LiquidAI/LFM2.5-230M",
    "lfm2.5-8b-a1b": "LiquidAI/LFM2.5-8B-A1B",
}  # fmt: skip
ACCELERATORS: Final = {
    "GB10": "nvidia-gb10-dgx-spark", "B200": "nvidia-b200-sxm-180gb", "H100 SXM": "nvidia-h100-sxm-80gb",
    "CPU of GB10": "", "part of a Sapphire Rapids": "",
}  # fmt: skip
PRECISIONS: Final = {"Q4_K_M": "int4", "Q8_0": "int8", "BF16": "bf16", "q4k": "int4", "q8_0": "int8"}
ENGINES: Final = {"mistralrs": "mistral.rs", "llamacpp": "llama.cpp"}
VERSIONS: Final = {
    ("mistral.rs", "GB10"): "0.8.2", ("mistral.rs", "B200"): "0.8.2", ("mistral.rs", "H100 SXM"): "0.8.2",
    ("vllm", "GB10"): "0.21.0", ("vllm", "B200"): "0.21.0", ("vllm", "H100 SXM"): "0.19.0",
    ("llama.cpp", "GB10"): "751ebd1", ("llama.cpp", "B200"): "751ebd1",
    ("mistral.rs", "CPU of GB10"): "0.9.0", ("mistral.rs", "part of a Sapphire Rapids"): "0.9.0",
}  # fmt: skip
"""Version or commit by engine and host, from the report's tables and the release."""

N_OUTPUT_TOKEN: Final = 256
N_ITERATION: Final = 3
DATES: Final = {"mistral.rs": "2026-06-01", "llama.cpp": "2026-05-31", "vllm": "2026-05-31"}
CPU_DATE: Final = "2026"

_TABLE: Final = re.compile(r"(Q4_K_M|Q8_0|BF16) (Prefill|Decode)")


@dataclass
class _Speeds:
    """Speeds of one configuration in tokens per second, with the published row of each."""

    cells: Row
    by_mode: dict[str, float] = field(default_factory=dict)
    reference: str = ""

    def rows(self) -> list[Row]:
        """Return the row of TTFT and TPOT; a prompt's speed alone is that of an answer of one token."""
        prefill, decode = self.by_mode.get("prefill"), self.by_mode.get("decode")
        latencies: Row = {}
        if prefill:
            latencies["ttft_s"] = float(str(self.cells["n_input_token"])) / prefill
        if decode:
            latencies["tpot_s"] = 1 / decode
        return [{**self.cells, "n_output_token": N_OUTPUT_TOKEN if decode else 1, **latencies}]


def build_mistralrs(root: Path) -> BuildResult:
    """Build the campaign from the report and the raw results under `root`, one published row per speed.

    Raises
    ------
    SchemaError
        If a file is missing or its table has no known configuration.
    """
    builder = CampaignBuilder("mistralrs", MODELS, ACCELERATORS)
    _add_report(builder, root / RAW / REPORT)
    for name, host in CPU_FILES.items():
        _add_results(builder, root / RAW / name, host)
    return builder.build()


def _add_report(builder: CampaignBuilder, file: Path) -> None:
    speeds: dict[tuple[object, ...], _Speeds] = {}
    for row in read_markdown_rows(file):
        table = _TABLE.fullmatch(row.headings[-1])
        if table is None:
            continue
        mode = table[2].lower()
        for column, engine in _report_columns(row).items():
            cells = _common(engine, row.headings[-3], DATES[engine]) | {
                "model": row.headings[-2], "weight_precision": PRECISIONS[table[1]], "n_request": N_ITERATION,
                "n_input_token": number_of(row.cells["Length" if mode == "prefill" else "Depth"]), "tp": 1,
                "n_node": 1, "prefix_caching": "off" if engine == "vllm" else "",
            }  # fmt: skip
            speed = speeds.setdefault(tuple(cells.values()), _Speeds(cells, reference=f"{row.reference} {engine}"))
            speed.by_mode[mode] = number_of(row.cells[column])
    for speed in speeds.values():
        builder.add(speed.reference, speed.rows(), n_published=len(speed.by_mode))


def _report_columns(row: MarkdownRow) -> dict[str, str]:
    """Return the engine of each column of speeds."""
    starts = {"mistral.rs ": "mistral.rs", "llama.cpp ": "llama.cpp", "vLLM ": "vllm"}
    columns = {
        name: engine
        for name in row.cells
        for start, engine in starts.items()
        if name.startswith(start) and not name.endswith("speedup")
    }
    if not columns:
        raise SchemaError("", "must have a column of an engine's speed", row.reference)
    return columns


def _common(engine: str, host: str, date: str) -> Row:
    return {
        "accelerator": host, "n_accelerator": 1, "engine": engine, "engine_version": VERSIONS.get((engine, host), ""),
        "load": "static_batch", "concurrency": 1, "length_variation": 0.0, "statistic": "mean", "date": date,
        "stack": f"mistralrs/{host.lower().replace(' ', '_')}",
    }  # fmt: skip


def _add_results(builder: CampaignBuilder, file: Path, host: str) -> None:
    """Add the last speed of each configuration of a log of development."""
    if not file.is_file():
        raise SchemaError("", "no such file", file.name)
    last: dict[tuple[object, ...], dict[str, tuple[str, float]]] = defaultdict(dict)
    cells_of: dict[tuple[object, ...], Row] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        record = json.loads(line)
        reference = f"{file.name.rpartition('__')[2]}:{number}"
        if record["quant"] not in PRECISIONS:
            builder.reject(
                reference, "unknown_precision", f"{record['quant']} is none of the precisions of the table"
            )
            continue
        cells = _result_cells(record, host)
        key = tuple(cells.values())
        cells_of[key] = cells
        superseded = last[key].get(record["mode"])
        if superseded:
            builder.reject(superseded[0], "superseded", "a later row has the same configuration")
        last[key][record["mode"]] = reference, record["tps"]
    for key, modes in last.items():
        by_mode = {mode: tps for mode, (_, tps) in modes.items()}
        reference = next(iter(modes.values()))[0]
        builder.add(reference, _Speeds(cells_of[key], by_mode).rows(), n_published=len(modes))


def _result_cells(record: Mapping[str, Any], host: str) -> Row:
    return _common(ENGINES[record["engine"]], host, CPU_DATE) | {
        "model": record["model"], "weight_precision": PRECISIONS[record["quant"]], "n_input_token": record["length"],
        "flash_attention": record.get("note") != "fa=0", "n_request": record.get("iterations", ""),
    }  # fmt: skip
