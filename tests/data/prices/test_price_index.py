"""Observations of gpu-price-index become nodes that are sold; a sample of 2026-10-10 stands for the list."""

from pathlib import Path

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import SchemaError
from roofcast.data.prices.price_index import INDEX_COLUMNS, load_price_index
from roofcast.data.prices.price_list import has_columns

SAMPLE = Path(__file__).parent / "samples" / "observations-latest.csv"


def test_a_price_of_one_accelerator_is_that_of_the_nodes_that_the_provider_sells() -> None:
    read = load_price_index(SAMPLE, load_catalog())

    offers = {(o.provider, o.accelerator, o.region, o.n_accelerator): float(o.price_usd_per_h) for o in read.offers}
    assert offers == {
        ("aws", "nvidia-h100-sxm-80gb", "us-east-1", 8): 55.04,
        ("crusoe", "nvidia-h100-sxm-80gb", "unknown", 8): 31.2,
        ("lambda", "nvidia-a100-pcie-40gb", "unknown", 2): 3.98,
        ("nebius", "nvidia-h200-sxm-141gb", "unknown", 1): 5.4,
        ("nebius", "nvidia-h200-sxm-141gb", "unknown", 8): 43.2,
        ("oci", "nvidia-h100-sxm-80gb", "unknown", 8): 80,
    }
    assert {str(offer.as_of) for offer in read.offers} == {"2026-10-10"}
    assert read.unknown_accelerators == {"X9000": 1}
    assert read.skipped == {
        "median of asks": 1, "no price": 1, "part of an accelerator": 1,
        "not sold in this size or at this kind of price": 2,
    }  # fmt: skip


def test_one_provider_is_read_alone() -> None:
    assert {offer.provider for offer in load_price_index(SAMPLE, load_catalog(), "nebius").offers} == {"nebius"}


def test_a_list_that_lost_a_column_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_text(SAMPLE.read_text(encoding="utf-8").replace("usd_per_hour", "usd", 1), encoding="utf-8")

    assert has_columns(SAMPLE, INDEX_COLUMNS)
    assert not has_columns(file, INDEX_COLUMNS)
    assert not has_columns(tmp_path / "none.csv", INDEX_COLUMNS)
    with pytest.raises(SchemaError, match=r"list\.csv, line 1: usd_per_hour: is missing"):
        load_price_index(file, load_catalog())
