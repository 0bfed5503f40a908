"""Shipped measurement campaigns: rows, source and licence of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roofcast.data.campaigns.loader import CampaignInfo, ShippedCampaigns

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CAMPAIGNS",
    "FIRST_CAMPAIGNS",
    "CampaignInfo",
    "load_campaign_info",
    "load_campaigns",
    "load_licence",
    "load_rejected_counts",
]

FIRST_CAMPAIGNS: Final[tuple[str, ...]] = (
    "llm_pilot", "silicon", "inferencemax", "trtllm_overview", "argonne", "mlperf_inference", "dgx_spark",
    "rocm_vllm", "lmdeploy", "dstack", "fastertransformer", "optimum_habana", "aws_neuron", "mlc",
)  # fmt: skip
"""The campaigns whose stacks P7 judges, so that its scores compare from version to version."""

CAMPAIGNS: Final[tuple[str, ...]] = (
    *FIRST_CAMPAIGNS, "llmperf_homelab", "dgx_spark_jvr0x", "gpustack_lab", "inferencex_2026_06",
    "hikarioyama_pro6000", "tsho_gemma4_tpu_a100", "pillaiharish_5070ti", "lhl_strix_halo", "hogeheer_strix_halo",
    "heitor_gx10", "etched_trtllm_llama70b", "josealberto_t4x2", "pegainfer", "mlperf_v60_logs", "mistralrs",
    "threads_vllm", "threads_local_engines", "iog", "dgx_spark_ollama", "deplodock", "rocm_atom", "club_3090",
    "ml_energy", "llmservingsim", "akamas", "anud18_qwen36", "anyscale_ray_serve", "gloria_h200", "redhat_glm52",
    "llmfit_localmaxxing", "waynehacking8_trtllm", "progmastermind_mi300x", "dk9643_r9700", "gavinbrow_p100",
    "tokey_a100",
)  # fmt: skip


def _validate(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    from roofcast.data.measurements.validation import validate_measurements  # noqa: PLC0415  (needs pandas)

    return validate_measurements(rows, source)


_SHIPPED: Final = ShippedCampaigns(__name__, CAMPAIGNS, _validate)

load_campaigns: Final = _SHIPPED.rows
load_campaign_info: Final = _SHIPPED.info
load_licence: Final = _SHIPPED.licence
load_rejected_counts: Final = _SHIPPED.rejected_counts
