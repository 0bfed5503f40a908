from __future__ import annotations

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.catalog.accelerator_lint import check_sheet_units
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec
from tests.every_row import for_every

KNOWN = load_catalog().accelerators
PART = KNOWN["nvidia-l4-24gb"]


@for_every(KNOWN.values())
def test_every_known_accelerator_is_in_range_of_the_others(spec: AcceleratorSpec) -> None:
    check_sheet_units(spec, [other for other in KNOWN.values() if other.id != spec.id])


@pytest.mark.parametrize(
    ("field", "factor", "said"),
    [
        ("memory_byte", 1e-3, "memory_gib: is 0.024, but 8 to 768"),
        ("memory_byte", 2**10, "memory_gib"),
        ("bandwidth_byte_per_s", 1e-3, "bandwidth_gb_per_s: is 0.3"),
        ("bandwidth_byte_per_s", 1e3, "bandwidth_gb_per_s"),
        ("link_bandwidth_byte_per_s", 1e-3, "link_bandwidth_gb_per_s"),
        ("l2_byte", 2**10, "l2_mib"),
        ("tdp_w", 1e-3, "tdp_w"),
    ],
)
def test_a_slip_of_the_unit_is_refused(field: str, factor: float, said: str) -> None:
    slipped = PART.model_copy(update={field: getattr(PART, field) * factor})
    with pytest.raises(InputError, match=said):
        check_sheet_units(slipped, KNOWN.values())


@pytest.mark.parametrize(("factor", "said"), [(1e-3, "peak_"), (1e3, "peak_")])
def test_every_peak_is_looked_at(factor: float, said: str) -> None:
    peaks = {name: peak * factor if name == "fp8" else peak for name, peak in PART.peak_flop_per_s.items()}
    with pytest.raises(InputError, match=said):
        check_sheet_units(PART.model_copy(update={"peak_flop_per_s": peaks}), KNOWN.values())
