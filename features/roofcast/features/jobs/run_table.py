"""Jobs of a table of training runs: columns of the training schema, joined with the catalogue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from roofcast.data.specs import BYTE_PER_WEIGHT, AcceleratorSpec, ModelSpec
from roofcast.features.descriptors.descriptor_table import TYPICAL_TDP_W
from roofcast.features.descriptors.host_settings import clock_ratio
from roofcast.features.descriptors.precisions import WEIGHT_BYTE
from roofcast.features.descriptors.prediction_input import (
    ColumnArray,
    InputTable,
    PredictionInput,
    column_arrays,
    factorize,
    number_column,
    text_column,
)
from roofcast.features.jobs.frameworks import FALLBACK, FRAMEWORKS, framework_family
from roofcast.features.jobs.hardware import HOST_SIZE, WIDE, build_hardware, network_byte_per_s, used_on_host
from roofcast.features.jobs.methods import (
    DEFAULT_TARGETS,
    OTHER_ADAPTERS,
    expert_ratio,
    full_target_parameters,
    trained_parameters,
    variant_width,
    virtual_token,
)
from roofcast.features.jobs.model_shape import build_model_shape
from roofcast.features.jobs.offloads import leaner_settings
from roofcast.features.jobs.plan_enumeration import Jobs, StatedPlan
from roofcast.features.jobs.run_columns import Job, JobHardware, ModelShape
from roofcast.features.jobs.step.job_coefficients import FRAMEWORK_PRIORS
from roofcast.features.jobs.step.layer import ELEMENT_BYTE
from roofcast.features.queries import FloatArray, RowIndex, take_rows

ZERO_STAGE: Final = {"ddp": 0.0, "zero1": 1.0, "zero2": 2.0, "zero3": 3.0, "fsdp": 3.0, "hsdp": 3.0}
RECOMPUTATION: Final = {"none": 0.0, "selective": 1.0, "full": 2.0}
EIGHT_BIT: Final = ("fp8", "fp4", "int8")
FROZEN_METHODS: Final = ("lora", "qlora", "adapter")

TYPICAL_TOKEN: Final = 2048.0
"""Tokens of a sequence where the length is unknown."""

_FRAMEWORKS: Final = tuple(FRAMEWORK_PRIORS)

ADAPTER_BYTE: Final = 4.0
"""Bytes of a weight, a gradient and a moment of adapters, which stay in 32 bits."""

N_MOMENT: Final = {"sgd": 0.0, "adafactor": 0.0, "galore": 0.0, "lion": 1.0, "muon": 1.0}
"""Moments of a weight by the beginning of an optimizer's name, two of others: none of plain SGD; sums of rows and
columns alone of Adafactor (N. Shazeer and M. Stern, 2018); of low rank of GaLore (J. Zhao et al., 2024); one of Lion
(X. Chen et al., 2023) and of Muon (K. Jordan et al., 2024)."""

SMALL_MOMENT: Final = {"8bit": "int8", "8-bit": "int8", "4bit": "int4", "4-bit": "int4"}
"""Precision of the moments that an optimizer's name says: T. Dettmers et al., "8-bit Optimizers via Block-wise
Quantization", 2022; B. Li et al., "Memory Efficient Optimizers with 4-bit States", 2023."""

EAGER_TYPES: Final = ("bloom", "chatglm", "falcon", "gpt_neox", "mpt", "opt", "t5")
"""Model types whose attention stores its scores in plain frameworks if `flash_attention` is blank: the code of their
checkpoints, or Transformers', had no fused kernel when they were tuned (``_supports_sdpa``)."""

CONVENTIONS: Final = (
    "step_byte", "bucket_param", "live_param", "frees_gradients", "is_operator_recomputed", "loops_experts",
    "is_attention_portable", "is_context_uneven", "is_tensor_strided", "launch_ratio", "gather_ratio",
    "update_ratio", "host_ratio", "has_host_gradients", "is_stage_balanced", "is_stage_gathered",
)  # fmt: skip
"""Fields of jobs that are those of their frameworks."""

