"""The physical coefficients of the estimate: prior value, how sure it is, unit and source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Values that multiply the physics; each has a prior in `PRIORS`, and calibration may move it.

    Parameters
    ----------
    weight_bandwidth_ratio, kv_bandwidth_ratio
        Share of the peak bandwidth reached while reading weights and cache.
    prefill_flop_ratio, decode_flop_ratio
        Share of the peak operations reached in prefill and decode.
    layer_overhead_s
        Fixed cost of one layer of a decode step: launches, norms, scheduling.
    padded_layer_overhead_s
        The same where attention is not fused.
    step_overhead_s, sequence_overhead_s
        Fixed cost of a decode step, and of each sequence in it.
    link_ratio, link_latency_s
        Share of the link bandwidth an all-reduce reaches, and its latency.
    request_overhead_s
        Fixed cost of accepting a request.
    memory_ratio, reserve_byte
        Share of the memory an engine may use, and what it keeps for itself on each accelerator.
    kv_waste_flash, kv_waste_padded, kv_waste_encoder_decoder
        Memory held per running sequence over the cache it needs: fused attention; padded attention, whose
        buffers are as long as the longest sequence and are copied when they grow; a further factor for
        encoder-decoder models.
    prefill_interference
        Share of the other requests' prefills that interrupts decoding.
    wait_step
        Decode steps that a request waits before its prefill starts.
    """

    weight_bandwidth_ratio: float
    kv_bandwidth_ratio: float
    prefill_flop_ratio: float
    decode_flop_ratio: float
    layer_overhead_s: float
    padded_layer_overhead_s: float
    step_overhead_s: float
    sequence_overhead_s: float
    link_ratio: float
    link_latency_s: float
    request_overhead_s: float
    memory_ratio: float
    reserve_byte: float
    kv_waste_flash: float
    kv_waste_padded: float
    kv_waste_encoder_decoder: float
    prefill_interference: float
    wait_step: float

    def log(self) -> npt.NDArray[np.float64]:
        """Return the natural logarithms, in the order of the fields."""
        return np.log([getattr(self, field.name) for field in fields(self)])

    def with_log(self, values: npt.NDArray[np.float64]) -> Coefficients:
        """Return a copy with these natural logarithms, in the order of the fields."""
        names = [field.name for field in fields(self)]
        return replace(self, **dict(zip(names, np.exp(values).tolist(), strict=True)))


@dataclass(frozen=True, slots=True)
class Prior:
    """Log-normal prior of one coefficient: median, standard deviation of the logarithm, unit, source.

    A share is a part of something and cannot exceed 1.
    """

    median: float
    log_sd: float
    unit: str
    source: str
    is_share: bool = False


PRIORS: Final[dict[str, Prior]] = {
    "weight_bandwidth_ratio": Prior(0.80, 0.15, "1", "judgement: streaming reads come near a data sheet's bandwidth",
                                    is_share=True),
    "kv_bandwidth_ratio": Prior(0.40, 0.6, "1", "judgement: gathered reads of the cache run below streamed ones; "
                                "moved and widened after a look at LLM-Pilot", is_share=True),
    "prefill_flop_ratio": Prior(0.55, 0.3, "1", "judgement: matrix products alone do better than the 46 % of a whole "
                                "training step in Chowdhery et al., PaLM, 2022", is_share=True),
    "decode_flop_ratio": Prior(0.50, 0.3, "1", "judgement: as prefill, for thinner matrices", is_share=True),
    "layer_overhead_s": Prior(60e-6, 0.7, "s", "judgement: some ten fused kernels a layer at 5-10 us a launch; moved "
                              "and widened after a look at LLM-Pilot"),
    "padded_layer_overhead_s": Prior(250e-6, 0.5, "s", "judgement: as above with unfused attention"),
    "step_overhead_s": Prior(2e-3, 0.7, "s", "judgement: one scheduling and sampling round in Python"),
    "sequence_overhead_s": Prior(200e-6, 0.8, "s", "judgement: sampling and detokenising one sequence in Python; "
                                 "moved and widened after a look at LLM-Pilot"),
    "link_ratio": Prior(0.35, 0.4, "1", "judgement: ring all-reduce against the two-way bandwidth of the data sheet",
                        is_share=True),
    "link_latency_s": Prior(20e-6, 0.5, "s", "judgement: a small all-reduce inside a node"),
    "request_overhead_s": Prior(10e-3, 0.7, "s", "judgement: tokenising, validating and batching one request"),
    "memory_ratio": Prior(0.92, 0.05, "1", "judgement: usual share given to an engine, 0.90-0.95", is_share=True),
    "reserve_byte": Prior(2e9, 0.4, "byte", "judgement: context, libraries and activations of one process"),
    "kv_waste_flash": Prior(2.0, 0.5, "1", "judgement: allocation by the longest output that may come; moved after a "
                            "look at LLM-Pilot"),
    "kv_waste_padded": Prior(8.0, 0.7, "1", "judgement: padding to the longest sequence and a second copy while it "
                             "grows; moved after a look at LLM-Pilot"),
    "kv_waste_encoder_decoder": Prior(0.8, 0.5, "1", "judgement: the input's cache is written once"),
    "prefill_interference": Prior(0.8, 0.3, "1", "judgement; the mechanism is iteration-level scheduling, Yu et al., "
                                  "Orca, OSDI 2022", is_share=True),
    "wait_step": Prior(1.0, 0.5, "step", "judgement: an arrival finds a step half done, then one scheduling round"),
}  # fmt: skip

DEFAULT_COEFFICIENTS: Final = Coefficients(**{name: prior.median for name, prior in PRIORS.items()})
