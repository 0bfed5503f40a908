"""Jobs of a table of training runs: columns of the training schema, joined with the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.arrays import FloatArray, take_rows
from roofcast.features.descriptors.descriptor_table import TYPICAL_TDP_W
from roofcast.features.descriptors.host_settings import clock_ratio
from roofcast.features.descriptors.precisions import WEIGHT_BYTE
from roofcast.features.descriptors.prediction_input import (
    ColumnArray,
    PredictionInput,
    factorize,
    number_column,
    text_column,
)
from roofcast.features.training.jobs.frameworks import FRAMEWORKS, framework_family
from roofcast.features.training.jobs.hardware import HOST_SIZE, build_hardware, network_byte_per_s
from roofcast.features.training.jobs.methods import (
    DEFAULT_TARGETS,
    trained_parameters,
    variant_width,
)
from roofcast.features.training.jobs.model_shape import build_model_shape
from roofcast.features.training.jobs.plans import StatedPlan, TrainingJobs
from roofcast.features.training.jobs.runs import Job, TrainingHardware
from roofcast.features.training.step.coefficients import FRAMEWORK_PRIORS

ZERO_STAGE: Final = {"ddp": 0.0, "zero1": 1.0, "zero2": 2.0, "zero3": 3.0, "fsdp": 3.0, "hsdp": 3.0}
RECOMPUTATION: Final = {"none": 0.0, "selective": 1.0, "full": 2.0}
EIGHT_BIT: Final = ("fp8", "fp4", "int8")
FROZEN_METHODS: Final = ("lora", "qlora", "adapter")

TYPICAL_TOKEN: Final = 2048.0
"""Tokens of a sequence where the length is unknown."""

_FRAMEWORK_CODE: Final = {name: code for code, name in enumerate(FRAMEWORK_PRIORS)}

ADAPTER_STATE_BYTE: Final = (4.0, 4.0, 8.0)
"""Weight, gradient and optimizer bytes of adapters, which stay in 32 bits."""


MOMENT_BYTE: Final = {"sgd": 0.0, "adafactor": 0.0, "lion": 4.0, "muon": 4.0}
"""Bytes of a weight's moments in 32 bits by the beginning of an optimizer's name: none of plain SGD, sums of rows and
columns alone of Adafactor (N. Shazeer and M. Stern, 2018), one moment of Lion (X. Chen et al., 2023) and of Muon (K.
Jordan et al., 2024)."""


def build_jobs(
    rows: PredictionInput, models: Mapping[str, ModelSpec], accelerators: Mapping[str, AcceleratorSpec]
) -> TrainingJobs:
    """Return the jobs of a table; blanks of the plan stay unknown, other blanks take the framework's convention.

    Parameters
    ----------
    rows
        Columns of `roofcast.data.measurements.training_schema.TRAINING_CONFIG_COLUMNS`; absent ones are blank.
    models, accelerators
        Specs by id, which hold every model and accelerator of the rows.
    """
    model_codes, model_ids = factorize(np.asarray(rows["model"], dtype=object))
    specs = [models[str(name)] for name in model_ids]
    model = take_rows(build_model_shape(specs), model_codes) if len(specs) > 1 else build_model_shape(specs)
    framework = _families(text_column(rows, "framework", ""))
    precision = compute_precisions(rows, accelerators, framework)
    job = _job(rows, specs, model_codes, framework, precision)
    return TrainingJobs(model, _hardware(rows, accelerators, precision), job, _stated(rows, framework, job))


def _families(names: ColumnArray) -> ColumnArray:
    codes, distinct = factorize(names)
    return np.array([framework_family(str(name)) for name in distinct], dtype=object)[codes]


def _convention(framework: ColumnArray, read: Callable[[Any], float | bool]) -> FloatArray:
    codes, distinct = factorize(framework)
    return np.array([float(read(FRAMEWORKS[str(name)])) for name in distinct])[codes]


def compute_precisions(
    rows: PredictionInput, accelerators: Mapping[str, AcceleratorSpec], framework: ColumnArray
) -> ColumnArray:
    """Return the precision of the products: the stated one, or the framework's where the accelerator has it."""
    names = np.asarray(rows["accelerator"], dtype=object)
    default = [
        FRAMEWORKS[family].precision if FRAMEWORKS[family].precision in accelerators[name].peak_flop_per_s else "bf16"
        for family, name in zip(framework, names, strict=True)
    ]
    return text_column(rows, "compute_precision", np.array(default, dtype=object))


