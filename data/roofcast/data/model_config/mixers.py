"""Kinds of attention and recurrent layers of a config, one entry a layer."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.layer_kinds import Attention, LayerKind, Recurrent, StatePrecision
from roofcast.data.model_config import field_names as names
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import Family
from roofcast.data.model_config.schedules import Mixer, read_own_blocks, read_passes, read_windows

_HIGH: Final = 10_000
_INDEXED_RATIO: Final = 4
"""Tokens to an entry in the layers of DeepSeek-V4 whose indexer selects entries; their compressors overlap."""

_RATES: Final = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


@dataclasses.dataclass(frozen=True)
class Model:
    """What the layers of a config share."""

    reader: ConfigReader
    family: Family
    model_type: str
    hidden: int
    n_layer: int


def read_mixer_layers(model: Model, mixers: list[Mixer]) -> list[LayerKind]:
    """Return the attention and recurrent layers of a model.

    Raises `InputError` if a field is missing or wrong, or no layer attends or recurs.
    """
    reader, n_layer = model.reader, model.n_layer
    if not {*mixers} - {"none"}:
        field = next((name for name in names.MIXER_SCHEDULES if reader.has(name)), "layer_types")
        raise InputError(field, "leaves no layer of attention and none with a state")
    listed = "num_attention_heads_per_layer"
    default = None if {*mixers} & {"full", "sliding", "both"} else 1
    heads = reader.per_layer(*((listed,) if reader.has(listed) else names.HEADS), n_layer=n_layer, default=default)
    kv_heads = _kv_heads(model, heads)
    windows = read_windows(reader, n_layer)
    ratios, sparse, indexed = _ratios(reader, n_layer), _sparse_blocks(reader, n_layer), _indexers(model, mixers)
    n_shared = reader.count_or_none("num_kv_shared_layers", high=n_layer)
    passes, n_block = read_passes(reader, n_layer), read_own_blocks(reader)
    is_read = reader.text("recurrent_kv_cache_mode", default="") == "last_loop"  # Dory: one pass alone writes
    layers: list[Attention | Recurrent] = []
    for i, mixer in enumerate(mixers):
        n_before = len(layers)
        if mixer in {"full", "sliding", "both"}:
            own = _own_fields(reader, i, is_sliding=mixer == "sliding")
            kind = _attention(
                dataclasses.replace(model, reader=own), mixer, (heads[i], kv_heads[i]), windows[i], ratios[i]
            )
            kind = dataclasses.replace(kind, is_shared=i >= n_layer - n_shared)
            kind = _with_index(model, kind, indexed[i], sparse[i]) if not kind.is_sliding else kind
            kind = _with_further(model, kind, ratios[i])
            is_again = 0 < n_block <= sum(isinstance(known, Attention) for known in layers)
            layers += [dataclasses.replace(kind, is_again=is_again), *_taps(model, kind)]
        if mixer in {"linear", "both"}:
            layers.append(_recurrent(model, heads[i]))
        again = [dataclasses.replace(kind, is_again=True) for kind in layers[n_before:]]
        again = [dataclasses.replace(k, is_shared=is_read) if isinstance(k, Attention) else k for k in again]
        layers += again * (passes[i] - 1)
    return [*layers]


def _kv_heads(model: Model, heads: list[int]) -> list[int]:
    reader, n_layer = model.reader, model.n_layer
    if reader.has("block_configs"):
        parts = [ConfigReader(ConfigReader(b).section("attention")) for b in reader.objects("block_configs")]
        if any(part.flag("replace_with_linear") for part in parts):
            raise InputError("block_configs.attention", "is replaced with a linear map, which cannot be counted")
        if len(parts) != n_layer:
            raise InputError("block_configs", f"must hold a block for each of {n_layer} layers, got {len(parts)}")
        groups = [0 if part.flag("no_op") else part.count("n_heads_in_group", high=_HIGH) for part in parts]
        return [max(n // group, 1) if group else n for n, group in zip(heads, groups, strict=True)]
    if model.family.is_mqa and not reader.flag("new_decoder_architecture"):
        return [1 if reader.flag("multi_query", default=True) else n for n in heads]
    if not reader.has(*names.KV_HEADS):
        return heads
    kv_heads = reader.per_layer("num_key_value_heads_per_layer", *names.KV_HEADS, n_layer=n_layer)
    if any(kv > n for kv, n in zip(kv_heads, heads, strict=True)):
        raise InputError(
            "num_key_value_heads", f"must not exceed num_attention_heads ({heads[0]}), got {max(kv_heads)}"
        )
    return kv_heads


def _own_fields(reader: ConfigReader, i: int, *, is_sliding: bool) -> ConfigReader:
    """Return the fields of one layer: of latents its own, those of layers that slide, then those of all."""
    if not reader.has("kv_lora_rank"):
        return reader
    of_layers = {int(k): v for k, v in reader.section("per_layer_config").items() if str(k).isdecimal()}
    own, text = of_layers.get(i, {}), reader.mapping()
    sliding = {k.removeprefix("swa_"): v for k, v in text.items() if k.startswith("swa_")} if is_sliding else {}
    return reader.with_first(own if isinstance(own, Mapping) else {}, sliding)


def _latent(reader: ConfigReader, n_head: int, n_kv_head: int, window: int) -> Attention:
    rope = reader.count_or_none("qk_rope_head_dim", high=_HIGH)
    return Attention(
        n=1, n_head=reader.count(*names.HEADS, default=n_head, high=_HIGH), rope_dim=rope, window=window,
        n_kv_head=reader.count(*names.KV_HEADS, default=n_kv_head, high=_HIGH),
        latent=reader.count("kv_lora_rank", high=100_000),
        qk_dim=reader.count("qk_nope_head_dim", high=_HIGH) + rope, v_dim=reader.count("v_head_dim", high=_HIGH),
        query_rank=reader.count_or_none("q_lora_rank", high=100_000),
    )  # fmt: skip


def _attention(model: Model, mixer: Mixer, heads: tuple[int, int], window: int, ratio: int) -> Attention:
    reader = model.reader
    n_head, n_kv_head = heads
    window = window if mixer == "sliding" or ratio >= 0 else 0
    rank = reader.count_or_none("kv_lora_rank", high=100_000) if reader.flag("use_mla", default=True) else 0
    if ratio >= 0:
        return _compressed(model, n_head, window, ratio)
    if rank:
        return _latent(reader, n_head, n_kv_head, window)
    dim = head_dim(reader, model.hidden, n_head)
    value = reader.count("v_head_dim", default=dim, high=_HIGH)
    k_eq_v = False
    if mixer == "sliding":
        other = ConfigReader(reader.section("attention_other_setting"))
        n_head = other.count("num_attention_heads", default=n_head, high=_HIGH)
        n_head = reader.count(*names.SLIDING_HEADS, default=n_head, high=_HIGH)
        n_kv_head = other.count("num_attention_groups", default=n_kv_head, high=_HIGH)
        n_kv_head = reader.count(*names.SLIDING_KV_HEADS, default=n_kv_head, high=_HIGH)
        own = reader.count(*names.SLIDING_HEAD_DIM, default=dim, high=_HIGH)
        value = reader.count(*names.SLIDING_VALUE_DIM, default=own if value == dim else value, high=_HIGH)
        dim = own
    elif model.model_type.startswith("gemma4") or reader.has(*names.GLOBAL_HEAD_DIM):
        dim = value = reader.count(*names.GLOBAL_HEAD_DIM, default=512, high=_HIGH)
        k_eq_v = reader.flag("attention_k_eq_v")
        n_kv_head = (reader.count_or_none(*names.GLOBAL_KV_HEADS, high=_HIGH) if k_eq_v else 0) or n_kv_head
    return Attention(
        n=1, n_head=n_head, n_kv_head=n_kv_head, qk_dim=dim, v_dim=value, window=window, k_eq_v=k_eq_v
    )  # fmt: skip


def head_dim(reader: ConfigReader, hidden: int, n_head: int) -> int:
    """Return the width of a head: by default the hidden size over the heads.

    Raises `InputError` if that is no whole number.
    """
    stated = reader.count_or_none(*names.HEAD_DIM, high=_HIGH)
    if not stated and hidden % n_head:
        raise InputError("hidden_size", f"must be a multiple of {n_head} heads, got {hidden}; or give head_dim")
    return stated or hidden // n_head


def _ratios(reader: ConfigReader, n_layer: int) -> list[int]:
    """Return the tokens to a cache entry of each layer of DeepSeek-V4, 0 if it has a window alone; -1 for others."""
    if not reader.has("o_groups"):
        return [-1] * n_layer
    if reader.has("compress_ratios"):
        ratios = reader.numbers("compress_ratios")[:n_layer]
        if len(ratios) != n_layer or not all(0 <= r <= 100_000 for r in ratios):
            raise InputError("compress_ratios", f"must hold a ratio for each of {n_layer} layers")
        return ratios
    rates, kinds = _RATES | dict(reader.section("compress_rates")), reader.texts("layer_types")
    if len(kinds) != n_layer:
        raise InputError("layer_types", f"must name all {n_layer} layers, or give compress_ratios; got {len(kinds)}")
    return [int(rates.get(kind, 0)) for kind in kinds]


def _compressed(model: Model, n_head: int, window: int, ratio: int) -> Attention:
    reader = model.reader
    dim = reader.count("head_dim", high=_HIGH)
    rope = reader.count("qk_rope_head_dim", default=dim // 8, high=dim - 1)
    output = _output_weights(reader, model.hidden, n_head * dim)
    return Attention(
        n=1, n_head=n_head, n_kv_head=1, qk_dim=dim, v_dim=max(output // (n_head * model.hidden), 1), window=window,
        latent=dim - rope, rope_dim=rope, query_rank=reader.count("q_lora_rank", high=100_000), compression=ratio,
        top_k=reader.count(*names.INDEX_TOP_K) + window if ratio == _INDEXED_RATIO else 0,
    )  # fmt: skip


def _output_weights(reader: ConfigReader, hidden: int, width: int) -> int:
    rank = reader.count("o_lora_rank", high=100_000)
    return width * rank + reader.count("o_groups", high=_HIGH) * rank * hidden


def _sparse_blocks(reader: ConfigReader, n_layer: int) -> list[int]:
    """Return the most tokens that each layer reads of blocks that an indexer chose; 0 for all."""
    blocks = ConfigReader(reader.section("sparse_attention_config"))
    if not blocks.flag("use_sparse_attention"):
        return [0] * n_layer
    top_k = blocks.count("sparse_topk_blocks", high=_HIGH) * blocks.count("sparse_block_size", high=100_000)
    flags = blocks.numbers("sparse_attention_freq") or [1] * n_layer
    return [top_k if flag > 0 else 0 for flag in (*flags, *[0] * n_layer)][:n_layer]


def _indexers(model: Model, mixers: list[Mixer]) -> list[bool]:
    """Return whether each layer has an indexer of its own; layers between may use the choice of an earlier one."""
    kinds = model.reader.texts("indexer_types")
    if kinds and len(kinds) != model.n_layer:
        own = iter(kinds)  # one for each layer of attention
        kinds = [next(own, "full") if mixer == "full" else "" for mixer in mixers]
    return [kind == "full" for kind in kinds] or [True] * model.n_layer


def _with_index(model: Model, kind: Attention, has_own: bool, block_top_k: int) -> Attention:
    reader = model.reader
    blocks = ConfigReader(reader.section("sparse_attention_config"))
    source = blocks if block_top_k else reader
    top_k = kind.top_k or block_top_k or reader.count_or_none(*names.INDEX_TOP_K)
    n_head = source.count_or_none(*names.INDEX_HEADS, high=_HIGH) if top_k else 0
    if not n_head:
        return dataclasses.replace(kind, top_k=top_k)
    return dataclasses.replace(
        kind,
        top_k=top_k,
        n_indexer=int(has_own),
        n_index_head=n_head,
        index_dim=source.count(*names.INDEX_DIM, high=_HIGH),
        index_compression=kind.compression or reader.count_or_none(*names.INDEX_COMPRESSION),
    )


def _with_further(model: Model, kind: Attention, ratio: int) -> Attention:
    """Return a layer with the weights that its widths do not say: biases, norms of heads, gates, compressors."""
    reader, family, hidden = model.reader, model.family, model.hidden
    query, key_value = kind.n_head * kind.qk_dim, kind.n_kv_head * (kind.qk_dim + kind.v_dim)
    out = kind.n_head * kind.v_dim
    if ratio >= 0:
        further = _compressed_weights(model, kind, ratio) - kind.n_param(hidden)
        return dataclasses.replace(kind, n_param_further=further)
    bias = read_bias(reader, family)
    further = {"none": 0, "qkv": query + key_value, "all": query + key_value + hidden}[bias]
    if not kind.latent and (family.has_qk_norm or reader.flag("use_qk_norm")):
        further += 2 * kind.qk_dim
    if kind.is_shared and model.model_type.startswith("gemma3n"):
        further += hidden * key_value  # the checkpoint holds matrices that no layer uses
    if rank := reader.count_or_none("share_q_dim", high=100_000):  # queries of Step-3 share a projection
        further += rank * (hidden + query) - hidden * query
    if reader.count_or_none("num_mem_blocks", high=1_000):  # Zamba2: reads tokens and their embeddings side by side
        further += hidden * (query + key_value)
    is_gated = reader.flag("attn_output_gate", "mla_use_output_gate", default=family.gate == "element")
    further += hidden * out if is_gated else hidden * kind.n_head if family.gate == "head" else 0
    return dataclasses.replace(kind, n_param_further=further)


def _compressed_weights(model: Model, kind: Attention, ratio: int) -> int:
    reader, hidden, dim = model.reader, model.hidden, kind.qk_dim
    rank = kind.query_rank
    weights = (hidden + 1 + kind.n_head * dim) * rank + hidden * dim + dim + kind.n_head
    weights += _output_weights(reader, hidden, kind.n_head * dim) + (_compressor(hidden, dim, ratio) if ratio else 0)
    if kind.index_dim:
        width = kind.index_dim
        weights += _compressor(hidden, width, _INDEXED_RATIO) - hidden * width - 2 * width
        weights += rank * kind.n_index_head * width + hidden * (width + kind.n_index_head) + 2 * width
    return weights


def _compressor(hidden: int, width: int, ratio: int) -> int:
    """Return the weights that make one entry of a number of tokens: values, gates, positions and a norm.

    Examples
    --------
    Two values and two gates of width 8 from a token of width 16, and positions of 4 tokens, as the entries overlap:

    >>> _compressor(hidden=16, width=8, ratio=4)
    584
    """
    n_half = 2 if ratio == _INDEXED_RATIO else 1
    return n_half * width * (2 * hidden + ratio) + width


def read_bias(reader: ConfigReader, family: Family) -> str:
    """Return which matrices have a bias: ``none``, ``qkv`` or ``all``."""
    if reader.states("no_bias"):
        return "none" if reader.flag("no_bias") else "all"
    if family.bias == "all":
        return "all" if reader.flag(*names.ALL_BIAS, default=True) else "none"
    if reader.states(*names.QKV_BIAS):
        return "qkv" if reader.flag(*names.QKV_BIAS) else "none"
    return family.bias


def _taps(model: Model, kind: Attention) -> list[Recurrent]:
    """Return the convolutions over keys, values and the residual stream beside attention (Inkling)."""
    n_tap = model.reader.count_or_none("conv_kernel_size", "sconv_kernel_size", high=64)
    if n_tap < 2 or not model.reader.has("swa_num_key_value_heads"):
        return []
    width = kind.n_kv_head * (kind.qk_dim + kind.v_dim) + 2 * model.hidden
    return [Recurrent(n=1, recurrence="taps", conv_width=width, n_tap=n_tap)]


def _state_precision(reader: ConfigReader) -> StatePrecision:
    """Return the precision of states: 32 bits as SGLang and llama.cpp hold them, unless the config states another."""
    return "bf16" if "16" in reader.text(*names.STATE_DTYPE, default="float32") else "fp32"


def _recurrent(model: Model, n_head: int) -> Recurrent:
    """Return a layer whose state does not grow, by the fields that describe one."""
    reader, hidden = model.reader, model.hidden
    linear = ConfigReader(reader.section("linear_attn_config"))
    if reader.count_or_none("linear_num_value_heads", high=_HIGH):
        n_value, n_key = (reader.count(name, high=_HIGH) for name in names.DELTA[:2])
        key, value = (reader.count(name, high=_HIGH) for name in names.DELTA[2:4])
        return Recurrent(
            n=1, recurrence="gated_delta", n_head=n_value, n_key_head=n_key, key_dim=key, value_dim=value,
            conv_width=2 * n_key * key + n_value * value, n_tap=reader.count(names.DELTA[4], default=4, high=64),
            state_precision=_state_precision(reader),
        )  # fmt: skip
    rank = reader.count_or_none("shift_rank", high=_HIGH)  # of RWKV-7, which reads the token before
    if rank or model.model_type.startswith("minimax") or reader.states("group_norm_size"):
        dim = head_dim(reader, hidden, n_head)
        return Recurrent(
            n=1, recurrence="lightning", n_head=n_head, key_dim=dim, value_dim=dim,
            conv_width=2 * hidden if rank else 0, n_tap=2 if rank else 1, state_precision=_state_precision(reader),
            n_param_further=hidden * (2 * rank - n_head * dim) if rank else 0,
        )  # fmt: skip
    n_state, dim = _kimi_shape(reader, linear, n_head)
    if n_state:
        width = n_state * dim
        is_full = reader.flag("no_kda_lora", default=model.model_type == "bailing_hybrid")  # Ling 3: decay and gate
        n_full = 2 if is_full else int(linear.flag("use_full_rank_gate"))
        taps = ConfigReader(linear.mapping(), reader.mapping())
        return Recurrent(
            n=1, recurrence="kimi_delta", n_head=n_state, key_dim=dim, value_dim=dim, conv_width=3 * width,
            n_tap=taps.count("short_conv_kernel_size", "linear_conv_kernel_dim", default=4, high=64),
            state_precision=_state_precision(reader),
            n_param_further=n_full * (hidden * width - (hidden + width) * dim),
        )  # fmt: skip
    if reader.count_or_none(*names.MAMBA_HEADS, high=100_000):
        return _mamba2(reader, hidden)
    if reader.count_or_none("conv_L_cache", high=64):
        return Recurrent(
            n=1, recurrence="short_conv", conv_width=hidden, n_tap=reader.count("conv_L_cache", high=64)
        )  # fmt: skip
    if reader.count_or_none("mamba_d_state", high=100_000):
        inner = reader.count("mamba_expand", default=2, high=64) * hidden
        rank = -(-hidden // 16) if reader.holds_text("mamba_dt_rank") else reader.count(
            "mamba_dt_rank", default=-(-hidden // 16), high=100_000
        )  # fmt: skip
        return Recurrent(
            n=1, recurrence="mamba1", n_head=1, key_dim=reader.count("mamba_d_state", high=100_000), value_dim=inner,
            conv_width=inner, n_tap=reader.count(*names.MAMBA_TAPS, default=4, high=64), rank=rank,
            state_precision=_state_precision(reader),
        )  # fmt: skip
    raise InputError(
        "linear_num_value_heads",
        "is missing: layers of linear attention need linear_num_key_heads, linear_num_value_heads and their head "
        "dims, or linear_num_heads and linear_head_dim, or mamba_num_heads; add them to the config",
    )


def _kimi_shape(reader: ConfigReader, linear: ConfigReader, n_head: int) -> tuple[int, int]:
    """Return heads and their width of delta attention: its own, or attention's if it has a convolution alone."""
    if linear.has("num_heads"):
        return linear.count("num_heads", high=_HIGH), linear.count("head_dim", high=_HIGH)
    if n_state := reader.count_or_none("linear_num_heads", high=_HIGH):
        return n_state, reader.count("linear_head_dim", high=_HIGH)
    has_taps = reader.count_or_none("short_conv_kernel_size", high=64) > 1
    return (n_head, reader.count("head_dim", high=_HIGH)) if has_taps else (0, 0)


def _mamba2(reader: ConfigReader, hidden: int) -> Recurrent:
    n_head = reader.count(*names.MAMBA_HEADS, high=100_000)
    expanded = max(int(reader.number("mamba_expand", default=2.0) * hidden), 1)
    by_head = reader.count_or_none("mamba_head_dim", high=_HIGH) * n_head
    inner = by_head or reader.count_or_none("mamba_d_ssm") or expanded
    dim = max(inner // n_head, 1)
    n_group = reader.count(*names.MAMBA_GROUPS, default=1, high=100_000)
    n_state = reader.count(*names.MAMBA_STATE, high=100_000)
    return Recurrent(
        n=1, recurrence="mamba2", n_head=n_head, n_key_head=n_group, key_dim=n_state, value_dim=dim,
        conv_width=n_head * dim + 2 * n_group * n_state, n_tap=reader.count(*names.MAMBA_TAPS, default=4, high=64),
        state_precision=_state_precision(reader),
    )  # fmt: skip
