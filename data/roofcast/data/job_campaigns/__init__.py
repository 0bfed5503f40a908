"""Shipped campaigns of training and fine-tuning runs: rows, source and licence of each.

`models.csv` has the models that are in no catalogue, plain shapes and models cut to fewer layers, with their sources.
A parameter count that no source states is that of the shape: for BigScience's, l (12 h^2 + 13 h) + (v + s + 2) h.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING, Final

from roofcast.data.campaigns.loader import ShippedCampaigns
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.catalog.catalog_tables import read_specs
from roofcast.data.specs import ModelSpec

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
    "fms_acceleration", "ms_swift_runs", "unsloth", "axolotl", "liucongg_chatglm", "xturing", "paddlenlp_torch_peft",
    "fastcode_finetune", "philschmid", "kyuz0_strix_halo", "torchtune_docs", "deepspeed_examples", "caikit_nlp",
    "hiyouga", "openbmb_minicpm", "open_llama", "colossalai_trainers", "h2oai", "shirley_deepspeed_4090",
    "lanzhou_hpc_5090", "rocm_blogs", "ashishpatel_notebooks", "dgx_spark_phase3",
    "whynlp_tinyllama", "mlx_runs", "ethanyanjiali_mai", "zphang_minimal_llama",
    "liger_issues", "lxe_finetuner", "tinyllama",
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


def load_job_models() -> tuple[ModelSpec, ...]:
    """Return the models of the campaigns that are not in the catalogue.

    Examples
    --------
    >>> min(spec.n_layer for spec in load_job_models())
    2
    """
    return tuple(read_specs(resources.files(__name__) / "models.csv", ModelSpec))


@functools.cache
def job_catalog() -> Catalog:
    """Return the catalogue with every model of the campaigns; cached."""
    return load_catalog().with_models(load_job_models())
