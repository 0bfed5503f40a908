"""What is to be run, engine by engine, for an entry of a recommendation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.engine.memory import ENGINE_MEMORY
from roofcast.features.validity.context import context_limit
from roofcast.features.validity.splits import split_error
from roofcast.serving.deployment.names import check_argument
from roofcast.serving.deployment.platforms import Platform, platform_of
from roofcast.serving.recommend.answer.recommendation import Entry
from roofcast.serving.recommend.demand.demand import Constraints, Demand
from roofcast.serving.recommend.demand.presets import Lengths

ENGINES: Final = ("vllm", "sglang", "trtllm")

COVERED: Final = "p99.9"
"""Percentile of prompts and of answers that is admitted, where it is known how they vary."""

LENGTH_MARGIN: Final = 2.0
"""Longest prompt or answer admitted over the mean one, where it is not."""

N_SD: Final = 4.0
"""Standard deviations above the mean number of requests in flight up to which none waits for a place."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a recommendation was asked for; `checkpoint` names the weights: a hub repository or a path."""

    model: ModelSpec
    checkpoint: str
    accelerators: Mapping[str, AcceleratorSpec]
    demand: Demand
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class Served:
    """One replica of an engine, and how many there are of it.

    Parameters
    ----------
    engine, checkpoint
        Program, and the weights it loads.
    platform, accelerator, offer
        What it runs on, and the instance that has it.
    tp, pp, dp, ep
        Degrees of parallelism as the engine counts devices; experts lie on `ep` of them.
    is_moe
        Whether there are experts.
    stored_precision, weight_precision, kv_precision
        Of the checkpoint, of the weights as served, and of the cache; the last is blank for the engine's own choice.
    n_token
        Longest request, answer included.
    refused_ratio
        Share of the requests that are longer, where the model's context is too short for what `COVERED` asks; else 0,
        as where it is not known how lengths vary.
    n_sequence
        Most requests at once.
    memory_ratio
        Share of memory that the forecast gave to the engine, in the engine's own terms; None if it gave none.
    n_accelerator, n_replica
        Accelerators of one replica, and replicas.
    """

    engine: str
    checkpoint: str
    platform: Platform
    accelerator: str
    offer: Offer
    tp: int
    pp: int
    dp: int
    ep: int
    is_moe: bool
    stored_precision: str
    weight_precision: str
    kv_precision: str
    n_token: int
    refused_ratio: float
    n_sequence: int
    memory_ratio: float | None
    n_accelerator: int
    n_replica: int


def checkpoint_of(name: str, model: ModelSpec, catalog: Catalog) -> str:
    """Return where the weights of a model are that was asked for by a name.

    It is the catalogue's id, which is a hub repository where the model has one, or the name as written where that
    stands for a quantised copy or for a model of which only the ``config.json`` is known.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> checkpoint_of("llama-3.1-8b", catalog.model("llama-3.1-8b"), catalog)
    'meta-llama/Llama-3.1-8B'
    """
    return model.id if catalog.models.get(model.id) == model else name


def engine_of(entry: Entry, question: Question) -> str:
    """Return the engine that an entry is for, blank if any will do.

    Raises
    ------
    UnknownNameError
        If its options are not known here.
    """
    engine = entry.replica.engine or question.constraints.engine
    if engine and engine not in ENGINES:
        raise UnknownNameError("constraints.engines", engine, ENGINES)
    return engine


