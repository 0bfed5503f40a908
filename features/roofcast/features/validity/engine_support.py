"""What runs: engine, version, accelerator, precision of weights and cache, kind of model; by one table of facts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any, Final

from roofcast.data.catalog.support_rows import MeasuredStack, SupportRow, load_support, target_names, target_of
from roofcast.data.errors import InputError
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.engine_names import ALIASES, find_engine, nearest_engine
from roofcast.features.descriptors.precisions import served_precision

SERVERS: Final = ("vllm", "sglang", "trtllm")
"""Engines that a recommendation searches unasked."""

DESK_ENGINES: Final = ("llama.cpp", "mlx-lm")
"""Engines of desks: searched unasked on accelerators of desks, and where none of `SERVERS` runs."""

WIDE: Final = ("fp32", "bf16", "fp16")
_SPELLINGS: Final = {"mlx": "mlx-lm", "exl2": "exllama-v2", "exl3": "exllama-v3", "tabbyapi": "exllama-v3"}
"""TabbyAPI is ExLlamaV3's own server, and serves no other format since its checkpoint branch ``exl2``."""

_EXL: Final = {"exllama-v2": frozenset({"exl2", "gptq"}), "exllama-v3": frozenset({"exl3"})}
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)+)")
_NEWEST: Final = (10**9,)
_SEVERITY: Final = ("runs", "unknown", "does_not_run")

Version = tuple[int, ...] | None
"""Numbers of a version; `_NEWEST` if blank, None if it has none."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a stack runs: ``runs``, ``unknown`` or ``does_not_run``, with reason, source and date of the fact."""

    status: str
    reason: str = ""
    source: str = ""
    date: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.source}, {self.date})"


@dataclass(frozen=True, slots=True)
class Stack:
    """What is to run on what.

    - `precision`: Of the weights, or their format, such as ``awq``; blank for the checkpoint's, or what the engine
      makes of it by default.
    - `model`: None for any.
    - `version`: Blank for the newest.
    - `measured`: Runs of the store.
    """

    engine: str
    accelerator: AcceleratorSpec
    precision: str = ""
    model: ModelSpec | None = None
    version: str = ""
    kv_precision: str = ""
    measured: tuple[MeasuredStack, ...] = ()


def support_of(stack: Stack) -> Verdict:
    """Return whether a stack runs.

    The facts of the hardware, of each kind of model and of the cache must all hold. Of facts that differ, that for
    certain versions counts over that for all, code over documentation, the newer over the older.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> parts = load_catalog().accelerators
    >>> a100, qwen = parts["nvidia-a100-sxm-80gb"], load_catalog().model("Qwen3-235B-A22B")
    >>> [support_of(Stack(engine, a100, "fp8", qwen)).status for engine in ("vllm", "sglang", "homemade")]
    ['runs', 'does_not_run', 'unknown']
    """
    engine, target = canonical_engine(stack.engine), target_of(stack.accelerator)
    kinds = model_kinds(stack.model) if stack.model else frozenset[str]()
    own = tuple(one for one in stack.measured if one.engine == engine and one.target == target)
    verdicts = []
    for precision in possible_precisions(engine, stack.precision, stack.model):
        formats = weight_formats(engine, precision, stack.model, target)
        verdict = _judge(_Case(engine, _version(stack.version), target, formats, stack.kv_precision, kinds, own))
        if verdict.status == "runs":
            return verdict
        verdicts.append(verdict)
    return next((one for one in verdicts if one.status == "unknown"), verdicts[0])


def support_error(stack: Stack, parts: Iterable[AcceleratorSpec] = ()) -> InputError | None:
    """Return why a stack does not run, with source and the nearest that runs; None if it runs or may run.

    `parts`: accelerators that may take the place of the stack's.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> print(support_error(Stack("trtllm", load_catalog().accelerators["amd-mi300x-192gb"])))  # doctest: +ELLIPSIS
    engine: trtllm does not run on AMD Instinct MI300X: TensorRT-LLM runs on NVIDIA GPUs only (...); nearest ...
    """
    verdict = support_of(stack)
    if verdict.status != "does_not_run":
        return None
    part, field, what = stack.accelerator, "engine", f"{stack.engine} {stack.version}".rstrip()
    bare = Stack(stack.engine, part, version=stack.version, measured=stack.measured)
    if support_of(bare).status != "does_not_run":
        field = "weight_precision" if stack.precision else field
        what = " ".join(filter(None, (what, "with", stack.model.id if stack.model else "", stack.precision)))
    elif stack.version and _other_version(bare):
        field = "engine_version"
    nearest = "; ".join(_nearest(stack, parts))
    cure = f"nearest that runs: {nearest}" if nearest else "nothing that runs is known"
    return InputError(field, f"{what} does not run on {part.vendor} {part.name}: {verdict}; {cure}")


