"""`ModelSpec` of a Hugging Face `config.json`, read without their libraries."""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.layer_kinds import LayerKind, Layers
from roofcast.data.model_config import field_names as names
from roofcast.data.model_config.class_defaults import class_defaults
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import T5_TYPES, Family, find_family
from roofcast.data.model_config.hub import QUANTISATION_FILE, fetch_hub_config, is_hub_id
from roofcast.data.model_config.mixers import Model, read_mixer_layers
from roofcast.data.model_config.model_parts import (
    count_other,
    read_encoder_decoder,
    read_mlp_layers,
    read_modules,
    read_tables,
)
from roofcast.data.model_config.quantisation import read_quantisation
from roofcast.data.model_config.schedules import Mixer, Mlp, read_mixers, read_mlps, read_passes, separate_blocks
from roofcast.data.model_config.type_fields import usual_fields
from roofcast.data.specs import ModelSpec

MAX_CONFIG_BYTE: Final = 5_000_000
"""The largest published configs have 3 MB: they list each quantised layer."""

_TEXT_SECTIONS: Final = ("text_config", "llm_config", "language_config", "language_model_config", "text_model_config")
_WRAPPERS: Final = ("thinker_config",)
_SHARED_WITH_TOWER: Final = (
    "vocab_size", "tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "max_position_embeddings",
)  # fmt: skip
_TOWERS: Final = (
    "vision_config", "vision_encoder", "visual", "vit_config", "audio_config", "audio_processor", "encoder_config",
)  # fmt: skip
_MOST_PARAM: Final = 10**14


def model_from_config(config: Mapping[str, Any], name: str) -> ModelSpec:
    """Return the spec of the text model of a `config.json`: a decoder-only model, or a T5-like encoder-decoder.

    The name is its id and lineage; see `with_known_lineage`.

    Raises `InputError` if the config is of another kind of model, or a field is missing or wrong; names the field.

    Examples
    --------
    >>> spec = model_from_config({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    ...     "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000}, "llama-7b")
    >>> spec.n_param, spec.n_kv_head, spec.head_dim
    (6738415616, 32, 128)
    """
    if not isinstance(config, Mapping):
        raise InputError("", f"a config must be an object of fields, got {type(config).__name__}")
    reader, model_type, family = _text_model(config)
    model, layers, mixers, mlps, n_other = _read_layers(reader, model_type, family or _guess_family(reader))
    stored = read_quantisation(ConfigReader(reader.mapping(), config), mixers, mlps)
    vocabulary = reader.count(*names.VOCABULARY)
    is_tied = reader.flag("tie_word_embeddings", default=model.family.is_tied)
    layers += read_modules(model, layers, _towers(config))
    spec = ModelSpec.parse({
        "id": name,
        **dict.fromkeys(("lineage", "fold_group"), name),
        **dict.fromkeys(("family", "model_type"), model_type),
        "layers": group_layers(layers),
        "n_layer": sum(read_passes(reader, model.n_layer)),
        "hidden_size": model.hidden,
        "vocab_size": vocabulary,
        "tie_word_embeddings": is_tied,
        "n_param_other": n_other + (0 if model_type in T5_TYPES else count_other(model, vocabulary, is_tied=is_tied)),
        "max_context_token": read_context(reader),
        "weight_precision": stored.precision,
        "stored_bits": stored.bits,
        "kv_precision": stored.kv_precision,
        "weight_format": stored.format,
        "assumed": tuple(sorted(reader.assumed & names.SIZES)),
        "unread": () if family else tuple(name for name in reader.unread() if not names.is_understood(name)),
        "source": "config.json",
    })  # fmt: skip
    if spec.n_param > _MOST_PARAM:
        raise InputError("", f"describes {spec.n_param:.1e} weights; at most {_MOST_PARAM:.0e} can be answered for")
    return spec


def _read_layers(
    reader: ConfigReader, model_type: str, family: Family
) -> tuple[Model, list[LayerKind], list[Mixer], list[Mlp], int]:
    hidden = reader.count(*names.HIDDEN, high=200_000)
    if model_type in T5_TYPES:
        n_layer = reader.count("num_decoder_layers", "num_layers", *names.LAYERS, high=2_000)
        model = Model(reader, family, model_type, hidden, n_layer)
        mixers: list[Mixer] = ["full"] * n_layer
        beside, n_norm = read_encoder_decoder(model)
        return model, [*read_mixer_layers(model, mixers), *beside], mixers, ["dense"] * n_layer, n_norm
    blocks = separate_blocks(reader)
    n_layer = len(blocks) or reader.count(*names.LAYERS, high=2_000)
    model = Model(reader, family, model_type, hidden, n_layer)
    mixers, mlps = read_mixers(reader, family, n_layer), read_mlps(reader, n_layer)
    layers = [*read_mixer_layers(model, mixers), *read_mlp_layers(model, mlps), *read_tables(model)]
    return model, layers, mixers, mlps, 0


