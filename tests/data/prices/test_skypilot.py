"""SkyPilot's price lists become offers; skipped rows are counted by name and reason."""

import contextlib
import csv
import datetime as dt
import io
import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.prices.price_list import PriceList
from roofcast.data.prices.skypilot import load_skypilot_catalog
from tests.effort import n_example

CATALOG = load_catalog()
AS_OF = dt.date(2026, 11, 1)
HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
)
P4D = "p4d.24xlarge,A100,8.0,96.0,1152.0,\"{'Gpus': [1]}\",21.957642,10.5,us-east-1,us-east-1a"


def load(tmp_path: Path, *rows: str, provider: str = "aws", header: str = HEADER) -> PriceList:
    (tmp_path / "vms.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return load_skypilot_catalog(tmp_path / "vms.csv", provider, AS_OF, CATALOG)


def test_a_row_becomes_an_on_demand_and_a_spot_offer(tmp_path: Path) -> None:
    on_demand, spot = load(tmp_path, P4D).offers

    assert on_demand.id == "aws/us-east-1/p4d.24xlarge/on_demand"
    assert (on_demand.accelerator, on_demand.n_accelerator, on_demand.vcpu) == ("nvidia-a100-sxm-40gb", 8, 96)
    assert on_demand.price_usd_per_h == Decimal("21.957642")
    assert (spot.pricing, spot.price_usd_per_h, spot.as_of) == ("spot", Decimal("10.5"), AS_OF)
    assert spot.memory_byte == 1152 * 2**30
    assert (spot.source, spot.licence) == ("SkyPilot vms.csv", "not stated by the source")


def test_the_cheapest_zone_of_a_region_applies(tmp_path: Path) -> None:
    zones = [P4D, P4D.replace("10.5", "9.25").replace("1a", "1b"), P4D.replace("10.5", "")]

    prices = [offer.price_usd_per_h for offer in load(tmp_path, *zones).offers]

    assert prices == [Decimal("21.957642"), Decimal("9.25")]


def test_an_unknown_accelerator_is_counted_by_name(tmp_path: Path) -> None:
    read = load(tmp_path, P4D, P4D.replace("A100", "X9000"), P4D.replace("A100", "X9000"))

    assert read.unknown_accelerators == {"X9000": 2}
    assert len(read.offers) == 2


def test_rows_without_an_offer_are_counted_by_reason(tmp_path: Path) -> None:
    read = load(
        tmp_path,
        "m5.large,,,2.0,8.0,,0.096,0.03,us-east-1,us-east-1a",
        P4D.replace("8.0,96", "0.5,96"),
        P4D.replace("21.957642,10.5", ","),
        "TPU-VM,tpu-v6e-8,1.0,,,,700.0,,us-east5,us-east5-b",
    )

    assert read.skipped == {"no accelerator": 1, "part of an accelerator": 1, "no price": 2}
    assert not read.offers


@pytest.mark.parametrize(
    ("name", "accelerator", "n_accelerator"),
    [
        ("tpu-v5litepod-8", "google-tpu-v5e", 8),
        ("tpu-v6e-16", "google-tpu-v6e", 16),
        ("tpu-v4-32", "google-tpu-v4", 16),
        ("tpu-v5p-8", "google-tpu-v5p", 4),
    ],
)
def test_tpu_slices_are_counted_in_chips(name: str, accelerator: str, n_accelerator: int, tmp_path: Path) -> None:
    (offer,) = load(tmp_path, f"TPU-VM,{name},1.0,,,,9.6,,us-central1,us-central1-a", provider="gcp").offers

    assert (offer.accelerator, offer.n_accelerator, offer.vcpu) == (accelerator, n_accelerator, None)


@pytest.mark.parametrize(
    ("provider", "count", "accelerator"),
    [
        ("azure", "1.0", "nvidia-a100-pcie-80gb"),
        ("azure", "8.0", "nvidia-a100-sxm-80gb"),
        ("aws", "1.0", "nvidia-a100-sxm-80gb"),
    ],
)
def test_small_azure_instances_have_pcie_cards(provider: str, count: str, accelerator: str, tmp_path: Path) -> None:
    row = P4D.replace("A100,8.0", f"A100-80GB,{count}")

    assert {offer.accelerator for offer in load(tmp_path, row, provider=provider).offers} == {accelerator}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (P4D.replace("21.957642", "cheap"), r"vms\.csv, line 2: price_per_h"),
        (P4D.replace("8.0,96", "eight,96"), r"vms\.csv, line 2: AcceleratorCount"),
        (P4D.replace("8.0,96", "-8,96"), r"vms\.csv, line 2: AcceleratorCount"),
        (P4D.replace("us-east-1,", "=1+1,"), r"vms\.csv, line 2: region: must not begin like a formula"),
        (P4D.replace("1152.0", "NaN"), r"vms\.csv, line 2: host_memory_gib"),
        ("p4d", r"vms\.csv, line 2: must have"),
    ],
)
def test_an_invalid_cell_is_refused(row: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=problem):
        load(tmp_path, row)


def test_another_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"line 1: InstanceType: is missing from the columns"):
        load(tmp_path, "1", header="Tag")


@settings(max_examples=n_example(100), deadline=None)
@given(
    st.lists(st.lists(st.text(max_size=8) | st.sampled_from(P4D.split(",")), min_size=10, max_size=10), max_size=4)
)
def test_any_table_is_read_or_refused(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([HEADER.split(","), *rows])
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(SchemaError):
        path = Path(folder) / "vms.csv"
        path.write_bytes(text.getvalue().encode("utf-8", "replace"))
        read = load_skypilot_catalog(path, "aws", AS_OF, CATALOG)
        assert all(offer.price_usd_per_h > 0 for offer in read.offers)


def test_instances_in_a_data_centre_of_the_provider_are_not_of_the_marketplace(tmp_path: Path) -> None:
    secure = "1x_A100-80GB_SECURE,A100-80GB,1.0,8.0,117.0,,1.39,,IN,AP-IN-1"

    secured, shared = load(tmp_path, secure, secure.replace("SECURE", "COMMUNITY"), provider="runpod").offers[::-1]

    assert (secured.market, shared.market) == ("provider", "marketplace")
    assert secured.accelerator == "nvidia-a100-pcie-80gb"
