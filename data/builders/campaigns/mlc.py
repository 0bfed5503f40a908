"""MLC's LLM performance benchmark: generation speed of one stream, Llama 2 on several engines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of
from builders.campaigns.pages import PageRow, read_pages

RAW: Final = Path("raw") / "mlc_llm_perf_bench" / "tables.jsonl"

MODELS: Final = {
    "Llama2-7B": "meta-llama/Llama-2-7b-hf",
    "Llama2-13B": "meta-llama/Llama-2-13b-hf",
    "Llama2-70B": "meta-llama/Llama-2-70b-hf",
}
ACCELERATORS: Final = {
    "A100": "nvidia-a100-sxm-80gb", "A10G": "nvidia-a10g-24gb", "RTX 4090": "nvidia-rtx-4090-24gb",
    "RTX 3090 Ti": "", "7900 XTX": "",
}  # fmt: skip
ENGINES: Final = {
    "mlc": "mlc-llm",
    "exllama v2": "exllama-v2",
    "exllama": "exllama",
    "llama.cpp": "llama.cpp",
    "vllm": "vllm",
}
"""Engine by column prefix; longer prefixes come first."""

LENGTHS_FROM: Final = "2023-10-05"
"""First day on which the page states prompt and output lengths."""

N_INPUT_TOKEN: Final = 8
"""Tokens of `What is the meaning of life?` for Llama 2, with the BOS token."""

N_OUTPUT_TOKEN: Final = 256


def build_mlc(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`.

    Raises
    ------
    SchemaError
        If the file cannot be read.
    """
    builder = CampaignBuilder("mlc", MODELS, ACCELERATORS)
    model = ""
    for page in read_pages(root / RAW):
        model = page.cells["Model"] or model
        _add(builder, page, model)
    return builder.build()


def _add(builder: CampaignBuilder, page: PageRow, model: str) -> None:
    if page.date < LENGTHS_FROM:
        builder.reject(page.reference, "no_lengths", "this revision does not say how long prompt and output are")
        return
    match = re.fullmatch(r"(.+?)(?: [x*] (\d+))?", page.cells["GPU"])
    name, count = (match[1], int(match[2] or 1)) if match else ("", 1)
    precision = "fp16" if "FP16" in page.heading else "int4"
    speeds = {_engine(column): text for column, text in page.cells.items() if column not in ("Model", "GPU")}
    rows: list[Row] = [
        {
            "model": model, "accelerator": name, "n_accelerator": count, "n_node": 1, "engine": engine,
            "weight_precision": precision, "activation_precision": "fp16", "concurrency": 1.0,
            "n_input_token": N_INPUT_TOKEN, "n_output_token": N_OUTPUT_TOKEN, "load": "static_batch",
            "length_variation": 0.0,
            "statistic": "mean", "tpot_s": 1 / number_of(text), "derived": "tpot_s", "date": page.date,
        }
        for engine, text in speeds.items()
        if text != "N/A" and builder.is_new(model, name, count, precision, engine, text)
    ]  # fmt: skip
    if rows:
        builder.add(page.reference, rows)
    else:
        builder.reject(page.reference, "repeats_revision", "all figures stand in earlier revisions")


def _engine(column: str) -> str:
    return next(name for start, name in ENGINES.items() if column.lower().startswith(start))
