"""Physical coefficients of the estimate: prior, unit and source of each, and fitted values by engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import ENGINES
from roofcast.features.queries import FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class Prior:
    """Log-normal prior of one coefficient.

    - `median`, `log_sd`: Of the typical engine, in `unit` and as standard deviation of the logarithm.
    - `engine_log_sd`: Standard deviation of the logarithm of an engine's value around the typical one; 0 if the value
      depends on hardware alone.
    - `is_share`: Whether the coefficient is a share, which cannot exceed 1.
    - `lowest`: Lower bound: below it kernels would exceed the data sheet's peaks.
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
_JUDGEMENT: Final = "judgement"
_RUNS: Final = "judgement, with runs of many stacks in view; see docs/decisions/0008-the-loop.md"

_HOST: Final = "vLLM of 2024 on an H100 (argonne) takes 0.4 ms a step and 36 us a sequence longer than its kernels"

PRIORS: Final[dict[str, Prior]] = {
    "dense_ratio": Prior(0.97, 0.03, 0.03, "1", "time of dense products relative to the kernel tables", _JUDGEMENT,
                         lowest=0.9),
    "prefill_ratio": Prior(1.1, 0.1, 0.1, "1", "time of products in a prefill relative to those in a decode step",
                           _RUNS),
    "expert_ratio": Prior(1.0, 0.15, 0.15, "1", "time of routed experts relative to the kernel tables", _JUDGEMENT),
    "decode_attention_ratio": Prior(1.0, 0.15, 0.40, "1", "time of decode attention relative to the kernel "
                                   "tables", _JUDGEMENT),
    "prefill_attention_ratio": Prior(1.0, 0.15, 0.15, "1", "time of prefill attention relative to the kernel "
                                    "tables", _JUDGEMENT),
    "padded_attention_ratio": Prior(
        4.0, 0.7, 0.0, "1", "time of attention that is padded to the longest sequence and not fused, relative "
        "to fused attention", _JUDGEMENT
    ),
    "elementwise_ratio": Prior(25.0, 0.4, 0.2, "1", "activations moved per layer and token by element-wise kernels, "
                               "in widths of the residual stream", _JUDGEMENT),
    "layer_overhead_s": Prior(20e-6, 0.25, 0.2, "s", "launches and gaps of one layer", _JUDGEMENT),
    "moe_overhead_s": Prior(10e-6, 0.6, 0.35, "s", "routing and permutation of one MoE layer", _JUDGEMENT),
    "linear_overhead_s": Prior(15e-6, 0.6, 0.35, "s", "extra kernels of one layer of linear attention",
                               _JUDGEMENT),
    "sparse_overhead_s": Prior(40e-6, 0.4, 0.2, "s", "the indexer of one layer of sparse attention", _JUDGEMENT),
    "mla_overhead_s": Prior(10e-6, 0.6, 0.35, "s", "extra products of one MLA layer", _JUDGEMENT),
    "amd_drift": Prior(0.6, 0.5, 0.0, "1/year", "slowdown of kernels of AMD's accelerators for each year before 2025",
                       _RUNS),
    "padded_layer_overhead_s": Prior(250e-6, 0.5, 0.3, "s", "one layer with unfused attention", _JUDGEMENT),
    "eager_layer_s": Prior(
        500e-6, 0.4, 0.3, "s", "host time to launch the kernels of one layer one by one",
        "vLLM 0.9 and SGLang 0.5 without graphs: 0.52 ms a layer (Qwen3-14B, A100), 0.98 ms (Qwen3-Coder-Next, "
        "RTX PRO 6000), 1.2 ms (Kimi-K2.5, MI350X)"
    ),
    "step_overhead_s": Prior(300e-6, 0.5, 0.4, "s", "scheduling, sampling and detokenisation of one step",
                             _JUDGEMENT),
    "sequence_overhead_s": Prior(6e-6, 0.4, 0.4, "s", "the same per sequence", _JUDGEMENT),
    "host_step_s": Prior(0.5e-3, 0.2, 0.1, "s", "host time of a step that the accelerator of vLLM 0.8 waits for",
                         _HOST),
    "host_sequence_s": Prior(18e-6, 0.2, 0.1, "s", "the same per sequence", _HOST),
    "link_ratio": Prior(1.0, 0.2, 0.1, "1", "link bandwidth relative to the kernel tables", _TABLES),
    "link_latency_ratio": Prior(1.0, 0.15, 0.25, "1", "link latency inside a domain relative to the kernel tables",
                                _TABLES),
    "exchange_ratio": Prior(1.0, 0.2, 0.7, "1", "time of the expert-parallel exchange of tokens relative to the "
                            "collectives of the kernel tables", _TABLES),
    "request_overhead_s": Prior(8e-3, 0.8, 0.7, "s", "receiving, tokenising and answering one request", _RUNS),
    "startup_s": Prior(0.3, 1.0, 0.7, "s", "time that the first request of each client loses to a cold server",
                       _RUNS),
    "batch_overhead_s": Prior(
        2e-3, 1.0, 0.7, "s", "handing a static batch to the engine, in its own process",
        "judgement, with runs of trtllm_overview in view; in process 128 tokens take 8.3 ms in all, see "
        "docs/ORDINARY_CASES.md"
    ),
    "kv_waste_padded": Prior(4.0, 0.7, 0.0, "1", "memory of padded attention over what it needs", _JUDGEMENT,
                             lowest=1.0),
    "prefill_interference": Prior(0.9, 0.15, 0.1, "1", "share of other requests' prefills that interrupts decoding",
                                  _JUDGEMENT),
    "lockstep": Prior(0.25, 0.3, 0.2, "1", "share of requests that stay synchronised with all others, if "
                      "lengths are fixed",
                      _JUDGEMENT, is_share=True),
    "burst": Prior(0.12, 0.5, 0.4, "1", "share of requests in the startup burst of a typical run", _RUNS),
    "collision": Prior(0.7, 0.4, 0.3, "1", "wait for other requests' prefills relative to random arrivals",
                       _RUNS),
    "wait_step": Prior(1.0, 0.3, 0.3, "1", "wait for decode steps under way or scheduled, relative to random "
                       "arrivals", _RUNS),
    "poll_ratio": Prior(0.5, 0.2, 0.0, "1", "share of the polling interval that a request waits", _JUDGEMENT,
                        is_share=True),
    "acceptance": Prior(0.7, 0.15, 0.0, "1", "probability that a speculated token is accepted", _JUDGEMENT,
                        is_share=True),
    "draft_ratio": Prior(0.10, 0.5, 0.3, "1", "cost of drafting one token over that of a step", _JUDGEMENT),
}  # fmt: skip

