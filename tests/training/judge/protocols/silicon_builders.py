"""A small campaign of P3's kind."""

from typing import Any

import numpy as np
import pandas as pd

from judge.protocols.p3_silicon import Fold, SiliconCampaign, build_silicon_campaign
from roofcast.data.catalog import load_catalog
from tests.training.builders import measurements

MODELS = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-32B", "openai/gpt-oss-120b")
PARTS = ("nvidia-h100-sxm-80gb", "nvidia-h200-sxm-141gb")
LOADS = (1, 8)
N_OWN = len(MODELS) * len(PARTS) * len(LOADS)


def a_silicon_row(row: int, **changes: Any) -> dict[str, Any]:
    """Return the cells of one measurement that stands for a row of the source."""
    return {
        "engine": "vllm", "weight_precision": "fp8", "n_accelerator": 4, "tp": 4, "pp": 1, "dp": 1, "ep": 1,
        "n_input_token": 1000, "n_output_token": 100, "statistic": "mean", "load": "closed_loop",
        "ttft_s": 0.1 + 0.01 * row, "tpot_s": 0.01 + 0.001 * row, "campaign": "silicon", "note": f"row {row}",
        "derived": "output_throughput_token_per_s", "output_throughput_token_per_s": 100.0,
    } | changes  # fmt: skip


def a_silicon_campaign() -> SiliconCampaign:
    """Return twelve measurements, one more that is faulty, and two published rows that repeat the first."""
    asked = [(m, part, n) for m in MODELS for part in PARTS for n in LOADS]
    rows = [
        a_silicon_row(i, model=model, accelerator=part, concurrency=n) for i, (model, part, n) in enumerate(asked, 1)
    ]
    total = {"n_accelerator": 8, "tp": np.nan, "pp": np.nan, "dp": np.nan, "ep": np.nan}
    note = f"row {N_OWN + 1}; faulty: disaggregated_total"
    rows.append(a_silicon_row(N_OWN + 1, model=MODELS[1], accelerator=PARTS[0], concurrency=2, note=note, **total))
    numbers = list(range(1, N_OWN + 4))
    ids = [f"id-{n}" for n in numbers]
    aggregated = pd.DataFrame({"row": numbers, "id": ids, "mode": "agg", "measured_in": [*numbers[:-2], 1, 1]})
    other = pd.DataFrame({"row": [99], "id": ["id-99"], "mode": "disagg", "measured_in": [99]})
    index = pd.concat([aggregated, other], ignore_index=True)
    return build_silicon_campaign(measurements(*rows), index, load_catalog())


def half_off(fold: Fold) -> pd.DataFrame:
    """Return the truth times one and a half, and no TTFT on the first accelerator."""
    told = fold.test.measurements
    wrong = 1.5 * told[["ttft_s", "tpot_s"]]
    return wrong.assign(ttft_s=wrong["ttft_s"].mask(told["accelerator"] == PARTS[0]))


def exact(fold: Fold) -> pd.DataFrame:
    """Return the truth."""
    return fold.test.measurements[["ttft_s", "tpot_s"]]
