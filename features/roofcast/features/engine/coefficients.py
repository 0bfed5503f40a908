"""The physical coefficients of the estimate: prior value, how sure it is, unit and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.features.columns import ENGINES

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prior:
    """Log-normal prior of one coefficient.

    Parameters
    ----------
    median, log_sd
        Of the typical engine.
    engine_log_sd
        How far one engine's value lies from the typical one; 0 if hardware alone decides.
    unit, meaning, source
        What it is and where the numbers come from.
    is_share
        A share is a part of something and cannot exceed 1.
    lowest
        What physics allows: below it kernels would exceed the data sheet's peaks.
    """

    median: float
    log_sd: float
    engine_log_sd: float
    unit: str
    meaning: str
    source: str
    is_share: bool = False
    lowest: float = 0.0


_TABLES: Final = "kernel tables of aiconfigurator-core 0.12.0; see docs/KERNELS.md"
_JUDGED: Final = "judgement"

PRIORS: Final[dict[str, Prior]] = {
    "dense_ratio": Prior(1.0, 0.08, 0.08, "1", "time of dense products over that of the kernel tables", _JUDGED,
                         lowest=0.9),
    "expert_ratio": Prior(1.0, 0.15, 0.15, "1", "the same for routed experts", _JUDGED),
    "decode_attention_ratio": Prior(1.0, 0.15, 0.40, "1", "the same for attention in a decode step", _JUDGED),
    "prefill_attention_ratio": Prior(1.0, 0.15, 0.15, "1", "the same for attention in a prefill", _JUDGED),
    "padded_attention_ratio": Prior(
        4.0, 0.7, 0.0, "1", "the same where attention is padded to the longest sequence and not fused", _JUDGED
    ),
    "elementwise_ratio": Prior(25.0, 0.4, 0.2, "1", "activations moved per layer and token outside products, in "
                               "widths of the residual stream", _JUDGED),
    "layer_overhead_s": Prior(25e-6, 0.5, 0.35, "s", "launches and gaps of one layer", _JUDGED),
    "moe_overhead_s": Prior(10e-6, 0.6, 0.35, "s", "routing and permuting in one MoE layer", _JUDGED),
    "linear_overhead_s": Prior(15e-6, 0.6, 0.35, "s", "the further kernels of one layer of linear attention",
                               _JUDGED),
    "sparse_overhead_s": Prior(40e-6, 0.4, 0.2, "s", "the indexer of one layer of sparse attention", _JUDGED),
    "mla_overhead_s": Prior(10e-6, 0.6, 0.35, "s", "the further products of one MLA layer", _JUDGED),
    "padded_layer_overhead_s": Prior(250e-6, 0.5, 0.3, "s", "one layer where attention is not fused", _JUDGED),
    "step_overhead_s": Prior(400e-6, 0.8, 0.8, "s", "scheduling, sampling and returning tokens in one step",
                             _JUDGED),
    "sequence_overhead_s": Prior(20e-6, 0.7, 0.7, "s", "the same for each sequence in it", _JUDGED),
    "link_ratio": Prior(1.0, 0.2, 0.1, "1", "link bandwidth in serving over that of the kernel tables", _TABLES),
    "link_latency_ratio": Prior(1.0, 0.2, 0.5, "1", "the same of latencies inside a domain", _TABLES),
    "exchange_ratio": Prior(1.0, 0.2, 0.7, "1", "time of exchanging tokens between ranks and experts over that of "
                            "the collectives in the kernel tables", _TABLES),
    "request_overhead_s": Prior(20e-3, 1.0, 1.0, "s", "receiving, tokenising and answering one request", _JUDGED),
    "reserve_ratio": Prior(1.0, 0.2, 0.1, "1", "memory that an engine keeps over what its defaults say", _JUDGED),
    "kv_waste": Prior(1.03, 0.05, 0.1, "1", "memory held per running sequence over the cache it needs", _JUDGED),
    "kv_waste_padded": Prior(4.0, 0.7, 0.0, "1", "further factor of padded attention", _JUDGED),
    "kv_waste_encoder_decoder": Prior(0.8, 0.5, 0.0, "1", "further factor of encoder-decoder models", _JUDGED),
    "prefill_interference": Prior(0.8, 0.3, 0.3, "1", "share of the other requests' prefills that interrupts "
                                  "decoding", _JUDGED),
    "lockstep": Prior(0.25, 0.3, 0.2, "1", "share of requests of one fixed length that stay in step with all others",
                      _JUDGED, is_share=True),
    "burst": Prior(0.08, 0.5, 0.4, "1", "share of requests that arrive in one wave with all others", _JUDGED),
    "collision": Prior(1.0, 0.4, 0.3, "1", "waiting for the prefills of others over that of random arrivals",
                       _JUDGED),
    "wait_step": Prior(4.0, 0.5, 0.4, "step", "decode steps between arrival and first token", _JUDGED),
    "poll_ratio": Prior(0.5, 0.2, 0.0, "1", "share of the polling interval that a request waits", _JUDGED,
                        is_share=True),
    "acceptance": Prior(0.7, 0.15, 0.0, "1", "chance that a speculated token is accepted", _JUDGED, is_share=True),
    "draft_ratio": Prior(0.10, 0.5, 0.3, "1", "cost of one draft over that of a step", _JUDGED),
}  # fmt: skip

NAMES: Final = tuple(PRIORS)
_PLACE: Final = {name: i for i, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Natural logarithms of the coefficients: the typical engine's, and each engine's distance from it.

    Parameters
    ----------
    typical : shape (n_coefficient,)
        In the order of `PRIORS`.
    offset : shape (n_engine, n_coefficient)
        Added for each of `roofcast.features.columns.ENGINES`.
    """

    typical: FloatArray
    offset: FloatArray = field(default_factory=lambda: np.zeros((len(ENGINES), len(NAMES))))

    def value(self, name: str, engine: str = ENGINES[-1]) -> float:
        """Return one coefficient of one engine, in its unit.

        Examples
        --------
        >>> DEFAULT_COEFFICIENTS.value("wait_step", "vllm")
        4.0
        """
        place = _PLACE[name]
        log = self.typical[place] + self.offset[ENGINES.index(engine), place]
        value = float(np.exp(log).round(12))
        return max(min(value, 1.0) if PRIORS[name].is_share else value, PRIORS[name].lowest)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same values."""
        if not isinstance(other, Coefficients):
            return NotImplemented
        return np.array_equal(self.typical, other.typical) and np.array_equal(self.offset, other.offset)

    __hash__ = None  # type: ignore[assignment]

    def with_values(self, **values: float) -> Coefficients:
        """Return a copy with other typical values, in their units.

        Examples
        --------
        >>> DEFAULT_COEFFICIENTS.with_values(wait_step=9.0).value("wait_step")
        9.0
        """
        typical = self.typical.copy()
        for name, value in values.items():
            typical[_PLACE[name]] = np.log(value)
        return Coefficients(typical, self.offset)

    def shift(self, place: int, by: float) -> Coefficients:
        """Return a copy with the typical logarithm of one coefficient moved."""
        typical = self.typical.copy()
        typical[place] += by
        return Coefficients(typical, self.offset)

    def by_row(self, engine: FloatArray) -> RowCoefficients:
        """Return every coefficient by question, given the places of their engines: shape (n_question,) each."""
        logs = self.typical + self.offset
        highest = np.where([prior.is_share for prior in PRIORS.values()], 1.0, np.inf)
        lowest = np.array([prior.lowest for prior in PRIORS.values()])
        table = np.clip(np.exp(logs), lowest, highest).T
        return RowCoefficients(dict(zip(NAMES, table.take(engine.astype(np.intp), axis=1), strict=True)))


@dataclass(frozen=True, slots=True)
class RowCoefficients:
    """Coefficients by question; ``c["wait_step"]`` has shape (n_question,)."""

    values: Mapping[str, FloatArray]

    def __getitem__(self, name: str) -> FloatArray:
        return self.values[name]


DEFAULT_COEFFICIENTS: Final = Coefficients(np.log([prior.median for prior in PRIORS.values()]))
