"""MLPs, experts, embeddings, norms and modules beside the text model, of a config."""

import dataclasses
import math
from typing import Final

from roofcast.data.errors import InputError
from roofcast.data.layer_kinds import Encoder, Experts, LayerKind, Lookup, Mlp, Module
from roofcast.data.model_config import field_names as names
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.mixers import Model, read_bias
from roofcast.data.model_config.schedules import Mlp as MlpName
from roofcast.data.model_config.schedules import has_experts, read_own_blocks, read_passes

_MOST_WIDTH: Final = 2_000_000
_GEMMA_3N: Final = ("gemma3n", "gemma3n_text")
_NAS_MULTIPLE: Final = 256
_MERGER_WIDTH: Final = ("glm4v", "glm46v", "glmga")
"""Types of towers whose ``intermediate_size`` is that of the projection, and ``out_hidden_size`` that of the MLPs."""


def read_mlp_layers(model: Model, mlps: list[MlpName]) -> list[LayerKind]:
    """Return the MLPs and mixtures of experts of a model. Raises `InputError` if a field is missing or wrong."""
    has_bias = read_bias(model.reader, model.family) == "all"
    passes, n_block = read_passes(model.reader, len(mlps)), read_own_blocks(model.reader)
    layers: list[LayerKind] = []
    if "dense" in mlps:
        for i, (width, name) in enumerate(zip(_dense_widths(model, len(mlps)), mlps, strict=True)):
            if name == "dense" and width:
                bias = (2 if model.family.is_gated else 1) * width + model.hidden if has_bias else 0
                kind = Mlp(n=1, width=width, is_gated=model.family.is_gated, n_param_further=bias)
                layers += _passed(kind, passes[i], is_again=0 < n_block <= len(layers))
    if "sparse" in mlps:
        for i, (experts, name) in enumerate(zip(_experts(model, len(mlps)), mlps, strict=True)):
            bias = (2 if experts.is_gated else 1) * experts.width + model.hidden if has_bias else 0
            further = dataclasses.replace(experts, n_param_further=experts.n_expert * bias)
            layers += _passed(further, passes[i]) if name == "sparse" else []
    return layers


def _passed(kind: Mlp | Experts, n_pass: int, *, is_again: bool = False) -> list[LayerKind]:
    return [dataclasses.replace(kind, is_again=is_again or i > 0) for i in range(n_pass)]


