"""Time breakdown of an estimate: operators of prefill and decode, waits, and the bound of each."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.engine.coefficients import NAMES, Coefficients
from roofcast.features.engine.estimate import Estimate
from roofcast.features.engine.kernels.row_kernels import RowKernels, kernels_by_row
from roofcast.features.engine.operators import PassTime, alone_expert_s, estimate_prefill, estimate_step
from roofcast.features.engine.pass_communication import EngineInputs
from roofcast.features.queries import FloatArray, Queries

Phase = Literal["prefill", "queue", "decode"]
Bound = Literal["compute", "memory", "link", "launch", "queue"]

BOUNDS: Final[tuple[Bound, ...]] = ("compute", "memory", "link", "launch", "queue")
METRIC_PHASES: Final[dict[str, tuple[Phase, ...]]] = {"ttft_s": ("prefill", "queue"), "tpot_s": ("decode",)}
"""Phases whose times add up to each metric."""

_PEAKS: Final = ("hardware.flop_per_s", "hardware.dense_flop_per_s", "hardware.attention_flop_per_s")
_RATIOS: Final = ("dense_ratio", "prefill_ratio", "expert_ratio", "decode_attention_ratio",
                  "prefill_attention_ratio", "link_ratio", "exchange_ratio")  # fmt: skip
_LAYERS: Final = ("model.n_layer", "model.n_encoder_layer", "model.n_mlp_layer")
_LOSSES: Final = ("launch_s", "step_s", "crowding")
_SHARES: Final = ("bandwidth_ratio", "flop_ratio")
_KERNELS: Final = ("projections and MLP", "head", "experts", "attention")
_IDEAL_INPUTS: Final = {
    "hardware.link_byte_per_s": 2.0, "hardware.network_byte_per_s": 1.0, "hardware.network_latency_s": 0.0,
    "config.age_year": 0.0,
}  # fmt: skip

_PEAK: Final = np.array([np.nan, np.inf, np.nan, np.inf, 1.0, np.inf])[:, None]
_BANDWIDTH: Final = np.array([np.nan, np.inf, np.inf, np.nan, np.inf, 1.0])[:, None]
"""Peaks of the cases in which a pass is evaluated, shape (n_case, 1); NaN keeps the accelerator's own peak.

The cases give total time, launch time, launch plus compute time, launch plus memory time, operations and bytes."""

_IS_IDEAL: Final = np.array([False, False, False, False, True, True])[:, None]
_BYTE: Final = 5

Times = dict[str, FloatArray]
Run = Callable[[EngineInputs], PassTime]


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Time of one operator, or one wait, of one phase; arrays have shape (n_row,).

    `bound_s`: seconds by bound, of one prefill, one wait, or one token of one request; an absent bound has none.
    `flop` and `byte`: operations, and bytes read and written (for messages: sent), on the busiest accelerator of each
    stage.
    """

    phase: Phase
    operator: str
    bound_s: dict[Bound, FloatArray]
    flop: FloatArray
    byte: FloatArray

    @property
    def seconds(self) -> FloatArray:
        """Total time."""
        total: FloatArray = np.sum(list(self.bound_s.values()), axis=0)
        return total

    @property
    def bound(self) -> npt.NDArray[np.str_]:
        """Bound of most of the time; empty if there is no time."""
        names = np.array(list(self.bound_s))
        longest = np.argmax(list(self.bound_s.values()), axis=0)
        return np.where(self.seconds > 0, names[longest], "")


