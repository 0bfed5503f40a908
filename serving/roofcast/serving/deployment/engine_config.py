"""Engine configuration of a replica for an entry of a recommendation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError
from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.features.descriptors.precisions import served_precision
from roofcast.features.validity.engine_choice import needs_copy
from roofcast.features.validity.engine_support import Stack, support_error
from roofcast.features.validity.model_limits import context_limit, split_error
from roofcast.serving.deployment.platforms import REPLACE, Platform, check_argument, platform_of
from roofcast.serving.display_names import engine_name
from roofcast.serving.recommend.answer.parts import Entry
from roofcast.serving.recommend.demand.constraints import Constraints, Speculation
from roofcast.serving.recommend.demand.demand import Demand
from roofcast.serving.recommend.demand.presets import Lengths
from roofcast.serving.recommend.search.configurations import Replica, describe_replicas, replica_table

ENGINES: Final = ("vllm", "sglang", "trtllm")

COVERED: Final = "p99.9"
"""Percentile of prompt and response lengths that is admitted, where their variation is known."""

LENGTH_MARGIN: Final = 2.0
"""Longest prompt or response over the mean, where the variation is unknown."""

N_SD: Final = 4.0
"""Standard deviations above the mean requests in flight that the engine admits without queueing."""


@dataclass(frozen=True, slots=True)
class Question:
    """Request behind an entry; `checkpoint` is the hub repository or path of the weights."""

    model: ModelSpec
    checkpoint: str
    accelerators: Mapping[str, AcceleratorSpec]
    demand: Demand
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Engine configuration of one replica, and the number of replicas.

    - `checkpoint`: Hub repository or path of the weights; a placeholder if `copy_of` is not blank.
    - `copy_of`: Checkpoint of which a copy in `weight_precision` is needed; blank if the engine serves it as it is.
    - `tp`, `pp`, `dp`, `ep`: Degrees of parallelism in the devices that the engine counts.
    - `stored_precision`, `weight_precision`, `kv_precision`: Of the checkpoint, of the weights as served, and of the
      cache; the last is blank for the engine's default.
    - `n_token`: Longest request, response included.
    - `refused_ratio`: Share of the requests that are longer than the model's context; 0 if unknown.
    - `n_sequence`: Most requests at once in each data-parallel rank, in all its pipeline stages.
    - `memory_ratio`: Share of memory that the prediction assumes, in the engine's terms; None for the engine's
      default.
    - `n_accelerator`: Of one replica.
    - `server_settings`: Settings that the question fixes: see `constraints.SERVER_SETTINGS`.
    - `speculation`, `draft_model`: Speculative decoding, None without, and the checkpoint of its drafts; blank if not
      given.
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
    server_settings: Mapping[str, float]
    speculation: Speculation | None = None
    draft_model: str = ""
    copy_of: str = ""


def checkpoint_of(name: str, model: ModelSpec, catalog: Catalog) -> str:
    """Return the hub repository or path of a model's weights.

    That is the catalogue's id, or the name as written for a quantised copy or a model known by its ``config.json``.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> catalog = load_catalog()
    >>> checkpoint_of("llama-3.1-8b", catalog.model("llama-3.1-8b"), catalog)
    'meta-llama/Llama-3.1-8B'
    """
    return model.id if catalog.models.get(model.id) == model else name


def engine_of(entry: Entry, question: Question) -> str:
    """Return the engine of an entry; blank for any. Raises `InputError` if the engine has no artefacts."""
    engine = entry.replica.engine or question.constraints.engine
    if engine and engine not in ENGINES:
        cure = f"name one of {', '.join(ENGINES)} as the engine"
        raise InputError("deployment", f"there are no artefacts for {engine_name(engine)}; {cure}")
    return engine


def configure_engine(engine: str, entry: Entry, question: Question) -> EngineConfig:
    """Return the configuration of an engine for an entry.

    Raises `InputError` if the engine is not the entry's, does not run on the accelerator, or cannot split the model
    over its devices; if a replica spans nodes, the engine has no artefacts, or the name of the checkpoint cannot
    stand on a command line.
    """
    model, bounds, demand = question.model, question.constraints, question.demand
    replica = entry.replica
    accelerator = question.accelerators[replica.accelerator]
    own_engine = engine_of(entry, question)
    if own_engine not in ("", engine):
        cure = f"request engine {engine}"
        raise InputError("deployment", f"the prediction is for {own_engine}, not for {engine}; {cure}")
    platform = platform_of(accelerator)
    if error := support_error(Stack(engine, accelerator, replica.weight_precision, model)):
        raise InputError("deployment", error.problem)
    if engine not in platform.images:
        raise InputError("deployment", f"artefacts for {accelerator.name} are of {' or '.join(platform.images)}")
    if replica.n_accelerator > entry.offer.n_accelerator:
        raise InputError(
            "deployment", f"a replica of {replica.n_accelerator} spans nodes, which artefacts do not support"
        )
    tp = replica.tp * platform.n_device
    if error := split_error(model, tp, engine=engine):
        raise InputError("deployment", f"{accelerator.name} is {platform.n_device} devices to {engine}; {error}")
    longest = longest_request(demand)
    n_token = math.ceil(min(longest, context_limit(model)))
    checkpoint = check_argument("model", replica.checkpoint or question.checkpoint)
    precision = replica.weight_precision or bounds.weight_precision or served_precision(model.weight_precision)
    is_copy = not replica.checkpoint and needs_copy(Stack(engine, accelerator, precision), model.weight_precision)
    return EngineConfig(
        engine=engine,
        checkpoint=f"{REPLACE}/{checkpoint.rstrip('/').rpartition('/')[2]}-{precision}" if is_copy else checkpoint,
        copy_of=checkpoint if is_copy else "",
        platform=platform,
        accelerator=accelerator.id,
        offer=entry.offer,
        tp=tp,
        pp=replica.pp,
        dp=replica.dp,
        ep=replica.ep * platform.n_device if replica.ep > 1 else 1,
        is_moe=model.n_expert > 0,
        stored_precision=precision if replica.checkpoint else model.weight_precision,
        weight_precision=precision,
        kv_precision=bounds.kv_precision,
        n_token=n_token,
        refused_ratio=_share_longer(demand, n_token) if n_token < longest else 0.0,
        n_sequence=max_running_requests(entry, demand, bounds.server_settings),
        memory_ratio=_memory_ratio(engine, own_engine, replica, question),
        n_accelerator=replica.n_accelerator,
        n_replica=entry.n_replica,
        server_settings=bounds.server_settings,
        speculation=replica.speculation,
        draft_model=check_argument("constraints.draft_model", bounds.draft_model) if bounds.draft_model else "",
    )


def max_running_requests(entry: Entry, demand: Demand, settings: Mapping[str, float]) -> int:
    """Return the concurrency limit of each data-parallel rank of an engine: the `max_num_seqs` fixed, if any.

    Without think time it is the requests in flight within the limits. At a rate, or with think time, that number is a
    mean, and a limit there would queue requests that the prediction lets run. Engines themselves queue what does not
    fit in memory.

    Notes
    -----
    The number of Poisson arrivals in flight is Poisson distributed about its mean ``m`` (Little's law), whatever the
    service times, so the limit is ``m + 4 sqrt(m)``.

    References
    ----------
    J. D. C. Little, "A Proof for the Queuing Formula L = lambda W", Operations Research 9(3), 1961; L. Takács,
    "Introduction to the Theory of Queues", Oxford University Press, 1962 (the queue with infinitely many servers).
    """
    if "max_num_seqs" in settings:
        return math.ceil(settings["max_num_seqs"])
    mean = entry.in_flight_per_replica / entry.replica.dp
    is_mean = demand.users is None or demand.think_time_s > 0
    return max(math.ceil(mean + N_SD * math.sqrt(mean) if is_mean else mean), 1)


def longest_request(demand: Demand) -> int:
    """Return the tokens of the longest request that an engine should admit, before the model's context limit.

    It is the sum of the percentiles `COVERED` of prompt and response, or of `LENGTH_MARGIN` times their means. That
    is the percentile of the sum if long prompts have long responses, and above it if the lengths are independent.

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
    prompt, answer = (Lengths(one.mean, 0.0) if math.isnan(one.variation) else one for one in demand.lengths)
    return prompt.share_above_with(answer, n_token)


def remark(config: EngineConfig) -> str:
    """Return comments on a needed copy and on refused requests, for a shell and for YAML; empty if there are none."""
    text = ""
    if config.copy_of:
        text = (
            f"# needs a copy of {config.copy_of} in {config.weight_precision}; {config.checkpoint} is a placeholder\n"
        )
    if config.refused_ratio:
        longer = f"{100 * config.refused_ratio:.2g} % of the requests"
        text += f"# {longer} are longer than {config.n_token} tokens, the context of the model, and are refused\n"
    return text


def _memory_ratio(engine: str, own_engine: str, replica: Replica, question: Question) -> float | None:
    if engine == "sglang" and not own_engine:
        return None
    table = replica_table([replace(replica, engine=engine)], question.model, question.demand, question.constraints)
    described = describe_replicas(table, question.model, question.accelerators)
    return math.floor(float(described["config.memory_ratio"][0]) * 100 + 1e-9) / 100
