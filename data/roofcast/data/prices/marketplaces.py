"""Providers whose instances third-party hosts supply."""

from __future__ import annotations

from typing import Final

from roofcast.data.specs import Market

MARKETPLACES: Final = frozenset(
    {"akash", "runpod", "runpod-community", "salad", "spheron", "tensordock", "vast", "vast-ai"}
)
"""Marketplaces, and community tiers of providers.

The price lists of tardellirs/gpu-pricing mark Akash, Spheron and Vast.ai so; Salad rents idle machines of others.
RunPod rents out third-party hosts in its Community Cloud (docs.runpod.io); rows of ``runpod`` without a tier have the
prices of that tier. TensorDock lists independent hosts (docs.tensordock.com).
"""


def usual_market(provider: str) -> Market:
    """Return the market of a provider's offers unless an offer states another.

    Examples
    --------
    >>> usual_market("aws"), usual_market("Vast")
    ('provider', 'marketplace')
    """
    return "marketplace" if provider.strip().casefold() in MARKETPLACES else "provider"
