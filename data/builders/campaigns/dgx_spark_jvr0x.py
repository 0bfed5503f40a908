"""Figures of a window that count: percentiles of enough requests, throughput of enough waves, build of the engine."""

import re
from collections.abc import Iterator
from typing import Final

from builders.published import Cells, Record

MIN_WAVES: Final = 3
"""Least completed requests per request in flight of a window whose throughput counts: it counts whole requests."""

MIN_SAMPLES: Final = {"p50": 3, "p95": 20, "p99": 100}
"""Least number of requests of a percentile."""


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the records; a gap between chunks is one between tokens only without speculation."""
    for record in published:
        cells = record.cells
        image, n_sample, n_output = (
            cells["config"].get("image", ""),
            cells["samples"],
            cells["run"]["workload"]["output_tokens"],
        )
        counted = [name for name, least in MIN_SAMPLES.items() if n_sample >= least]
        speculation = _speculation(cells["config"].get("speculative", ""))
        yield record.having(
            n_node=2 if "x2" in cells["run"]["hardware"]["name"] else 1,
            version=_version(image, cells["backend"]), build=_build(cells, image), speculation=speculation,
            has_throughput=n_sample >= MIN_WAVES * cells["concurrency"],
            ttft={name: cells["ttft_ms"][name] for name in counted},
            itl={} if speculation else {name: cells["itl_ms"][name] for name in counted if name in cells["itl_ms"]},
            tpot_s=n_output / (n_output - 1) / cells["per_session_tok_s"] if cells["per_session_tok_s"] else "",
        )  # fmt: skip


def _build(cells: Cells, image: str) -> str:
    if "aeon" in (image + cells["backend"]).lower():
        return "aeon"
    return "vllm" if cells["backend"].startswith("vLLM") else "llama.cpp"


def _version(image: str, backend: str) -> str:
    match = re.search(r"v(\d+\.\d+\.\d+)$", image) or re.search(r"vLLM (\d+\.\d+)", backend)
    return match[1] if match else ""


def _speculation(text: str) -> str:
    is_known = text.upper().startswith(("MTP", "DFLASH", "DSPARK", "EAGLE3")) and re.search(r"\d+ tokens?", text)
    return text if is_known else ""