def _hardware(
    rows: PredictionInput, accelerators: Mapping[str, AcceleratorSpec], precision: ColumnArray
) -> TrainingHardware:
    accelerator = np.asarray(rows["accelerator"], dtype=object)
    recipe = text_column(rows, "precision_recipe", "")
    block = (precision == "fp8") & np.array(["block" in str(text) for text in recipe])
    precision = np.where(block, "fp8_block", precision)
    codes, keys = factorize(np.array([f"{a}|{p}" for a, p in zip(accelerator, precision, strict=True)], dtype=object))
    pairs = [str(key).split("|") for key in keys]
    hardware = build_hardware([accelerators[name] for name, _ in pairs], [p for _, p in pairs])
    hardware = take_rows(hardware, codes) if len(pairs) > 1 else hardware
    n = number_column(rows, "n_accelerator", 1.0)
    n_node = number_column(rows, "n_node", np.nan)
    per_node = number_column(rows, "n_accelerator_per_node", np.where(n_node > 0, np.ceil(n / n_node), np.nan))
    is_small = hardware.domain_size <= HOST_SIZE
    domain = np.where(is_small & (per_node > 0), np.fmin(hardware.domain_size, per_node), hardware.domain_size)
    network = network_byte_per_s(rows, per_node, hardware.network_byte_per_s)
    link = number_column(rows, "link_bandwidth_byte_per_s", np.nan)
    tdp = np.array([accelerators[name].tdp_w or TYPICAL_TDP_W for name in accelerator])
    clock = clock_ratio(number_column(rows, "power_limit_w", np.nan), tdp)
    return TrainingHardware(
        **{name: getattr(hardware, name) for name in hardware.__slots__}
        | {
            "domain_size": domain,
            "flop_per_s": clock * hardware.flop_per_s,
            "half_flop_per_s": clock * hardware.half_flop_per_s,
            "network_byte_per_s": network,
            "link_byte_per_s": np.where(np.isnan(link), hardware.link_byte_per_s, 2.0 * link),
        }
    )


