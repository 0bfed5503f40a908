"""Kernels and coefficients without losses, so that times can be worked out by hand."""

from typing import Final

import numpy as np

from roofcast.features.engine.coefficients import PRIORS, Coefficients
from roofcast.features.engine.kernels.efficiency import (
    DecodeAttentionEfficiency,
    GemmEfficiency,
    LinkEfficiency,
    MoeEfficiency,
    PrefillAttentionEfficiency,
)
from roofcast.features.engine.kernels.row_kernels import RowKernels
from roofcast.features.engine.pass_communication import EngineInputs
from tests.builders import FloatArray, an_example

IDEAL: Final = RowKernels(
    dense=GemmEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    head=GemmEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    expert=MoeEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    prefill_attention=PrefillAttentionEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    decode_attention=DecodeAttentionEfficiency(0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    all_reduce=LinkEfficiency(0.0, 0.0, 1.0, 0.0),
    all_gather=LinkEfficiency(0.0, 0.0, 1.0, 0.0),
    reduce_scatter=LinkEfficiency(0.0, 0.0, 1.0, 0.0),
    all_to_all=LinkEfficiency(0.0, 0.0, 1.0, 0.0),
)
"""Kernels that start in no time and reach every peak."""

INSTANT: Final = 1e30
"""A rate so high that what it bounds takes no time."""


def free_coefficients(**changes: float) -> dict[str, FloatArray]:
    """Return coefficients of an engine without costs of its own: times and waits 0, ratios 1, but for `changes`."""
    free = {name: float(prior.unit == "1") for name, prior in PRIORS.items()} | {"elementwise_ratio": 0.0}
    assert set(changes) <= set(free)
    return {name: np.array([value]) for name, value in (free | changes).items()}


def a_setting(d: dict[str, FloatArray] | None = None, **coefficients: float) -> EngineInputs:
    """Return the example, or another question, on ideal kernels."""
    return EngineInputs(d or an_example(), free_coefficients(**coefficients), IDEAL)


def logs(**changes: float) -> Coefficients:
    """Return `free_coefficients` as an estimate takes them."""
    with np.errstate(divide="ignore"):
        return Coefficients(np.log([float(v[0]) for v in free_coefficients(**changes).values()]))
