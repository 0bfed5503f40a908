"""Shipped starts of servers: what they reported of their memory, with source and licence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roofcast.data.campaigns.loader import ShippedCampaigns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEMORY_CAMPAIGNS", "load_starts", "load_starts_info"]

MEMORY_CAMPAIGNS: Final[tuple[str, ...]] = ("start_up_logs",)


def _validate(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    from roofcast.data.measurements.memory_schema import validate_starts  # noqa: PLC0415  (needs pandas)

    return validate_starts(rows, source)


_SHIPPED: Final = ShippedCampaigns(__name__, MEMORY_CAMPAIGNS, _validate)

load_starts: Final = _SHIPPED.rows
load_starts_info: Final = _SHIPPED.info
