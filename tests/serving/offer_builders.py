"""Builders of offers with valid defaults."""

from typing import Any

from roofcast.data.specs import Offer

H100 = "nvidia-h100-sxm-80gb"


def an_offer(**changes: Any) -> Offer:
    """Return an offer of eight accelerators in AWS's us-east-1."""
    fields = {
        "provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "accelerator": H100,
        "n_accelerator": 8, "pricing": "on_demand", "price_usd_per_h": 55, "as_of": "2026-10-10", "source": "a test",
        "licence": "none",
    }  # fmt: skip
    return Offer.parse(fields | changes)
