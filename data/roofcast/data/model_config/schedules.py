"""Which layers attend, slide, recur, and which have experts: a name for each layer, whatever a config calls it."""

import re
from typing import Final, Literal, TypeVar

from roofcast.data.errors import InputError
from roofcast.data.model_config import field_names as names
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import Family

Mixer = Literal["full", "sliding", "linear", "both", "none"]
Mlp = Literal["dense", "sparse", "none"]

EntryT = TypeVar("EntryT")

_LETTERS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_SEPARATE: Final = frozenset({"mlp", "moe"})
_MIXERS: Final[tuple[tuple[Mixer, str], ...]] = (
    ("both", r"^both$"),
    ("sliding", r"sliding|local|window|swa"),
    ("linear", r"linear|mamba|ssm|conv|recurrent|kda|delta|lightning"),
    ("full", r"attention|global|full|hybrid|dense"),
)


def read_mixers(reader: ConfigReader, family: Family, n_layer: int) -> list[Mixer]:
    """Return how each layer mixes tokens.

    Raises `InputError` if a list is of another length, or a name is not understood.
    """
    windows = read_windows(reader, n_layer)
    named = _explicit(reader, n_layer) or _by_index(reader, n_layer) or _by_group(reader, n_layer)
    kinds = named or _by_period(reader, family, n_layer)
    if "sliding" in named and not reader.mentions(*names.WINDOW):
        others = ", ".join(names.WINDOW[1:])
        raise InputError(
            names.WINDOW[0], f"is missing: some layers slide (also read as {others}); add it to the config"
        )
    if reader.holds_list(*names.WINDOW):
        kinds = [
            "sliding" if kind == "full" and window else kind for kind, window in zip(kinds, windows, strict=True)
        ]
    return ["full" if kind == "sliding" and not window else kind for kind, window in zip(kinds, windows, strict=True)]


def read_windows(reader: ConfigReader, n_layer: int) -> list[int]:
    """Return the window of each layer if it slides; 0 if none do, or if it is no shorter than the context."""
    context = reader.count_or_none(*names.CONTEXT, high=10**9)
    is_on = reader.flag("use_sliding_window", default=True) or reader.has("layer_types")
    if reader.holds_list(*names.WINDOW):
        windows = reader.per_layer(*names.WINDOW, n_layer=n_layer, low=0)
    else:
        windows = [reader.count_or_none(*names.WINDOW, high=10**9)] * n_layer
    return [window if is_on and not 0 < context <= window else 0 for window in windows]


def read_passes(reader: ConfigReader, n_layer: int) -> list[int]:
    """Return how often a token goes through each layer: more than once in the loop of a looped model.

    References
    ----------
    Ouro-2.6B, ``modeling_ouro.py``; Transformers 5.24, ``modeling_inkling2_loop.py``, ``modeling_dory.py``.
    """
    n_pass = reader.count(*names.PASSES, default=1, high=64)
    first = reader.count("loop_layer_index_start", "n_input_layers", default=0, low=0)
    last = reader.count("loop_layer_index_end", default=n_layer - reader.count_or_none("n_output_layers"))
    return [n_pass if first <= i < last else 1 for i in range(n_layer)]


def read_own_blocks(reader: ConfigReader) -> int:
    """Return how many blocks have weights of their own, which those after them use again; 0 if all blocks have.

    References
    ----------
    Transformers 5.24, ``modeling_zamba2.py``; ``modeling_hrm_text.py``: two stacks, whose passes all count as layers.
    """
    return reader.count_or_none("num_mem_blocks", high=1_000) or 2 * reader.count_or_none("num_layers_per_stack")


def separate_blocks(reader: ConfigReader) -> list[str]:
    """Return the blocks of a model whose attention, states and MLPs are layers of their own; empty for others.

    Raises `InputError` if a letter of the pattern is unknown.
    """
    pattern = reader.text("hybrid_override_pattern", default="")
    letters = [_LETTERS.get(letter, letter) for letter in pattern]
    blocks = reader.texts("layers_block_type") or letters or reader.texts("layer_types")
    if not {*blocks} & _SEPARATE and not pattern:
        return []
    unknown = next((b for b in blocks if pattern and b not in _LETTERS.values()), None)
    if unknown is not None:
        known = " ".join(_LETTERS)
        raise InputError("hybrid_override_pattern", f"must be made of the letters {known}, got {pattern!r}")
    return blocks