RowCoefficients = Mapping[str, FloatArray]
"""Coefficients by name, each of shape (n_row,)."""

NAMES: Final = tuple(PRIORS)
_INDEX: Final = {name: i for i, name in enumerate(NAMES)}
_LOWEST: Final = np.array([prior.lowest for prior in PRIORS.values()])
_HIGHEST: Final = np.array([1.0 if prior.is_share else np.inf for prior in PRIORS.values()])


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Natural logarithms of the coefficients: typical values and offsets by engine.

    `typical`: shape (n_coefficient,): in the order of `PRIORS`. `offset`: shape (n_engine, n_coefficient): added to
    `typical`, by `roofcast.features.columns.ENGINES`.
    """

    typical: FloatArray
    offset: FloatArray = field(default_factory=lambda: np.zeros((len(ENGINES), len(NAMES))))

    def value(self, name: str, engine: str = ENGINES[-1]) -> float:
        """Return a coefficient of an engine, in its unit.

        Examples
        --------
        >>> DEFAULT_COEFFICIENTS.value("wait_step", "vllm")
        1.0
        """
        index = _INDEX[name]
        log = self.typical[index] + self.offset[ENGINES.index(engine), index]
        value = float(np.exp(log).round(12))
        return max(min(value, 1.0) if PRIORS[name].is_share else value, PRIORS[name].lowest)

    def __eq__(self, other: object) -> bool:
        """Return whether all values are equal."""
        if not isinstance(other, Coefficients):
            return NotImplemented
        return np.array_equal(self.typical, other.typical) and np.array_equal(self.offset, other.offset)

    __hash__ = None  # type: ignore[assignment]

    def with_values(self, **values: float) -> Coefficients:
        """Return a copy with these typical values, in their units.

        Examples
        --------
        >>> DEFAULT_COEFFICIENTS.with_values(wait_step=9.0).value("wait_step")
        9.0
        """
        typical = self.typical.copy()
        for name, value in values.items():
            typical[_INDEX[name]] = np.log(value)
        return Coefficients(typical, self.offset)

    def near_priors(self, share: float | FloatArray) -> Coefficients:
        """Return the coefficients at a share of the way, in logarithms, from the priors' medians to these.

        `share`: that of all, or of each: shape (n_engine, n_coefficient).
        """
        median = DEFAULT_COEFFICIENTS.typical
        return Coefficients(median, share * (self.typical + self.offset - median))

    def by_row(self, engine: FloatArray) -> RowCoefficients:
        """Return every coefficient by row, from engine codes: shape (n_row,) each."""
        return _take_rows(self.typical + self.offset, engine.astype(np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class OwnerOffsets:
    """Further offsets of engines at the owners of stacks, one a *unit*: an engine at an owner that measured it.

    `owner` and `engine`: shape (n_unit,): names of owners, and codes of engines. `offset`: shape (n_unit,
    n_coefficient): natural logarithms, added to those of `Coefficients`.
    """

    owner: tuple[str, ...] = ()
    engine: IndexArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    offset: FloatArray = field(default_factory=lambda: np.zeros((0, len(NAMES))))

    def relative_to(self, c: Coefficients, before: Coefficients) -> OwnerOffsets:
        """Return the offsets from other coefficients of the same values, given those that these are offsets from."""
        by_engine = before.typical + before.offset - c.typical - c.offset
        return replace(self, offset=self.offset + by_engine[self.engine])

    def of_owner(self, owner: str, c: Coefficients) -> Coefficients:
        """Return the coefficients of an owner's stacks; those of `c` for engines that it did not measure."""
        is_own = np.array([name == owner for name in self.owner], dtype=bool)
        offset = c.offset.copy()
        offset[self.engine[is_own]] += self.offset[is_own]
        return Coefficients(c.typical, offset)

    def of_owners(self, owner: npt.NDArray[np.object_], engine: FloatArray, c: Coefficients) -> StackCoefficients:
        """Return the coefficients of rows of many owners' stacks, from the owner and the engine code of each row."""
        keys = pd.MultiIndex.from_arrays([owner, engine.astype(np.intp)])
        units = keys.unique()
        of_engine = units.get_level_values(1).to_numpy()
        own = pd.MultiIndex.from_arrays([list(self.owner), self.engine]).get_indexer(units)
        offset = np.vstack([self.offset, np.zeros(len(NAMES))])[own]
        return StackCoefficients(c.typical + c.offset[of_engine] + offset, units.get_indexer(keys))