CONTENT_RATIO: Final = 0.5
"""Share of padded batches that is not padding: up to half of the tokens of common data sets are padding (M. Krell et
al., "Efficient Sequence Packing without Cross-contamination", 2021, abstract)."""


def build_jobs(
    table: InputTable,
    models: Mapping[str, ModelSpec],
    accelerators: Mapping[str, AcceleratorSpec],
    *,
    has_offload: bool = False,
) -> Jobs:
    """Return the jobs of a table; blanks of the plan stay unknown, other blanks take the framework's convention.

    Jobs of the table's rows come first, then those of rows whose blanks may become leaner, see `leaner_settings`.

    `table`: columns of `roofcast.data.measurements.job_schema.TRAINING_CONFIG_COLUMNS`; absent ones are blank.
    `models` and `accelerators`: specs by id, which hold every model and accelerator of the rows.
    `has_offload`: whether the host may hold what the convention leaves on the device.
    """
    rows, origin, step = _with_leaner(column_arrays(table), has_offload=has_offload)
    model_codes, model_ids = factorize(rows["model"])
    specs = [models[str(name)] for name in model_ids]
    model = take_rows(build_model_shape(specs), model_codes) if len(specs) > 1 else build_model_shape(specs)
    framework = _families(text_column(rows, "framework", ""), text_column(rows, "sharding", ""))
    precision = compute_precisions(rows, accelerators)
    job = _job(rows, specs, model_codes, framework, precision)
    hardware, stated = _hardware(rows, accelerators, precision), _stated(rows, framework, job, model)
    return Jobs(model, hardware, job, stated, origin, step)


_FREE: Final = ("sharding", "offload", "loss")


def _with_leaner(rows: PredictionInput, *, has_offload: bool) -> tuple[PredictionInput, RowIndex, RowIndex]:
    sharding, offload, loss = (text_column(rows, name, "") for name in _FREE)
    is_one = number_column(rows, "n_accelerator", 1.0) <= 1.0
    families = _families(text_column(rows, "framework", ""), sharding)
    keys = zip(families, sharding, offload, is_one.tolist(), strict=True)
    options = [leaner_settings(f, s, o, is_one=one, has_offload=has_offload) for f, s, o, one in keys]
    count = np.array([len(one) for one in options])
    origin = np.concatenate([np.flatnonzero(count > step) for step in range(count.max())])
    step = np.repeat(np.arange(count.max()), [(count > step).sum() for step in range(count.max())])
    chosen = np.array([options[i][k] for i, k in zip(origin, step, strict=True)], dtype=object).T
    stated = (values[origin] for values in (sharding, offload, loss))
    filled = {name: np.where(own == "", new, own) for name, own, new in zip(_FREE, stated, chosen, strict=True)}
    return {name: values[origin] for name, values in rows.items()} | filled, origin, step


def _families(names: ColumnArray, sharding: ColumnArray) -> ColumnArray:
    codes, distinct = factorize(np.array([f"{a}|{b}" for a, b in zip(names, sharding, strict=True)], dtype=object))
    return np.array([framework_family(*str(pair).rsplit("|", 1)) for pair in distinct], dtype=object)[codes]


def _convention(framework: ColumnArray, name: str) -> FloatArray:
    codes, distinct = factorize(framework)
    return np.array([float(getattr(FRAMEWORKS[str(family)], name)) for family in distinct])[codes]


def compute_precisions(rows: PredictionInput, accelerators: Mapping[str, AcceleratorSpec]) -> ColumnArray:
    """Return the precision of the products: the stated one, or the framework's where the accelerator has it.

    Else it is BF16 or FP16. Products of bitsandbytes' 4-bit weights have 32 bits by default where there is no BF16.
    """
    names = np.asarray(rows["accelerator"], dtype=object)
    is_qlora = text_column(rows, "method", "") == "qlora"
    families = _families(text_column(rows, "framework", ""), text_column(rows, "sharding", ""))
    default = []
    for family, name, is_four_bit in zip(families, names, is_qlora, strict=True):
        peaks = accelerators[name].peak_flop_per_s
        own = FRAMEWORKS[family].precision
        half = "fp32" if is_four_bit and family == FALLBACK and "fp32" in peaks else "fp16"
        default.append(next((p for p in (own, "bf16", half) if p in peaks), "bf16"))
    return text_column(rows, "compute_precision", np.array(default, dtype=object))


