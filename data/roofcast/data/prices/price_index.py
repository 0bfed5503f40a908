"""Observations of gpu-price-index, which reads the public price lists of a dozen clouds every day."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from roofcast.data.catalog import Catalog
from roofcast.data.prices.offer_file import offer_from_row
from roofcast.data.prices.price_list import (
    Fetch,
    NoOfferError,
    PriceList,
    published_file,
    read_price_list,
)
from roofcast.data.prices.regions import UNKNOWN_REGION
from roofcast.data.prices.skypilot import LIST_NAMES
from roofcast.data.specs import Offer, Pricing

REPOSITORY: Final = "ewyluda/gpu-price-index"
LATEST: Final = "site/data/observations-latest.csv"
LICENCE: Final = "MIT"

INDEX_COLUMNS: Final = ("date", "provider", "pricing", "gpu_model", "sku", "region", "gpu_count", "usd_per_hour")


_MODELS_BY_SKU: Final = ((re.compile("a100_pcie_40gb"), "nvidia-a100-pcie-40gb"),)
"""Parts that the name of the instance tells apart, and the model does not."""

_NODE: Final = re.compile(r"BM\.GPU\.\w+(?:-v\d)?\.(\d+)")
"""Oracle's bare-metal shapes, which the list prices by the accelerator."""

_ASK: Final = "median-offer"
_RUNPOD_UNPRICED: Final = "0.5"
"""Price of RunPod's interface for what is not in stock."""


def load_price_index(path: Path | str, catalog: Catalog, provider: str = "") -> PriceList:
    """Return the offers of a file of observations; of one provider if one is named.

    Raises `SchemaError` if the file cannot be read, lacks a column, or a cell is wrong; names file, line and field.
    """
    file = Path(path)

    def offers_of(row: Mapping[str, str]) -> list[Offer]:
        name = LIST_NAMES["price_index_providers"].get(row["provider"], row["provider"].casefold())
        if provider and name != provider:
            return []
        return [_offer(row, name, catalog, file.name)]

    return read_price_list(file, INDEX_COLUMNS, offers_of)


def fetch_price_index(provider: str, fetch: Fetch, catalog: Catalog) -> PriceList | None:
    """Return the offers of the last observations published; None if there are none.

    `provider`: the only one of interest; blank for all.
    """
    with published_file(REPOSITORY, LATEST, "gpu-price-index", fetch) as found:
        return found and load_price_index(found[0], catalog, provider)


def _offer(row: Mapping[str, str], provider: str, catalog: Catalog, source: str) -> Offer:
    sku, price = row["sku"], row["usd_per_hour"]
    if row["pricing"] not in get_args(Pricing):
        raise NoOfferError(f"pricing {row['pricing']}")
    if sku == _ASK:
        raise NoOfferError("median of asks")
    if " MIG " in sku:
        raise NoOfferError("part of an accelerator")
    if provider.startswith("runpod") and price == _RUNPOD_UNPRICED:
        raise NoOfferError("no price")
    model = next((id_ for pattern, id_ in _MODELS_BY_SKU if pattern.search(sku)), row["gpu_model"])
    names = LIST_NAMES["skypilot"] | LIST_NAMES["price_index"]
    cells: dict[str, Any] = {
        "provider": provider, "region": UNKNOWN_REGION if row["region"] == "global" else row["region"],
        "instance_type": sku, "accelerator": catalog.accelerator(names.get(model, model)).id,
        "n_accelerator": row["gpu_count"], "pricing": row["pricing"], "price_per_h": price, "as_of": row["date"],
        "source": f"{REPOSITORY} {source}", "licence": LICENCE,
    }  # fmt: skip
    offer = offer_from_row(cells, catalog, {}, source)
    if (node := _NODE.fullmatch(sku)) and offer.n_accelerator == 1:
        n = int(node[1])
        offer = offer.model_copy(update={"n_accelerator": n, "price_usd_per_h": offer.price_usd_per_h * n})
    return offer
