"""From queries and specs to descriptors: one numeric row per question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.errors import InputError
from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.arrays import build_frame
from roofcast.features.columns import DESCRIPTOR_NAMES, DESCRIPTORS, ENGINES
from roofcast.features.descriptors.architecture import describe_model
from roofcast.features.descriptors.parallelism import split_devices
from roofcast.features.descriptors.precisions import (
    ACTIVATION_BYTE,
    WEIGHT_BYTE,
    Names,
    bytes_per_element,
    default_kv_precision,
    kernel_precision,
    outside_precision,
    peak_flop_per_s,
    precision_codes,
    served_precision,
)
from roofcast.features.descriptors.prediction_input import PredictionInput, factorize, number_column, text_column
from roofcast.features.engine.kernels.row_kernels import hardware_codes
from roofcast.features.engine.links import NETWORKS
from roofcast.features.engine.memory import visible_byte

FloatArray = npt.NDArray[np.float64]

QUANTILE: Final = {"mean": 0.5, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}

TYPICAL_VARIATION: Final = 0.5
"""Standard deviation of request lengths over their mean where it is not told: requests of people differ."""

TYPICAL_NETWORK: Final = "infiniband_ndr"
TYPICAL_TDP_W: Final = 500.0

HOST_SIZE: Final = 8.0
"""Accelerators on the PCIe of one host, if no network is told: as many slots of double width as most servers have."""


def describe(
    queries: PredictionInput, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the descriptors of each question.

    Blanks are filled: precision from the model's checkpoint (see `served_precision`), `kv_precision` by
    `default_kv_precision`, the split by `parallelism.split_devices`, `flash_attention` with true,
    `network` with the PCIe of one host, where accelerators have nothing else, and one port of 400 Gbit/s InfiniBand
    an accelerator beyond.

    Parameters
    ----------
    queries
        A table, or its columns as arrays: those of `validation.QUESTION_COLUMNS`, and where known
        those of its `CONTEXT_COLUMNS`, `network` (a name of `links.NETWORKS`), `acceptance_ratio`
        (chance that a drafted token is accepted), `expert_pruned_ratio` and `expert_skipped_ratio` (shares of the
        experts removed, and of those chosen that are passed over).
    models, accelerators
        Specs by the ids that the queries name.

    Returns
    -------
    shape (n_question, n_descriptor), columns `DESCRIPTOR_NAMES`, index of `queries`

    Raises
    ------
    InputError
        If a split does not multiply up to the number of accelerators, or leaves a broken one to `tp`; if a request
        has no token, or the load is nothing. What else is doubtful is flagged by `roofcast.features.validity.checks`.
    """
    model_codes, model_ids = factorize(queries["model"])
    accelerator_codes, accelerator_ids = factorize(queries["accelerator"])
    specs = [models[str(name)] for name in model_ids]
    parts = [accelerators[str(name)] for name in accelerator_ids]
    columns = _model(queries, specs, model_codes)
    native = np.array([spec.weight_precision for spec in specs], dtype=object)[model_codes]
    own = np.array([served_precision(spec.weight_precision) for spec in specs], dtype=object)[model_codes]
    precision = text_column(queries, "weight_precision", own)
    is_moe = columns["model.n_expert"] > 0
    has = {
        name: np.array([name in part.peak_flop_per_s for part in parts], dtype=bool)[accelerator_codes]
        for name in ("fp8", "int8", "fp4")
    }
    kernel = kernel_precision(precision, native, is_moe, has)
    outside = outside_precision(kernel, is_moe)
    columns |= _hardware(parts, accelerator_codes, kernel, outside) | _network(queries)
    columns["hardware.host_size"] = _host_size(queries, parts, accelerator_codes)
    columns |= _config(queries, precision, kernel, outside)
    n_filled = _weight_byte(columns) / columns["hardware.memory_byte"]
    columns |= split_devices(queries, columns["model.n_mla_layer"] > 0, n_filled)
    columns |= _workload(queries)
    index = queries.index if isinstance(queries, pd.DataFrame) else pd.RangeIndex(len(model_codes))
    return build_frame(columns, DESCRIPTOR_NAMES, index)


