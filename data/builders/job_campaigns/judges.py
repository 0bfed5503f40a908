"""Published times of Megatron-LM on A100, which no training reads: they judge the training predictor alone.

Figures are typed from V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022,
tables 3 and 5, whose times calculon's ``validation.py`` repeats, and from D. Narayanan et al., "Efficient Large-Scale
Language Model Training on GPU Clusters Using Megatron-LM", 2021, table 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from builders.campaigns.build_result import BuildResult
from builders.job_campaigns.duplicates import EXACT_RTOL
from builders.job_campaigns.source_rows import NODE_SIZE, Cells, SourceRow, build
from roofcast.data.job_campaigns.models import job_catalog
from roofcast.data.units import FLOP_PER_TFLOP

N_TOKEN: Final = 2048.0


class _Selective(NamedTuple):
    """Row of Korthikanti's tables: split, batches, and seconds of a step with full and selective recomputation."""

    model: str
    tp: float
    pp: float
    vp: float
    micro_batch: float
    batch: float
    full_s: float
    selective_s: float


class _Scaling(NamedTuple):
    """Row of Narayanan's table: split, and FLOP/s with recomputation of one accelerator in 10^12."""

    model: str
    tp: float
    pp: float
    n_accelerator: float
    batch: float
    tera_flop_per_s: float


SELECTIVE: Final = (
    _Selective("nvidia/gpt3-22b", 8, 1, 1, 4, 4, 1.42, 1.10),
    _Selective("openai/gpt3-175b", 8, 8, 3, 1, 64, 18.13, 13.75),
    _Selective("nvidia/mt-nlg-530b", 8, 35, 3, 1, 280, 49.05, 37.83),
    _Selective("nvidia/gpt-1t", 8, 64, 1, 1, 512, 94.42, 71.49),
)
SCALING: Final = (
    _Scaling("nvidia/gpt-1.7b", 1, 1, 32, 512, 137), _Scaling("nvidia/gpt-3.6b", 2, 1, 64, 512, 138),
    _Scaling("nvidia/gpt-7.5b", 4, 1, 128, 512, 142), _Scaling("nvidia/gpt-18.4b", 8, 1, 256, 1024, 135),
    _Scaling("nvidia/gpt-39.1b", 8, 2, 512, 1536, 138), _Scaling("nvidia/gpt-76.1b", 8, 4, 1024, 1792, 140),
    _Scaling("nvidia/gpt-145.6b", 8, 8, 1536, 2304, 148), _Scaling("nvidia/gpt-310b", 8, 16, 1920, 2160, 155),
    _Scaling("nvidia/mt-nlg-530b", 8, 35, 2520, 2520, 163), _Scaling("nvidia/gpt-1t", 8, 64, 3072, 3072, 163),
)  # fmt: skip


def build_megatron_papers(root: Path) -> BuildResult:  # noqa: ARG001  (builders take the folder of published files)
    """Build the judge from the papers' tables."""
    rows = [
        SourceRow(f"korthikanti:{row.model}:{recomputation}", _selective_cells(row, recomputation))
        for row in SELECTIVE
        for recomputation in ("full", "selective")
    ]
    rows += [SourceRow(f"narayanan:{row.model}", _scaling_cells(row)) for row in SCALING]
    shared = {
        "stack": "nvidia/megatron-papers", NODE_SIZE: 8.0, "accelerator": "nvidia-a100-sxm-80gb", "cp": 1.0,
        "framework": "megatron-lm", "method": "pretrain", "compute_precision": "fp16", "sharding": "ddp",
        "n_token_per_sequence": N_TOKEN, "flash_attention": "off", "optimizer": "adam", "network": "infiniband",
        "packing": "packed", "offload": "none",
    }  # fmt: skip
    return build("megatron_papers", len(rows), rows, EXACT_RTOL, shared=shared)


def _selective_cells(row: _Selective, recomputation: str) -> Cells:
    is_selective = recomputation == "selective"
    return {
        "model": row.model, "n_accelerator": row.tp * row.pp, "tp": row.tp, "pp": row.pp, "vp": row.vp, "dp": 1.0,
        "pipeline_schedule": "interleaved" if row.vp > 1 else "", "recomputation": recomputation,
        "sequence_parallel": "on" if is_selective else "off", "n_micro_batch_sequence": row.micro_batch,
        "n_global_batch_sequence": row.batch, "n_gradient_accumulation": row.batch / row.micro_batch,
        "step_time_s": row.selective_s if is_selective else row.full_s,
        "date": "2022-05-10", "note": "Korthikanti et al. 2022, table 5",
    }  # fmt: skip


def _scaling_cells(row: _Scaling) -> Cells:
    return {
        "model": row.model, "n_accelerator": row.n_accelerator, "tp": row.tp, "pp": row.pp,
        "dp": row.n_accelerator / row.tp / row.pp, "pipeline_schedule": "interleaved" if row.pp > 1 else "",
        "recomputation": "full", "sequence_parallel": "off", "n_global_batch_sequence": row.batch,
        "step_time_s": round(_step_s(row), 3), "date": "2021-04-09", "note": "Narayanan et al. 2021, table 1",
    }  # fmt: skip


def _step_s(row: _Scaling) -> float:
    """Return the seconds of a step by the paper's equation 3, of operations with full recomputation."""
    spec = job_catalog().model(row.model)
    width, n_layer, vocabulary = spec.hidden_size, spec.n_layer, spec.vocab_size
    ratio = 1 + N_TOKEN / (6 * width) + vocabulary / (16 * n_layer * width)
    flop = 96 * row.batch * N_TOKEN * n_layer * width**2 * ratio
    return flop / (row.n_accelerator * row.tera_flop_per_s * FLOP_PER_TFLOP)
