"""Request of a recommendation: the one declaration of its fields for HTTP, Python and the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from roofcast.data.errors import InputError, join_errors
from roofcast.data.measurements.schema import ACCEPTANCES, INPUT_COLUMNS, NO_SPECULATION
from roofcast.data.precision_names import PrecisionName, WeightName
from roofcast.data.units import S_PER_H
from roofcast.serving.defaults import DEFAULT_CONFIDENCE, DEFAULT_LEVEL, DEFAULT_OPERATOR
from roofcast.serving.recommend.demand.constraints import (
    OfferConstraintsRequest,
    PriceOverride,
    Speculation,
    Texts,
)
from roofcast.serving.recommend.demand.presets import PRESETS, Lengths, find_preset, lengths_from_percentiles
from roofcast.serving.recommend.demand.slo import parse_limit
from roofcast.serving.request_fields import (
    MODEL_FLAG,
    QWEN_LIKE_CONFIG,
    Flag,
    Level,
    Message,
    ModelChoice,
    OperatorName,
    References,
    StackName,
    Text,
    Tokens,
    examples,
)

if TYPE_CHECKING:
    from roofcast.serving.recommend.demand.demand import Demand

Artefact = Literal["", "vllm", "sglang", "trtllm", "kubernetes", "kserve"]
ObjectiveName = Literal["", "cost", "tokens", "throughput", "accelerators"]
SpeculationKind = Literal["none", "mtp", "eagle", "draft", "ngram"]
Confidence = Annotated[
    float,
    Field(gt=0, lt=1, description="Least probability that all limits are met, for an unseen LLM."),
]

_Percentiles = Annotated[dict[Annotated[str, Field(max_length=10)], Tokens], Field(min_length=2, max_length=20)]


def _check_percentiles(percentiles: dict[str, float]) -> dict[str, float]:
    lengths_from_percentiles(percentiles)
    return percentiles


Length = Annotated[
    Annotated[Tokens, Tag("a mean")]
    | Annotated[_Percentiles, AfterValidator(_check_percentiles), Tag("percentiles")],
    Discriminator(lambda value: "percentiles" if isinstance(value, dict) else "a mean"),
]


class WorkloadRequest(Message):
    """Request lengths, from a preset or given, and `concurrency`, `users`, arrivals per second, or a batch.

    Without a load replicas are as busy as the limits admit, and the cheapest tokens win.
    """

    preset: Annotated[
        Text | None,
        Field(description=f"Typical workload, for lengths that are not given: {', '.join(PRESETS)}."),
        Flag(),
    ] = None
    n_input_token: Annotated[Length | None, Flag("--n-input-token --isl", is_amount=True)] = None
    """Mean input tokens; a request may have percentiles such as {"p50": 300, "p95": 1200}."""
    n_output_token: Annotated[Length | None, Flag("--n-output-token --osl", is_amount=True)] = None
    """Mean output tokens, or percentiles."""
    length_variation: Annotated[float | None, Field(ge=0, le=1000)] = None
    """Standard deviation of the output lengths over their mean."""
    prefix_cache_ratio: Annotated[float | None, Field(ge=0, le=0.99), Flag()] = None
    """Share of the input that is found in the prefix cache."""
    users: Annotated[float | None, Field(ge=1, le=1_000_000), Flag()] = None
    """Users at the peak, each of whom waits for an answer and then thinks."""
    concurrency: Annotated[float | None, Field(ge=1, le=1_000_000), Flag()] = None
    """Requests in flight at the peak: users who do not think."""
    think_time_s: Annotated[float | None, Field(ge=0, le=86_400), Flag("--think-time-s --think-time")] = None
    """Mean time of a user between a response and the next request; by default that of the preset if it was measured,
    else 0."""
    request_rate_per_s: Annotated[
        float | None, Field(ge=1e-9, le=1_000_000), Flag("--request-rate-per-s --request-rate --rate")
    ] = None
    """Requests per second at the peak."""
    n_batch_request: Annotated[
        float | None, Field(ge=1, le=1e12), Flag("--n-batch-request --batch", is_amount=True)
    ] = None
    """Requests of a batch, which are all there at its start."""
    deadline_h: Annotated[float | None, Field(gt=0, le=87_600), Flag("--deadline-h --deadline")] = None
    """Hours within which the batch is served; by default no limit of time."""
    peak_factor: Annotated[float, Field(ge=1, le=1000)] = 1.0
    """Peak load over the load given."""
    headroom: Annotated[float, Field(ge=0, le=0.99), Flag()] = 0.0
    """Share of the capacity kept free at the peak."""

    model_config = examples(
        {"preset": "chat", "users": 300, "think_time_s": 20, "peak_factor": 1.5, "headroom": 0.2},
        {"n_input_token": {"p50": 300, "p95": 1200}, "n_output_token": 150, "request_rate_per_s": 4},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if errors := workload_errors(self.model_dump()):
            raise join_errors(errors)
        return self

    def demand(self, limits: Iterable[str]) -> Demand:
        """Return the demand with parsed limits; lengths given override those of the preset.

        Raises `InputError` if a limit cannot be parsed; `UnknownNameError` if there is no such preset or metric.
        """
        from roofcast.serving.recommend.demand.demand import ENDLESS_S, Demand  # noqa: PLC0415  (needs NumPy)

        shape: dict[str, Any] = {}
        think_time_s = self.think_time_s
        if self.preset is not None:
            preset = find_preset(self.preset, "workload.preset")
            names = {"n_input_token", "n_output_token", "length_variation", "prefix_cache_ratio"}
            shape = preset.model_dump(include=names, exclude_none=True)
            if think_time_s is None and self.users is not None:
                think_time_s = preset.think_time_s
        if self.n_input_token is not None:
            lengths = _lengths(self.n_input_token)
            shape |= {"n_input_token": lengths.mean, "input_variation": lengths.variation}
        if self.n_output_token is not None:
            lengths = _lengths(self.n_output_token)
            shape |= {"n_output_token": lengths.mean, "length_variation": lengths.variation}
        users = self.users if self.concurrency is None else self.concurrency
        if users is None and self.request_rate_per_s is None:
            think_time_s = ENDLESS_S if self.deadline_h is None else self.deadline_h * S_PER_H
            users = math.inf if self.deadline_h is None else self.n_batch_request
        own = {"length_variation": self.length_variation, "prefix_cache_ratio": self.prefix_cache_ratio}
        return Demand(
            **shape | {name: value for name, value in own.items() if value is not None},
            users=users,
            n_batch_request=self.n_batch_request,
            request_rate_per_s=self.request_rate_per_s,
            limits=tuple(map(parse_limit, limits)),
            think_time_s=think_time_s or 0.0,
            headroom=self.headroom,
            peak_factor=self.peak_factor,
        )


def workload_errors(fields: Mapping[str, Any], field: str = "") -> list[InputError]:
    """Return what a workload lacks or has too much of, whether or not its values are valid."""
    given = {name for name, value in fields.items() if value is not None}
    lengths = ("n_input_token", "n_output_token")
    errors = []
    loads = ("concurrency", "users", "request_rate_per_s", "n_batch_request")
    if len(given & {*loads}) > 1:
        problem = "give one of concurrency, users, request_rate_per_s and n_batch_request"
        errors.append(InputError(field, problem, loads))
    elif "deadline_h" in given and "n_batch_request" not in given:
        problem = "deadline_h needs n_batch_request, the requests to serve by then"
        errors.append(InputError(field, problem, ("deadline_h", "n_batch_request")))
    elif "users" not in given and fields.get("think_time_s"):
        problem = "think_time_s needs users; requests in flight and arrivals at a rate do not think"
        errors.append(InputError(field, problem, ("think_time_s", "users")))
    if "preset" not in given and not {*lengths} <= given:
        problem = "give n_input_token and n_output_token, or a preset such as chat"
        errors.append(InputError(field, problem, lengths))
    return errors


def _lengths(length: float | dict[str, float]) -> Lengths:
    return lengths_from_percentiles(length) if isinstance(length, dict) else Lengths(length, math.nan)


def _setting(name: str) -> Any:
    column = INPUT_COLUMNS[name]
    return Field(default=None, ge=column.low, le=column.high, description=f"{column.meaning}.")


class ConstraintsRequest(OfferConstraintsRequest):
    """Constraints on the choice; a field left out does not constrain, except that prices are on demand."""

    _typed: dict[str, str | list[str]] = PrivateAttr(default_factory=dict)

    engine: Annotated[str, Field(max_length=40)] = ""
    """Short form of `engines` with one element."""
    engines: Annotated[Texts, Flag("--engine")] = Field(default_factory=list)
    """Engines in any case of letters; by default those of vllm, sglang and trtllm that run the model, on machines of
    desks also llama.cpp, on Apple's mlx-lm too."""
    weight_precision: WeightName | None = None
    weight_precisions: Annotated[list[WeightName], Field(max_length=8), Flag("--weight-precision --precision")] = (
        Field(default_factory=list)
    )
    """Precisions of the weights, or names of formats such as Q5_K_M; by default the checkpoint's own, and those of
    the repositories that its publisher has in FP8, NVFP4 or INT4."""
    original: Annotated[bool, Flag("--original")] = False
    """Whether to leave out the publisher's repositories of other precisions."""
    max_usd_per_h: Annotated[float | None, Field(gt=0, le=1e9), Flag("--max-usd-per-h --budget")] = None
    """Most US dollars per hour."""
    kv_precision: Annotated[PrecisionName | None, Flag()] = None
    """Precision of the KV cache; by default that of the weights' computation."""
    gpu_memory_utilization: Annotated[float | None, Flag()] = _setting("gpu_memory_utilization")
    max_num_seqs: Annotated[float | None, Flag()] = _setting("max_num_seqs")
    chunk_size_token: Annotated[float | None, Flag()] = _setting("chunk_size_token")
    n_gpu_layer: Annotated[float | None, Flag()] = _setting("n_gpu_layer")
    n_cpu_moe: Annotated[float | None, Flag()] = _setting("n_cpu_moe")
    cpu_offload_gib: Annotated[float | None, Flag()] = _setting("cpu_offload_gib")
    max_nodes: Annotated[int, Field(ge=1, le=8), Flag("--max-nodes --nodes")] = 1
    """Most nodes that one replica may span."""
    speculation: Annotated[
        list[SpeculationKind], Field(max_length=len(get_args(SpeculationKind))), Flag("--speculation")
    ] = Field(default_factory=list)
    """Kinds of speculative decoding to search: none, to compare, mtp, eagle, draft or ngram; by default none. The
    memory of a draft model is not counted."""
    n_speculative_token: Annotated[int | None, Field(ge=1, le=64), Flag()] = None
    """Speculated tokens per step; 3 by default."""
    acceptance_length: Annotated[float | None, Field(ge=1, le=65), Flag()] = None
    """Tokens of a step, the model's own among them; by default the usual."""
    draft_acceptance_ratio: Annotated[float | None, Field(ge=0, le=1), Flag()] = None
    """Accepted over drafted tokens, as engines print it."""
    chain_acceptance_ratio: Annotated[float | None, Field(ge=0, lt=1), Flag()] = None
    """Probability that a speculated token is accepted, given those before it."""
    draft_model: Annotated[Text | None, Flag()] = None
    """Checkpoint of the drafts, for `deployment`."""

    @model_validator(mode="wrap")
    @classmethod
    def _keep_typed(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(values)
        if isinstance(values, Mapping):
            cells = {name: values.get(name) for name in ("weight_precision", "weight_precisions", "kv_precision")}
            made._typed = {name: cell for name, cell in cells.items() if cell}
        return made

    def weight_names(self) -> list[str]:
        """Return the formats of weights to search as they were written, none for those of the checkpoint."""
        return [name for field, names in self.typed_names().items() if "weight" in field for name in names]

    def typed_names(self) -> dict[str, list[str]]:
        """Return the names of accelerators and precisions as they were written, by field."""
        typed = {name: [cell] if isinstance(cell, str) else cell for name, cell in self._typed.items()}
        return {"accelerator": self.accelerators, **typed}

    @model_serializer(mode="wrap")
    def _as_typed(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**handler(self), **self._typed}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not set(self.speculation) - {NO_SPECULATION}:
            for name in ("n_speculative_token", *ACCEPTANCES, "draft_model"):
                if getattr(self, name) is not None:
                    problem = f"{name} needs speculation; name a kind such as eagle"
                    raise InputError("", problem, (name,))
        given = [name for name in ACCEPTANCES if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError("", f"give one of {', '.join(given)}: the others follow from it", given)
        return self

    def speculations(self) -> tuple[Speculation | None, ...]:
        """Return the kinds of speculative decoding to search; None is without."""
        import numpy as np  # noqa: PLC0415

        from roofcast.features.descriptors.descriptor_table import TYPICAL_DRAFT  # noqa: PLC0415  (needs NumPy)
        from roofcast.features.engine.pass_cost import chain_acceptance  # noqa: PLC0415

        n_token = self.n_speculative_token or int(TYPICAL_DRAFT)
        chance, length = self.chain_acceptance_ratio, self.acceptance_length
        if self.draft_acceptance_ratio is not None:
            length = 1 + self.draft_acceptance_ratio * n_token
        if length is not None:
            chance = float(chain_acceptance(np.array([length]), np.array([float(n_token)]))[0])
        return tuple(
            None if kind == NO_SPECULATION else Speculation(kind, n_token, chance)
            for kind in dict.fromkeys(self.speculation or [NO_SPECULATION])
        )


class RecommendationRequest(Message):
    """A model, a workload, limits, and constraints; a reference without `model` is of this model."""

    model: Annotated[ModelChoice, MODEL_FLAG]
    workload: WorkloadRequest
    limits: Annotated[list[Text], Field(max_length=20), Flag("--limit --slo")] = Field(default_factory=list)
    """Limits such as `ttft:p95<=500ms`; without any the load has to be served."""
    objective: Annotated[ObjectiveName, Flag()] = ""
    """What to minimise: cost, in US dollars per hour for the load; tokens, in US dollars per million, the default
    without a load; accelerators; or throughput, to maximise within max_usd_per_h."""
    confidence: Annotated[Confidence, Flag()] = DEFAULT_CONFIDENCE
    constraints: ConstraintsRequest = ConstraintsRequest()
    price_overrides: Annotated[list[PriceOverride], Field(max_length=200)] = Field(default_factory=list)
    references: References = Field(default_factory=list)
    stack: StackName = None
    operator: Annotated[OperatorName, Flag()] = DEFAULT_OPERATOR
    level: Annotated[Level, Flag()] = DEFAULT_LEVEL
    n_entry: Annotated[int, Field(ge=1, le=200), Flag("--n-entry --top")] = 10
    """Most entries."""
    n_rejection: Annotated[int, Field(ge=0, le=500)] = 20
    levers: bool = True
    """Whether to search what would change the cost."""
    deployment: Annotated[Artefact, Flag()] = ""
    """Command line or manifest to add to each entry: vllm, sglang, trtllm, kubernetes or kserve."""

    model_config = examples(
        {
            "model": {"name": "my-14b", "config": QWEN_LIKE_CONFIG},
            "workload": {"n_input_token": 120, "n_output_token": 20, "users": 200},
            "limits": ["nttft:p50<=100ms", "itl:p50<=50ms"],
        },
        {
            "model": "meta-llama/Llama-3.1-8B",
            "workload": {"n_input_token": 500, "n_output_token": 100, "request_rate_per_s": 5},
            "limits": ["ttft:p95<=2s", "tpot:mean<=80ms"],
            "confidence": 0.9,
            "constraints": {"providers": ["aws", "gcp"], "max_usd_per_h": 50, "engines": ["vllm"]},
        },
    )