def _job(
    rows: PredictionInput,
    specs: Sequence[ModelSpec],
    codes: ColumnArray,
    framework: ColumnArray,
    precision: ColumnArray,
) -> Job:
    method = text_column(rows, "method", "pretrain")
    is_frozen = np.isin(method.astype(str), FROZEN_METHODS)
    is_eight_bit = np.isin(precision.astype(str), EIGHT_BIT)
    has_small_weight = is_frozen & is_eight_bit & (_convention(framework, lambda f: f.has_eight_bit_weights) > 0)
    usual = np.where(method == "qlora", "int4", np.where(has_small_weight, "fp8", "bf16"))
    weight = text_column(rows, "weight_precision", usual)
    is_quantised = is_frozen & np.isin(weight.astype(str), ("int4", "int8", "fp4"))
    frozen_byte = np.array([WEIGHT_BYTE.get(str(p), BYTE_PER_WEIGHT.get(str(p), 2.0)) for p in weight])
    n_trained, width, is_input_frozen = _adapters(rows, specs, codes, is_frozen)
    states = _states(rows, framework, weight, is_frozen)
    offload = text_column(rows, "offload", "none").astype(str)
    compiled = _switch(rows, "compiled", np.zeros(len(method)))
    is_compiled = np.maximum(_convention(framework, lambda f: f.is_compiled), 0.5 * compiled)
    default_flash = _convention(framework, lambda f: f.is_flash)
    pretrain = (method == "pretrain").astype(float)
    return Job(
        framework=np.array([_FRAMEWORK_CODE[str(name)] for name in framework], dtype=float),
        n_accelerator=number_column(rows, "n_accelerator", 1.0),
        n_token=number_column(rows, "n_token_per_sequence", TYPICAL_TOKEN),
        n_global_batch=number_column(rows, "n_global_batch_sequence", np.nan),
        weight_byte=states[0], gradient_byte=states[1], optimizer_byte=states[2], reduced_byte=states[3],
        frozen_byte=frozen_byte,
        is_frozen=is_frozen.astype(float),
        is_quantised=is_quantised.astype(float),
        n_param_trained=n_trained, n_adapter_width=width, is_input_frozen=is_input_frozen,
        has_dropout=_convention(framework, lambda f: f.has_dropout) * pretrain,
        is_flash=_switch(rows, "flash_attention", default_flash),
        is_loss_chunked=(text_column(rows, "loss", "full") == "chunked").astype(float),
        is_compiled=is_compiled,
        is_eager=_convention(framework, lambda f: f.is_eager) * (1.0 - compiled),
        step_byte=_convention(framework, lambda f: f.step_byte),
        bucket_param=_convention(framework, lambda f: f.bucket_param),
        frees_gradients=_convention(framework, lambda f: f.frees_gradients),
        is_operator_recomputed=_convention(framework, lambda f: f.is_operator_recomputed),
        is_attention_portable=_convention(framework, lambda f: f.is_attention_portable),
        is_context_uneven=_convention(framework, lambda f: f.is_context_uneven),
        is_tensor_strided=_convention(framework, lambda f: f.is_tensor_strided),
        launch_ratio=_convention(framework, lambda f: f.launch_ratio),
        gather_ratio=_convention(framework, lambda f: f.gather_ratio),
        activation_ratio=np.where(compiled > 0, 1.0, _convention(framework, lambda f: f.activation_ratio)),
        is_eight_bit=is_eight_bit.astype(float),
        offload_optimizer=(np.char.find(offload, "optimizer") >= 0).astype(float),
        offload_parameter=(np.char.find(offload, "parameters") >= 0).astype(float),
        offload_activation=(np.char.find(offload, "activations") >= 0).astype(float),
        recomputed_ratio=number_column(rows, "recomputed_layer_ratio", 1.0),
        is_stage_balanced=_convention(framework, lambda f: f.is_stage_balanced),
    )  # fmt: skip


def _switch(rows: PredictionInput, name: str, default: FloatArray) -> FloatArray:
    values = text_column(rows, name, "")
    return np.where(values == "on", 1.0, np.where(values == "off", 0.0, default))


