"""Kinds of layers with number, widths, weights, cache and state: the table that every figure of a model follows.

Widths are in elements; `n` counts layers; `n_param` gives the weights of all layers of the kind, `n_param_further`
those among them that the widths do not say, such as biases and gates. Layers with `is_again` have the weights of
earlier ones: those of a loop after its first pass, and blocks that several layers share.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field

Recurrence = Literal["gated_delta", "kimi_delta", "lightning", "mamba1", "mamba2", "short_conv", "taps", "unknown"]
StatePrecision = Literal["fp32", "bf16"]

INDEX_SCALE_BYTE: Final = 4
"""Bytes of the scale that vLLM and SGLang store beside the 8-bit index key of a token."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attention:
    """Layers of attention.

    A window of 0 reads the whole context. With `latent`, keys and values are made of a cached vector of that rank
    beside a rotary key of width `rope_dim`, 0 without positions. `top_k` is the most tokens that a query reads of
    those that an indexer chose; `n_indexer` layers of the kind have one. With `compression`, so many tokens share a
    cache entry, beside the window. Layers with `is_shared` read the cache of an earlier layer. With `k_eq_v`, values
    are projected by the keys' matrix and cached all the same.
    """

    kind: Literal["attention"] = "attention"
    n: int
    n_head: int
    n_kv_head: int
    qk_dim: int
    v_dim: int
    window: int = 0
    latent: int = 0
    rope_dim: int = 0
    query_rank: int = 0
    top_k: int = 0
    compression: int = 0
    n_indexer: int = 0
    n_index_head: int = 0
    index_dim: int = 0
    index_compression: int = 0
    is_shared: bool = False
    k_eq_v: bool = False
    is_again: bool = False
    n_param_further: int = 0

    @property
    def is_sliding(self) -> bool:
        """Whether what a query reads stops growing at the window."""
        return self.window > 0 and not self.top_k

    @property
    def cache_width(self) -> int:
        """Elements of one cache entry of one layer: keys and values, or the latent and the rotary key."""
        return self.latent + self.rope_dim if self.latent else self.n_kv_head * (self.qk_dim + self.v_dim)

    @property
    def growing_width(self) -> float:
        """Elements that one layer caches for each token of the context."""
        if self.is_shared or (self.window and not self.compression):
            return 0.0
        return self.cache_width / max(self.compression, 1)

    @property
    def window_width(self) -> int:
        """Elements that one layer caches for each token of its window."""
        return 0 if self.is_shared or not self.window else self.cache_width

    @property
    def index_byte(self) -> float:
        """Bytes of index keys that all layers cache for each token: 8 bits an element and a scale."""
        per_layer = (self.index_dim + INDEX_SCALE_BYTE) / max(self.index_compression, 1) if self.index_dim else 0.0
        return self.n_indexer * per_layer

    def n_param(self, hidden: int) -> int:
        """Return the weights with those of the indexers."""
        if self.is_again:
            return 0
        value = self.n_head * self.v_dim * hidden
        if self.latent:
            query = (self.query_rank or hidden) * self.n_head * self.qk_dim + self.query_rank
            key_value = self.latent + self._n_param_up
        else:
            query = self.n_head * self.qk_dim * hidden
            key_value = hidden * self.n_kv_head * (self.qk_dim + (0 if self.k_eq_v else self.v_dim))
        layer = query + (0 if self.is_shared else key_value) + value
        return self.n * layer + self.n_param_copied(hidden) + self.n_param_further

    def n_param_copied(self, hidden: int) -> int:
        """Return the weights that each rank of a tensor-parallel group holds: projections to latents, and indexers.

        References
        ----------
        vLLM and SGLang, ``models/deepseek_v2.py``: ``fused_qkv_a_proj`` and the indexer are replicated.
        """
        if self.is_again:
            return 0
        down = (
            hidden * (self.query_rank + (0 if self.is_shared else self.latent + self.rope_dim)) if self.latent else 0
        )
        index = (self.query_rank or hidden) * self.n_index_head * self.index_dim
        index += hidden * (self.index_dim + self.n_index_head) + 2 * self.index_dim
        return self.n * down + self.n_indexer * index

    @property
    def n_param_absorbed(self) -> int:
        """Weights that decode multiplies queries and values with instead of expanding latents."""
        return 0 if self.compression or self.is_again else self.n * self._n_param_up

    @property
    def _n_param_up(self) -> int:
        return self.latent * self.n_head * (self.qk_dim - self.rope_dim + self.v_dim)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recurrent:
    """Layers whose state does not grow: linear attention, state spaces, convolutions.

    The state of a layer is `n_head` matrices of `key_dim` by `value_dim` and the last ``n_tap - 1`` inputs of a
    convolution over `conv_width` channels. `n_key_head` are key heads, or groups of Mamba-2; `rank` is that of the
    time step of Mamba. ``taps`` is a convolution beside attention, with no layer of its own.
    """

    kind: Literal["recurrent"] = "recurrent"
    n: int
    recurrence: Recurrence
    n_head: int = 0
    n_key_head: int = 0
    key_dim: int = 0
    value_dim: int = 0
    conv_width: int = 0
    n_tap: int = 1
    rank: int = 0
    state_precision: StatePrecision = "bf16"
    is_again: bool = False
    n_param_further: int = 0

    @property
    def state_byte(self) -> int:
        """Bytes of one request's state in one layer.

        Examples
        --------
        Qwen3.5-27B: 48 layers, 154 MB.

        >>> delta = Recurrent(n=48, recurrence="gated_delta", n_head=48, n_key_head=16, key_dim=128, value_dim=128,
        ...     conv_width=10240, n_tap=4, state_precision="fp32")
        >>> delta.n * delta.state_byte
        153944064
        """
        element = self.n_head * self.key_dim * self.value_dim
        return (4 if self.state_precision == "fp32" else 2) * element + 2 * self.conv_width * (self.n_tap - 1)

    @property
    def out_width(self) -> int:
        """Input width of the output projection."""
        return self.n_head * self.value_dim or self.conv_width

    def n_param(self, hidden: int) -> int:
        """Return the weights.

        References
        ----------
        S. Yang et al., "Gated Delta Networks", 2025; Kimi Team, "Kimi Linear", 2025; MiniMax, "MiniMax-01", 2025;
        A. Gu and T. Dao, "Mamba", 2023; T. Dao and A. Gu, "Transformers are SSMs", 2024; Liquid AI, "LFM2", 2025.
        """
        if self.is_again:
            return 0
        inner, taps = self.n_head * self.value_dim, self.n_tap * self.conv_width
        if self.recurrence == "gated_delta":
            key = self.n_key_head * self.key_dim
            weights = hidden * (2 * key + 3 * inner + 2 * self.n_head) + taps + 2 * self.n_head + self.value_dim
        elif self.recurrence == "kimi_delta":
            low_rank = (hidden + inner) * self.value_dim
            weights = 4 * hidden * inner + taps + 2 * low_rank + (hidden + 1) * self.n_head + inner + self.value_dim
        elif self.recurrence == "lightning":
            weights = 5 * hidden * inner + inner
        elif self.recurrence == "mamba2":
            group = 2 * self.n_key_head * self.key_dim
            weights = hidden * (3 * inner + group + self.n_head) + taps + inner + group + 3 * self.n_head + inner
        elif self.recurrence == "mamba1":
            selection = inner * (self.rank + 2 * self.key_dim) + (self.rank + 1) * inner
            norms = self.rank + 2 * self.key_dim
            weights = 3 * hidden * inner + taps + inner + selection + inner * self.key_dim + inner + norms
        elif self.recurrence == "short_conv":
            weights = 4 * hidden * hidden + taps
        else:
            weights = taps
        return self.n * weights + self.n_param_further


