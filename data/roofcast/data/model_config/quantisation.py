"""Precision of a checkpoint's weights by role, and of its cache, from its `config.json`.

A method becomes rules: what modules it names and the bits of a weight there, with its share of scales and zeros.
"""

import fnmatch
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from roofcast.data.errors import InputError
from roofcast.data.model_config.config_reader import ConfigReader
from roofcast.data.model_config.schedules import Mixer, Mlp
from roofcast.data.specs import Precision, StoredBits

_TABLES: Final = tomllib.loads(Path(__file__).with_name("quantisation.toml").read_text(encoding="utf-8"))
_DTYPES: Final[Mapping[str, Precision]] = _TABLES["dtypes"]

_FIELD: Final = "quantization_config"
_FULL_BIT: Final = 16.0


@dataclass(frozen=True, slots=True)
class Scheme:
    """Bits of one stored weight with its share of scales and zeros, and the precision that it is served in."""

    bits: float
    precision: Precision


@dataclass(frozen=True, slots=True)
class Quantisation:
    """Main precision of a checkpoint, the bits of its weights by role, the precision of its cache, and its format.

    `format`: As the support table names it, where not every engine reads the method: MLX, AWQ, GPTQ, HQQ, EXL, NF4.
    """

    precision: Precision
    bits: StoredBits | None = None
    kv_precision: Precision | None = None
    format: str = ""


Rule = tuple[Callable[[str], bool], Scheme | None]
"""Modules, and their scheme; None keeps 16 bits. The first rule that holds counts."""

_PREFIXES: Final = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")


def read_quantisation(outer: ConfigReader, mixers: Sequence[Mixer], mlps: Sequence[Mlp]) -> Quantisation:
    """Return how a checkpoint is stored; bf16 if the config states nothing.

    `outer`: reader of the text model and of the fields around it. Raises `InputError` if the data type or the method
    is unknown.
    """
    mlx, section = outer.section("quantization"), outer.section(_FIELD)
    if isinstance(inner := section.get("quantization"), Mapping):  # ModelOpt's own file, put into the config
        section = {**section, **inner}
    quantised = ConfigReader(section or mlx)
    dtype = outer.text("dtype", "torch_dtype", default="auto").removeprefix("torch.")
    if dtype not in _DTYPES:
        raise InputError("torch_dtype", f"must be one of {', '.join(_DTYPES)}, got {dtype!r}")
    if not section and not mlx:
        return Quantisation(_DTYPES[dtype])
    rules = _rules(quantised)
    if outer.text("expert_dtype") == "fp4" and not quantised.has("quantized_layers"):
        rules = [(_matcher(["re:.*\\.experts\\."]), Scheme(4.25, "fp4")), *rules]
    routed = "beside" if outer.text("model_type").startswith("gemma4") else "sparse"
    bits, main = _by_role(rules, mixers, mlps, routed)
    least = min((scheme for _, scheme in rules if scheme), key=lambda s: s.bits)
    precision = main or least.precision
    return Quantisation(precision, bits, _kv_precision(quantised), _format(mlx, quantised, precision))


def _format(mlx: Mapping[str, Any], quantised: ConfigReader, precision: Precision) -> str:
    # MLX writes a block `quantization`, and copies it to `quantization_config` without the name of a method.
    method = quantised.text("quant_method", default="mlx" if "bits" in mlx else "").lower()
    method = "nf4" if method == "bitsandbytes" and precision == "int4" else method
    return method if method in _TABLES["formats"] else ""


def _by_role(
    rules: list[Rule], mixers: Sequence[Mixer], mlps: Sequence[Mlp], routed: str
) -> tuple[StoredBits, Precision | None]:
    def find(names: Iterable[str]) -> Scheme | None:
        tried = [prefix + name for name in names for prefix in _PREFIXES]
        return next((scheme for has, scheme in rules if any(has(name) for name in tried)), None)

    def of_layers(kinds: Iterable[tuple[int, str]]) -> list[Scheme | None]:
        return [find([f"layers.{i}.{n}" for n in same]) for i, kind in kinds for same in _TABLES["matrices"][kind]]

    attention = of_layers((i, "linear" if m == "linear" else "full") for i, m in enumerate(mixers) if m != "none")
    mlp = of_layers((i, "dense" if name == "dense" else "shared") for i, name in enumerate(mlps) if name != "none")
    expert = of_layers((i, routed) for i, name in enumerate(mlps) if name == "sparse")
    head, embedding = find(["lm_head", "head"]), find(["embed_tokens", "embeddings"])
    module = find(["visual.blocks.0.mlp.linear_fc1", "vision_tower.blocks.0.mlp.fc1"])
    bits = StoredBits(
        attention=_mean(attention), mlp=_mean(mlp), expert=_mean(expert), head=_mean([head]),
        embedding=_mean([embedding]), module=_mean([module]),
    )  # fmt: skip
    main = next((s.precision for group in (expert, mlp, attention) for s in group if s), None)
    return bits, main


