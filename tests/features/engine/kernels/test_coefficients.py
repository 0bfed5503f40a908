from dataclasses import fields

import numpy as np
import pytest

from research.kernels.tables import SYSTEMS
from roofcast.data.catalog import load_catalog
from roofcast.features.engine.kernels.kernel_coefficients import (
    FALLBACK_PRECISION,
    KINDS,
    KernelEfficiency,
    efficiency_of,
    family_of,
    shipped_coefficients,
)


def test_every_kind_ships_and_every_question_gets_it() -> None:
    assert set(shipped_coefficients()) == set(KINDS) == {field.name for field in fields(KernelEfficiency)}


def test_every_accelerator_of_the_tables_has_offsets_of_its_products() -> None:
    for kind in ("gemm", "prefill_attention", "decode_attention", "moe"):
        assert set(shipped_coefficients()[kind].offset["accelerator"]) == set(SYSTEMS.values())


def test_every_accelerator_of_the_catalogue_gets_sane_values() -> None:
    accelerators = list(load_catalog().accelerators.values())
    n = len(accelerators)
    found = efficiency_of(
        [a.id for a in accelerators], [a.architecture for a in accelerators], ["fp8"] * n, ["bf16"] * n, ["vllm"] * n
    )
    for kind, cls in KINDS.items():
        values = {field.name: getattr(getattr(found, kind), field.name) for field in fields(cls)}
        assert all(v.shape == (n,) and np.isfinite(v).all() and (v > 0).all() for v in values.values())
        assert (values["launch_s"] < 1e-3).all()
        assert ((values["bandwidth_ratio"] > 0.01) & (values["bandwidth_ratio"] < 1.5)).all()


def test_rows_are_independent_of_each_other() -> None:
    columns = (
        ["nvidia-gb200", "amd-mi300x-192gb"],
        ["Blackwell", "CDNA3"],
        ["fp4", "bf16"],
        ["bf16"] * 2,
        ["vllm"] * 2,
    )
    both = efficiency_of(*columns)
    for i in range(2):
        one = efficiency_of(*([column[i]] for column in columns))
        for kind, cls in KINDS.items():
            for field in fields(cls):
                pair = getattr(getattr(both, kind), field.name)
                assert getattr(getattr(one, kind), field.name)[0] == pair[i]


def test_unmeasured_things_get_the_typical_values() -> None:
    found = efficiency_of(["mine"], ["new"], ["none"], ["none"], ["other"])
    typical = np.exp(shipped_coefficients()["gemm"].typical)
    assert [float(getattr(found.gemm, f.name)[0]) for f in fields(found.gemm)] == pytest.approx(list(typical))


def test_an_unmeasured_precision_is_served_by_its_stand_in() -> None:
    columns = ["nvidia-h100-sxm-80gb"], ["Hopper"]
    half, bfloat = (efficiency_of(*columns, [p], ["bf16"], ["vllm"]) for p in ("fp16", "bf16"))
    assert half.gemm.flop_ratio == bfloat.gemm.flop_ratio


def test_stand_ins_end() -> None:
    for precision in FALLBACK_PRECISION:
        seen = [precision]
        while seen[-1] in FALLBACK_PRECISION:
            seen.append(FALLBACK_PRECISION[seen[-1]])
            assert len(seen) == len(set(seen))
        assert seen[-1] == "bf16"


def test_families_part_data_centre_from_workstation() -> None:
    assert family_of("nvidia-b200-sxm-180gb", "Blackwell") == "Blackwell"
    assert family_of("nvidia-gb10-dgx-spark", "Blackwell") == "Blackwell workstation"
    assert family_of("nvidia-l40s-48gb", "Ada Lovelace") == "Ada Lovelace"
