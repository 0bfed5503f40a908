"""Descriptor table: one numeric row per query, from prediction input and specs."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import ACCEPTANCES
from roofcast.data.measurements.speculation import speculates
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.columns import DESCRIPTOR_NAMES, MODEL_NAMES
from roofcast.features.descriptors.engine_names import OTHER, EngineColumns, describe_engines
from roofcast.features.descriptors.engine_releases import describe_releases
from roofcast.features.descriptors.host_settings import clock_ratio, describe_links
from roofcast.features.descriptors.memory_settings import describe_memory, visible_byte
from roofcast.features.descriptors.model_descriptors import describe_model, stored_bytes
from roofcast.features.descriptors.parallelism import split_devices
from roofcast.features.descriptors.precisions import (
    ACTIVATION_BYTE,
    EXPERT_BYTE,
    FOUR_BIT,
    GGUF_BYTE,
    GGUF_HEAD_BYTE,
    WEIGHT_BYTE,
    Names,
    bytes_per_element,
    computed_precision,
    default_kv_precision,
    kernel_precision,
    outside_precision,
    peak_flop_per_s,
    precision_codes,
    served_precision,
)
from roofcast.features.descriptors.prediction_input import (
    PredictionInput,
    column_arrays,
    factorize,
    number_column,
    text_column,
)
from roofcast.features.descriptors.server_settings import (
    GIB,
    LARGE_GIB,
    MAX_NUM_SEQS,
    counts_as_small,
    default_chunk,
    default_setting,
)
from roofcast.features.engine.kernels.row_kernels import hardware_codes
from roofcast.features.engine.links import NETWORKS
from roofcast.features.engine.loaded_weights import loaded_byte
from roofcast.features.engine.pass_cost import chain_acceptance
from roofcast.features.queries import BoolArray, FloatArray, IndexArray, Queries, build_frame, freeze

QUANTILE: Final = {"mean": 0.5, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

TYPICAL_VARIATION: Final = 0.5
"""Coefficient of variation of output lengths where it is unknown: typical of chat traffic."""

TYPICAL_DRAFT: Final = 3.0
"""Speculated tokens of a step where the number is unknown: the median over stacks and kinds of speculation of the
medians of the shipped rows that state it."""

TYPICAL_NETWORK: Final = "infiniband_ndr"
TYPICAL_TDP_W: Final = 500.0

HOST_SIZE: Final = 8.0
"""Accelerators on the PCIe of one host if `network` is blank: most servers have eight double-width slots."""

DRAFT_LAYER: Final = 5.0
"""Layers of a draft model of its own: DFlash drafts of Qwen3 and Laguna have five."""


def describe(
    rows: pd.DataFrame, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the table of `describe_queries`: shape (n_row, n_descriptor), with the index of `rows`."""
    queries = describe_queries(column_arrays(rows), models, accelerators)
    return build_frame(queries, DESCRIPTOR_NAMES, rows.index)