def _mean(schemes: Sequence[Scheme | None]) -> float:
    return sum(s.bits if s else _FULL_BIT for s in schemes) / len(schemes) if schemes else _FULL_BIT


def _matcher(patterns: Iterable[str], *, is_class: bool = False) -> Callable[[str], bool]:
    """Return whether a module's name is meant: itself, a parent, a part of its path, a wildcard, ``re:`` or a class.

    Examples
    --------
    >>> has = _matcher(["lm_head", "model.layers.0.self_attn*", "re:.*mlp.*"])
    >>> [has(n) for n in ("lm_head", "model.layers.0.self_attn.q_proj", "layers.3.mlp.up_proj", "embed_tokens")]
    [True, True, True, False]
    """
    exact = {p.strip(".") for p in patterns if not p.startswith("re:") and "*" not in p}
    regular = [re.compile(p[3:]) for p in patterns if p.startswith("re:")]
    regular += [re.compile(fnmatch.translate(p)) for p in patterns if "*" in p and not p.startswith("re:")]
    of_class = is_class and bool(exact & {"Linear", "QKVParallelLinear"})

    def has(name: str) -> bool:
        parts = name.split(".")
        n = len(parts)
        if of_class and "embed" not in name:
            return True
        runs = (".".join(parts[i:j]) for i in range(n) for j in range(i + 1, n + 1))
        return any(run in exact for run in runs) or any(r.match(name) for r in regular)

    return has


_ALL_LAYERS: Final = _matcher(["re:(.*\\.)?layers\\."])
_EVERYTHING: Final = _matcher(["re:.*"])


def _rules(q: ConfigReader) -> list[Rule]:
    method = q.text("quant_method", default="").replace("_", "-").lower().removeprefix("intel/")
    if not method and q.has("load_in_4bit", "load_in_8bit"):
        method = "bitsandbytes"
    ignored = [*_list(q, "ignore"), *_list(q, "modules_to_not_convert"), *_list(q, "exclude_modules")]
    ignored += [*_list(q, "llm_int8_skip_modules"), *_list(q, "ignored_layers"), *_list(q, "exclude")]
    keep: Rule = (_matcher(ignored), None)
    if q.has("quantized_layers"):
        return [*_modelopt(q), keep]
    if method == "compressed-tensors" or q.has("config_groups"):
        return [keep, *_groups(q)]
    if method == "modelopt" or q.has("quant_algo"):
        return [keep, *_modelopt(q)]
    if method in {"mlx", ""} and q.has("bits", "mode"):
        return _mlx(q)
    where = _matcher(["re:.*\\.experts\\..*"]) if method == "mxfp4" else _ALL_LAYERS
    rules: list[Rule] = [*_overrides(q, method), keep, (where, _whole(q, method))]
    if q.has("head_bits"):
        rules.append((_matcher(["lm_head"]), Scheme(q.number("head_bits", 8.0), "int8")))
    elif q.flag("lm_head"):
        rules.append((_matcher(["lm_head"]), _whole(q, method)))
    return rules


def _overrides(q: ConfigReader, method: str) -> list[Rule]:
    """Return the rules of modules that a method stores otherwise than the rest.

    References
    ----------
    GPTQModel, ``dynamic``: ``+:`` and ``-:`` before a pattern; AutoRound, ``extra_config``; HQQ, ``quant_config`` by
    module; Quark, ``layer_quant_config``.
    """
    own = q.section("quant_config") if method == "hqq" else {}
    quark, named = q.section("layer_quant_config"), {**q.section("dynamic"), **q.section("extra_config"), **own}
    rules: list[Rule] = []
    for name, value in {**named, **quark}.items():
        if not isinstance(value, Mapping) or name.endswith("_quant_params"):
            continue
        is_skipped = name.startswith("-:")
        part = {"global_quant_config": value} if name in quark else {**q.mapping(), **value, "quant_config": value}
        is_full = is_skipped or value.get("bits", 0) >= _FULL_BIT
        pattern = f"re:{name[2:]}" if name.startswith(("+:", "-:")) else name
        rules.append((_matcher([pattern]), None if is_full else _whole(ConfigReader(part), method)))
    return rules


