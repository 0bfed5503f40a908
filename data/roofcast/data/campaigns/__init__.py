"""Shipped measurement campaigns: rows, source and licence of each."""

from __future__ import annotations

from typing import Final

from roofcast.data.campaigns.loader import CampaignInfo, ShippedCampaigns
from roofcast.data.measurements.validation import validate_measurements

__all__ = [
    "CAMPAIGNS",
    "CampaignInfo",
    "load_campaign_info",
    "load_campaigns",
    "load_licence",
    "load_quarantine_counts",
]

CAMPAIGNS: Final[tuple[str, ...]] = (
    "llm_pilot",
    "silicon",
    "inferencemax",
    "trtllm_overview",
    "argonne",
    "mlperf_inference",
    "dgx_spark",
    "rocm_vllm",
    "lmdeploy",
    "dstack",
    "fastertransformer",
    "optimum_habana",
    "aws_neuron",
    "mlc",
)

_SHIPPED: Final = ShippedCampaigns(__name__, CAMPAIGNS, validate_measurements)

load_campaigns: Final = _SHIPPED.rows
load_campaign_info: Final = _SHIPPED.info
load_licence: Final = _SHIPPED.licence
load_quarantine_counts: Final = _SHIPPED.quarantine_counts
