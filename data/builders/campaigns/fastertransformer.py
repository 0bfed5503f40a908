"""FasterTransformer's guide to GPT: latency of static batches with tensor and pipeline parallelism on A100."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of
from builders.campaigns.pages import PageRow, read_pages
from roofcast.data.units import s_from_ms

RAW: Final = Path("raw") / "fastertransformer" / "tables.jsonl"
FILE: Final = "docs/gpt_guide.md"

MODELS: Final = {
    "GPT-175B": "openai/gpt3-175b", "GPT-20B": "NeMo/gpt3_20b",
    "GPT-350M": "", "GPT-1.3B": "", "GPT-6.7B": "", "GPT-89B": "", "Megatron-530B": "",
}  # fmt: skip
"""Model by the heading's last word; an empty name is not in the catalogue."""

DEFAULT_SPLITS: Final = {"GPT-175B": (8, 1), "GPT-89B": (8, 1)}
"""Tensor and pipeline parallelism of tables with a single latency column."""

ACCELERATOR: Final = "nvidia-a100-sxm-80gb"
_LATENCY: Final = re.compile(r"^(FT Latency|Latency of .*) \(ms\)$")


def build_fastertransformer(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`.

    Raises
    ------
    SchemaError
        If the file cannot be read.
    """
    builder = CampaignBuilder("fastertransformer", MODELS)
    for page in read_pages(root / RAW):
        if page.file == FILE:
            _add(builder, page)
        else:
            builder.reject(page.reference, "no_generation", f"{page.file}: no generation of known lengths")
    return builder.build()


def _add(builder: CampaignBuilder, page: PageRow) -> None:
    model = page.heading.rpartition(" ")[2]
    cells = {name.lower().replace("_", " "): text for name, text in page.cells.items()}
    if not builder.is_new(model, *cells.values()):
        builder.reject(page.reference, "repeats_revision", "stands in an earlier revision")
        return
    rows = [
        _row(model, cells, name, text, page.date)
        for name, text in page.cells.items()
        if _LATENCY.match(name) and text.strip(" -")
    ]
    builder.add(page.reference, rows)


def _row(model: str, cells: dict[str, str], column: str, latency: str, first_seen: str) -> Row:
    tp, pp = _split(model, column)
    n_output = number_of(cells.get("output seqlen") or cells["output length"])
    batch = number_of(cells["batch size"])
    row: Row = {
        "model": model, "accelerator": ACCELERATOR, "n_accelerator": tp * pp, "tp": tp, "pp": pp,
        "engine": "fastertransformer", "weight_precision": "fp16", "kv_precision": "fp16",
        "n_input_token": number_of(cells.get("input seqlen") or cells["input length"]), "n_output_token": n_output,
        "concurrency": batch, "load": "static_batch", "length_variation": 0.0, "statistic": "mean",
        "date": first_seen,
    }  # fmt: skip
    if latency == "OOM":
        return row | {"status": "out_of_memory"}
    latency_s = s_from_ms(number_of(latency))
    return row | {
        "e2e_s": latency_s,
        "output_throughput_token_per_s": batch * n_output / latency_s,
        "derived": "output_throughput_token_per_s",
    }


def _split(model: str, column: str) -> tuple[int, int]:
    if "single GPU" in column:
        return 1, 1
    ways = re.search(r"(\d+)-way TP|TP-(\d+)", column)
    stages = re.search(r"PP-(\d+)", column)
    if ways is None:
        return DEFAULT_SPLITS.get(model, (1, 1))
    return int(ways[1] or ways[2]), int(stages[1]) if stages else 1
