"""Published step times of Megatron-LM, a judge that no coefficient is fitted to.

``python -m research.megatron_tables`` prints published and estimated times.

Sources: V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022, tables 3 and 5
and figure 1, as they stand in calculon's ``validation.py``; D. Narayanan et al., "Efficient Large-Scale Language
Model Training on GPU Clusters Using Megatron-LM", 2021, table 1: TFLOP/s of an accelerator, which equation 3 turns
into times. The copies of these times in Rapid-LLM's ``uci_train.csv`` differ from the papers by up to 10 % and are
not used.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from roofcast.data.specs import ModelSpec
from roofcast.data.training_campaigns import training_catalog
from roofcast.features.arrays import FloatArray
from roofcast.features.training.coefficients import DEFAULT_TRAINING_COEFFICIENTS, TrainingCoefficients
from roofcast.features.training.memory import estimate_memory
from roofcast.features.training.plans import PlanChoice, choose_plans
from roofcast.features.training.run_table import build_jobs

ACCELERATOR = "nvidia-a100-sxm-80gb"
N_TOKEN = 2048
VOCABULARY = 51200

SELECTIVE_RECOMPUTATION = (
    # layers, hidden, heads, tp, pp, vp, micro batch, batch, seconds with full and with selective recomputation
    (48, 6144, 64, 8, 1, 1, 4, 4, 1.42, 1.10),
    (96, 12288, 96, 8, 8, 3, 1, 64, 18.13, 13.75),
    (105, 20480, 128, 8, 35, 3, 1, 280, 49.05, 37.83),
    (128, 25600, 160, 8, 64, 1, 1, 512, 94.42, 71.49),
)
"""Korthikanti, tables 3 and 5; selective with sequence parallelism."""

ACTIVATION_GIB = (
    # GiB of activations without recomputation, and selective with sequence parallelism, on the first stage
    (59.25, 9.5625), (66.84375, 12.3515625), (114.0234375, 23.076171875), (131.25, 26.5625),
)  # fmt: skip
STATE_GIB = (45.5625, 45.5625, 31.640625, 32.958984375)
"""Korthikanti, figure 1, in the order of `SELECTIVE_RECOMPUTATION`."""

WEAK_SCALING = (
    # layers, hidden, heads, tp, pp, accelerators, batch, TFLOP/s
    (24, 2304, 24, 1, 1, 32, 512, 137), (30, 3072, 32, 2, 1, 64, 512, 138), (36, 4096, 32, 4, 1, 128, 512, 142),
    (40, 6144, 48, 8, 1, 256, 1024, 135), (48, 8192, 64, 8, 2, 512, 1536, 138),
    (60, 10240, 80, 8, 4, 1024, 1792, 140), (80, 12288, 96, 8, 8, 1536, 2304, 148),
    (96, 16384, 128, 8, 16, 1920, 2160, 155), (105, 20480, 128, 8, 35, 2520, 2520, 163),
    (128, 25600, 160, 8, 64, 3072, 3072, 163),
)  # fmt: skip
"""Narayanan, table 1; full recomputation, interleaved schedule. The table does not state micro-batch or chunks."""


def gpt_model(n_layer: int, hidden: int, n_head: int) -> ModelSpec:
    """Return a GPT of the papers: MLP of width 4 h, tied embedding of 51,200 words."""
    n_param = n_layer * (12 * hidden**2 + 13 * hidden) + (VOCABULARY + N_TOKEN) * hidden
    name = f"megatron/gpt-l{n_layer}-h{hidden}"
    return ModelSpec(
        id=name, lineage=name, fold_group=name, model_type="gpt", n_layer=n_layer, hidden_size=hidden,
        intermediate_size=4 * hidden, mlp_gated=False, n_head=n_head, n_kv_head=n_head, head_dim=hidden // n_head,
        vocab_size=VOCABULARY, tie_word_embeddings=True, n_param=n_param, n_param_active=n_param, source="the paper",
    )  # fmt: skip


def korthikanti_rows() -> tuple[pd.DataFrame, dict[str, ModelSpec]]:
    """Return table 5 as rows of the training schema, with its models."""
    rows, models = [], {}
    for n_layer, hidden, n_head, tp, pp, vp, micro, batch, full_s, selective_s in SELECTIVE_RECOMPUTATION:
        spec = gpt_model(n_layer, hidden, n_head)
        models[spec.id] = spec
        for recomputation, step_s in (("full", full_s), ("selective", selective_s)):
            rows.append(
                _row(spec, tp * pp, tp, pp) | {"vp": vp, "n_micro_batch_sequence": micro}
                | {"recomputation": recomputation, "n_global_batch_sequence": batch, "step_time_s": step_s}
                | {"sequence_parallel": "on" if recomputation == "selective" else "off", "sharding": "ddp"}
            )  # fmt: skip
    return pd.DataFrame(rows), models


def narayanan_rows() -> tuple[pd.DataFrame, dict[str, ModelSpec]]:
    """Return table 1 as rows of the training schema, with its models."""
    rows, models = [], {}
    for n_layer, hidden, n_head, tp, pp, n, batch, tera_flop_per_s in WEAK_SCALING:
        spec = gpt_model(n_layer, hidden, n_head)
        models[spec.id] = spec
        correction = 1 + N_TOKEN / (6 * hidden) + VOCABULARY / (16 * n_layer * hidden)
        flop = 96 * batch * N_TOKEN * n_layer * hidden**2 * correction
        rows.append(
            _row(spec, n, tp, pp) | {"n_global_batch_sequence": batch, "sequence_parallel": "off", "sharding": "ddp"}
            | {"step_time_s": flop / (n * tera_flop_per_s * 10**12), "recomputation": "full", "vp": np.nan}
        )  # fmt: skip
    return pd.DataFrame(rows), models


def _row(spec: ModelSpec, n: int, tp: int, pp: int) -> dict[str, object]:
    fixed = {"framework": "megatron-lm", "compute_precision": "fp16", "flash_attention": "off", "method": "pretrain"}
    return fixed | {
        "model": spec.id, "accelerator": ACCELERATOR, "n_accelerator": n, "tp": tp, "pp": pp, "cp": 1,
        "n_token_per_sequence": N_TOKEN,
    }  # fmt: skip


def estimate(
    rows: pd.DataFrame, models: dict[str, ModelSpec], c: TrainingCoefficients = DEFAULT_TRAINING_COEFFICIENTS
) -> PlanChoice:
    """Return the estimate of the rows; micro-batches that are not stated are the fastest that fit."""
    jobs = build_jobs(rows, models, training_catalog().accelerators)
    return choose_plans(jobs, c)


def time_errors(
    rows: pd.DataFrame, models: dict[str, ModelSpec], c: TrainingCoefficients = DEFAULT_TRAINING_COEFFICIENTS
) -> FloatArray:
    """Return estimated over published step time, less 1."""
    choice = estimate(rows, models, c)
    return np.asarray(choice.time.total_s / rows["step_time_s"].to_numpy(float) - 1.0)


def main() -> None:
    """Print published and estimated values."""
    for name, (rows, models) in (("Korthikanti", korthikanti_rows()), ("Narayanan", narayanan_rows())):
        choice = estimate(rows, models)
        error = choice.time.total_s / rows["step_time_s"].to_numpy(float) - 1.0
        shown = rows[["model", "n_accelerator", "recomputation", "step_time_s"]].assign(
            estimated_s=choice.time.total_s.round(2), error=error.round(3),
            micro_batch=choice.runs.plan.micro_batch, vp=choice.runs.plan.vp,
            memory_gib=(estimate_memory(choice.runs).allocated / 2**30).round(1),
        )  # fmt: skip
        print(name, shown.to_string(), f"mean |error| {np.abs(error).mean():.3f}", sep="\n")


if __name__ == "__main__":
    main()