def support_remark(stack: Stack) -> str:
    """Return the remark on a stack of which it is unknown whether it runs; blank if it is known to run."""
    verdict = support_of(stack)
    if verdict.status != "unknown":
        return ""
    what = f"{stack.engine} {stack.version}".rstrip()
    known = f": {verdict}" if verdict.reason else "; no source and no measurement tells"
    return f"whether {what} runs this on {stack.accelerator.name} is unknown{known}"


def measured_stacks(
    rows: Iterable[Sequence[str]], parts: Mapping[str, AcceleratorSpec], models: Mapping[str, ModelSpec]
) -> tuple[MeasuredStack, ...]:
    """Return the runs of a store, from rows of engine, version, accelerator, weight precision, model and date."""
    stacks = []
    for name, version, part, precision, model_id, date in rows:
        if part in parts and model_id in models:
            engine, target, model = canonical_engine(name), target_of(parts[part]), models[model_id]
            formats = weight_formats(engine, precision or served_precision(model.weight_precision), model, target)
            stacks.append(MeasuredStack(engine, version, target, formats, model_kinds(model), date))
    return tuple(stacks)


def is_quantised_whole(engine: str) -> bool:
    """Return whether an engine has formats of its own for quantised weights (GGUF, MLX), made of any checkpoint."""
    return nearest_engine(engine) == "llama.cpp"


@cache
def canonical_engine(name: str) -> str:
    """Return the engine of the table that a name means; the name if there is none.

    Examples
    --------
    >>> [canonical_engine(name) for name in ("tensorrt-llm", "vllm-ascend", "MLX_LM 0.30", "exl3", "homemade")]
    ['trtllm', 'vllm', 'mlx-lm', 'exllama-v3', 'homemade']
    """
    known = {row.engine: row.engine for row in load_support()}
    names = {**ALIASES, **_SPELLINGS, **known}
    nearest = known.get(name) or names.get(find_engine(name, names), nearest_engine(name))
    return nearest if nearest in known else name


def model_kinds(model: ModelSpec) -> frozenset[str]:
    """Return the kinds of models of the table that a model is: its type and name, and what its layers are.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> sorted(model_kinds(load_catalog().model("DeepSeek-V3.2")))
    ['deepseek-v3.2', 'deepseek_v32', 'experts', 'mla', 'sparse_mla']
    """
    is_mla = model.attention == "mla"
    structure = {
        "experts": model.n_expert > 0,
        "mla": is_mla,
        "sparse_mla": is_mla and model.n_sparse_layer > 0 and not model.kv_compression,
        "recurrent": model.n_linear_layer > 0 and model.model_type != "nemotron-nas",
    }
    names = {model.model_type.lower(), model.id.rpartition("/")[2].lower()}
    return frozenset(names | {name for name, holds in structure.items() if holds})


def weight_formats(engine: str, precision: str, model: ModelSpec | None, target: str) -> frozenset[str]:
    """Return the formats, any of which weights of a precision may have; none if the precision is blank.

    Four-bit floats are MXFP4 where the checkpoint is published in four bits (gpt-oss), otherwise NVFP4, or on AMD's
    accelerators either.
    """
    if precision in ("int4", "int8") and engine in _EXL:
        return _EXL[engine]
    if precision in ("int4", "int8") and is_quantised_whole(engine):
        return frozenset({"mlx" if "mlx" in engine else "gguf"})
    if precision == "fp4":
        if model and model.weight_precision == "fp4":
            return frozenset({"mxfp4"})
        return frozenset({"nvfp4", "mxfp4"} if target.startswith("gfx") else {"nvfp4"})
    if precision == "int4":
        return frozenset({"awq", "gptq"})
    return frozenset({"fp32" if precision == "tf32" else precision} - {""})


def possible_precisions(engine: str, precision: str, model: ModelSpec | None) -> tuple[str, ...]:
    """Return the precisions in which an engine may serve a model, in its order: the given one if it is not blank."""
    if precision or model is None:
        return (precision,)
    own = served_precision(model.weight_precision)
    if own in WIDE:
        return tuple(dict.fromkeys((own, "fp16", "bf16", "fp32")))
    whole = {"fp8": ("int8",), "fp4": ("int4",)}.get(own, ()) if is_quantised_whole(engine) else ()
    return (own, *whole)


def hardware_formats(rows: Iterable[SupportRow], engine: str, target: str) -> set[str]:
    """Return the formats of which the table says whether an engine serves them on a target, whatever the model."""
    own = (row for row in rows if row.engine == engine and not row.models and _is_any(target, row.targets))
    return {name for row in own for name in row.formats}


@dataclass(frozen=True, slots=True)
class _Case:
    engine: str
    version: Version
    target: str
    formats: frozenset[str]
    kv_precision: str
    kinds: frozenset[str]
    measured: tuple[MeasuredStack, ...]