def _explicit(reader: ConfigReader, n_layer: int) -> list[Mixer]:
    for name in ("layer_types", "layers_block_type"):
        if kinds := reader.texts(name):
            return [_mixer(name, kind) for kind in _of_length(reader, name, kinds, n_layer)]
    if blocks := separate_blocks(reader):
        return [_mixer("hybrid_override_pattern", kind) for kind in blocks]
    if flags := reader.numbers("attn_type_list"):
        _check_flags("attn_type_list", flags, n_layer)
        return ["full" if flag else "linear" for flag in flags]
    if flags := reader.numbers("hybrid_layer_pattern"):
        return ["sliding" if flag == 1 else "full" for flag in flags[:n_layer]]
    if blocks_ := reader.objects("block_configs"):
        blocks_ = _of_length(reader, "block_configs", blocks_, n_layer)
        parts = [ConfigReader(ConfigReader(block).section("attention")) for block in blocks_]
        return ["none" if part.flag("no_op") else "full" for part in parts]
    return []


def _by_index(reader: ConfigReader, n_layer: int) -> list[Mixer]:
    linear = ConfigReader(reader.section("linear_attn_config"))
    if linear.has("kda_layers"):
        states, full = linear.indices("kda_layers"), linear.indices("full_attn_layers")
        if len(states) + len(full) != n_layer:
            raise InputError("linear_attn_config", f"must name all {n_layer} layers, got {len(states) + len(full)}")
        return ["linear" if i + 1 in states else "full" for i in range(n_layer)]
    for name in ("attn_layer_indices", "full_attn_idxs"):
        if reader.has(name):
            full = reader.indices(name)
            return ["full" if i in full else "linear" for i in range(n_layer)]
    if reader.has("local_layer_ids"):
        local = reader.indices("local_layer_ids")
        return ["sliding" if i in local else "full" for i in range(n_layer)]
    return []


def _by_group(reader: ConfigReader, n_layer: int) -> list[Mixer]:
    if every := reader.count_or_none("layer_group_size", high=1_000):  # layers that fill no group attend
        n_grouped = n_layer // every * every
        return ["linear" if (i + 1) % every and i < n_grouped else "full" for i in range(n_layer)]
    if every := reader.count_or_none("global_attn_every_n_layers", high=1_000):
        return ["sliding" if i % every else "full" for i in range(n_layer)]
    if reader.holds_text(*names.WINDOW_PATTERN):  # letters of layers, such as LLLG
        letters = reader.text(*names.WINDOW_PATTERN).upper() or "G"
        return ["sliding" if letters[i % len(letters)] == "L" else "full" for i in range(n_layer)]
    return []


def _by_period(reader: ConfigReader, family: Family, n_layer: int) -> list[Mixer]:
    if reader.has("attn_layer_period"):
        return ["full" if on else "linear" for on in _periodic(reader, "attn_layer", n_layer)]
    if reader.has(names.DELTA[0]) and reader.count_or_none(names.DELTA[0]):
        every = reader.count("full_attention_interval", default=4, high=1_000)
        return ["linear" if (i + 1) % every else "full" for i in range(n_layer)]
    if reader.count_or_none(*names.MAMBA_HEADS):
        return ["both"] * n_layer
    every = reader.count(*names.WINDOW_PATTERN, default=family.window_every, low=0, high=1_000)
    if every:
        return ["sliding" if every == 1 or (i + 1) % every else "full" for i in range(n_layer)]
    if reader.states("use_sliding_window") and reader.flag("use_sliding_window"):
        first = reader.count_or_none("max_window_layers")
        return ["sliding" if i >= first else "full" for i in range(n_layer)]
    return ["full"] * n_layer


