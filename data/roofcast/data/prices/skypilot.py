"""SkyPilot's price lists, one CSV file a cloud."""

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.prices.offer_file import offer_from_row
from roofcast.data.prices.price_list import (
    Fetch,
    NoOfferError,
    PriceList,
    published_file,
    read_price_list,
)
from roofcast.data.specs import Offer, Pricing

REPOSITORY: Final = "skypilot-org/skypilot-catalog"
FOLDER: Final = "catalogs/v8"
LICENCE: Final = "Apache-2.0"

CLOUDS: Final = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod")
"""Clouds whose lists are fetched unless one is named."""

SKYPILOT_COLUMNS: Final = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")

LIST_NAMES: Final = tomllib.loads(Path(__file__).with_name("list_names.toml").read_text(encoding="utf-8"))
"""Catalogue ids by the names of lists."""

_SECURE: Final = "_SECURE"
"""End of the instance types of RunPod's own data centres."""

_TPU: Final = re.compile(r"tpu-(v4|v5litepod|v5e|v5p|v6e)-(\d{1,5})")
_COUNTED_IN_CORES: Final = frozenset({"v4", "v5p"})
_NO_PRICE: Final = frozenset({"", "nan", "none", "0", "0.0"})
_TPU_PLACEHOLDER: Final = "700.0"
"""Placeholder of the list for an unknown price of a TPU."""
_DIGITS: Final = Decimal("0.000001")


def load_skypilot_catalog(
    path: Path | str, provider: str, as_of: dt.date, catalog: Catalog, licence: str = "not stated by the source"
) -> PriceList:
    """Return the on-demand and spot offers of one of SkyPilot's ``vms.csv``.

    For each pricing the cheapest zone of a region counts.

    Raises `SchemaError` if the file cannot be read, lacks a column, or a cell is wrong; names file, line and field.

    - `provider`: Cloud of the list.
    - `as_of`: Day of publication, which the file does not state.
    - `catalog`: For accelerators that are not in `LIST_NAMES`.
    """
    file = Path(path)

    def offers_of(row: Mapping[str, str]) -> list[Offer]:
        accelerator, n_accelerator = _accelerator(row, provider, catalog)
        return _offers(row, accelerator, n_accelerator, catalog, (provider, as_of, licence, file.name))

    return read_price_list(file, SKYPILOT_COLUMNS, offers_of)


def _accelerator(row: Mapping[str, str], provider: str, catalog: Catalog) -> tuple[str, int]:
    name = row["AcceleratorName"]
    if not name:
        raise NoOfferError("no accelerator")
    tpu = _TPU.fullmatch(name)
    if tpu:
        n_unit = int(tpu[2])
        return LIST_NAMES["tpu"][tpu[1]], max(n_unit // 2, 1) if tpu[1] in _COUNTED_IN_CORES else n_unit
    n_accelerator = _accelerator_count(row["AcceleratorCount"])
    own = {} if provider == "azure" and n_accelerator >= 8 else LIST_NAMES["skypilot_on"].get(provider, {})
    return catalog.accelerator((LIST_NAMES["skypilot"] | own).get(name, name)).id, n_accelerator


def _accelerator_count(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text):
        raise InputError("AcceleratorCount", f"must be a number, got {text[:60]!r}")
    count = Decimal(text)
    if count != int(count) or count < 1:
        raise NoOfferError("part of an accelerator")
    return int(count)


def _offers(
    row: Mapping[str, str],
    accelerator: str,
    n_accelerator: int,
    catalog: Catalog,
    about: tuple[str, dt.date, str, str],
) -> list[Offer]:
    provider, as_of, licence, source = about
    prices: dict[Pricing, str] = {"on_demand": row["Price"], "spot": row.get("SpotPrice", "")}
    cells: dict[str, Any] = {
        "provider": provider, "region": row["Region"], "instance_type": row["InstanceType"] or row["AcceleratorName"],
        "accelerator": accelerator, "n_accelerator": n_accelerator, "vcpu": row.get("vCPUs", ""),
        "host_memory_gib": row.get("MemoryGiB", ""), "as_of": as_of, "source": f"SkyPilot {source}",
        "licence": licence,
    }  # fmt: skip
    if row["InstanceType"].endswith(_SECURE):
        cells["market"] = "provider"
    no_price = _NO_PRICE | ({_TPU_PLACEHOLDER} if _TPU.fullmatch(row["AcceleratorName"]) else set())
    known = {pricing: text for pricing, text in prices.items() if text.lower() not in no_price}
    if not known:
        raise NoOfferError("no price")
    offers = [
        offer_from_row({**cells, "pricing": pricing, "price_per_h": text}, catalog, {}, source)
        for pricing, text in known.items()
    ]
    return [o.model_copy(update={"price_usd_per_h": o.price_usd_per_h.quantize(_DIGITS)}) for o in offers]


def fetch_skypilot_list(cloud: str, fetch: Fetch, catalog: Catalog) -> PriceList | None:
    """Return the offers of a cloud's published list, dated by its last commit; None if there is no list.

    Raises `SchemaError` if the file breaks the format; names line and field. Raises `InputError` if the file is too
    large.
    """
    with published_file(REPOSITORY, f"{FOLDER}/{cloud}/vms.csv", cloud, fetch) as found:
        return found and load_skypilot_catalog(found[0], cloud, found[1], catalog, LICENCE)