def _states(
    rows: PredictionInput, framework: ColumnArray, weight: ColumnArray, is_frozen: ColumnArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return weight, gradient, optimizer and reduced bytes of a trained weight.

    A stated precision of gradients is added to the copy in which the backward pass writes them; 8-bit optimizers keep
    two bytes, others those of `MOMENT_BYTE`, and weights stated as 16 bits have no 32-bit copy where the framework's
    convention has none outside.
    """
    names = ("weight_byte", "gradient_byte", "optimizer_byte", "reduced_byte")
    states = [_convention(framework, lambda f, name=name: getattr(f, name)) for name in names]  # type: ignore[misc]
    optimizer = text_column(rows, "optimizer", "")
    is_small = np.array(["8bit" in str(text) for text in optimizer], dtype=bool)
    is_low_rank = np.array(["galore" in str(text) for text in optimizer], dtype=bool)
    master = states[2] - 8.0
    states[2] = np.where(is_small, np.maximum(master, 0.0) + 2.0, states[2])
    is_pure = (framework == "transformers") & (weight == "bf16")
    states[2] = np.where(is_pure & ~is_small, 4.0, states[2])
    states[2] = np.where(is_low_rank, np.where(is_pure, 0.0, np.maximum(master, 0.0)), states[2])
    moment = np.array([_moment_byte(str(text)) for text in optimizer])
    is_other = ~np.isnan(moment)
    states[2] = np.where(is_other, np.where(is_pure, 0.0, np.maximum(master, 0.0)) + np.nan_to_num(moment), states[2])
    for i, value in enumerate(ADAPTER_STATE_BYTE):
        states[i] = np.where(is_frozen, value, states[i])
    reduced = text_column(rows, "gradient_precision", "")
    known = np.array([BYTE_PER_WEIGHT.get(str(p), np.nan) for p in reduced])
    states[3] = np.where(np.isnan(known), states[3], known)
    return states[0], states[1], states[2], states[3]


def _moment_byte(optimizer: str) -> float:
    """Return the bytes of the moments of a weight in 32 bits; NaN if they are Adam's."""
    name = optimizer.lower()
    return next((byte for word, byte in MOMENT_BYTE.items() if name.startswith(word)), np.nan)


def _adapters(
    rows: PredictionInput, specs: Sequence[ModelSpec], codes: ColumnArray, is_frozen: ColumnArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the trained weights of adapters, the widths that a layer's adapters read and write, and LoRA-FA."""
    rank = number_column(rows, "adapter_rank", np.nan)
    targets = text_column(rows, "adapter_targets", " ".join(DEFAULT_TARGETS))
    variant = np.char.lower(text_column(rows, "adapter", "").astype(str))
    is_fa = np.char.find(variant, "lora-fa") >= 0
    n_trained, width = np.zeros(len(rank)), np.zeros(len(rank))
    for i in np.flatnonzero(is_frozen):
        spec, names = specs[codes[i]], str(targets[i]).split()
        n_trained[i] = trained_parameters(spec, str(variant[i]), rank[i], names)
        width[i] = variant_width(spec, str(variant[i]), names)
    return number_column(rows, "n_param_trained", n_trained), width, is_fa.astype(float)


def _stated(rows: PredictionInput, framework: ColumnArray, job: Job) -> StatedPlan:
    """Return the stated plan; a run that states part of its split has 1 for the rest.

    Chunks of an interleaved pipeline stay unknown where they are blank.
    """
    tp, pp, cp, ep, vp = (number_column(rows, name, np.nan) for name in ("tp", "pp", "cp", "ep", "vp"))
    sharding = text_column(rows, "sharding", "").astype(str)
    is_parallel = _convention(framework, lambda f: f.has_tensor_parallel) > 0
    is_fsdp = np.isin(sharding, ("fsdp", "hsdp", "zero3", "zero2"))
    is_partial = ~np.isnan(tp) | ~np.isnan(pp) | is_fsdp | (job.n_accelerator <= 1)
    is_partial |= ~is_parallel | (number_column(rows, "dp", np.nan) >= job.n_accelerator)
    tp, pp, cp = (np.where(is_partial & np.isnan(value), 1.0, value) for value in (tp, pp, cp))
    is_interleaved = text_column(rows, "pipeline_schedule", "") == "interleaved"
    vp = np.where(is_partial & np.isnan(vp) & ~is_interleaved, 1.0, vp)
    default = np.array([FRAMEWORKS[str(name)].sharding for name in framework], dtype=object)
    has_own = _convention(framework, lambda f: f.has_distributed_optimizer) > 0
    sharding = np.where(has_own & (sharding == "ddp"), "zero1", sharding)
    stage = np.array([ZERO_STAGE[s or d] for s, d in zip(sharding, default, strict=True)])
    per_node = np.full(len(tp), HOST_SIZE)
    recomputation = text_column(rows, "recomputation", "").astype(str)
    level = np.array([RECOMPUTATION.get(name, np.nan) for name in recomputation])
    is_old = framework == "megatron-deepspeed"
    default_sp = np.where(is_old, 0.0, 1.0)
    return StatedPlan(
        tp=tp, pp=pp, vp=vp, cp=cp, ep=ep,
        zero_stage=stage,
        n_replica_shard=np.where(sharding == "hsdp", per_node, np.nan),
        recomputation=level,
        is_sequence_parallel=_switch(rows, "sequence_parallel", default_sp),
        micro_batch=number_column(rows, "n_micro_batch_sequence", np.nan),
        n_micro_batch=number_column(rows, "n_gradient_accumulation", np.nan),
        has_tensor_parallel=is_parallel.astype(float),
    )  # fmt: skip
