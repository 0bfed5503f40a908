"""LMDeploy's benchmark pages: TurboMind on A100, static batches and sampled requests at fixed concurrency."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from builders.campaigns.built import Built
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
"""Names that changed from revision to revision, to one set; PRS is a slip of theirs for requests per second. A blank
model is that of the line above."""

QUESTION: Final = ("batch", "tp", "prompt_tokens", "output_tokens", "output")

ELSEWHERE: Final = {
    "docs/en/benchmark/deepseekv3.md": ("accelerator_not_stated", "the page names nodes, not their accelerators"),
    "docs/en/quantization/kv_quant.md": ("no_lengths", "neither request lengths nor tokens per second"),
    "docs/en/quantization/kv_int8.md": ("no_lengths", "memory alone"),
}


def build_lmdeploy(root: Path) -> Built:
    """Return the campaign built from its table under `root`.

    Raises
    ------
    SchemaError
        If the file cannot be read.
    """
    gathering = CampaignBuilder("lmdeploy", MODELS)
    model = ""
    for page in read_pages(root / RAW):
        if page.file in ELSEWHERE:
            gathering.set_aside(page.reference, *ELSEWHERE[page.file])
            continue
        cells = {COLUMNS.get(name, name): cell for name, cell in page.cells.items()}
        model = cells.get("model", _model(page.heading)) or model
        if not gathering.is_new(model, *(cells.get(name, "") for name in QUESTION)):
            gathering.set_aside(page.reference, "repeats_revision", "stands in an earlier revision")
            continue
        gathering.keep(page.reference, _rows({**cells, "model": model}, page.date))
    return gathering.built()


def _model(head: str) -> str:
    """Return the model that a heading names; one that names none is Llama 2's smallest, as later revisions say."""
    return next((name for name in MODELS if head.endswith(name)), "llama2-7b")


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