def break_down(d: Queries, c: Coefficients, e: Estimate) -> list[OperatorTime]:
    """Return the operator times and waits of each row's TTFT and TPOT.

    `d`, `c` and `e`: descriptors, coefficients and their estimate.

    Notes
    -----
    Operations and bytes are measured on the estimate itself: a pass on hardware that computes one operation (or moves
    one byte) per second, and does everything else in no time, takes as many seconds. A kernel's time beyond its
    launch is divided between compute and memory in proportion to the fourth powers that `joint_s` adds.

    References
    ----------
    Z. Yuan et al., "LLM Inference Unveiled: Survey and Roofline Model Insights", 2024 (LLM-Viewer).

    Examples
    --------
    A decode step of eight sequences is memory-bound, and its operator times add up to TPOT:

    >>> from roofcast.features.engine.estimate import estimate
    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> d = example_descriptors()
    >>> e = estimate(d, DEFAULT_COEFFICIENTS)
    >>> decode = [part for part in break_down(d, DEFAULT_COEFFICIENTS, e) if part.phase == "decode"]
    >>> decode[0].operator, str(decode[0].bound[0])
    ('projections and MLP', 'memory')
    >>> bool(abs(sum(part.seconds[0] for part in decode) - e.tpot_s[0]) < 1e-12)
    True
    """
    s = EngineInputs(d, c.by_row(d["config.engine"]), kernels_by_row(d))
    none = np.zeros_like(e.ttft_s)
    is_static = d["workload.is_static"] > 0
    n_prompt = np.where(is_static, np.maximum(e.concurrency / d["config.dp"], 1.0), 1.0)
    n_sequence = np.maximum(e.batch / d["config.dp"] / d["config.pp"], 1.0)
    alone = replace(e.prefill, expert_s=alone_expert_s(s, n_prompt))
    prefill = _pass_breakdown("prefill", s, alone, lambda s: _prefill_alone(s, n_prompt))
    prefill = [_scale(part, e.prefill_s / alone.total_s) for part in prefill]
    step = _pass_breakdown("decode", s, e.step, lambda s: estimate_step(s, n_sequence))
    return [
        *prefill[:-1],
        replace(prefill[-1], bound_s={"launch": prefill[-1].seconds + e.overhead_s}),
        OperatorTime("prefill", "cache to decode", {"link": e.transfer_s}, none, none),
        OperatorTime("queue", "prefills of others", {"queue": e.prompts_ahead_s}, none, none),
        OperatorTime("queue", "cold start of the run", {"queue": e.startup_s}, none, none),
        OperatorTime("queue", "steps under way", {"queue": e.wait_s}, none, none),
        OperatorTime("queue", "slot in the batch", {"queue": e.queue_s}, none, none),
        *(_scale(part, e.itl_s / e.step.total_s) for part in step),
        OperatorTime("decode", "prefills of others", {"queue": e.interference_s}, none, none),
    ]


def bound_seconds(parts: list[OperatorTime], phases: tuple[Phase, ...]) -> dict[Bound, FloatArray]:
    """Return the seconds of the given phases for each of `BOUNDS`.

    Examples
    --------
    >>> one = np.ones(1)
    >>> parts = [OperatorTime("decode", "attention", {"memory": 2 * one, "launch": one}, one, one)]
    >>> {name: float(seconds[0]) for name, seconds in bound_seconds(parts, ("decode",)).items() if seconds[0]}
    {'memory': 2.0, 'launch': 1.0}
    """
    none = np.zeros_like(parts[0].flop)
    selected = [part for part in parts if part.phase in phases]
    return {bound: sum((part.bound_s.get(bound, none) for part in selected), start=none) for bound in BOUNDS}


def bottleneck(parts: list[OperatorTime], n_output_token: FloatArray) -> npt.NDArray[np.str_]:
    """Return the bound of most of the time of a request: shape (n_row,), of `BOUNDS`.

    `n_output_token`: shape (n_row,): the first comes with the prefill, each further one takes a decode step.

    Examples
    --------
    >>> one = np.ones(1)
    >>> prefill = OperatorTime("prefill", "head", {"compute": 3 * one}, one, one)
    >>> parts = [prefill, OperatorTime("decode", "attention", {"memory": one}, one, one)]
    >>> [str(bottleneck(parts, np.array([n]))[0]) for n in (2.0, 100.0)]
    ['compute', 'memory']
    """
    first, further = (bound_seconds(parts, phases) for phases in METRIC_PHASES.values())
    n_step = np.maximum(n_output_token - 1.0, 0.0)
    seconds = np.array([first[bound] + n_step * further[bound] for bound in BOUNDS])
    return np.asarray(np.array(BOUNDS)[seconds.argmax(axis=0)], dtype=np.str_)