def _groups(q: ConfigReader) -> list[Rule]:
    rules: list[Rule] = []
    for group in q.section("config_groups").values():
        if isinstance(group, Mapping):
            reader = ConfigReader(group)
            weights = ConfigReader(reader.section("weights"))
            scheme = integer(
                weights.count("num_bits", high=64), weights.text("type", default="int"),
                weights.count_or_none("group_size"), is_zeroed=not weights.flag("symmetric", default=True),
            )  # fmt: skip
            targets = _list(reader, "targets") or ["Linear"]
            rules.append((_matcher(targets, is_class=True), scheme))
    if rules:
        classes = [r for r in rules if r[0]("any.linear")]  # named targets count before classes
        return [*(r for r in rules if r not in classes), *classes]
    return [(_matcher(["Linear"], is_class=True), _named(q.text("format", default="unnamed"), "format"))]


def _modelopt(q: ConfigReader) -> list[Rule]:
    rules: list[Rule] = []
    by_algorithm: dict[str, list[str]] = {}
    for name, layer in q.section("quantized_layers").items():
        if isinstance(layer, Mapping):
            by_algorithm.setdefault(ConfigReader(layer).text("quant_algo"), []).append(name)
    for algorithm, named in by_algorithm.items():
        rules.append((_matcher(named), _named(algorithm, "quantized_layers")))
    algorithm = q.text("quant_algo", default="fp8")
    if algorithm == "MIXED_PRECISION" and rules:
        rest = [] if q.text("quant_method", default="") != "fp8" else [(_ALL_LAYERS, _named("fp8", "quant_method"))]
        return [*rules, *rest]
    return [*rules, (_ALL_LAYERS, _named(algorithm, "quant_algo"))]


def _mlx(q: ConfigReader) -> list[Rule]:
    def scheme(part: ConfigReader) -> Scheme:
        if part.text("mode", default="affine") != "affine":
            return _named(part.text("mode"), "mode")
        return _affine(part.count("bits", high=16), part.count("group_size", default=64))

    rules: list[Rule] = []
    for name, value in q.mapping().items():
        if isinstance(value, Mapping) or value is False:
            own = {"bits": q.count("bits", high=16), "group_size": q.count("group_size", default=64)}
            expert = name.replace(".switch_mlp.", ".experts.0.")  # MLX joins the experts of a layer
            rules.append((_matcher([expert]), scheme(ConfigReader({**own, **value})) if value else None))
    return [*rules, (_EVERYTHING, scheme(q))]


def _whole(q: ConfigReader, method: str) -> Scheme:
    """Return the scheme of a method with one scheme for all the layers that it quantises."""
    if method in _METHODS:
        return _METHODS[method](q)
    if q.text("data_type", default="int") in _AUTO_ROUND and q.count(*_BITS, high=64) == 4:
        return _named(_AUTO_ROUND[q.text("data_type")], "data_type")
    if q.has(*_BITS):
        is_zeroed = q.flag("zero_point") or not q.flag("sym", default=True) or method.startswith("awq")
        group = max(q.count("group_size", "q_group_size", default=0, low=-1), 0)
        return integer(q.count(*_BITS, high=64), "int", group, is_zeroed=is_zeroed)
    for name in ("weights", "qformat_weight", "forward_dtype"):  # quanto; params.json of Mistral; FP-Quant
        if q.has(name):
            return _named(q.text(name), name)
    return _named(method or "unnamed", "quant_method")


def _bitsandbytes(q: ConfigReader) -> Scheme:
    if not q.flag("load_in_4bit", "_load_in_4bit"):
        return Scheme(8.0, "int8")
    return Scheme(4 + (8 / 64 + 32 / 16_384 if q.flag("bnb_4bit_use_double_quant") else 32 / 64), "int4")


