"""`ModelSpec` of a Hugging Face `config.json`, read without their libraries."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from roofcast.data.catalog import Catalog
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.model_config.architecture import CONTEXT_NAMES, read_decoder, read_t5
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.families import T5_TYPES, Family, find_family
from roofcast.data.model_config.hub import QUANTISATION_FILE, fetch_hub_config, is_hub_id
from roofcast.data.model_config.parameters.compressed_attention import COMPRESSED_TYPES, read_compressed
from roofcast.data.model_config.parameters.parameters import Shape, count_parameters
from roofcast.data.model_config.parameters.pruned_blocks import PRUNED_TYPES, read_pruned
from roofcast.data.model_config.precision import weight_precision
from roofcast.data.specs import ModelSpec

MAX_CONFIG_BYTE: Final = 5_000_000
"""The largest published configs have 3 MB: they list each quantised layer."""

_TEXT_SECTIONS: Final = ("text_config", "llm_config", "language_config")
_SHARED_WITH_TOWER: Final = (
    "vocab_size", "tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "max_position_embeddings",
)  # fmt: skip
_MOST_PARAM: Final = 10**14


def model_from_config(config: Mapping[str, Any], name: str) -> ModelSpec:
    """Return the spec of the text model of a `config.json`: a decoder-only model, or a T5-like encoder-decoder.

    The name is its id and lineage; see `with_known_lineage`.

    Raises
    ------
    InputError
        If the config is of another kind of model, or a field is missing or wrong; names the field.

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
    fields, shape = _read_architecture(reader, model_type, family)
    return ModelSpec.parse({
        **_counted(shape),
        **fields,
        "id": name,
        **dict.fromkeys(("lineage", "fold_group"), name),
        **dict.fromkeys(("family", "model_type"), model_type),
        "max_context_token": reader.count_or_none(*CONTEXT_NAMES, high=10**9),
        "weight_precision": weight_precision(reader),
        "source": "config.json",
    })  # fmt: skip


def _read_architecture(reader: ConfigReader, model_type: str, family: Family) -> tuple[dict[str, Any], Shape]:
    if model_type in T5_TYPES:
        return read_t5(reader, model_type)
    if model_type in COMPRESSED_TYPES:
        return read_compressed(reader, model_type, family)
    read = read_pruned if model_type in PRUNED_TYPES else read_decoder
    return read(reader, model_type, family)


def _counted(shape: Shape) -> dict[str, Any]:
    n_param, n_param_active = count_parameters(shape)
    if n_param > _MOST_PARAM:
        raise InputError("", f"describes {n_param:.1e} weights; at most {_MOST_PARAM:.0e} can be answered for")
    names = {f.name for f in dataclasses.fields(Shape)} & set(ModelSpec.model_fields)
    return {**{n: getattr(shape, n) for n in names}, "n_param": n_param, "n_param_active": n_param_active}


def _text_model(config: Mapping[str, Any]) -> tuple[ConfigReader, str, Family]:
    outer = ConfigReader(config)
    if outer.has("_class_name"):
        raise InputError("_class_name", f"{outer.text('_class_name')!r} is a diffusion model; give a text model")
    model_type = outer.text("model_type", default="")
    find_family(model_type)
    section = next((s for s in _TEXT_SECTIONS if outer.section(s)), "")
    text = outer.section(section) if section else config
    model_type = ConfigReader(text).text("model_type", default=model_type)
    family = find_family(model_type)
    shared = {k: config[k] for k in _SHARED_WITH_TOWER if k in config}
    parts = [ConfigReader(text).section(s) for s in ("attn_config", "ffn_config")]
    defaults = family.defaults if family else {}
    reader = ConfigReader(text, *parts, shared, defaults)
    if reader.flag("is_encoder_decoder") and model_type not in T5_TYPES:
        raise InputError(
            "is_encoder_decoder", "only encoder-decoders of the T5 kind are read; give a decoder-only model"
        )
    return reader, model_type, family or Family(gated=not reader.has("n_embd", "n_inner"))


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

    Parameters
    ----------
    path
        The file, its folder, or a text ``owner/name`` or ``owner/name@revision`` for a hub repository, which needs
        the extra ``hub`` and a network. A `Path` is never a repository.
    name
        Name of the model; by default that of `read_config`.

    Raises
    ------
    InputError
        If the file cannot be read or fetched, is too large, is no JSON (names the line) or describes no text model.
    """
    default, config = read_config(path)
    return model_from_config(config, name or default)


def read_config(path: Path | str) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a model and the fields of its ``config.json``, with those of a quantisation file beside it.

    The name is that of the hub repository, else the one in the file (see `own_name`), else that of its folder.

    Parameters
    ----------
    path
        As of `load_model_config`.

    Raises
    ------
    InputError
        If a file cannot be read or fetched, is too large or is no JSON object.
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

    Parameters
    ----------
    source
        Name for messages.
    allow_infinity
        Whether NaN and infinities are allowed: they are no JSON, but published configs have them.

    Raises
    ------
    SchemaError
        If it is larger than `MAX_CONFIG_BYTE`, no UTF-8, no JSON, nested too deeply, or has a repeated field or a
        constant that is not allowed.
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