def describe_service(
    queries: PredictionInput, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> Queries:
    """Return what `describe_queries` does of questions: a closed loop of unknown length is a service in steady state.

    A measured run of unknown length includes some of the burst at its start; a service does not.
    """
    d = {**describe_queries(queries, models, accelerators)}
    is_endless = ~np.isnan(d["workload.concurrency"]) & np.isnan(d["workload.n_request"])
    is_endless &= d["workload.is_static"] == 0
    for name in ("workload.n_wave", "workload.n_request", "workload.duration_s"):
        d[name] = np.where(is_endless, np.inf, d[name])
    return freeze(np.array([d[name] for name in DESCRIPTOR_NAMES]))


def describe_queries(
    queries: PredictionInput, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> Queries:
    """Return the descriptors of each query.

    Defaults: precision from the checkpoint (`served_precision`), `kv_precision` from `default_kv_precision`, the
    split from `parallelism.split_devices`, `flash_attention` true, and for `network` the PCIe of one host for
    accelerators without a link, and one port of 400 Gbit/s InfiniBand per accelerator beyond.

    `queries`: columns of `validation.QUESTION_COLUMNS` and optionally of `CONTEXT_COLUMNS`, `network` (a name in
    `links.NETWORKS`), `expert_pruned_ratio` and `expert_skipped_ratio` (shares of the experts removed, and of the
    chosen experts skipped). `models` and `accelerators`: specs by id. Raises `InputError` if the split is
    inconsistent with the number of accelerators, a length is below one token, or the load is not positive.
    `roofcast.features.validity.checks` flags other implausible input.
    """
    model_codes, model_ids = factorize(queries["model"])
    accelerator_codes, accelerator_ids = factorize(queries["accelerator"])
    specs = [models[str(name)] for name in model_ids]
    accelerator_specs = [accelerators[str(name)] for name in accelerator_ids]
    columns = _model(queries, specs, model_codes)
    native = np.array([spec.weight_precision for spec in specs], dtype=object)[model_codes]
    own = np.array([served_precision(spec.weight_precision) for spec in specs], dtype=object)[model_codes]
    precision = text_column(queries, "weight_precision", own)
    is_moe = columns["model.n_expert"] > 0
    has = {
        name: np.array([name in accelerator.peak_flop_per_s for accelerator in accelerator_specs], dtype=bool)[
            accelerator_codes
        ]
        for name in ("fp8", "int8", "fp4")
    }
    kernel = kernel_precision(precision, native, is_moe, has)
    engine = describe_engines(text_column(queries, "engine", OTHER))
    outside = outside_precision(kernel, native, is_moe, engine.is_whole, has["fp8"])
    is_nvidia = np.array([spec.vendor == "NVIDIA" for spec in accelerator_specs], dtype=bool)[accelerator_codes]
    on_int8 = engine.is_whole & is_nvidia & has["int8"]
    computed = (computed_precision(names, on_int8) for names in (kernel, outside))
    columns |= _hardware(accelerator_specs, accelerator_codes, *computed) | _network(queries)
    columns |= describe_links(queries, accelerator_specs, accelerator_codes)
    _limit_power(columns, number_column(queries, "power_limit_w", np.nan))
    columns["hardware.host_size"] = _host_size(queries, accelerator_specs, accelerator_codes)
    columns |= _config(queries, engine, _kv_precision(engine.name, precision, specs, model_codes))
    columns |= _element_bytes(kernel, outside, engine.is_whole, is_moe & (native == "int4"))
    _store(columns, specs, model_codes, precision == own)
    _state_bits(columns, number_column(queries, "weight_bit", np.nan) / 8, kernel, outside, engine.is_whole)
    is_small = np.array([*map(counts_as_small, accelerator_specs)], dtype=bool)[accelerator_codes]
    columns |= _server_settings(queries, engine.name, columns["hardware.memory_byte"], is_small)
    n_filled = sum(loaded_byte(columns).values()) / columns["hardware.memory_byte"]
    columns |= split_devices(queries, columns["model.n_mla_layer"] > 0, n_filled, engine.is_whole)
    columns |= _workload(queries)
    columns |= describe_memory(queries, engine.name, columns)
    return freeze(np.array([columns[name] for name in DESCRIPTOR_NAMES], dtype=float))


def _model(queries: PredictionInput, specs: list[ModelSpec], codes: IndexArray) -> dict[str, FloatArray]:
    rows = [describe_model(spec) for spec in specs]
    columns = {name: np.array([row[name] for row in rows], dtype=float)[codes] for name in MODEL_NAMES}
    kept_ratio = 1 - number_column(queries, "expert_pruned_ratio", 0.0)
    pruned = columns["model.n_param_expert"] * (1 - kept_ratio)
    columns["model.n_param"] = columns["model.n_param"] - pruned
    columns["model.n_param_expert"] = columns["model.n_param_expert"] - pruned
    columns["model.n_expert"] = columns["model.n_expert"] * kept_ratio
    used = columns["model.n_expert_per_token"] * (1 - number_column(queries, "expert_skipped_ratio", 0.0))
    columns["model.n_expert_per_token"] = np.minimum(used, columns["model.n_expert"])
    return columns


def _store(
    columns: dict[str, FloatArray],
    specs: list[ModelSpec],
    codes: IndexArray,
    is_own: BoolArray,
) -> None:
    """Replace the bytes of weights by those that a checkpoint states, where it is served as it is."""
    rows = [stored_bytes(spec) for spec in specs]
    for name in {name for row in rows for name in row}:
        stored = np.array([row.get(name, np.nan) for row in rows])[codes]
        columns[name] = np.where(is_own & ~np.isnan(stored), stored, columns[name])


def _state_bits(
    columns: dict[str, FloatArray],
    byte: FloatArray,
    kernel: Names,
    outside: Names,
    is_whole: BoolArray,
) -> None:
    """Replace the bytes of weights by those of the question, where they are quantised."""
    if np.isnan(byte).all():
        return
    head = np.fmax(byte, np.where(outside == "int4", GGUF_HEAD_BYTE["int4"], byte))
    is_dense = outside != "bf16"
    stated = {
        "weight": (kernel != "bf16", byte), "dense": (is_dense, byte), "head": (is_dense & is_whole, head),
        "embedding": (is_dense & is_whole, byte),
    }  # fmt: skip
    for role, (is_quantised, values) in stated.items():
        name = f"config.{role}_byte_per_element"
        columns[name] = np.where(is_quantised & ~np.isnan(values), values, columns[name])


def _hardware(
    accelerator_specs: list[AcceleratorSpec], codes: IndexArray, kernel: Names, outside: Names
) -> dict[str, FloatArray]:
    kernel_codes = [hardware_codes(accelerator.id, accelerator.architecture) for accelerator in accelerator_specs]
    values = {
        "hardware.memory_byte": [visible_byte(accelerator) for accelerator in accelerator_specs],
        "hardware.bandwidth_byte_per_s": [accelerator.bandwidth_byte_per_s for accelerator in accelerator_specs],
        "hardware.attention_flop_per_s": [peak_flop_per_s(accelerator, "bf16") for accelerator in accelerator_specs],
        "hardware.link_domain_size": [accelerator.link_domain_size for accelerator in accelerator_specs],
        "hardware.tdp_w": [accelerator.tdp_w or TYPICAL_TDP_W for accelerator in accelerator_specs],
        "hardware.accelerator": [own for own, _ in kernel_codes],
        "hardware.is_amd": [float(accelerator.vendor == "AMD") for accelerator in accelerator_specs],
        "hardware.family": [family for _, family in kernel_codes],
    }
    gathered = {name: np.array(column, dtype=float)[codes] for name, column in values.items()}
    gathered["hardware.flop_per_s"] = _peaks(accelerator_specs, codes, kernel)
    gathered["hardware.dense_flop_per_s"] = _peaks(accelerator_specs, codes, outside)
    return gathered


def _limit_power(columns: dict[str, FloatArray], power_limit_w: FloatArray) -> None:
    if np.isnan(power_limit_w).all():
        return
    clock = clock_ratio(power_limit_w, columns["hardware.tdp_w"])
    for name in ("flop_per_s", "dense_flop_per_s", "attention_flop_per_s"):
        columns[f"hardware.{name}"] = columns[f"hardware.{name}"] * clock
    columns["hardware.tdp_w"] = np.fmin(columns["hardware.tdp_w"], power_limit_w)


def _peaks(accelerator_specs: list[AcceleratorSpec], codes: IndexArray, kernel: Names) -> FloatArray:
    if not accelerator_specs:
        return np.empty(0)
    kernel_codes, kernels = factorize(kernel)
    table = np.array(
        [[peak_flop_per_s(accelerator, str(name)) for name in kernels] for accelerator in accelerator_specs],
        dtype=float,
    )
    return np.asarray(table[codes, kernel_codes], dtype=np.float64)


def _network(queries: PredictionInput) -> dict[str, FloatArray]:
    codes, names = factorize(text_column(queries, "network", TYPICAL_NETWORK))
    networks = [NETWORKS[str(name)] for name in names]
    return {
        "hardware.network_byte_per_s": np.array([n.byte_per_s for n in networks], dtype=float)[codes],
        "hardware.network_latency_s": np.array([n.latency_s for n in networks], dtype=float)[codes],
    }


def _host_size(queries: PredictionInput, accelerator_specs: list[AcceleratorSpec], codes: IndexArray) -> FloatArray:
    # A known number of hosts bounds it, unless the scale-up domain is larger than a host.
    own = np.array([accelerator.link_domain_size for accelerator in accelerator_specs], dtype=float)[codes]
    is_pcie = np.array([accelerator.link.startswith("pcie") for accelerator in accelerator_specs], dtype=bool)[codes]
    size = np.where(is_pcie & (text_column(queries, "network", "") == ""), np.maximum(own, HOST_SIZE), own)
    if "n_node" not in queries:
        return size
    n_node = number_column(queries, "n_node", 1.0)
    per_node = np.ceil(number_column(queries, "n_accelerator", 1.0) / n_node)
    return np.where((own <= HOST_SIZE) & (n_node > 1), np.minimum(size, per_node), size)


def _element_bytes(kernel: Names, outside: Names, is_whole: BoolArray, is_fine: BoolArray) -> dict[str, FloatArray]:
    # One kernel of llama.cpp multiplies all four-bit weights.
    is_four_bit = np.isin(kernel.astype(str), FOUR_BIT)
    weight, dense = (bytes_per_element(names, WEIGHT_BYTE) for names in (kernel, outside))
    weight = np.where(is_fine & np.equal(kernel, "int4"), EXPERT_BYTE, weight)
    head, embedding = np.full_like(weight, 2.0), np.full_like(weight, 2.0)
    if is_whole.any():
        gguf = (bytes_per_element(names, WEIGHT_BYTE | GGUF_BYTE) for names in (kernel, outside))
        weight, dense = (np.where(is_whole, *pair) for pair in zip(gguf, (weight, dense), strict=True))
        head = np.where(is_whole, bytes_per_element(outside, GGUF_HEAD_BYTE), head)
        embedding = np.where(is_whole, bytes_per_element(outside, GGUF_BYTE), embedding)
    return {
        "config.expert_precision": precision_codes(np.where(is_whole & is_four_bit, "int4", kernel)),
        "config.dense_precision": precision_codes(outside),
        "config.weight_byte_per_element": weight,
        "config.dense_byte_per_element": dense,
        "config.head_byte_per_element": head,
        "config.embedding_byte_per_element": embedding,
        "config.activation_byte_per_element": bytes_per_element(outside, ACTIVATION_BYTE),
    }


def _kv_precision(engine: Names, precision: Names, specs: list[ModelSpec], codes: IndexArray) -> Names:
    stored = np.array([spec.kv_precision or "" for spec in specs], dtype=object)[codes]
    return np.where(stored == "", default_kv_precision(engine, precision), stored).astype(object)


def _config(queries: PredictionInput, engine: EngineColumns, default_kv: Names) -> dict[str, FloatArray]:
    kv_precision = text_column(queries, "kv_precision", default_kv)
    kv_byte = np.array([BYTE_PER_WEIGHT[p] for p in kv_precision], dtype=float)
    graphs = text_column(queries, "graphs", "")
    batching = (
        number_column(queries, "attention_dp_wait_step", 0.0),
        number_column(queries, "batch_wait_step", 0.0),
    )
    return {
        "config.engine": engine.code,
        "config.is_eager": ((graphs == "off") | (engine.is_eager & (graphs != "on"))).astype(float),
        "config.attention_precision": precision_codes(np.where(kv_byte < 2, "fp8_cache", "bf16").astype(object)),
        "config.kv_byte_per_element": kv_byte,
        "config.flash_attention": number_column(queries, "flash_attention", 1.0),
        **_speculation(queries),
        "config.lora_rank": number_column(queries, "lora_rank", 0.0),
        "config.poll_interval_step": number_column(queries, "poll_interval_step", 1.0),
        "config.batching_wait_step": np.maximum(*batching),
        **describe_releases(engine.code, *(text_column(queries, name, "") for name in ("engine_version", "date"))),
    }


def _speculation(queries: PredictionInput) -> dict[str, FloatArray]:
    length, draft_ratio, chance = (number_column(queries, name, np.nan) for name in ACCEPTANCES)
    least = np.fmax(TYPICAL_DRAFT, np.ceil(length) - 1)
    n_draft = np.where(speculates(queries), number_column(queries, "n_speculative_token", least), 0.0)
    length = np.where(np.isnan(length), 1 + draft_ratio * n_draft, length)
    is_counted = ~np.isnan(length) & (n_draft > 0)
    if is_counted.any():
        chance[is_counted] = chain_acceptance(length[is_counted], n_draft[is_counted])
    kind = text_column(queries, "speculation", "").astype(str)
    n_layer = np.select([kind == "draft", kind == "ngram"], [DRAFT_LAYER, 0.0], 1.0) * (n_draft > 0)
    return {"config.n_draft_token": n_draft, "config.n_draft_layer": n_layer, "config.acceptance_ratio": chance}


def _server_settings(
    queries: PredictionInput, engine: Names, memory_byte: FloatArray, is_small: BoolArray
) -> dict[str, FloatArray]:
    memory_byte = np.where(is_small, np.minimum(memory_byte, LARGE_GIB * GIB - 1), memory_byte)
    most = default_setting(MAX_NUM_SEQS, engine, memory_byte, np.inf)
    return {
        "config.chunk_token": number_column(queries, "chunk_size_token", default_chunk(queries, engine, memory_byte)),
        "config.max_num_seqs": number_column(queries, "max_num_seqs", most),
    }


def _positive_column(queries: PredictionInput, name: str, least: float = 0.0) -> FloatArray:
    values = number_column(queries, name, np.nan)
    wrong = (values <= 0) | (values < least)
    if wrong.any():
        expected = f"at least {least:g}" if least else "greater than 0"
        raise InputError(name, f"must be {expected}, got {values[wrong][0]:g}")
    return values


def _run_length(queries: PredictionInput) -> tuple[FloatArray, FloatArray]:
    # A duration of whole seconds means that the run was stopped by a timer: its number of requests then depends on
    # the speed to be predicted, so it is not used, except in an open loop, where it is the rate times the duration.
    duration = number_column(queries, "duration_s", np.nan)
    is_timed = (duration % 1 == 0) & np.isnan(number_column(queries, "request_rate", np.nan))
    n_request = number_column(queries, "n_request", np.nan)
    return np.where(is_timed, np.nan, n_request), np.where(is_timed, duration, np.nan)


def _workload(queries: PredictionInput) -> dict[str, FloatArray]:
    statistic = text_column(queries, "statistic", "mean")
    load = text_column(queries, "load", "closed_loop")
    n_request, duration = _run_length(queries)
    per_slot = n_request / number_column(queries, "concurrency", np.nan)
    return {
        "workload.n_input_token": _positive_column(queries, "n_input_token", least=1.0),
        "workload.n_output_token": _positive_column(queries, "n_output_token", least=1.0),
        "workload.n_wave": np.maximum(per_slot, 1.0),
        "workload.n_request": n_request,
        "workload.duration_s": duration,
        "workload.length_variation": number_column(queries, "length_variation", TYPICAL_VARIATION),
        "workload.prefix_cache_ratio": np.clip(number_column(queries, "prefix_cache_ratio", 0.0), 0.0, 0.99),
        "workload.concurrency": _positive_column(queries, "concurrency"),
        "workload.request_rate_per_s": _positive_column(queries, "request_rate"),
        "workload.is_static": (load == "static_batch").astype(float),
        "workload.is_mean": (statistic == "mean").astype(float),
        "workload.quantile": np.array([QUANTILE[s] for s in statistic], dtype=float),
    }