def read_mlps(reader: ConfigReader, n_layer: int) -> list[Mlp]:
    """Return whether each layer has a dense MLP, routed experts or neither.

    Raises `InputError` if a field is wrong.
    """
    if blocks := separate_blocks(reader):
        known: dict[str, Mlp] = {"mlp": "dense", "moe": "sparse"}
        return [known.get(block, "none") for block in blocks]
    if reader.has("block_configs"):
        parts = [ConfigReader(ConfigReader(block).section("ffn")) for block in reader.objects("block_configs")]
        return ["none" if part.flag("no_op") else "dense" for part in parts]
    is_sparse = _sparse_layers(reader, n_layer) if has_experts(reader) else [False] * n_layer
    return ["sparse" if on else "dense" for on in is_sparse]


def _sparse_layers(reader: ConfigReader, n_layer: int) -> list[bool]:
    if reader.holds_list(*names.EXPERTS):
        return [n > 1 for n in reader.per_layer(*names.EXPERTS, n_layer=n_layer, low=0)]
    if kinds := reader.texts("mlp_layer_types"):
        return [kind != "dense" for kind in _of_length(reader, "mlp_layer_types", kinds, n_layer)]
    if reader.holds_list("moe_layer_freq"):
        return [n > 0 for n in _of_length(reader, "moe_layer_freq", reader.numbers("moe_layer_freq"), n_layer)]
    if reader.has("moe_layers_enum"):
        sparse = _enumerated(reader, "moe_layers_enum")
        return [i in sparse for i in range(n_layer)]
    if reader.has("expert_layer_period"):
        return _periodic(reader, "expert_layer", n_layer)
    dense = reader.indices("mlp_only_layers")
    first = reader.count_or_none(*names.FIRST_SPARSE)
    step = reader.count(*names.SPARSE_STEP, default=1, high=n_layer)
    return [i >= first and i not in dense and (i + 1) % step == 0 for i in range(n_layer)]


def has_experts(reader: ConfigReader) -> bool:
    """Return whether the model has routed experts; a single expert is a dense MLP."""
    is_on = reader.flag("enable_moe_block", "use_moe", "enable_moe", "is_moe", default=True)
    return is_on and max(reader.per_layer(*names.EXPERTS, n_layer=_n_listed(reader), default=0, low=0)) > 1


def _n_listed(reader: ConfigReader) -> int:
    return reader.count(*names.LAYERS, default=1, high=2_000)


def _mixer(field: str, kind: str) -> Mixer:
    if kind.lower() in _SEPARATE:
        return "none"
    match = next((mixer for mixer, words in _MIXERS if re.search(words, kind.lower())), None)
    if match is None:
        known = "full_attention, sliding_attention, linear_attention, mamba or conv"
        raise InputError(field, f"holds {kind[:40]!r}, a kind of layer that is not known; write {known} instead")
    return match


def _enumerated(reader: ConfigReader, name: str) -> set[int]:
    if not reader.holds_text(name):
        return reader.indices(name)
    text = reader.text(name, longest=2_000)
    if not re.fullmatch(r"[\d\s,]*", text):
        raise InputError(name, f"must be whole numbers between commas, got {text[:40]!r}")
    return {int(number) for number in re.findall(r"\d+", text)}


def _periodic(reader: ConfigReader, name: str, n_layer: int) -> list[bool]:
    period = reader.count(f"{name}_period", high=n_layer)
    offset = reader.count(f"{name}_offset", low=0, high=period - 1)
    return [i % period == offset for i in range(n_layer)]


def _of_length(reader: ConfigReader, name: str, values: list[EntryT], n_layer: int) -> list[EntryT]:
    if not n_layer <= len(values) <= n_layer + reader.count_or_none(*names.PREDICTION, high=1_000):
        raise InputError(name, f"must name all {n_layer} layers, got {len(values)}")
    return values[:n_layer]


def _check_flags(name: str, flags: list[int], n_layer: int) -> None:
    if len(flags) != n_layer or not {*flags} <= {0, 1}:
        raise InputError(name, f"must hold 0 or 1 for each of {n_layer} layers")
