"""Configurations of a replica: accelerator, split, engine and precision."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Literal, get_args

import numpy as np
from cachetools import LRUCache, cached

from roofcast.data.catalog.support_rows import MeasuredStack
from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import NO_SPECULATION
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.features.descriptors.descriptor_table import describe_queries
from roofcast.features.descriptors.engine_names import OTHER, describe_engines
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.features.engine.coefficients import Coefficients
from roofcast.features.queries import Queries
from roofcast.features.validity.engine_choice import searched_pairs
from roofcast.features.validity.engine_support import DESK_ENGINES, Stack, model_kinds, support_error
from roofcast.features.validity.model_limits import NO_ATTENTION_DP_ENGINES, block_error, split_error
from roofcast.serving.recommend.demand.constraints import Constraints, Speculation
from roofcast.serving.recommend.demand.demand import Demand

Reason = Literal[
    "same_cost", "dearer", "over_budget", "too_few_nodes", "misses_limit", "no_offer", "does_not_fit", "no_engine"
]
"""Reason of a rejection."""

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
"""Reasons, the nearest miss first."""


@dataclass(frozen=True, slots=True)
class Replica:
    """Configuration of a replica.

    - `accelerator`: Catalogue id.
    - `tp`, `pp`, `dp`, `ep`: Degrees of parallelism; `dp` is of attention, with the experts spread over `ep`
      accelerators.
    - `weight_precision`, `weight_bit`: As served; bits are None for the usual ones of the precision.
    - `checkpoint`: Repository that is published in that precision; blank for the model's own or a copy to be made.
    """

    accelerator: str
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    engine: str = ""
    weight_precision: str = ""
    weight_bit: float | None = None
    speculation: Speculation | None = None
    checkpoint: str = field(default="", compare=False)
    n_accelerator: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_accelerator", self.tp * self.pp * self.dp)

    @property
    def split(self) -> str:
        """Short form of the split.

        Examples
        --------
        >>> Replica("nvidia-l4-24gb", tp=2, pp=2).split, Replica("nvidia-l4-24gb").split
        ('tp2 pp2', 'tp1')
        """
        degrees = {"tp": self.tp, "pp": self.pp, "dp": self.dp, "ep": self.ep}
        return " ".join(f"{name}{n}" for name, n in degrees.items() if n > 1 or name == "tp")


TENSOR_PARALLEL: Final = (1, 2, 4, 8, 16)
PIPELINE_PARALLEL: Final = (1, 2, 4)
ATTENTION_PARALLEL: Final = (2, 4, 8, 16)

NO_SPECULATION_ENGINES: Final = ("trtllm",)
"""Engines whose command line has no speculative decoding: it needs a configuration file.

