"""LMDeploy's benchmark pages: TurboMind on A100, static batches and sampled requests at fixed concurrency."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builders.campaigns.build_result import BuildResult
from builders.campaigns.campaign_builder import CampaignBuilder, Row, number_of, rows_by_statistic
from builders.campaigns.pages import read_pages

RAW: Final = Path("raw") / "lmdeploy" / "tables.jsonl"
FILE: Final = "docs/en/benchmark/a100_fp16.md"
ACCELERATOR: Final = "nvidia-a100-sxm-80gb"

MODELS: Final = {
    "llama2-7b": "meta-llama/Llama-2-7b-hf",
    "llama2-13b": "meta-llama/Llama-2-13b-hf",
    "llama2-70b": "meta-llama/Llama-2-70b-hf",
    "internlm-20b": "internlm/internlm-20b",
}

COLUMNS: Final = {
    "model_name": "model", "completion_tokens": "output_tokens", "num_promts": "num_prompts", "PRS": "RPS",
    "1st_token_latency(ave)(s)": "ttft", "FTL(ave)(s)": "ttft",
    "percentile50(s)": "p50", "percentile95(s)": "p95", "percentile99(s)": "p99",
    "50%(s)": "p50", "95%(s)": "p95", "99%(s)": "p99",
    "throughput(token/s)": "output", "throughput(out tok/s)": "output", "output_token thr(tokens/s)": "output",
    "throughput(total tok/s)": "total", "total_token thr(tokens/s)": "total",
}  # fmt: skip
"""Column names of all revisions, mapped to one set. PRS is the source's typo of RPS. A blank model repeats the line
above."""

KEY_COLUMNS: Final = ("batch", "tp", "prompt_tokens", "output_tokens", "output")

REJECTED_PAGES: Final = {
    "docs/en/benchmark/deepseekv3.md": ("accelerator_not_stated", "the page names nodes, not their accelerators"),
    "docs/en/quantization/kv_quant.md": ("no_lengths", "neither request lengths nor tokens per second"),
    "docs/en/quantization/kv_int8.md": ("no_lengths", "memory alone"),
}


def build_lmdeploy(root: Path) -> BuildResult:
    """Build the campaign from its table under `root`.

    Raises
    ------
    SchemaError
        If the file cannot be read.
    """
    builder = CampaignBuilder("lmdeploy", MODELS)
    model = ""
    for page in read_pages(root / RAW):
        if page.file in REJECTED_PAGES:
            builder.reject(page.reference, *REJECTED_PAGES[page.file])
            continue
        cells = {COLUMNS.get(name, name): cell for name, cell in page.cells.items()}
        model = cells.get("model", _model(page.heading)) or model
        if not builder.is_new(model, *(cells.get(name, "") for name in KEY_COLUMNS)):
            builder.reject(page.reference, "repeats_revision", "stands in an earlier revision")
            continue
        builder.add(page.reference, _rows({**cells, "model": model}, page.date))
    return builder.build()


def _model(heading: str) -> str:
    """Return the model in a heading; Llama 2 7B if there is none, as later revisions state."""
    return next((name for name in MODELS if heading.endswith(name)), "llama2-7b")


def _rows(cells: dict[str, str], first_seen: str) -> list[Row]:
    tp = number_of(cells["tp"])
    output = number_of(cells["output"])
    common: Row = {
        "model": cells["model"], "accelerator": ACCELERATOR, "n_accelerator": tp, "tp": tp, "pp": 1,
        "engine": "turbomind", "weight_precision": "fp16", "kv_precision": "fp16",
        "concurrency": number_of(cells["batch"]), "date": first_seen,
    }  # fmt: skip
    outcomes: dict[str, Row] = {
        "mean": {"ttft_s": number_of(cells["ttft"]), "output_throughput_token_per_s": output},
        **{name: {"itl_s": number_of(cells.get(name, ""))} for name in ("p50", "p95", "p99")},
    }
    if "prompt_tokens" in cells:
        common |= {
            "load": "static_batch",
            "length_variation": 0.0,
            "n_input_token": number_of(cells["prompt_tokens"]),
            "n_output_token": number_of(cells["output_tokens"]),
        }
    else:
        rate, total = number_of(cells["RPS"]), number_of(cells["total"])
        common |= {
            "load": "closed_loop", "n_input_token": (total - output) / rate, "n_output_token": output / rate,
            "n_request": number_of(cells["num_prompts"]), "note": "sampled requests; mean lengths from the rates",
        }  # fmt: skip
        outcomes["mean"] |= {"request_throughput_per_s": rate, "total_throughput_token_per_s": total}
    return rows_by_statistic(common, outcomes)