def _model(queries: PredictionInput, specs: list[ModelSpec], codes: npt.NDArray[np.intp]) -> dict[str, FloatArray]:
    rows = [describe_model(spec) for spec in specs]
    names = [column.name for column in DESCRIPTORS if column.group == "model"]
    columns = {name: np.array([row[name] for row in rows], dtype=float)[codes] for name in names}
    kept = 1 - number_column(queries, "expert_pruned_ratio", 0.0)
    pruned = columns["model.n_param_expert"] * (1 - kept)
    columns["model.n_param"] = columns["model.n_param"] - pruned
    columns["model.n_param_expert"] = columns["model.n_param_expert"] - pruned
    columns["model.n_expert"] = columns["model.n_expert"] * kept
    used = columns["model.n_expert_per_token"] * (1 - number_column(queries, "expert_skipped_ratio", 0.0))
    columns["model.n_expert_per_token"] = np.minimum(used, columns["model.n_expert"])
    return columns


def _weight_byte(columns: dict[str, FloatArray]) -> FloatArray:
    dense = columns["model.n_param"] - columns["model.n_param_expert"]
    return (
        dense * columns["config.dense_byte_per_element"]
        + columns["model.n_param_expert"] * columns["config.weight_byte_per_element"]
    )


def _hardware(
    parts: list[AcceleratorSpec], codes: npt.NDArray[np.intp], kernel: Names, outside: Names
) -> dict[str, FloatArray]:
    places_of_parts = [hardware_codes(part.id, part.architecture) for part in parts]
    values = {
        "hardware.memory_byte": [visible_byte(part) for part in parts],
        "hardware.bandwidth_byte_per_s": [part.bandwidth_byte_per_s for part in parts],
        "hardware.attention_flop_per_s": [peak_flop_per_s(part, "bf16") for part in parts],
        "hardware.link_byte_per_s": [part.link_bandwidth_byte_per_s for part in parts],
        "hardware.link_domain_size": [part.link_domain_size for part in parts],
        "hardware.tdp_w": [part.tdp_w or TYPICAL_TDP_W for part in parts],
        "hardware.accelerator": [own for own, _ in places_of_parts],
        "hardware.family": [family for _, family in places_of_parts],
    }
    gathered = {name: np.array(column, dtype=float)[codes] for name, column in values.items()}
    gathered["hardware.flop_per_s"] = _peaks(parts, codes, kernel)
    gathered["hardware.dense_flop_per_s"] = _peaks(parts, codes, outside)
    return gathered


def _peaks(parts: list[AcceleratorSpec], codes: npt.NDArray[np.intp], kernel: Names) -> FloatArray:
    if not parts:
        return np.empty(0)
    kernel_codes, kernels = factorize(kernel)
    table = np.array([[peak_flop_per_s(part, str(name)) for name in kernels] for part in parts], dtype=float)
    return np.asarray(table[codes, kernel_codes], dtype=np.float64)


def _network(queries: PredictionInput) -> dict[str, FloatArray]:
    codes, names = factorize(text_column(queries, "network", TYPICAL_NETWORK))
    networks = [NETWORKS[str(name)] for name in names]
    return {
        "hardware.network_byte_per_s": np.array([n.byte_per_s for n in networks], dtype=float)[codes],
        "hardware.network_latency_s": np.array([n.latency_s for n in networks], dtype=float)[codes],
    }


def _host_size(queries: PredictionInput, parts: list[AcceleratorSpec], codes: npt.NDArray[np.intp]) -> FloatArray:
    """Return the accelerators that need no network between them; who tells of a network speaks of apart ones."""
    own = np.array([part.link_domain_size for part in parts], dtype=float)[codes]
    is_pcie = np.array([part.link.startswith("pcie") for part in parts], dtype=bool)[codes]
    return np.where(is_pcie & (text_column(queries, "network", "") == ""), np.maximum(own, HOST_SIZE), own)