References
----------
TensorRT-LLM 1.3, ``tensorrt_llm/commands/serve.py``; "Speculative Decoding".
"""


def enumerate_replicas(
    model: ModelSpec,
    accelerators: Mapping[str, AcceleratorSpec],
    offers: Iterable[Offer],
    constraints: Constraints | None = None,
    measured: tuple[MeasuredStack, ...] = (),
) -> tuple[list[Replica], dict[str, str]]:
    """Return the configurations on the accelerators of the offers, and why accelerators have none, by id.

    - `accelerators`: Specs by id.
    - `offers`: Within the constraints.
    - `measured`: Runs of the store, which override the support table.

    Notes
    -----
    Pipelines do not speculate: vLLM does not combine the two (docs/features/speculative_decoding, "Known Feature
    Incompatibility"). Engines of desks read copies in formats of their own, which no repository here has.
    """
    constraints = constraints or Constraints()
    largest: dict[str, int] = {}
    for offer in offers:
        if offer.accelerator in accelerators:
            largest[offer.accelerator] = max(largest.get(offer.accelerator, 0), offer.n_accelerator)
    wanted = constraints.engines, constraints.weight_precisions, constraints.published
    served = {}
    for name in sorted(largest):
        memory_byte = largest[name] * constraints.max_nodes * accelerators[name].memory_byte
        served[name] = _served_pairs(
            accelerators[name],
            model,
            *wanted,
            formats=constraints.weight_formats,
            measured=measured,
            memory_byte=memory_byte,
        )
    engines = {engine for pairs, _ in served.values() for _, engine in pairs}
    checkpoints = {engine: {} if engine in DESK_ENGINES else constraints.checkpoints for engine in engines}
    all_splits = [*splits(model, max(largest.values(), default=0) * constraints.max_nodes)]
    degrees = {(tp, ep) for tp, _, _, ep in all_splits}
    impossible = {(*one, engine) for one in degrees for engine in engines if split_error(model, *one, engine)}
    stored = {engine for engine in engines if "fp8" in (model.weight_precision, *checkpoints[engine])}
    torn = {("fp8", *one, engine) for one in degrees for engine in stored if block_error(model, *one, engine)}
    replicas = [
        Replica(name, tp, pp, dp, ep, engine, precision, bit, speculation, checkpoints[engine].get(precision, ""))
        for name, (pairs, _) in served.items()
        for tp, pp, dp, ep in all_splits
        if tp * pp * dp <= largest[name] * constraints.max_nodes
        for precision, engine in pairs
        for bit in constraints.weight_bits.get(precision, (None,))
        for speculation in constraints.speculations
        if (tp, ep, engine) not in impossible
        and (precision, tp, ep, engine) not in torn
        and not (dp > 1 and engine in NO_ATTENTION_DP_ENGINES)
        and not (speculation and (pp > 1 or engine in NO_SPECULATION_ENGINES))
    ]
    return replicas, {name: reason for name, (pairs, reason) in served.items() if not pairs}


def splits(model: ModelSpec, n_accelerator: int) -> Iterator[tuple[int, int, int, int]]:
    """Return the degrees of tensor, pipeline, attention-data and expert parallelism on up to `n_accelerator`.

    Experts are either split by the tensor-parallel ranks or spread over them as a whole. With data parallelism of
    attention they are always spread.
    """
    for pp in PIPELINE_PARALLEL:
        for tp in TENSOR_PARALLEL:
            if tp * pp > n_accelerator or pp > model.n_layer:
                continue
            yield tp, pp, 1, 1
            if not model.n_expert:
                continue
            if tp > 1:
                yield tp, pp, 1, tp
            for dp in ATTENTION_PARALLEL:
                if tp * dp * pp <= n_accelerator and tp * dp <= max(TENSOR_PARALLEL):
                    yield tp, pp, dp, tp * dp


def _support_key(
    accelerator: AcceleratorSpec, model: ModelSpec, *wanted: object, **further: object
) -> tuple[object, ...]:
    spec = accelerator
    part = spec.id, spec.vendor, spec.architecture, spec.memory_type, spec.form_factor
    return *part, model.weight_precision, model.n_param, model_kinds(model), *wanted, *further.values()


@cached(LRUCache(5000), key=_support_key, lock=Lock())  # the same for every request, but for its constraints
def _served_pairs(
    accelerator: AcceleratorSpec,
    model: ModelSpec,
    engines: frozenset[str],
    precisions: frozenset[str],
    published: frozenset[str],
    *,
    formats: frozenset[tuple[str, str]],
    measured: tuple[MeasuredStack, ...],
    memory_byte: float,
) -> tuple[list[tuple[str, str]], str]:
    def why_not(precision: str, engine: str) -> InputError | None:
        kinds = [kind for one, kind in formats if precision in ("", one)] or [precision]
        stacks = (Stack(engine, accelerator, kind, model, measured=measured) for kind in kinds)
        errors = [support_error(stack, [accelerator]) for stack in stacks]
        return None if None in errors else errors[0]

    pairs = searched_pairs(
        model, accelerator, engines, precisions, published=published, measured=measured, memory_byte=memory_byte
    )
    if formats:
        pairs = [pair for pair in pairs if not why_not(*pair)]
    if pairs:
        return pairs, ""
    error = why_not(min(precisions, default=""), min(engines, default="vllm"))
    return [], error.problem if error else f"no engine is known to run on {accelerator.vendor} {accelerator.name}"


def assume_acceptance(replicas: Iterable[Replica], coefficients: Coefficients) -> list[Replica]:
    """Return the replicas with the engine's coefficient where the acceptance of speculated tokens is not given."""
    result = []
    for replica in replicas:
        speculation = replica.speculation
        if speculation and speculation.chain_acceptance_ratio is None:
            code = describe_engines(np.array([replica.engine or OTHER], dtype=object)).code
            usual = float(coefficients.by_row(code)["acceptance"][0])
            speculation = replace(speculation, chain_acceptance_ratio=usual)
        result.append(replace(replica, speculation=speculation))
    return result


def describe_replicas(
    table: Mapping[str, ColumnArray], model: ModelSpec, accelerators: Mapping[str, AcceleratorSpec]
) -> Queries:
    """Return the descriptors of replicas in a steady state, without the burst at the start of a benchmark run."""
    endless = np.full(len(table["model"]), math.inf)
    described = describe_queries(table, {model.id: model}, accelerators)
    return {**described, "workload.n_wave": endless, "workload.n_request": endless}


def replica_table(
    replicas: list[Replica], model: ModelSpec, demand: Demand, constraints: Constraints
) -> dict[str, ColumnArray]:
    """Return the prediction input of replicas: one row each, one request in flight, means."""
    n = len(replicas)
    texts: dict[str, object] = {"model": model.id, "kv_precision": constraints.kv_precision, "statistic": "mean"}
    numbers = {
        "n_input_token": demand.n_input_token,
        "n_output_token": demand.n_output_token,
        "length_variation": demand.length_variation,
        "prefix_cache_ratio": demand.prefix_cache_ratio,
        "concurrency": 1.0,
        **constraints.server_settings,
    }
    columns: dict[str, ColumnArray] = {}
    for name in ("accelerator", "engine", "weight_precision"):
        columns[name] = np.array([getattr(replica, name) for replica in replicas], dtype=object)
    for name in ("n_accelerator", "tp", "pp", "dp", "ep", *(["weight_bit"] if constraints.weight_bits else [])):
        columns[name] = np.array([getattr(replica, name) for replica in replicas], dtype=float)
    columns |= {name: np.full(n, value, dtype=object) for name, value in texts.items()}
    if constraints.speculations != (None,):
        columns |= _speculation_columns(replicas)
    return columns | {name: np.full(n, value) for name, value in numbers.items()}


def _speculation_columns(replicas: list[Replica]) -> dict[str, ColumnArray]:
    speculations = [replica.speculation for replica in replicas]
    kinds = [one.kind if one else NO_SPECULATION for one in speculations]
    return {
        "speculation": np.array(kinds, dtype=object),
        "n_speculative_token": np.array([one.n_token if one else np.nan for one in speculations], dtype=float),
        "chain_acceptance_ratio": np.array(
            [one.chain_acceptance_ratio if one else np.nan for one in speculations], dtype=float
        ),
    }