def _hqq(q: ConfigReader) -> Scheme:
    parts = [q.section("quant_config"), *(v for v in q.section("quant_config").values() if isinstance(v, Mapping))]
    stated = next((s for part in parts if (s := ConfigReader(part).section("weight_quant_params"))), {})
    weights = ConfigReader(stated) if stated else q
    return _affine(weights.count("nbits", "bits", high=16), weights.count("group_size", default=64))


def _aqlm(q: ConfigReader) -> Scheme:
    n_code = q.count("num_codebooks", default=1, high=64) * q.count("nbits_per_codebook", default=16, high=64)
    return Scheme(n_code / q.count("in_group_size", default=8, high=1_000), "int4")


def _exllama(q: ConfigReader) -> Scheme:
    bits = q.number("bits", 4.0)
    return Scheme(bits, "int4" if bits < 8 else "int8")


def _torchao(q: ConfigReader) -> Scheme:
    kind = str(q.mapping().get("quant_type", "int4")).lower()
    group = next((int(n) for pair in re.findall(r"group_size\D{0,6}(\d+)|wo-(\d+)", kind) for n in pair if n), 128)
    return _affine(4, group) if "int4" in kind else _named(kind, "quant_type")


def _quark(q: ConfigReader) -> Scheme:
    weight = ConfigReader(ConfigReader(q.section("global_quant_config")).section("weight"))
    return _named(weight.text("dtype"), "global_quant_config.weight.dtype")


def _affine(n_bit: int, group: int) -> Scheme:
    """Return the scheme of integers with a scale and a zero of 16 bits for each group."""
    return Scheme(n_bit + 32 / group, "int4" if n_bit < 8 else "int8")


_AUTO_ROUND: Final = {"nv_fp": "nvfp4", "nv_fp4": "nvfp4", "mx_fp": "mxfp4", "mx_fp4": "mxfp4"}
_BITS: Final = ("bits", "w_bit", "wbits", "nbits")
_METHODS: Final[Mapping[str, Callable[[ConfigReader], Scheme]]] = {
    "aqlm": _aqlm, "bitsandbytes": _bitsandbytes, "exl2": _exllama, "exl3": _exllama, "hqq": _hqq, "quark": _quark,
    "torchao": _torchao,
}  # fmt: skip


def integer(n_bit: int, kind: str, group: int, *, is_zeroed: bool = False) -> Scheme:
    """Return the scheme of so many bits with a scale for each group, of 16 bits; of 8 for floats of 4 bits.

    Raises `InputError` if no engine serves it.

    Examples
    --------
    NVFP4, MXFP4, and GPTQ of 3 bits:

    >>> [integer(4, "float", 16).bits, integer(4, "float", 32).bits, integer(3, "int", 128).bits]
    [4.5, 4.25, 3.125]
    """
    if not 1 <= n_bit <= 8 or kind not in {"int", "float"} or (kind == "float" and n_bit not in {4, 8}):
        problem = f"must be 2 to 8 bits of type int, or 4 or 8 of type float, got {n_bit} bits of type {kind!r}"
        raise InputError(f"{_FIELD}.bits", problem)
    scale = (8 if kind == "float" and n_bit == 4 else 16) + (n_bit if is_zeroed else 0)
    narrow: Precision = "fp4" if kind == "float" else "int4"
    wide: Precision = "fp8" if kind == "float" else "int8"
    return Scheme(n_bit + (scale / group if group > 0 else 0.0), narrow if n_bit < 5 else wide)


def _named(text: str, field: str) -> Scheme:
    low = text.lower().replace("float", "fp").replace("fp_", "fp")
    scheme = next((Scheme(*cells) for word, cells in _TABLES["schemes"].items() if word in low), None)
    if scheme is None:
        known = "a method with bits, or fp4, fp8, int4 or int8"
        raise InputError(
            f"{_FIELD}.{field}", f"must name {known}, got {text[:60]!r}; or remove {_FIELD} from the config"
        )
    return scheme


def _kv_precision(q: ConfigReader) -> Precision | None:
    algorithm = q.text("kv_cache_quant_algo", default="")
    scheme = q.mapping().get("kv_cache_scheme")
    if isinstance(scheme, Mapping):
        part = ConfigReader(scheme)
        return integer(part.count("num_bits", high=64), part.text("type", default="float"), 0).precision
    return _named(algorithm, "kv_cache_quant_algo").precision if algorithm and algorithm.lower() != "none" else None


def _list(reader: ConfigReader, name: str) -> list[str]:
    value = reader.mapping().get(name)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