class _Gated:
    __slots__ = ()
    n: int
    is_gated: bool
    is_again: bool

    @property
    def _n_own(self) -> int:
        return 0 if self.is_again else self.n

    @property
    def n_matrix(self) -> int:
        """Matrices of an MLP or of an expert: three if gated, two if plain."""
        return 3 if self.is_gated else 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Mlp(_Gated):
    """Layers of a dense MLP."""

    kind: Literal["mlp"] = "mlp"
    n: int
    width: int
    is_gated: bool = True
    is_again: bool = False
    n_param_further: int = 0

    def n_param(self, hidden: int) -> int:
        """Return the weights."""
        return 0 if self.is_again else self.n * self.n_matrix * hidden * self.width + self.n_param_further


@dataclass(frozen=True, kw_only=True, slots=True)
class Experts(_Gated):
    """Layers of routed experts, of which a token uses `top_k`, beside shared experts of width `shared_width` in all.

    Experts may work on a projection of the token to `latent` elements; 0 if they work on the token.
    """

    kind: Literal["experts"] = "experts"
    n: int
    n_expert: int
    top_k: int
    width: int
    n_shared: int = 0
    shared_width: int = 0
    latent: int = 0
    is_gated: bool = True
    is_again: bool = False
    n_param_further: int = 0

    def n_param_routed(self, hidden: int) -> int:
        """Return the weights of all routed experts."""
        return self._n_own * self.n_expert * self.n_matrix * (self.latent or hidden) * self.width

    def n_param_shared(self, hidden: int) -> int:
        """Return the weights of the shared experts."""
        return self._n_own * self.n_matrix * hidden * self.shared_width

    def n_param(self, hidden: int) -> int:
        """Return the weights with those of routers and projections to the latent."""
        if self.is_again:
            return 0
        beside = self.n * hidden * (self.n_expert + 2 * self.latent)
        return self.n_param_routed(hidden) + self.n_param_shared(hidden) + beside + self.n_param_further


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoder:
    """Layers of a T5-like encoder, to which each of `n_cross` decoder layers attends; its MLPs are the decoder's."""

    kind: Literal["encoder"] = "encoder"
    n: int
    n_cross: int
    width: int
    mlp_width: int
    n_matrix: int

    def n_param_encoder(self, hidden: int) -> int:
        """Return the weights of the encoder alone."""
        return self.n * hidden * (4 * self.width + self.n_matrix * self.mlp_width)

    def n_param(self, hidden: int) -> int:
        """Return the weights with those of the decoder's attention to the encoder."""
        return self.n_param_encoder(hidden) + self.n_cross * 4 * hidden * self.width


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """Tables of which a token reads rows alone, beside the input embedding: per-layer and n-gram embeddings."""

    kind: Literal["lookup"] = "lookup"
    n: int
    n_param_table: int

    def n_param(self, hidden: int) -> int:  # noqa: ARG002
        """Return the weights."""
        return self.n * self.n_param_table


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """Part of a checkpoint beside the text model: a tower of images or sound, or layers that predict tokens."""

    kind: Literal["module"] = "module"
    role: Literal["tower", "prediction"]
    n: int
    n_param_layer: int

    def n_param(self, hidden: int) -> int:  # noqa: ARG002
        """Return the weights."""
        return self.n * self.n_param_layer


LayerKind = Annotated[Attention | Recurrent | Mlp | Experts | Encoder | Lookup | Module, Field(discriminator="kind")]
Layers = tuple[LayerKind, ...]

KindT = TypeVar("KindT", Attention, Recurrent, Mlp, Experts, Encoder, Lookup, Module)


def of_kind(layers: Iterable[LayerKind], kind: type[KindT]) -> list[KindT]:
    """Return the layers of a kind."""
    return [layer for layer in layers if isinstance(layer, kind)]


def unroll(layers: Iterable[LayerKind]) -> Layers:
    """Return the layers as a token passes them: as if each pass had weights of its own."""
    return tuple(k if isinstance(k, Encoder | Lookup | Module) else replace(k, is_again=False) for k in layers)


def text_param(layers: Iterable[LayerKind], hidden: int) -> int:
    """Return the weights of the text model's layers: without modules beside it."""
    return sum(layer.n_param(hidden) for layer in layers if not isinstance(layer, Module))
