"""Columns of all revisions of LMDeploy's page under one set of names; a blank model repeats the line above."""

from collections.abc import Iterator
from typing import Final

from builders.figures import number_of
from builders.published import Record

COLUMNS: Final = {
    "model_name": "model", "completion_tokens": "output_tokens", "num_promts": "num_prompts", "PRS": "RPS",
    "1st_token_latency(ave)(s)": "ttft", "FTL(ave)(s)": "ttft",
    "percentile50(s)": "p50", "percentile95(s)": "p95", "percentile99(s)": "p99",
    "50%(s)": "p50", "95%(s)": "p95", "99%(s)": "p99",
    "throughput(token/s)": "output", "throughput(out tok/s)": "output", "output_token thr(tokens/s)": "output",
    "throughput(total tok/s)": "total", "total_token thr(tokens/s)": "total",
}  # fmt: skip
"""PRS is the source's typo of RPS."""

PAGE: Final = "docs/en/benchmark/a100_fp16.md"


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records with model and mean input length."""
    model = ""
    for record in published:
        cells = {COLUMNS.get(name, name): text for name, text in record.cells.items()}
        if cells["@page"] == PAGE:
            model = cells.get("model", _model(cells["@heading"])) or model
            cells["model"] = model
        if "total" in cells and "RPS" in cells:
            tokens_per_s = number_of(cells["total"]) - number_of(cells["output"])
            cells["mean_input"] = tokens_per_s / number_of(cells["RPS"])
        yield Record(record.reference, cells)


def _model(heading: str) -> str:
    names = ("llama2-7b", "llama2-13b", "llama2-70b", "internlm-20b")
    return next((name for name in names if heading.endswith(name)), names[0])
