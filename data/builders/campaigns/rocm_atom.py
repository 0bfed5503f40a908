"""Lengths, ranks and speculation of the runs of AMD's dashboard of nightly benchmarks."""

import datetime as dt
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from builders.published import Cells, Record

RANGE_RATIO: Final = 0.8
"""The client draws lengths uniformly from this share of the nominal length to all of it, as the recipes state."""

FIXED_LENGTHS: Final = ((1000, 100), (5000, 500), (10000, 1000))
"""Nominal lengths that are not drawn: the ratio of input to output throughput is exactly theirs in every run."""

N_WAVE: Final = 10
"""Requests over concurrency where lengths are drawn, as the recipes state."""

BURST_MARK: Final = "-aw"
"""Mark of runs whose requests start and end together: output throughput times E2E is the concurrency."""

_SPECULATION: Final = re.compile(r"[ -]mtp(\d?)(?=$|-tp)", re.IGNORECASE)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs with what their names and lengths state."""
    for run in published:
        yield run.having(**_stated(run.cells), **_lengths(run.cells), **_speculation(run.cells))


def chain_acceptance_ratio(n_token_per_step: float, n_draft: float) -> float:
    """Return the acceptance of one draft token, given those before it, from the mean tokens of a step.

    The tokens of a step are the sum of the ratio's powers from 0 to the number of draft tokens.

    Examples
    --------
    >>> round(chain_acceptance_ratio(1.75, 2), 6)
    0.5
    """
    ratios = np.linspace(0.0, 1.0, 100_001)
    n_token = sum((ratios**power for power in range(1, int(n_draft) + 1)), np.ones_like(ratios))
    return float(np.interp(n_token_per_step, n_token, ratios))


def _stated(run: Cells) -> dict[str, Any]:
    extra = dict(part.split(": ", 1) for part in run["figures"]["extra"].split(" | "))
    rocm = f"ROCm {extra['ROCm']}" if extra.get("ROCm", "unknown") != "unknown" else ""
    dp = re.search(r"-dp(\d+)", run["name"])
    has_dp_attention = run["name"].endswith(" DPA") or " DPA " in run["name"]
    return {
        "extra": {"Docker": "", **extra}, "software": " ".join(filter(None, [extra.get("Docker", ""), rocm])),
        "date": dt.datetime.fromtimestamp(run["time_ms"] / 1000, dt.UTC).date().isoformat(),
        "n_dp": run["n_accelerator"] if has_dp_attention else int(dp[1]) if dp else 1,
    }  # fmt: skip


def _lengths(run: Cells) -> dict[str, Any]:
    n_input, n_output = float(run["n_input"]), float(run["n_output"])
    if (n_input, n_output) in FIXED_LENGTHS:
        n_request = run["concurrency"] if BURST_MARK in run["name"] else ""
        return {"mean_input": n_input, "mean_output": n_output, "length_variation": 0.0, "n_request": n_request}
    mean = (1.0 + RANGE_RATIO) / 2.0
    variation = (1.0 - RANGE_RATIO) / math.sqrt(12.0) / mean
    n_request = N_WAVE * run["concurrency"]
    lengths = {"mean_input": mean * n_input, "mean_output": mean * n_output}
    return lengths | {"length_variation": variation, "n_request": n_request}


def _speculation(run: Cells) -> dict[str, Any]:
    match = _SPECULATION.search(run["name"])
    if not match:
        return {}
    listed = 1.0 if run["name"].startswith("Qwen3-Next") else math.nan  # oot_benchmark_models.json
    n_draft = float(match[1]) if match[1] else listed
    length = run["figures"].get("Accept Length (tok/fwd)")
    return {
        "speculation": "mtp",
        "n_draft": n_draft,
        "acceptance": math.nan if length is None else chain_acceptance_ratio(length, n_draft),
    }