def group_layers(layers: Iterable[LayerKind]) -> Layers:
    """Return one entry for equal layers, with their number."""
    groups = []
    for kind, count in Counter(layers).items():
        sums = [f.name for f in dataclasses.fields(kind) if f.name in {"n", "n_param_further", "n_indexer"}]
        changes: dict[str, Any] = {name: getattr(kind, name) * count for name in sums}
        groups.append(dataclasses.replace(kind, **changes))
    return tuple(groups)


def read_context(reader: ConfigReader) -> int:
    """Return the longest context: of scaled positions the original one times the factor; 0 if unknown.

    References
    ----------
    B. Peng et al., "YaRN", ICLR 2024; vLLM, ``config/model.py``, ``_get_and_verify_max_len``.

    Examples
    --------
    >>> yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    >>> read_context(ConfigReader({"max_position_embeddings": 40960, "rope_scaling": yarn}))
    131072
    """
    longest = reader.count_or_none(*names.CONTEXT, high=10**9)
    scaled = 0
    for section in (reader.section(name) for name in names.SCALING):
        for part in map(ConfigReader, (section, *(v for v in section.values() if isinstance(v, Mapping)))):
            original = part.count_or_none("original_max_position_embeddings", high=10**9)
            is_yarn = "yarn" in part.text("rope_type", "type", default="")
            if part.has("factor") and (original or is_yarn):
                scaled = max(scaled, int((original or longest) * part.number("factor", default=1.0)))
    return max(longest, scaled)


def _guess_family(reader: ConfigReader) -> Family:
    return Family(is_gated=not reader.has("n_embd", "n_inner"))


def _towers(config: Mapping[str, Any]) -> list[ConfigReader]:
    inner = _inner_config(config)
    sections = [ConfigReader(inner).section(name) for name in _TOWERS]
    sections = [ConfigReader(section).section("config") or section for section in sections]
    return [
        ConfigReader(section, defaults=class_defaults(str(section.get("model_type", "")), section))
        for section in sections
        if section
    ]


def _inner_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((config[name] for name in _WRAPPERS if isinstance(config.get(name), Mapping)), config)


def _text_model(config: Mapping[str, Any]) -> tuple[ConfigReader, str, Family | None]:
    config = _inner_config(config)
    outer = ConfigReader(config)
    if outer.has("_class_name"):
        raise InputError("_class_name", f"{outer.text('_class_name')!r} is a diffusion model; give a text model")
    model_type = outer.text("model_type", default="")
    find_family(model_type)
    section = next((s for s in _TEXT_SECTIONS if outer.section(s)), "")
    text = outer.section(section) if section else config
    model_type = ConfigReader(text).text("model_type", default=model_type)
    family = find_family(model_type)
    shared = {k: config[k] for k in _SHARED_WITH_TOWER if section and k in config and k not in text}
    parts = [text[s] for s in ("attn_config", "ffn_config", "moe") if isinstance(text.get(s), Mapping)]
    defaults = class_defaults(model_type, text) or class_defaults(f"{model_type}_text", text)
    defaults = {k: v for k, v in defaults.items() if not (family and family.is_tied and k == "tie_word_embeddings")}
    if not section:  # a file of its own states its size
        defaults = {k: v for k, v in defaults.items() if k not in {*names.HIDDEN, *names.LAYERS}}
    reader = ConfigReader(text, *parts, shared, defaults=defaults)
    if usual := usual_fields(model_type, reader):
        reader = ConfigReader({**text, **usual}, *parts, shared, defaults=defaults)
    if reader.flag("is_encoder_decoder") and model_type not in T5_TYPES:
        raise InputError(
            "is_encoder_decoder", "only encoder-decoders of the T5 kind are read; give a decoder-only model"
        )
    return reader, model_type, family


def with_known_lineage(spec: ModelSpec, catalog: Catalog) -> ModelSpec:
    """Return the spec with lineage and fold group of the catalogue's model of the same shape, if there is one.

    So a copy, a fine-tune or a quantised upload of a known model does not count as an unseen model. An unlisted
    model gives no lineage.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> renamed = load_catalog().model("llama-3.1-8b").model_copy(update={"id": "mine", "lineage": "mine"})
    >>> with_known_lineage(renamed, load_catalog()).lineage
    'llama-3-8b'
    """
    shape = _core_shape(spec)
    matches = [known for known in catalog.listed_models.values() if _core_shape(known) == shape]
    if not matches:
        return spec
    nearest = min(matches, key=lambda known: (known.vocab_size != spec.vocab_size, known.id))
    return spec.model_copy(update={"lineage": nearest.lineage, "fold_group": nearest.fold_group})