def _hardware(
    rows: PredictionInput, accelerators: Mapping[str, AcceleratorSpec], precision: ColumnArray
) -> JobHardware:
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
    return JobHardware(
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
    has_small_weight = is_frozen & is_eight_bit & (_convention(framework, "has_eight_bit_weights") > 0)
    is_wide = np.isin(precision.astype(str), WIDE)
    usual = np.where(method == "qlora", "int4", np.where(has_small_weight, "fp8", np.where(is_wide, "fp32", "bf16")))
    weight = text_column(rows, "weight_precision", usual)
    is_quantised = is_frozen & np.isin(weight.astype(str), ("int4", "int8", "fp4"))
    frozen_byte = np.array([WEIGHT_BYTE.get(str(p), BYTE_PER_WEIGHT.get(str(p), 2.0)) for p in weight])
    adapters = _adapters(rows, specs, codes, is_frozen)
    states = _states(rows, framework, weight, is_frozen, adapters.full_ratio)
    n_accelerator = number_column(rows, "n_accelerator", 1.0)
    nodes = (number_column(rows, name, np.nan) for name in ("n_node", "n_accelerator_per_node"))
    host_memory_byte = number_column(rows, "host_memory_byte", np.inf) / used_on_host(n_accelerator, *nodes)
    n_token = number_column(rows, "n_token_per_sequence", TYPICAL_TOKEN)
    content = np.where(text_column(rows, "packing", "") == "padded", CONTENT_RATIO, 1.0)
    compiled = _switch(rows, "compiled", np.zeros(len(method)))
    has_eager = _convention(framework, "is_eager")
    is_compiled = np.maximum(_convention(framework, "is_compiled"), 0.5 * compiled)
    has_kernel = np.array([spec.model_type not in EAGER_TYPES for spec in specs], dtype=float)[codes]
    default_flash = _convention(framework, "is_flash")
    default_flash = np.where(default_flash * has_eager > 0, has_kernel, default_flash)
    pretrain = (method == "pretrain").astype(float)
    shared = {name: _convention(framework, name) for name in CONVENTIONS}
    return Job(
        **shared,
        framework=np.array([framework_code(str(name)) for name in framework], dtype=float),
        n_accelerator=n_accelerator,
        host_memory_byte=host_memory_byte,
        n_token=n_token + adapters.n_virtual_token,
        content_ratio=content * n_token / (n_token + adapters.n_virtual_token),
        n_global_batch=number_column(rows, "n_global_batch_sequence", np.nan),
        weight_byte=states[0], gradient_byte=states[1], optimizer_byte=states[2], reduced_byte=states[3],
        frozen_byte=frozen_byte,
        is_frozen=is_frozen.astype(float),
        is_quantised=is_quantised.astype(float),
        n_param_trained=adapters.n_trained, adapter_expert_ratio=adapters.expert_ratio,
        n_adapter_width=adapters.width,
        is_input_frozen=adapters.is_input_frozen,
        has_dropout=_convention(framework, "has_dropout") * pretrain,
        element_byte=np.where(np.isin(precision.astype(str), WIDE), 4.0, ELEMENT_BYTE),
        is_flash=_switch(rows, "flash_attention", default_flash),
        is_compiled=is_compiled,
        is_eager=has_eager * (1.0 - compiled),
        activation_ratio=np.where(compiled > 0, 1.0, _convention(framework, "activation_ratio")),
        logit_ratio=np.where(n_accelerator > 1.0, 1.0, _convention(framework, "logit_ratio")),
        is_eight_bit=is_eight_bit.astype(float),
        recomputed_ratio=number_column(rows, "recomputed_layer_ratio", 1.0),
        is_gpipe=(text_column(rows, "pipeline_schedule", "") == "gpipe").astype(float),
    )  # fmt: skip


def framework_code(family: str) -> int:
    """Return the number in `Job.framework` of a family of frameworks."""
    return _FRAMEWORKS.index(family)


def _switch(rows: PredictionInput, name: str, default: FloatArray) -> FloatArray:
    values = text_column(rows, name, "")
    return np.where(values == "on", 1.0, np.where(values == "off", 0.0, default))


def _states(
    rows: PredictionInput, framework: ColumnArray, weight: ColumnArray, is_frozen: ColumnArray, full_ratio: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    # Moments have the stated precision, else that of the optimizer's name, else 32 bits, or that of weights that are
    # stated as 16 bits where the framework's convention has no 32-bit copy outside. A stated precision of gradients
    # is that in which they accumulate, beside the copy that the backward pass writes. Adapters stay in 32 bits;
    # weights of the model that are trained beside them keep its precision.
    names = ("weight_byte", "gradient_byte", "optimizer_byte", "reduced_byte")
    weights, gradients, optimizer, reduced = (_convention(framework, name) for name in names)
    is_half = np.isin(weight.astype(str), ("fp32",), invert=True)
    is_own = _convention(framework, "keeps_weights") > 0
    is_pure = is_own & (weight == "bf16")
    weights = np.where(is_own & ~is_half, 4.0, weights)
    gradients = np.where(is_own & ~is_half, 4.0, gradients)
    own_byte = np.where(is_half, ELEMENT_BYTE, ADAPTER_BYTE)
    adapter_byte = full_ratio * own_byte + (1.0 - full_ratio) * ADAPTER_BYTE
    usual = np.where(is_frozen, adapter_byte, np.where(is_pure, ELEMENT_BYTE, 4.0))
    master = np.where(is_frozen | is_pure, 0.0, np.maximum(optimizer - 8.0, 0.0))
    n_moment, moment_byte = _moments(rows, usual)
    optimizer = master + n_moment * moment_byte
    weights = np.where(is_frozen, adapter_byte, weights)
    gradients = np.where(is_frozen, adapter_byte, gradients)
    stated = _stated_byte(rows, "gradient_precision")
    kept = stated + np.where(is_frozen, 0.0, _convention(framework, "backward_gradient_byte"))
    follows = np.isnan(stated) | (_convention(framework, "has_weight_gradients") > 0)
    return weights, np.where(follows, gradients, kept), optimizer, np.where(np.isnan(stated), reduced, stated)


def _moments(rows: PredictionInput, usual: FloatArray) -> tuple[FloatArray, FloatArray]:
    names = [str(text).lower() for text in text_column(rows, "optimizer", "")]
    count = [next((n for word, n in N_MOMENT.items() if name.startswith(word)), 2.0) for name in names]
    small = [next((p for word, p in SMALL_MOMENT.items() if word in name), "") for name in names]
    named = np.array([BYTE_PER_WEIGHT.get(precision, np.nan) for precision in small])
    stated = _stated_byte(rows, "state_precision")
    byte = np.where(np.isnan(stated), np.where(np.isnan(named), usual, named), stated)
    return np.array(count), byte


def _stated_byte(rows: PredictionInput, column: str) -> FloatArray:
    return np.array([BYTE_PER_WEIGHT.get(str(name), np.nan) for name in text_column(rows, column, "")])


@dataclass(frozen=True, slots=True)
class _Adapters:
    n_trained: FloatArray
    full_ratio: FloatArray
    expert_ratio: FloatArray
    width: FloatArray
    n_virtual_token: FloatArray
    is_input_frozen: FloatArray


def _adapters(
    rows: PredictionInput, specs: Sequence[ModelSpec], codes: ColumnArray, is_frozen: ColumnArray
) -> _Adapters:
    rank = number_column(rows, "adapter_rank", np.nan)
    stated = number_column(rows, "n_param_trained", np.nan)
    targets = text_column(rows, "adapter_targets", " ".join(DEFAULT_TARGETS))
    variant = np.char.lower(text_column(rows, "adapter", "").astype(str))
    n_trained = np.nan_to_num(stated)
    full_ratio, in_experts, width, n_virtual = np.zeros((4, len(rank)))
    for i in np.flatnonzero(is_frozen):
        spec, name, projections = specs[codes[i]], str(variant[i]), str(targets[i]).split()
        if np.isnan(stated[i]):
            n_trained[i] = trained_parameters(spec, name, rank[i], projections)
        if name not in OTHER_ADAPTERS:
            full_ratio[i] = min(full_target_parameters(spec, projections) / n_trained[i], 1.0)
            in_experts[i] = (1.0 - full_ratio[i]) * expert_ratio(spec, name, projections)
        width[i] = variant_width(spec, name, projections)
        n_virtual[i] = virtual_token(spec, name, rank[i], n_trained[i])
    is_fa = np.char.find(variant, "lora-fa") >= 0
    return _Adapters(n_trained, full_ratio, in_experts, width, n_virtual, is_fa.astype(float))


def _stated(rows: PredictionInput, framework: ColumnArray, job: Job, model: ModelShape) -> StatedPlan:
    # Chunks of an interleaved pipeline stay unknown where they are blank.
    tp, pp, cp, ep, vp = (number_column(rows, name, np.nan) for name in ("tp", "pp", "cp", "ep", "vp"))
    sharding = text_column(rows, "sharding", "").astype(str)
    is_parallel = _convention(framework, "has_tensor_parallel") > 0
    is_fsdp = np.isin(sharding, ("fsdp", "hsdp", "zero3", "zero2"))
    is_partial = ~np.isnan(tp) | ~np.isnan(pp) | is_fsdp | (job.n_accelerator <= 1)
    is_partial |= ~is_parallel | (number_column(rows, "dp", np.nan) >= job.n_accelerator)
    tp, pp, cp = (np.where(is_partial & np.isnan(value), 1.0, value) for value in (tp, pp, cp))
    is_interleaved = text_column(rows, "pipeline_schedule", "") == "interleaved"
    vp = np.where(is_partial & np.isnan(vp) & ~is_interleaved, 1.0, vp)
    default = np.array([FRAMEWORKS[str(name)].sharding for name in framework], dtype=object)
    has_own = _convention(framework, "has_distributed_optimizer") > 0
    sharding = np.where(has_own & (sharding == "ddp"), "zero1", sharding)
    stage = np.array([ZERO_STAGE[s or d] for s, d in zip(sharding, default, strict=True)])
    stage = np.where((sharding == "") & (job.n_accelerator <= 1), 0.0, stage)
    per_node = np.full(len(tp), HOST_SIZE)
    loss = _or_convention(rows, "loss", framework)
    offload = _or_convention(rows, "offload", framework).astype(str)
    held = [(np.char.find(offload, word) >= 0).astype(float) for word in ("optimizer", "parameters", "activations")]
    held[1] *= stage > 2.0  # no framework offloads weights that are not sharded: DeepSpeed ignores it below stage 3
    held[0] = np.maximum(held[0], held[1] * _convention(framework, "is_offload_whole"))
    chunk = _convention(framework, "chunk_ratio")
    own_logit_share = np.broadcast_to(model.hidden_size / model.vocab_size, len(tp))
    recomputation = text_column(rows, "recomputation", "").astype(str)
    usual = [FRAMEWORKS[str(name)].recomputation for name in framework]
    level = np.array([RECOMPUTATION.get(name or d, np.nan) for name, d in zip(recomputation, usual, strict=True)])
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
        logit_share=np.select([loss == "chunked", loss == "fused"], [chunk, np.minimum(own_logit_share, chunk)], 1.0),
        offload_optimizer=held[0], offload_parameter=held[1], offload_activation=held[2],
    )  # fmt: skip


def _or_convention(rows: PredictionInput, name: str, framework: ColumnArray) -> ColumnArray:
    usual = np.array([getattr(FRAMEWORKS[str(family)], name) for family in framework], dtype=object)
    return text_column(rows, name, usual)
