"""Every way to run a model on what is on offer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.features.validity.engine_support import (
    can_compute,
    can_run,
    default_precision,
    engines_on,
    precision_error,
)
from roofcast.features.validity.splits import NO_ATTENTION_DP_ENGINES, split_error
from roofcast.serving.recommend.answer.recommendation import Rejection, Replica
from roofcast.serving.recommend.demand.demand import Constraints, Demand

TENSOR_PARALLEL: Final = (1, 2, 4, 8, 16)
PIPELINE_PARALLEL: Final = (1, 2, 4)
ATTENTION_PARALLEL: Final = (2, 4, 8, 16)


def enumerate_replicas(
    model: ModelSpec,
    accelerators: Mapping[str, AcceleratorSpec],
    offers: Iterable[Offer],
    constraints: Constraints | None = None,
) -> tuple[list[Replica], list[Rejection]]:
    """Return each accelerator on offer with each split, engine and precision that it and the model admit.

    Parameters
    ----------
    model
        Whose heads, layers and experts are split.
    accelerators
        Specs by id.
    offers
        Within the constraints.
    constraints
        Bounds on engines, precisions and nodes.

    Returns
    -------
    What to look at, and the accelerators that none of the engines or precisions asked for runs on
    """
    bounds = constraints or Constraints()
    largest: dict[str, int] = {}
    for offer in offers:
        if offer.accelerator in accelerators:
            largest[offer.accelerator] = max(largest.get(offer.accelerator, 0), offer.n_accelerator)
    replicas, rejections = [], []
    for name, n in sorted(largest.items()):
        part = accelerators[name]
        ways, problem = _served_precisions(part, model, bounds)
        if not ways:
            rejections.append(Rejection(Replica(name), "no_engine", problem, 1.0))
        for tp, pp, dp, ep in splits(model, n * bounds.max_nodes):
            replicas += [
                Replica(name, tp, pp, dp, ep, engine, precision)
                for precision, engine in ways
                if not split_error(model, tp, ep, engine) and not (dp > 1 and engine in NO_ATTENTION_DP_ENGINES)
            ]
    return replicas, rejections


def splits(model: ModelSpec, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Return tensor, pipeline, attention-data and expert parallelism over at most so many accelerators.

    Experts lie on the ranks of tensor parallelism, or each whole on one of them; where attention's batch is spread,
    they always do the latter.
    """
    for pp in PIPELINE_PARALLEL:
        for tp in TENSOR_PARALLEL:
            if tp * pp > most or pp > model.n_layer:
                continue
            yield tp, pp, 1, 1
            if not model.n_expert:
                continue
            if tp > 1:
                yield tp, pp, 1, tp
            for dp in ATTENTION_PARALLEL:
                if tp * dp * pp <= most and tp * dp <= max(TENSOR_PARALLEL):
                    yield tp, pp, dp, tp * dp


def _served_precisions(
    accelerator: AcceleratorSpec, model: ModelSpec, bounds: Constraints
) -> tuple[list[tuple[str, str]], str]:
    """Return pairs of precision and engine that serve the model on an accelerator, and why there are none."""
    engines = sorted(engine for engine in bounds.engines if can_run(engine, accelerator))
    if not bounds.engines:
        engines = [*engines_on(accelerator)]
    if not engines:
        wanted = sorted(bounds.engines) or ["vllm", "sglang", "trtllm"]
        return [], f"none of {', '.join(wanted)} is known to run on {accelerator.vendor} {accelerator.name}"
    pairs = []
    for engine in engines:
        default = default_precision(engine, model.weight_precision, accelerator)
        precisions = sorted(bounds.weight_precisions) or [default]
        pairs += [(p, engine) for p in precisions if p == default or can_compute(p, accelerator)]
    if not pairs:
        return [], f"{accelerator.name} does not compute in what is admitted"
    errors = [precision_error(engine, precision, accelerator) for precision, engine in pairs]
    served = sorted(pair for pair, error in zip(pairs, errors, strict=True) if error is None)
    return served, "" if served else next(error.problem for error in errors if error)


def describe_replicas(
    table: Mapping[str, ColumnArray], model: ModelSpec, accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the descriptors of the questions in a steady state, long after a common start."""
    return describe(table, {model.id: model}, accelerators).assign(**{"workload.n_wave": math.inf})


def question_table(
    replicas: list[Replica], model: ModelSpec, demand: Demand, constraints: Constraints
) -> dict[str, ColumnArray]:
    """Return one question per replica: a single user, means."""
    names = ("accelerator", "engine", "weight_precision")
    sizes = ("n_accelerator", "tp", "pp", "dp", "ep")
    same_text = {"model": model.id, "kv_precision": constraints.kv_precision, "statistic": "mean"}
    same_size = {
        "n_input_token": demand.n_input_token,
        "n_output_token": demand.n_output_token,
        "length_variation": demand.length_variation,
        "prefix_cache_ratio": demand.prefix_cache_ratio,
        "concurrency": 1.0,
    }
    return {
        **{name: np.array([getattr(r, name) for r in replicas], dtype=object) for name in names},
        **{name: np.array([getattr(r, name) for r in replicas], dtype=float) for name in sizes},
        **{name: np.full(len(replicas), value, dtype=object) for name, value in same_text.items()},
        **{name: np.full(len(replicas), value, dtype=float) for name, value in same_size.items()},
    }