def _config(queries: PredictionInput, precision: Names, kernel: Names, outside: Names) -> dict[str, FloatArray]:
    engine = text_column(queries, "engine", ENGINES[-1])
    kv_precision = text_column(queries, "kv_precision", default_kv_precision(engine, precision))
    kv_byte = np.array([BYTE_PER_WEIGHT[p] for p in kv_precision], dtype=float)
    place = {name: float(i) for i, name in enumerate(ENGINES)}
    is_plain = text_column(queries, "speculation", "") == ""
    batching = (
        number_column(queries, "attention_dp_wait_step", 0.0),
        number_column(queries, "batch_wait_step", 0.0),
    )
    return {
        "config.engine": np.array([place.get(str(name), place["other"]) for name in engine], dtype=float),
        "config.expert_precision": precision_codes(kernel),
        "config.dense_precision": precision_codes(outside),
        "config.attention_precision": precision_codes(np.where(kv_byte < 2, "fp8_cache", "bf16").astype(object)),
        "config.weight_byte_per_element": bytes_per_element(kernel, WEIGHT_BYTE),
        "config.dense_byte_per_element": bytes_per_element(outside, WEIGHT_BYTE),
        "config.activation_byte_per_element": bytes_per_element(outside, ACTIVATION_BYTE),
        "config.kv_byte_per_element": kv_byte,
        "config.flash_attention": number_column(queries, "flash_attention", 1.0),
        "config.n_draft_token": np.where(is_plain, 0.0, number_column(queries, "n_speculative_token", 1.0)),
        "config.acceptance_ratio": number_column(queries, "acceptance_ratio", np.nan),
        "config.lora_rank": number_column(queries, "lora_rank", 0.0),
        "config.poll_interval_step": number_column(queries, "poll_interval_step", 1.0),
        "config.batching_wait_step": np.maximum(*batching),
    }


def _counted(queries: PredictionInput, name: str, least: float = 0.0) -> FloatArray:
    values = number_column(queries, name, np.nan)
    wrong = (values <= 0) | (values < least)
    if wrong.any():
        wanted = f"at least {least:g}" if least else "greater than 0"
        raise InputError(name, f"must be {wanted}, got {values[wrong][0]:g}")
    return values


def _waves(queries: PredictionInput) -> FloatArray:
    """Return the requests sent for each in flight, NaN if unknown.

    A run of a whole number of seconds was ended by the clock: how many requests it sent tells how fast it was, which
    is what is asked.
    """
    sent = number_column(queries, "n_request", np.nan) / number_column(queries, "concurrency", np.nan)
    is_timed = number_column(queries, "duration_s", np.nan) % 1 == 0
    return np.where(is_timed, np.nan, np.maximum(sent, 1.0))


def _workload(queries: PredictionInput) -> dict[str, FloatArray]:
    statistic = text_column(queries, "statistic", "mean")
    load = text_column(queries, "load", "closed_loop")
    return {
        "workload.n_input_token": _counted(queries, "n_input_token", least=1.0),
        "workload.n_output_token": _counted(queries, "n_output_token", least=1.0),
        "workload.n_wave": _waves(queries),
        "workload.length_variation": number_column(queries, "length_variation", TYPICAL_VARIATION),
        "workload.prefix_cache_ratio": np.clip(number_column(queries, "prefix_cache_ratio", 0.0), 0.0, 0.99),
        "workload.concurrency": _counted(queries, "concurrency"),
        "workload.request_rate_per_s": _counted(queries, "request_rate"),
        "workload.is_static": (load == "static_batch").astype(float),
        "workload.is_mean": (statistic == "mean").astype(float),
        "workload.quantile": np.array([QUANTILE[s] for s in statistic], dtype=float),
    }
