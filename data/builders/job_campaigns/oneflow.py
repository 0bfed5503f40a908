"""OneFlow's comparisons with Megatron-LM on V100: LiBai's benchmark, and DLPerf's of GPT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import number
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.html_tables import HtmlRow, read_html_rows
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, SourceRow, build
from roofcast.data.units import BYTE_PER_GBIT, BYTE_PER_MIB, FLOP_PER_TFLOP, s_from_ms

LIBAI: Final = "training_2026_11/raw/libai/Benchmark.md"
DLPERF: Final = "training_2026_11/raw/dlperf_gpt"
DLPERF_FILES: Final = ("README.md", "dlperf_gpt_test_report_210512.md")

_LIBAI_CASE: Final = re.compile(
    r"nl(?P<layers>\d+)_fp16_(?P<dp>\d+)x(?P<tp>\d+)x(?P<pp>\d+)(?P<ac>_ac)?_mb(?P<micro>\d+)_gb(?P<batch>\d+)"
    r"_(?P<nodes>\d+)n(?P<per_node>\d+)g"
)
_RATE: Final = re.compile(r"([\d.]+)\s+samples/s")
_LENGTHS: Final = {"bert": 512.0, "gpt2": 1024.0}

_CASE: Final = re.compile(r"(?:DP_PP|MP_PP|2D_PP|DP|MP|2D)_(\d+)x(\d+)x(\d+)_(\d+)_(\d+)x(\d+)")
_DLPERF_LENGTH: Final = 2048.0


def build_libai(root: Path) -> BuildResult:
    """Build LiBai's campaign from the files under `root`: two trainers a row."""
    model, rows = "", []
    for row in read_html_rows(root / LIBAI):
        if row.cells[:1] and row.cells[0] in {"BERT", "GPT-2"}:
            model = row.cells[0].casefold().replace("-", "")
        else:
            rows += list(_libai(row, model))
    shared = {"stack": "oneflow/libai", NODE_SIZE: 8.0}
    return build("libai", len(rows), rows, EXACT_RTOL, shared=shared)


def build_dlperf_gpt(root: Path) -> BuildResult:
    """Build DLPerf's campaign from the files under `root`.

    OneFlow's page prints latency and memory; the report the samples per second of Megatron-LM.
    """
    rows = [row for name in DLPERF_FILES for row in _dlperf(root / DLPERF / name)]
    shared = {
        "stack": "oneflow/dlperf", NODE_SIZE: 8.0, "network": "infiniband",
        "node_bandwidth_byte_per_s": 100.0 * BYTE_PER_GBIT,
    }  # fmt: skip
    return build("dlperf_gpt", len(rows), rows, EXACT_RTOL, shared=shared)


def _libai(row: HtmlRow, model: str) -> Iterator[SourceRow]:
    case = _LIBAI_CASE.match(row.cells[0]) if row.cells else None
    if case is None:
        return
    sizes = {name: float(text) for name, text in case.groupdict().items() if text and name != "ac"}
    for framework, text in zip(("libai", "megatron-lm"), row.cells[1:3], strict=True):
        rate = _RATE.match(text)
        yield SourceRow(f"{row.reference}:{framework}", {
            "model": f"oneflow/{model}-{case['layers']}l-h1024", "accelerator": "nvidia-v100-sxm2-32gb",
            "n_accelerator": sizes["nodes"] * sizes["per_node"], "n_node": sizes["nodes"],
            "framework": framework, "method": "pretrain", "compute_precision": "fp16", "cp": 1.0,
            "tp": sizes["tp"], "pp": sizes["pp"], "dp": sizes["dp"], "sharding": "ddp", "flash_attention": "off",
            "recomputation": "full" if case["ac"] else "none", "offload": "none", "sequence_parallel": "off",
            "n_micro_batch_sequence": sizes["micro"], "n_global_batch_sequence": sizes["batch"],
            "n_token_per_sequence": _LENGTHS[model], "optimizer": "adamw", "date": "2022-07-05",
            "throughput_token_per_s": float(rate[1]) * _LENGTHS[model] if rate else None,
        })  # fmt: skip


def _dlperf(file: Path) -> Iterator[SourceRow]:
    """Yield OneFlow's runs with memory, or those of the report's table of samples per second."""
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        cells = cells[1:] if cells and not cells[0] else cells
        case = _CASE.fullmatch(cells[0]) if cells else None
        if case and "(ms)" in text:
            step, memory, rate = (number(cell.partition(" (")[0]) for cell in (cells[1], cells[2], cells[4]))
            yield SourceRow(f"{file.name}:{line}", _dlperf_cells(case, "oneflow") | {
                "step_time_s": s_from_ms(step) if step else None,
                "memory_byte_per_accelerator": memory * BYTE_PER_MIB if memory else None, "memory_kind": "device",
                "hardware_flop_per_s_per_accelerator": rate * FLOP_PER_TFLOP if rate else None,
            })  # fmt: skip
        elif case and len(cells) == 3:
            rate = number(cells[2])
            yield SourceRow(f"{file.name}:{line}", _dlperf_cells(case, "megatron-lm") | {
                "throughput_token_per_s": rate * _DLPERF_LENGTH if rate else None,
            })  # fmt: skip


def _dlperf_cells(case: re.Match[str], framework: str) -> Cells:
    dp, tp, pp, batch, width, n_layer = map(float, case.groups())
    passes = 32.0 if pp > 1.0 else 1.0
    return {
        "model": f"oneflow/gpt-{n_layer:.0f}l-h{width:.0f}", "accelerator": "nvidia-v100-sxm2-16gb",
        "n_accelerator": dp * tp * pp, "framework": framework, "method": "pretrain", "compute_precision": "fp16",
        "tp": tp, "pp": pp, "dp": dp, "cp": 1.0, "sharding": "ddp", "recomputation": "full", "offload": "none",
        "n_micro_batch_sequence": batch / dp / passes, "n_global_batch_sequence": batch,
        "n_gradient_accumulation": passes, "n_token_per_sequence": _DLPERF_LENGTH, "optimizer": "adamw",
        "packing": "packed", "flash_attention": "off", "sequence_parallel": "off", "date": "2021-05-01",
    }  # fmt: skip
