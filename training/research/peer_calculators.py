"""Published calculators of training beside the core, on the rows that they can express.

``python -m research.peer_calculators`` runs llm-analysis (``pip install llm-analysis``, which this package does not
need) on dense decoders in 16 bits with the plans of the core, and prints errors of tokens per second and memory.
Calculon is on no package index: the package of that name runs producers and consumers.

llm-analysis divides operations by a share of the peak that the caller chooses; 1 by default, and 0.5 by its remark on
Megatron-LM. It counts two matrices in an MLP, so that gated ones are given 1.5 times their width.
"""

import importlib
import logging
from typing import Any, Final

import numpy as np
import pandas as pd

from roofcast.features.queries import FloatArray
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.jobs.job_table import (
    JobTable,
    load_job_rows,
)

EFFICIENCY: Final = 0.5
GIGA: Final = 10**9
TERA: Final = 10**12
MAX_TOKEN: Final = 10**9
MAX_GB: Final = 10**6
"""No limit: it refuses runs that it believes not to fit."""


def select_expressible(rows: JobTable) -> JobTable:
    """Return rows of dense decoders, trained whole in 16 bits, whose splits llm-analysis takes."""
    r = rows.choice.runs
    is_dense = (r.model.n_expert == 0) & (r.model.n_linear_layer == 0) & (r.job.is_frozen == 0)
    is_plain = (r.job.is_eight_bit == 0) & (r.plan.cp == 1) & (r.plan.micro_batch >= 1)
    is_judged = np.isfinite(rows.measured_rate) | np.isfinite(rows.measured_memory)
    stated = rows.measurements[["tp", "pp", "n_micro_batch_sequence"]].notna().all(axis=1).to_numpy()
    return rows.take(np.flatnonzero(is_dense & is_plain & is_judged & stated))


def calculate(rows: JobTable) -> tuple[FloatArray, FloatArray]:
    """Return tokens per second and accelerator, and bytes of memory, by llm-analysis; NaN where it refuses."""
    analysis = importlib.import_module("llm_analysis.analysis")
    logging.disable(logging.WARNING)
    rate, memory = np.full((2, len(rows.measurements)), np.nan)
    for i in range(len(rate)):
        try:
            summary, n_token = _summary(analysis, rows.take(np.array([i])))
        except (AssertionError, ZeroDivisionError, StopIteration):
            continue
        rate[i] = n_token / summary["latency_per_iter"]
        memory[i] = summary["(weight+op_state+grad+act)_memory_per_gpu"]
    logging.disable(logging.NOTSET)
    return rate, memory


def _summary(analysis: Any, row: JobTable) -> tuple[dict[str, float], float]:
    config = importlib.import_module("llm_analysis.config")
    runs = row.choice.runs
    m, h, p = (_first_values(part) for part in (runs.model, runs.hardware, runs.plan))
    width = round(m["n_mlp_matrix"] / 2.0 * m["mlp_width"])
    model = config.ModelConfig(
        name="row", num_layers=int(m["n_layer"]), n_head=int(m["n_head"]), hidden_dim=int(m["hidden_size"]),
        vocab_size=int(m["vocab_size"]), max_seq_len=MAX_TOKEN, num_key_value_heads=int(m["n_kv_head"]),
        ffn_embed_dim=width, expansion_ratio=width / m["hidden_size"],
    )  # fmt: skip
    gpu = config.GPUConfig(
        name="row", mem_per_GPU_in_GB=MAX_GB, hbm_bandwidth_in_GB_per_sec=h["bandwidth_byte_per_s"] / GIGA,
        intra_node_bandwidth_in_GB_per_sec=h["link_byte_per_s"] / GIGA, intra_node_min_message_latency=8e-6,
        peak_fp16_TFLOPS=h["half_flop_per_s"] / TERA,
        inter_node_bandwidth_in_GB_per_sec=h["network_byte_per_s"] / GIGA,
    )  # fmt: skip
    split = config.ParallelismConfig(tp_size=int(p["tp"]), pp_size=int(p["pp"]), dp_size=int(p["dp"]))
    n_token = int(np.ravel(runs.job.n_token)[0])
    run = analysis.LLMAnalysis(model, gpu, config.DtypeConfig(), split, flops_efficiency=EFFICIENCY)
    micro, steps = int(p["micro_batch"]), max(int(p["n_micro_batch"]), 1)
    summary = run.training(
        batch_size_per_gpu=micro, gradient_accumulation_steps=steps, global_batch_size=micro * steps * int(p["dp"]),
        seq_len=n_token, activation_recomputation=analysis.ActivationRecomputation(int(p["recomputation"])),
        ds_zero=analysis.DSZeRO(int(p["zero_stage"])), flash_attn=bool(np.ravel(runs.job.is_flash)[0]),
        mlp_gated_linear_units=m["n_mlp_matrix"] > 2,
    )  # fmt: skip
    return summary, micro * steps * n_token / (p["tp"] * p["pp"])


def _first_values(part: Any) -> dict[str, float]:
    arrays = {name: getattr(part, name) for name in part.__slots__}
    return {name: float(np.ravel(array)[0]) for name, array in arrays.items() if isinstance(array, np.ndarray)}


def compare(rows: JobTable) -> pd.DataFrame:
    """Return errors of llm-analysis and of the core on the same rows, of the first campaigns and by campaign."""
    peer, core = calculate(rows), (rows.estimated_rate, rows.estimated_memory)
    campaigns = rows.measurements["campaign"]
    parts = {"first 21": rows.is_first} | {name: (campaigns == name).to_numpy() for name in campaigns.unique()}
    lines: list[dict[str, object]] = []
    for i, (quantity, measured) in enumerate((("rate", rows.measured_rate), ("memory", rows.measured_memory))):
        known = np.isfinite(measured) & np.isfinite(peer[i])
        for name, part in parts.items():
            if not (known & part).any():
                continue
            line: dict[str, object] = {"quantity": quantity, "campaign": name, "n": int((known & part).sum())}
            for method, values in (("llm_analysis", peer[i]), ("core", core[i])):
                scores = error_summary(measured[known & part], values[known & part])
                line |= {f"{method}_{score}": round(scores[score], 3) for score in ("mape", "median_ape")}
            lines.append(line)
    return pd.DataFrame(lines)


def main() -> None:
    """Print errors by campaign."""
    print(compare(select_expressible(load_job_rows())).to_string(index=False))


if __name__ == "__main__":
    main()