def _dense_widths(model: Model, n_layer: int) -> list[int]:
    reader = model.reader
    if reader.has("block_configs"):
        return [_pruned_width(ConfigReader(block), model.hidden) for block in reader.objects("block_configs")]
    is_open = model.family.is_four_h or reader.has("n_embd")
    default = int(reader.number("expansion_ratio", default=4.0) * model.hidden) if is_open else None
    own: names.Names = names.DENSE_WIDTHS if reader.has(*names.DENSE_WIDTHS) else names.WIDTHS
    if reader.has("shared_intermediate_size") and not has_experts(reader):
        own = ("shared_intermediate_size",)
    low = 0 if reader.holds_list(*own) else 1  # a list has blanks for layers of experts
    widths = reader.per_layer(*own, n_layer=n_layer, default=default, low=low)
    if reader.flag("block_auto_adjust_ff_dim"):
        widths = [_adjusted_width(reader, width) for width in widths]
    if reader.flag("use_double_wide_mlp"):
        n_shared = reader.count_or_none("num_kv_shared_layers", high=n_layer)
        widths = [width * (2 if i >= n_layer - n_shared else 1) for i, width in enumerate(widths)]
    return [width // 2 for width in widths] if model.model_type == "qwen" else widths


def _pruned_width(block: ConfigReader, hidden: int) -> int:
    """Return the width of a block's MLP: 2/3 of `ffn_mult` times the hidden width, rounded up to a multiple of 256.

    Examples
    --------
    >>> _pruned_width(ConfigReader({"ffn": {"ffn_mult": 5.25}}), 8192)
    28672
    """
    width = int(2 * ConfigReader(block.section("ffn")).number("ffn_mult", default=1.0) * hidden / 3)
    return -(-width // _NAS_MULTIPLE) * _NAS_MULTIPLE


def _adjusted_width(reader: ConfigReader, width: int) -> int:
    multiple = reader.count("block_multiple_of", default=256, high=100_000)
    minimum = int(reader.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
    return -(-max(minimum, 1) // multiple) * multiple


def _experts(model: Model, n_layer: int) -> list[Experts]:
    """Return the experts that each layer has if it is sparse."""
    reader, hidden = model.reader, model.hidden
    widths = reader.per_layer(*names.EXPERT_WIDTHS, "intermediate_size", "ffn_hidden_size", n_layer=n_layer, low=0)
    counts = reader.per_layer(*names.EXPERTS, n_layer=n_layer, low=0)
    chosen = reader.per_layer(*names.CHOSEN, n_layer=n_layer, low=0)
    own_shared = int(model.model_type == "llama4_text")
    n_shareds = reader.per_layer(*names.SHARED, n_layer=n_layer, default=own_shared, low=0)
    has_mlp = model.model_type.startswith("gemma4") or reader.flag("residual_moe")
    beside = reader.count("intermediate_size") if has_mlp else 0
    latent = reader.count(*names.EXPERT_INPUT, default=hidden, high=hidden)
    layers = []
    for n_expert, top_k, width, n_shared in zip(counts, chosen, widths, n_shareds, strict=True):
        if n_expert > 1 and not 1 <= top_k <= n_expert:
            raise InputError(names.CHOSEN[0], f"must be between 1 and {n_expert}, got {top_k}")
        shared = reader.count(*names.SHARED_WIDTHS, default=beside or n_shared * width, low=0)
        layers.append(
            Experts(
                n=1,
                n_expert=n_expert,
                top_k=top_k,
                width=width,
                n_shared=max(n_shared, int(shared > 0)),
                shared_width=shared,
                latent=latent if latent < hidden else 0,
                is_gated=model.family.is_gated,
            )
        )
    return layers


def read_tables(model: Model) -> list[LayerKind]:
    """Return the embeddings that layers look up: one of each layer (Gemma 3n, 4), or of n-grams."""
    reader = model.reader
    tables: list[LayerKind] = []
    if width := reader.count_or_none("hidden_size_per_layer_input", high=_MOST_WIDTH):
        n_word = reader.count("vocab_size_per_layer_input", default=262_144)
        tables.append(Lookup(n=model.n_layer, n_param_table=n_word * width))
    if n_base := reader.count_or_none("ngram_vocab_size_base", high=10**10):
        n_layer = len(reader.indices("ple_layer_ids"))
        width = reader.count("ple_embed_dim", default=model.hidden, high=_MOST_WIDTH)
        tables += [Lookup(n=n_layer, n_param_table=n_base * width)] if n_layer else []
    if ratio := reader.count_or_none("ngram_vocab_size_ratio", high=10_000):  # LongCat: tables side by side
        n_word = ratio * reader.count(*names.VOCABULARY)
        tables.append(Lookup(n=1, n_param_table=(n_word + model.hidden) * model.hidden))
    return tables


def count_other(model: Model, vocabulary: int, *, is_tied: bool) -> int:
    """Return the weights outside layers: norms, learned positions, projected embeddings, mixtures of streams."""
    reader, hidden, n_layer = model.reader, model.hidden, model.n_layer
    n_vector = 2 if read_bias(reader, model.family) == "all" else 1
    total = n_vector * (model.family.n_norm * n_layer + 1) * hidden
    if model.family.has_learned_positions or _is_positioned_mpt(model):
        n_position = reader.count_or_none(*names.CONTEXT)
        total += hidden * (n_position + 2 if model.model_type == "opt" else n_position)
    width = reader.count_or_none("word_embed_proj_dim")
    if width and width != hidden:
        total += (width - hidden) * vocabulary * (1 if is_tied else 2) + 2 * width * hidden
    if input_width := reader.count_or_none("hidden_size_per_layer_input", high=_MOST_WIDTH):
        total += n_layer * hidden * (3 * input_width + 1)
    if model.model_type in _GEMMA_3N:
        n_stream = reader.count("altup_num_inputs", default=4, high=1_000)
        rank = reader.count("laurel_rank", default=64, high=_MOST_WIDTH)
        total += 2 * (n_stream - 1) * hidden**2 + n_layer * hidden * (n_stream + 2 * rank + 3)
    if reader.count_or_none("num_mem_blocks", high=1_000):  # Zamba2: an adapter and a matrix for each use of a block
        rank = reader.count_or_none("adapter_rank", "lora_rank", high=_MOST_WIDTH)
        total += sum(rank * (hidden + 2 * n) + hidden**2 for n in reader.numbers("intermediate_size") if n)
    return total + n_layer * _stream_weights(reader, hidden)


def _stream_weights(reader: ConfigReader, hidden: int) -> int:
    n_stream = reader.count_or_none(*names.STREAMS, high=1_000)
    if n_stream < 2:
        return 0
    if rank := reader.count_or_none("hc_lowrank", high=_MOST_WIDTH):
        return 2 * n_stream * hidden * (2 * rank + n_stream)
    return 2 * (2 + n_stream) * n_stream * n_stream * hidden


def _is_positioned_mpt(model: Model) -> bool:
    reader = model.reader
    return model.model_type == "mpt" and reader.flag("learned_pos_emb") and not reader.flag("alibi")


def read_modules(model: Model, layers: list[LayerKind], towers: list[ConfigReader]) -> list[LayerKind]:
    """Return the towers and the layers that predict further tokens: each a layer of the model and a projection.

    A tower is counted by its width and layers: four matrices of attention, two of an MLP or three if it is gated, and
    an embedding of patches; a projection to the text model is a product of both widths, or two matrices over merged
    patches, once more for each layer that feeds the text model's first ones. A Conformer has a second MLP and a
    convolution, whose products have four matrices' weights.

    References
    ----------
    Transformers, ``Qwen3VLVisionPatchMerger``, ``Glm4vVisionPatchMerger``; Kimi-K2.5, ``PatchMergerMLP``.
    A. Gulati et al., "Conformer", 2020, section 2.
    """
    modules: list[LayerKind] = []
    n_next = model.reader.count_or_none(*names.PREDICTION, high=1_000)
    if n_next:
        last = {kind.kind: kind for kind in layers}
        weights = sum(kind.n_param(model.hidden) for name, kind in last.items() if name in {"attention", "mlp"})
        if "experts" in last:
            weights = last["experts"].n_param(model.hidden) + last["attention"].n_param(model.hidden)
        modules.append(Module(role="prediction", n=n_next, n_param_layer=weights + 2 * model.hidden**2))
    sizes = [_tower_weights(tower, model.hidden) for tower in towers]
    sizes.append(model.reader.count_or_none("further_tower_param", high=10**13))
    return modules + [Module(role="tower", n=1, n_param_layer=n) for n in sizes if n]


def _tower_weights(tower: ConfigReader, hidden: int) -> int:
    width = tower.count_or_none(*names.TOWER_WIDTHS, high=_MOST_WIDTH)
    n_layer = tower.count_or_none(*names.TOWER_LAYERS, high=2_000)
    if not width or not n_layer:
        return 0
    kind = tower.text("model_type", default="")
    inner = tower.count(*names.TOWER_MLP_WIDTHS, default=4 * width, high=_MOST_WIDTH)
    inner = tower.count("out_hidden_size", high=_MOST_WIDTH) if kind.startswith(_MERGER_WIDTH) else inner
    is_gated = kind == "pixtral" or tower.text("hidden_act", default="") in {"silu", "swish"}
    further = 2 * inner + 4 * width if tower.has(*names.CONVOLUTIONS) else 0
    layers = n_layer * width * (4 * width + (3 if is_gated else 2) * inner + further)
    return layers + 3 * width * 16**2 + _projection_weights(tower, width, hidden)


def _projection_weights(tower: ConfigReader, width: int, hidden: int) -> int:
    merge = tower.count("spatial_merge_size", default=0, low=0, high=64)
    n_patch = math.prod(tower.numbers("merge_kernel_size")) if tower.has("merge_kernel_size") else merge**2
    if tower.text("model_type", default="").startswith(_MERGER_WIDTH):
        inner = tower.count("intermediate_size", default=0, high=_MOST_WIDTH)
        return n_patch * width * hidden + hidden**2 + 3 * hidden * inner
    merged = n_patch * width
    n_merger = 1 + len(tower.numbers("deepstack_visual_indexes"))
    return n_merger * (merged**2 + merged * hidden) if merged else width * hidden


def read_encoder_decoder(model: Model) -> tuple[list[LayerKind], int]:
    """Return the MLP and encoder of a T5-like model, and the weights of its norms."""
    reader = model.reader
    n_encoder = reader.count("num_layers", *names.LAYERS, high=2_000)
    activation = reader.text("feed_forward_proj", default="relu" if model.model_type == "t5" else "gated-gelu")
    is_gated = activation.startswith("gated")
    n_head = reader.count(*names.HEADS, high=10_000)
    width = n_head * reader.count(*names.HEAD_DIM, default=model.hidden // n_head, high=10_000)
    mlp = reader.count("d_ff", "intermediate_size", high=_MOST_WIDTH)
    layers: list[LayerKind] = [
        Mlp(n=model.n_layer, width=mlp, is_gated=is_gated),
        Encoder(
            n=n_encoder, n_cross=model.n_layer, width=width, mlp_width=mlp, n_matrix=3 if is_gated else 2
        ),
    ]  # fmt: skip
    return layers, (2 * n_encoder + 3 * model.n_layer + 2) * model.hidden
