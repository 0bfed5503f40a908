"""Shipped campaigns of training and fine-tuning runs: rows, source and licence of each.

`job_catalog` holds every model and accelerator of their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roofcast.data.campaigns.loader import ShippedCampaigns
from roofcast.data.job_campaigns.models import job_catalog, load_job_models

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FIRST_TRAINING_CAMPAIGNS",
    "TRAINING_CAMPAIGNS",
    "TRAINING_JUDGES",
    "job_catalog",
    "load_job_campaign_info",
    "load_job_campaigns",
    "load_job_judges",
    "load_job_licence",
    "load_job_models",
    "load_job_rejected_counts",
]

FIRST_TRAINING_CAMPAIGNS: Final[tuple[str, ...]] = (
    "mosaic_llm_foundry", "nemo_megatron_bridge", "nemo", "nemo_framework_launcher", "nemo_automodel",
    "dgxc_benchmarking", "mlperf_training", "bigscience", "torchtitan", "torchtune", "fms_fsdp", "vectorlm", "litgpt",
    "hf_peft_method_comparison", "maxtext", "tpu_recipes", "jax_toolbox", "xtuner", "colossalai",
    "aws_neuron_training", "optimum_habana_training",
)  # fmt: skip
"""The campaigns that the headline figures of P6 judge, so that they compare from version to version."""

TRAINING_CAMPAIGNS: Final[tuple[str, ...]] = (
    *FIRST_TRAINING_CAMPAIGNS, "nanotron_ultrascale", "vtrain", "alpa_osdi22", "ms_swift", "libai", "qwen_finetune",
    "internevo", "optimum_benchmark", "dlperf_gpt", "fsdp_qlora", "kempner_forge", "torchao", "sailor", "paddlenlp",
    "readme_tables", "a10_oke",
)  # fmt: skip

TRAINING_JUDGES: Final[tuple[str, ...]] = ("megatron_papers",)
"""Campaigns of the same form that judge alone: no fit, fold or reference reads them."""


def _validate(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    from roofcast.data.measurements.job_validation import validate_training_measurements  # noqa: PLC0415  (needs pandas)

    return validate_training_measurements(rows, source)


_SHIPPED: Final = ShippedCampaigns(__name__, TRAINING_CAMPAIGNS, _validate)

_JUDGES: Final = ShippedCampaigns(__name__, TRAINING_JUDGES, _validate)

load_job_campaigns: Final = _SHIPPED.rows
load_job_judges: Final = _JUDGES.rows
load_job_campaign_info: Final = _SHIPPED.info
load_job_licence: Final = _SHIPPED.licence
load_job_rejected_counts: Final = _SHIPPED.rejected_counts
