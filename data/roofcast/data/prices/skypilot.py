"""SkyPilot's price lists, one CSV file a cloud."""

from __future__ import annotations

import datetime as dt
import re
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
    download,
    find_published,
    read_price_list,
)
from roofcast.data.specs import Offer, Pricing

REPOSITORY: Final = "skypilot-org/skypilot-catalog"
FOLDER: Final = "catalogs/v8"
LICENCE: Final = "Apache-2.0"

CLOUDS: Final = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod")
"""Clouds whose lists are fetched unless one is named."""

SKYPILOT_COLUMNS: Final = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")

SKYPILOT_NAMES: Final[Mapping[str, str]] = {
    "A100": "nvidia-a100-sxm-40gb", "A100-80GB": "nvidia-a100-sxm-80gb", "A100-80GB-SXM": "nvidia-a100-sxm-80gb",
    "H100": "nvidia-h100-sxm-80gb", "H100-SXM": "nvidia-h100-sxm-80gb", "H100-80GB": "nvidia-h100-sxm-80gb",
    "H100-MEGA-80GB": "nvidia-h100-sxm-80gb", "H100-NVL": "nvidia-h100-nvl-94gb", "H200": "nvidia-h200-sxm-141gb",
    "H200-SXM": "nvidia-h200-sxm-141gb", "B200": "nvidia-b200-sxm-180gb", "B300": "nvidia-b300-sxm-270gb",
    "GB200": "nvidia-gb200", "GB300": "nvidia-gb300", "GH200": "nvidia-gh200-96gb", "V100": "nvidia-v100-sxm2-16gb",
    "V100-32GB": "nvidia-v100-sxm2-32gb", "P100": "nvidia-p100-sxm2-16gb", "T4": "nvidia-t4-16gb",
    "L4": "nvidia-l4-24gb", "L40": "nvidia-l40-48gb", "L40S": "nvidia-l40s-48gb", "A10": "nvidia-a10-24gb",
    "A10G": "nvidia-a10g-24gb", "A30": "nvidia-a30-24gb", "A40": "nvidia-a40-48gb",
    "RTXA6000": "nvidia-rtx-a6000-48gb", "A6000": "nvidia-rtx-a6000-48gb",
    "RTX6000-Ada": "nvidia-rtx-6000-ada-48gb", "RTX3090": "nvidia-rtx-3090-24gb", "RTX4090": "nvidia-rtx-4090-24gb",
    "RTX5090": "nvidia-rtx-5090-32gb", "RTXPRO6000": "nvidia-rtx-pro-6000-blackwell-server",
    "MI250": "amd-mi250-128gb", "MI300X": "amd-mi300x-192gb", "MI325X": "amd-mi325x-256gb",
    "MI355X": "amd-mi355x-288gb", "Gaudi2": "intel-gaudi2-96gb", "Inferentia": "aws-inferentia1",
    "Inferentia2": "aws-inferentia2", "Trainium": "aws-trainium1", "Trainium2": "aws-trainium2",
}  # fmt: skip
"""Catalogue ids by SkyPilot's names; the form factor is the one that clouds rent under the name."""

_AZURE_NAMES: Final = {"A100-80GB": "nvidia-a100-pcie-80gb", "H100": "nvidia-h100-nvl-94gb"}
"""Ids on Azure, where instances with fewer than eight accelerators have PCIe cards."""

_RUNPOD_NAMES: Final = {"A100-80GB": "nvidia-a100-pcie-80gb", "H100": "nvidia-h100-pcie-80gb"}
"""Ids on RunPod, whose SXM cards have names of their own."""

_SECURE: Final = "_SECURE"
"""End of the instance types of RunPod's own data centres."""

_TPU: Final = re.compile(r"tpu-(v4|v5litepod|v5e|v5p|v6e)-(\d{1,5})")
_TPU_IDS: Final = {
    "v4": "google-tpu-v4", "v5litepod": "google-tpu-v5e", "v5e": "google-tpu-v5e", "v5p": "google-tpu-v5p",
    "v6e": "google-tpu-v6e",
}  # fmt: skip
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

    Parameters
    ----------
    provider
        Cloud of the list.
    as_of
        Day of publication, which the file does not state.
    catalog
        For accelerators that are not in `SKYPILOT_NAMES`.

    Raises
    ------
    SchemaError
        If the file cannot be read, lacks a column, or a cell is wrong; names file, line and field.
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
        return _TPU_IDS[tpu[1]], max(n_unit // 2, 1) if tpu[1] in _COUNTED_IN_CORES else n_unit
    n_accelerator = _accelerator_count(row["AcceleratorCount"])
    if provider == "azure" and n_accelerator < 8 and name in _AZURE_NAMES:
        return _AZURE_NAMES[name], n_accelerator
    names = {**SKYPILOT_NAMES, **(_RUNPOD_NAMES if provider == "runpod" else {})}
    return catalog.accelerator(names.get(name, name)).id, n_accelerator


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

    Raises
    ------
    SchemaError
        If the file breaks the format; names line and field.
    InputError
        If the file is too large.
    """
    published = find_published(REPOSITORY, f"{FOLDER}/{cloud}/vms.csv", fetch)
    if published is None:
        return None
    with download(published, cloud, fetch) as file:
        return load_skypilot_catalog(file, cloud, published.as_of, catalog, LICENCE)