@lru_cache(20_000)
def _judge(case: _Case) -> Verdict:
    kinds, measured, formats = case.kinds, case.measured, case.formats
    rows = [row for row in rows_of_target(case.target) if row.engine == case.engine and _covers(row, case.version)]
    rows = [row for row in rows if not any(_contradicts(one, row) for one in measured)]
    aspects: dict[str, list[SupportRow]] = defaultdict(list)
    for row in rows:
        if row.kv_precisions and case.kv_precision not in row.kv_precisions:
            continue
        for kind in (kind for kind in ("", *kinds) if (_is_any(kind, row.models) if row.models else not kind)):
            aspects[f"{kind} {case.kv_precision}" if row.kv_precisions else kind].append(row)
    facts = aspects.pop("", [])
    is_measured = any(formats & one.formats for one in measured)
    hardware = Verdict("runs", "measured", "the store") if is_measured else _best_format(facts, formats)
    others = [[row for row in found if not row.formats or formats & {*row.formats}] for found in aspects.values()]
    verdicts = [hardware, *map(_strongest, filter(None, others))]
    return max(verdicts, key=lambda verdict: _SEVERITY.index(verdict.status))


def _best_format(rows: list[SupportRow], formats: frozenset[str]) -> Verdict:
    names = formats or {name for row in rows for name in row.formats} or {""}
    stated = [[row for row in rows if not row.formats or name in row.formats] for name in sorted(names)]
    verdicts = [_strongest(found) if found else Verdict("unknown") for found in stated]
    return min(verdicts, key=lambda verdict: _SEVERITY.index(verdict.status))


def _strongest(rows: list[SupportRow]) -> Verdict:
    row = max(rows, key=_weight)
    return Verdict(row.status, row.reason, row.source, row.date)


def _weight(row: SupportRow) -> tuple[bool, bool, bool, str, str]:
    is_bound = bool(row.first_version or row.last_version)
    return row.evidence != "absence", is_bound, row.evidence == "code", row.date, row.status


def _contradicts(run: MeasuredStack, row: SupportRow) -> bool:
    if row.status == "runs" or (row.formats and not run.formats & {*row.formats}):
        return False
    if row.models and not any(_is_any(kind, row.models) for kind in run.kinds):
        return False
    version = _version(run.version)
    return _covers(row, version) if run.version and version else not run.date or run.date >= row.date


def _covers(row: SupportRow, version: Version) -> bool:
    if version is None:
        return not (row.first_version or row.last_version)
    first, last = _version(row.first_version), _version(row.last_version)
    is_late = not row.first_version or not first or version >= first
    return is_late and (not row.last_version or not last or version[: len(last)] <= last)


@cache
def _version(text: str) -> Version:
    if not text.strip():
        return _NEWEST
    match = _VERSION.match(text.strip())
    return tuple(map(int, match[1].split("."))) if match else None


@cache
def rows_of_target(target: str) -> tuple[SupportRow, ...]:
    """Return the rows of the table about a target; none if it is blank."""
    return tuple(row for row in load_support() if target and _is_any(target, row.targets))


@cache
def _is_any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _nearest(stack: Stack, parts: Iterable[AcceleratorSpec]) -> Iterable[str]:
    part, own = stack.accelerator, canonical_engine(stack.engine)
    kept = f" in {stack.precision}" if stack.precision else ""
    engines = [one for one in (*SERVERS, *DESK_ENGINES, "ollama", "lmdeploy", "atom", *_EXL) if one != own]
    if served := [one for one in engines if _runs(stack, engine=one, version="")]:
        yield f"{' or '.join(served[:3])}{kept} on it"
    elif served := [
        one for one in DESK_ENGINES if one != own and _runs(stack, engine=one, version="", precision="int8")
    ]:
        yield f"{served[0]} in int8 on it"
    if stack.precision:
        byte = BYTE_PER_WEIGHT.get(stack.precision, BYTE_PER_WEIGHT["int4"])
        others = sorted(BYTE_PER_WEIGHT, key=lambda one: abs(BYTE_PER_WEIGHT[one] - byte))
        if served := [one for one in others if one != stack.precision and _runs(stack, precision=one)]:
            yield f"{stack.engine} in {' or '.join(served[:3])} on it"
    if version := _other_version(stack):
        yield f"{version}{kept} on it"
    similar = sorted(parts, key=lambda one: (one.vendor != part.vendor, abs(one.memory_byte - part.memory_byte)))
    names = dict.fromkeys(target_names()[target_of(one)] for one in similar if _runs(stack, accelerator=one))
    if names:
        yield f"{stack.engine}{kept} on {' or '.join(list(names)[:2])}"


def _other_version(stack: Stack) -> str:
    engine = canonical_engine(stack.engine)
    rows = (row for row in rows_of_target(target_of(stack.accelerator)) if row.engine == engine)
    bounds = {row.last_version for row in rows if row.last_version}
    versions = ("", *sorted(bounds, key=lambda bound: _version(bound) or (), reverse=True))
    found = next((one for one in versions if one != stack.version and _runs(stack, version=one)), None)
    return "" if found is None else f"{stack.engine} {found or 'of today'}"


def _runs(stack: Stack, **changed: Any) -> bool:
    return support_of(replace(stack, **changed)).status == "runs"