@dataclass(frozen=True, slots=True, eq=False)
class StackCoefficients:
    """Natural logarithms of the coefficients of rows of many stacks.

    `log`: shape (n_unit, n_coefficient): in the order of `PRIORS`. `unit`: shape (n_row,): index into `log` of each
    row.
    """

    log: FloatArray
    unit: IndexArray

    def shift(self, names: Collection[str], by: float) -> StackCoefficients:
        """Return a copy with the logarithms of some coefficients increased by `by`."""
        log = self.log.copy()
        log[:, [_INDEX[name] for name in names]] += by
        return StackCoefficients(log, self.unit)

    def by_row(self, engine: FloatArray) -> RowCoefficients:  # noqa: ARG002  (units know their engine)
        """Return every coefficient by row: shape (n_row,) each."""
        return _take_rows(self.log, self.unit)


class CoefficientSource(Protocol):
    """`Coefficients`, or `StackCoefficients` of the rows in question."""

    def by_row(self, engine: FloatArray) -> RowCoefficients:
        """Return every coefficient by row, from engine codes: shape (n_row,) each."""


def _take_rows(log: FloatArray, row: IndexArray) -> RowCoefficients:
    table = np.clip(np.exp(log), _LOWEST, _HIGHEST).T
    return dict(zip(NAMES, table.take(row, axis=1), strict=True))


DEFAULT_COEFFICIENTS: Final = Coefficients(np.log([prior.median for prior in PRIORS.values()]))
