"""Specs: frozen, validated facts about models, accelerators, offers, configurations and workloads."""

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    computed_field,
    model_validator,
)

from roofcast.data.errors import InputError, join_errors, shorten
from roofcast.data.layer_kinds import Layers
from roofcast.data.layer_summary import summarise, uniform_layers
from roofcast.data.prices.regions import COUNTRIES

Precision = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "int4"]
Statistic = Literal["mean", "p50", "p90", "p95", "p99"]
Pricing = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "capacity_block"]
Market = Literal["provider", "marketplace"]
Attention = Literal["mha", "gqa", "mqa", "mla"]

PRECISIONS: tuple[str, ...] = get_args(Precision)
STATISTICS: tuple[str, ...] = get_args(Statistic)

BYTE_PER_WEIGHT: dict[str, float] = {
    "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5,
}  # fmt: skip

Count = Annotated[int, Field(ge=1, le=10**7)]
CountOrNone = Annotated[int, Field(ge=0, le=10**7)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Source = Annotated[str, Field(min_length=1, max_length=2000)]
Money = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""Exact decimal amount; a number in JSON."""


class Spec(BaseModel):
    """Base of every spec: immutable, no unknown fields, errors named by field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def parse(cls, fields: dict[str, Any], prefix: str = "") -> Self:
        """Return the spec of these fields.

        Raises `InputError` if a field is missing, unknown, of the wrong type or out of bounds; names each.

        Examples
        --------
        >>> Offer.parse({"provider": ""})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        roofcast.data.errors.InputError: provider: string should have at least 1 character, got ''; ...
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise input_error(error, prefix) from error


def input_error(error: ValidationError, prefix: str = "") -> InputError:
    """Return the `InputError` of a pydantic error, of its first field with the others.

    Parts of a path with a space are tags of alternatives, such as `a mean`.
    """
    errors = []
    for part in error.errors():
        field = ".".join(str(name) for name in (prefix, *part["loc"]) if name != "" and " " not in str(name))
        message = part["msg"].removeprefix("Value error, ")
        got = "" if part["type"] in {"missing", "value_error"} else f", got {shorten(part['input'])}"
        errors.append(InputError(field, message[:1].lower() + message[1:] + got))
    return join_errors(errors)


@dataclasses.dataclass(frozen=True, slots=True)
class StoredBits:
    """Bits of one weight of a checkpoint by role, with its share of scales and zeros."""

    attention: float = 16.0
    mlp: float = 16.0
    expert: float = 16.0
    embedding: float = 16.0
    head: float = 16.0
    module: float = 16.0


_LAYERS: Final = TypeAdapter(Layers)


class ModelSpec(Spec):
    """Architecture of a language model, from its `config.json`.

    `layers` determines every other figure of the architecture (`layer_summary.summarise`); a spec without them gets
    those of `uniform_layers`.
    Widths are in elements, counts in layers, heads, experts or tokens. `n_layer` counts decoder layers.
    `n_param` and `n_param_active` count the text model's weights, all of them and those that one token uses;
    `n_param_published` is the maker's figure, which may include more, such as a vision tower.
    """

    id: Name
    lineage: Name
    fold_group: Name
    family: str = ""
    model_type: str = ""
    layers: Layers = Field(default=(), description="kinds of layers with their number, widths and state")
    n_param_other: int = Field(
        default=0, description="weights outside layers and embeddings: norms, positions, mixtures of streams"
    )
    n_layer: Count
    n_encoder_layer: CountOrNone = 0
    hidden_size: Count
    intermediate_size: CountOrNone = Field(default=0, description="width of a dense MLP; 0 if every MLP is MoE")
    mlp_gated: bool = True
    n_head: Count
    n_kv_head: Count
    head_dim: Count
    attention: Attention = "mha"
    kv_lora_rank: CountOrNone = 0
    q_lora_rank: CountOrNone = 0
    qk_rope_head_dim: CountOrNone = 0
    v_head_dim: CountOrNone = 0
    sliding_window: CountOrNone = 0
    n_sliding_layer: CountOrNone = 0
    n_linear_layer: CountOrNone = Field(default=0, description="layers whose state does not grow with context")
    n_sparse_layer: CountOrNone = Field(
        default=0, description="layers whose attention reads only the tokens that an indexer selects"
    )
    sparse_top_k: CountOrNone = Field(default=0, description="largest number of tokens that such a layer reads")
    kv_compression: CountOrNone = Field(
        default=0, description="tokens that share one cache entry in a layer of full attention; 0 if none do"
    )
    vocab_size: Count
    tie_word_embeddings: bool = False
    max_context_token: int = Field(default=0, ge=0, le=10**9, description="0 if unknown or unbounded")
    n_expert: CountOrNone = Field(default=0, description="routed experts of a layer")
    n_expert_per_token: CountOrNone = 0
    n_shared_expert: CountOrNone = 0
    moe_intermediate_size: CountOrNone = 0
    shared_expert_intermediate_size: CountOrNone = Field(
        default=0, description="width of all shared experts together"
    )
    n_dense_layer: CountOrNone = Field(default=0, description="layers without routed experts in an MoE model")
    weight_precision: Precision = "bf16"
    stored_bits: StoredBits | None = Field(
        default=None, description="bits of a weight by role, if the checkpoint states how it is quantised"
    )
    kv_precision: Precision | None = Field(default=None, description="precision of the cache that it states")
    weight_format: str = Field(default="", description="format of quantised weights that not every engine reads")
    assumed: tuple[str, ...] = Field(
        default=(), description="fields that the config leaves to the defaults of its class"
    )
    unread: tuple[str, ...] = Field(default=(), description="fields of the architecture that were not understood")
    n_param: Annotated[int, Field(ge=1)]
    n_param_active: Annotated[int, Field(ge=1)]
    n_param_lookup: int = Field(
        default=0,
        ge=0,
        description="weights, among all and those one token uses, that a token only looks up, as an embedding of its "
        "own for each layer; the input embedding is not counted here",
    )
    n_param_published: Annotated[int, Field(ge=1)] | None = None
    n_param_published_source: str = ""
    n_param_difference: str = Field(default="", description="why the published count is another, if it is")
    released: dt.date | None = None
    source: Source
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _summarise(cls, fields: Any) -> Any:
        given = fields.get("layers") if isinstance(fields, dict) else None
        if not given:
            return fields
        layers = _LAYERS.validate_json(given) if isinstance(given, str) else _LAYERS.validate_python(given)
        return {**fields, "layers": layers, **summarise(layers, fields)}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.layers:
            layers, n_param_other = uniform_layers(self)
            object.__setattr__(self, "layers", layers)
            object.__setattr__(self, "n_param_other", n_param_other)
        return self

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.n_kv_head > self.n_head:
            raise ValueError(f"n_kv_head ({self.n_kv_head}) must not exceed n_head ({self.n_head})")
        if self.n_param_active > self.n_param:
            raise ValueError(f"n_param_active ({self.n_param_active}) must not exceed n_param ({self.n_param})")
        if self.n_param_lookup >= self.n_param_active:
            most = self.n_param_active
            raise ValueError(f"n_param_lookup ({self.n_param_lookup}) must be below n_param_active ({most})")
        if self.n_expert and not (1 <= self.n_expert_per_token <= self.n_expert and self.moe_intermediate_size):
            raise ValueError("an MoE model needs 1 <= n_expert_per_token <= n_expert and moe_intermediate_size")
        if not self.n_expert and not self.intermediate_size and self.n_linear_layer < self.n_layer:
            raise ValueError("intermediate_size must be given for a model without experts")
        if self.n_dense_layer > self.n_layer:
            raise ValueError(f"n_dense_layer ({self.n_dense_layer}) must not exceed n_layer ({self.n_layer})")
        if self.attention == "mla" and not self.kv_lora_rank:
            raise ValueError("an MLA model needs kv_lora_rank")
        return self

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        if self.n_sliding_layer + self.n_linear_layer > self.n_layer:
            raise ValueError("n_sliding_layer + n_linear_layer must not exceed n_layer")
        if self.n_sparse_layer + self.n_linear_layer > self.n_layer:
            raise ValueError("n_sparse_layer + n_linear_layer must not exceed n_layer")
        if bool(self.n_sparse_layer) != bool(self.sparse_top_k):
            raise ValueError("n_sparse_layer and sparse_top_k must be given together")
        return self


class AcceleratorSpec(Spec):
    """Data sheet of an accelerator; peaks are dense, with FP32 accumulation where supported.

    `peak_flop_per_s` has operations per second by precision. `link_bandwidth_byte_per_s` is that of the scale-up
    fabric per accelerator, both directions together, and `link_domain_size` the number of accelerators it connects.
    A server processor is one socket, with the memory that its note states; `l2_byte` is its last-level cache.
    """

    id: Name
    vendor: Name
    name: Name
    architecture: str = ""
    year: Annotated[int, Field(ge=2006, le=2100)] | None = None
    form_factor: str = ""
    memory_type: str = ""
    memory_byte: Positive
    bandwidth_byte_per_s: Positive
    peak_flop_per_s: dict[Precision, Positive]
    l2_byte: Annotated[float, Field(ge=0)] = 0.0
    tdp_w: Positive | None = None
    link: str = ""
    link_bandwidth_byte_per_s: Positive
    link_domain_size: Count = 1
    pcie_gen: int | None = None
    source: Source
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not {"fp32", "fp16", "bf16"} & set(self.peak_flop_per_s):
            raise ValueError("peak_flop_per_s must hold fp32, fp16 or bf16")
        return self


class Offer(Spec):
    """Dated price of a node of `n_accelerator` in US dollars; `listed_...` is the amount in the provider's currency.

    `region` is the provider's own name, a country where the price list names no more, or ``unknown``.

    `market` is ``marketplace`` where third-party hosts supply the instance, community tiers of a provider included.
    """

    provider: Name
    instance_type: Name
    region: str
    accelerator: Name
    n_accelerator: Count
    vcpu: Positive | None = None
    memory_byte: Positive | None = None
    pricing: Pricing
    market: Market = "provider"
    price_usd_per_h: Annotated[Money, Field(gt=0, lt=100_000)]
    listed_price_per_h: Annotated[Money, Field(gt=0)] | None = None
    listed_currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"
    as_of: dt.date
    source: Source
    licence: Name

    @computed_field
    def country(self) -> str:
        """ISO code of the region's country; blank if it is not known."""
        return COUNTRIES.get(self.region, "")

    @property
    def id(self) -> str:
        """Key of the offer in a price book."""
        return f"{self.provider}/{self.region}/{self.instance_type}/{self.pricing}"
