"""Speculation of the runs of AMD's dashboard of nightly benchmarks."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from builders.published import Cells, Record

_SPECULATION: Final = re.compile(r"[ -]mtp(\d?)(?=$|-tp)", re.IGNORECASE)


def records(published: Iterator[Record]) -> Iterator[Record]:
    """Yield the runs with drafted tokens and their acceptance."""
    return (run.having(**_speculation(run.cells)) for run in published)


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