def _core_shape(spec: ModelSpec) -> tuple[int, ...]:
    is_all_moe = spec.n_expert > 0 and spec.n_dense_layer == 0
    return (
        spec.n_layer,
        spec.n_encoder_layer,
        spec.hidden_size,
        0 if is_all_moe else spec.intermediate_size,
        spec.n_head,
        spec.n_kv_head,
        spec.n_expert,
        spec.moe_intermediate_size,
    )


def load_model_config(path: Path | str, name: str = "") -> ModelSpec:
    """Return the spec of a model's `config.json`, from disk or from the Hugging Face hub.

    `path`: the file, its folder, or a text ``owner/name`` or ``owner/name@revision`` for a hub repository, which
    needs the extra ``hub`` and a network. A `Path` is never a repository. `name`: name of the model; by default that
    of `read_config`. Raises `InputError` if the file cannot be read or fetched, is too large, is no JSON (names the
    line) or describes no text model.
    """
    default, config = read_config(path)
    return model_from_config(config, name or default)


def read_config(path: Path | str) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a model and the fields of its ``config.json``, with those of a quantisation file beside it.

    The name is that of the hub repository, else the one in the file (see `own_name`), else that of its folder.

    `path`: as of `load_model_config`. Raises `InputError` if a file cannot be read or fetched, is too large or is no
    JSON object.
    """
    if isinstance(path, str) and is_hub_id(path) and not Path(path).exists():
        return path.partition("@")[0], _read_file(fetch_hub_config(path))[1]
    return _read_file(Path(path))


def _read_file(path: Path) -> tuple[str, Mapping[str, Any]]:
    try:
        file = path / "config.json" if path.is_dir() else path
        with file.open("rb") as stream:
            body = stream.read(MAX_CONFIG_BYTE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError("model", f"cannot read {path.name!r}: {reason.lower()}") from error
    default = file.absolute().parent.name if file.name == "config.json" else file.stem
    config = parse_config(body, file.name, allow_infinity=True)
    return own_name(config) or default or "model", _with_quantisation(config, file)


def own_name(config: Mapping[str, Any]) -> str:
    """Return the model's name in its config, the last part of a path; empty if there is none.

    Examples
    --------
    >>> [own_name({"_name_or_path": name}) for name in ("Qwen/Qwen3-8B", "../checkpoints/my-8b/", "./", "")]
    ['Qwen/Qwen3-8B', 'my-8b', '', '']
    """
    name = config.get("_name_or_path")
    text = name.strip() if isinstance(name, str) else ""
    last = re.split(r"[/\\]+", text.rstrip("/\\"))[-1]
    return (text if is_hub_id(text) else last).lstrip(".")[:200]


def _with_quantisation(config: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    quantisation = file.with_name(QUANTISATION_FILE)
    if file.name != "config.json" or "quantization_config" in config or not quantisation.is_file():
        return config
    with quantisation.open("rb") as stream:
        own = parse_config(stream.read(MAX_CONFIG_BYTE + 1), quantisation.name, allow_infinity=True).get(
            "quantization"
        )
    return {**config, "quantization_config": {**own, "quant_method": "modelopt"}} if isinstance(own, dict) else config


def parse_config(body: bytes, source: str = "config.json", *, allow_infinity: bool = False) -> Mapping[str, Any]:
    """Return the fields of an untrusted JSON object in UTF-8.

    `source`: name for messages. `allow_infinity`: whether NaN and infinities are allowed: they are no JSON, but
    published configs have them. Raises `SchemaError` if it is larger than `MAX_CONFIG_BYTE`, no UTF-8, no JSON,
    nested too deeply, or has a repeated field or a constant that is not allowed.
    """
    if len(body) > MAX_CONFIG_BYTE:
        raise SchemaError("", f"must be at most {MAX_CONFIG_BYTE} bytes", source)
    try:
        constant = float if allow_infinity else _refuse_constant
        config = json.loads(body.decode("utf-8-sig"), parse_constant=constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise SchemaError("", f"is no valid JSON: {error.msg.lower()}", source, error.lineno) from error
    except UnicodeDecodeError as error:
        raise SchemaError("", "must be UTF-8 text", source) from error
    except RecursionError as error:
        raise SchemaError("", "is nested too deeply", source) from error
    except InputError as error:
        raise SchemaError(error.field, error.problem, source) from error
    except ValueError as error:
        raise SchemaError("", "holds a number of too many digits", source) from error
    if not isinstance(config, dict):
        raise SchemaError("", f"must be an object of fields, got {type(config).__name__}", source)
    return config


def _refuse_constant(text: str) -> NoReturn:
    raise InputError("", f"{text} is no JSON number; write null or leave the field out")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise InputError(name, "is given twice; keep one")
        fields[name] = value
    return fields