def served_by(engine: str, entry: Entry, question: Question) -> Served:
    """Return what `engine` has to run for an entry.

    Raises
    ------
    InputError
        If the engine is not the entry's, does not run on the accelerator, or cannot split the model over its devices;
        if a replica spans nodes, or the name of the checkpoint cannot stand on a command line.
    UnknownNameError
        If the entry's engine is not known here.
    """
    model, bounds, demand = question.model, question.constraints, question.demand
    replica = entry.replica
    part = question.accelerators[replica.accelerator]
    asked = engine_of(entry, question)
    if asked not in ("", engine):
        raise InputError("deployment", f"the forecast is for {asked}, not for {engine}; ask about {engine}")
    platform = platform_of(part)
    if engine not in platform.images:
        able = " or ".join(platform.images)
        raise InputError("deployment", f"{engine} does not run on {part.vendor} {part.name}; {able} does")
    if replica.n_accelerator > entry.offer.n_accelerator:
        raise InputError("deployment", f"a replica of {replica.n_accelerator} spans nodes; that is not written yet")
    tp = replica.tp * platform.n_device
    if error := split_error(model, tp, engine=engine):
        raise InputError("deployment", f"{part.name} is {platform.n_device} devices to {engine}; {error}")
    longest = longest_request(demand)
    n_token = math.ceil(min(longest, context_limit(model)))
    return Served(
        engine=engine,
        checkpoint=check_argument("model", question.checkpoint),
        platform=platform,
        accelerator=part.id,
        offer=entry.offer,
        tp=tp,
        pp=replica.pp,
        dp=replica.dp,
        ep=replica.ep * platform.n_device if replica.ep > 1 else 1,
        is_moe=model.n_expert > 0,
        stored_precision=model.weight_precision,
        weight_precision=replica.weight_precision
        or bounds.weight_precision
        or served_precision(model.weight_precision),
        kv_precision=bounds.kv_precision,
        n_token=n_token,
        refused_ratio=_share_longer(demand, n_token) if n_token < longest else 0.0,
        n_sequence=most_at_once(entry, demand),
        memory_ratio=_memory_ratio(engine, asked, part.memory_byte),
        n_accelerator=replica.n_accelerator,
        n_replica=entry.n_replica,
    )


def most_at_once(entry: Entry, demand: Demand) -> int:
    """Return how many requests an engine may run at once.

    Users who do not think have so many in flight, and no more are let in than meet the limits. At a rate, or where
    users think, that number is a mean: an engine that stops there lets requests wait which the forecast let run.

    Notes
    -----
    Little's law gives the mean ``m`` in flight. Requests that come at random and do not wait for each other are in
    flight in a number that is Poisson about it, whatever their service times; its standard deviation is the square
    root of ``m``. So the engine takes ``m + 4 sqrt(m)``, or what fits in memory by the estimate if that is less, and
    at least ``m``.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961; L. Takács,
    "Introduction to the Theory of Queues", Oxford University Press, 1962 (the queue with infinitely many servers).
    """
    mean = entry.in_flight_per_replica
    if demand.users is not None and not demand.think_time_s:
        return math.ceil(mean)
    return math.ceil(max(mean, min(mean + N_SD * math.sqrt(mean), entry.capacity_per_replica)))


def longest_request(demand: Demand) -> int:
    """Return the tokens of the longest request that an engine should admit, whatever the model's context.

    Prompts and answers each count with the percentile `COVERED` of the log-normal lengths that were asked about, or
    where a mean alone was given with `LENGTH_MARGIN` of it. Where long prompts have long answers the sum of the two
    percentiles is that of the sum; it is more where they vary independently.

    Examples
    --------
    >>> longest_request(Demand(1000, 200, 8, None, ()))
    2400
    >>> longest_request(Demand(1000, 200, 8, None, (), length_variation=0.0))
    2200
    """
    return math.ceil(
        sum(
            LENGTH_MARGIN * one.mean if math.isnan(one.variation) else one.percentile(COVERED)
            for one in demand.lengths
        )
    )


def _share_longer(demand: Demand, n_token: int) -> float:
    """Return the share of requests of more tokens; what is not known to vary is of its mean length."""
    prompt, answer = (Lengths(one.mean, 0.0) if math.isnan(one.variation) else one for one in demand.lengths)
    return prompt.share_above_with(answer, n_token)


def remark(served: Served) -> str:
    """Return a line of comment on the requests that will be refused, for a shell and for YAML; empty if none will."""
    if not served.refused_ratio:
        return ""
    longer = f"{100 * served.refused_ratio:.2g} % of the requests asked about"
    return f"# {longer} are longer than {served.n_token} tokens, the context of the model, and are refused\n"


def _memory_ratio(engine: str, asked: str, memory_byte: float) -> float | None:
    share, reserve_byte, cache_share = ENGINE_MEMORY[engine]
    if engine == "trtllm":
        return cache_share
    if engine == "vllm":
        return share
    return math.floor((1 - reserve_byte / memory_byte) * 100) / 100 if asked else None