def breakdown_table(parts: list[OperatorTime], index: pd.Index | None = None) -> pd.DataFrame:
    """Return one row for each query, phase and operator, in the order of the queries.

    `parts`: result of `break_down`. `index`: labels of the queries; 0, 1, ... if None.

    Returns
    -------
    Columns `question`, `phase`, `operator`, `seconds`, `share` (of the phase), `flop`, `byte`,
    `intensity_flop_per_byte` (NaN without bytes), `bound`, and the seconds by bound as `compute_s` ... `queue_s`
    """
    n = len(parts[0].flop)
    questions = pd.RangeIndex(n) if index is None else index
    none = np.zeros(n)
    tables = [
        pd.DataFrame(
            {
                "question": questions, "phase": part.phase, "operator": part.operator, "seconds": part.seconds,
                "flop": part.flop, "byte": part.byte, "bound": part.bound,
                **{f"{bound}_s": part.bound_s.get(bound, none) for bound in BOUNDS},
            },
            index=np.arange(n) * len(parts) + i,
        )
        for i, part in enumerate(parts)
    ]  # fmt: skip
    table = pd.concat(tables).sort_index()
    total = table.groupby([table.index // len(parts), "phase"])["seconds"].transform("sum")
    table.insert(4, "share", table["seconds"] / total.where(total > 0, 1.0))
    table.insert(7, "intensity_flop_per_byte", table["flop"] / table["byte"].where(table["byte"] > 0))
    return table


def _pass_breakdown(phase: Phase, s: EngineInputs, time: PassTime, run: Run) -> list[OperatorTime]:
    cases_of = _case_times(run(_cases(s)), len(time.dense_s))
    head_s = cases_of["head"][0]
    seconds = {**_operator_times(time), "projections and MLP": time.dense_s - head_s, "head": head_s}
    none = np.zeros_like(time.dense_s)
    parts = []
    for name in _KERNELS:
        _, launch, compute, memory, flop, byte = cases_of[name]
        parts.append(OperatorTime(phase, name, _by_bound(seconds[name], launch, compute, memory), flop, byte))
    moved, sent = cases_of["element-wise"][_BYTE], cases_of["messages"][_BYTE]
    return [
        *parts,
        OperatorTime(phase, "element-wise", {"memory": time.elementwise_s}, none, moved),
        OperatorTime(phase, "messages", {"link": time.link_s}, none, sent),
        OperatorTime(phase, "weights in the host", {"link": time.host_s}, none, none),
        OperatorTime(phase, "launches and gaps", {"launch": time.overhead_s}, none, none),
    ]


def _by_bound(
    seconds: FloatArray, launch: FloatArray, compute: FloatArray, memory: FloatArray
) -> dict[Bound, FloatArray]:
    computing, moving = ((part - launch) ** 4 for part in (compute, memory))
    both = computing + moving
    share = computing / np.where(both > 0, both, 1.0)
    rest = seconds - launch
    return {"compute": rest * share, "memory": rest * (1 - share), "launch": launch}


def _scale(part: OperatorTime, factor: FloatArray) -> OperatorTime:
    bound_s = {bound: factor * seconds for bound, seconds in part.bound_s.items()}
    return replace(part, bound_s=bound_s, flop=factor * part.flop, byte=factor * part.byte)


def _case_times(time: PassTime, n: int) -> Times:
    dense, without_layers = np.broadcast_to(time.dense_s, (2, len(_PEAK), n))
    every = {name: np.broadcast_to(seconds, (2, len(_PEAK), n))[0] for name, seconds in _operator_times(time).items()}
    return {**every, "projections and MLP": dense - without_layers, "head": without_layers}


def _operator_times(time: PassTime) -> Times:
    return {
        "experts": time.expert_s,
        "attention": time.attention_s,
        "element-wise": time.elementwise_s,
        "messages": time.link_s,
    }


def _prefill_alone(s: EngineInputs, n_prompt: FloatArray) -> PassTime:
    return replace(estimate_prefill(s, n_prompt), expert_s=alone_expert_s(s, n_prompt))


def _cases(s: EngineInputs) -> EngineInputs:
    # Arrays that differ between cases have shape (n_case, n_row), those of layers (2, 1, n_row). Without layers only
    # the output head remains. Kernels and links of the ideal cases have no losses; links have one byte per second in
    # each direction.
    d = dict(s.d)
    for name in _PEAKS:
        d[name] = np.where(np.isnan(_PEAK), d[name], _PEAK)
    d["hardware.bandwidth_byte_per_s"] = np.where(
        np.isnan(_BANDWIDTH), d["hardware.bandwidth_byte_per_s"], _BANDWIDTH
    )
    for name, value in _IDEAL_INPUTS.items():
        d[name] = np.where(_IS_IDEAL, value, d[name])
    for name in _LAYERS:
        d[name] = np.stack([d[name], np.zeros_like(d[name])])[:, None]
    c = {name: np.where(_IS_IDEAL, 1.0, s.c[name]) if name in _RATIOS else s.c[name] for name in NAMES}
    kernels = RowKernels(*(_without_losses(getattr(s.k, field.name)) for field in fields(RowKernels)))
    return EngineInputs(d, c, kernels)


def _without_losses(efficiency: Any) -> Any:
    names = [field.name for field in fields(efficiency)]
    ideal = {name: 0.0 for name in names if name in _LOSSES or name.startswith("pad_")}
    ideal |= {name: 1.0 for name in names if name in _SHARES}
    changed = {name: np.where(_IS_IDEAL, value, getattr(efficiency, name)) for name, value in ideal.items()}
    return replace(efficiency, **changed)
