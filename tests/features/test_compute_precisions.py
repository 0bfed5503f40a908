"""Every part of the catalogue has a peak for every precision of weights."""

from __future__ import annotations

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.specs import PRECISIONS, AcceleratorSpec
from roofcast.features.descriptors import COMPUTE_PRECISIONS, peak_flop_per_s


@pytest.mark.parametrize("spec", load_catalog().accelerators.values(), ids=lambda spec: spec.id)
def test_each_part_computes_with_weights_of_each_precision(spec: AcceleratorSpec) -> None:
    assert all(peak_flop_per_s(spec, precision) > 0 for precision in PRECISIONS)


def test_the_table_knows_each_precision_and_ends_where_every_part_has_a_peak() -> None:
    assert set(COMPUTE_PRECISIONS) == set(PRECISIONS)
    assert all({"fp32", "fp16", "bf16"} <= set(names) for names in COMPUTE_PRECISIONS.values())
