"""Launch command of Megatron-LM's pretrain_gpt.py under torchrun."""

import shlex
from typing import Any, Final, NamedTuple

from roofcast.data.specs import ModelSpec
from roofcast.serving.jobs.job_messages import JobPlanResponse
from roofcast.serving.jobs.launch.shell import (
    LEARNING_RATE,
    LOGIN,
    OUTPUT,
    Arguments,
    command,
    node_variables,
    subshell,
    torchrun,
)
from roofcast.serving.jobs.search.candidates import Hardware, JobDemand

COMMIT: Final = "000c4ac24f61"
CORE_VERSION: Final = "0.16.1"
"""Versions whose arguments and checks the command has."""

PRECISIONS: Final = ("bf16", "fp16", "fp8")
SHARDINGS: Final = ("zero1", "ddp")
VOCABULARY_MULTIPLE: Final = 128
"""Default of ``--make-vocab-size-divisible-by``, for each rank of tensor parallelism."""

SAVE_INTERVAL: Final = 500


class Layers(NamedTuple):
    """What `ModelSpec` does not hold of the layers of a type of model: all have RMSNorm and rotary embeddings."""

    has_qkv_bias: bool = False
    has_qk_norm: bool = False


LAYERS: Final = {
    "llama": Layers(),
    "mistral": Layers(),
    "mixtral": Layers(),
    "qwen2": Layers(has_qkv_bias=True),
    "qwen3": Layers(has_qk_norm=True),
    "qwen3_moe": Layers(has_qk_norm=True),
}
"""By `model_type`: transformers 5.23, ``models/*/modeling_*.py``."""

ROPE_SCALING: Final = {"Llama-3.1": 8, "Llama-3.2": 32, "Llama-3.3": 8}
"""Factor of ``rope_scaling`` in config.json, by family."""


def megatron_problem(plan: JobPlanResponse, _: Hardware, demand: JobDemand) -> str:
    """Return why Megatron-LM cannot run a plan, by its `validate_args` and `TransformerConfig`; blank if it can.

    References
    ----------
    Megatron-LM, ``megatron/training/arguments.py``; Megatron-Core 0.16.1, ``transformer/transformer_config.py``.
    """
    model, precision = demand.model, plan.compute_precision
    has_layers = model.model_type in LAYERS and model.mlp_gated and not model.n_sliding_layer + model.n_dense_layer
    n_chunk, n_micro_batch, n_token = plan.pp * plan.vp, plan.n_gradient_accumulation, demand.n_token
    problems = {
        f"has no arguments here for layers of type {model.model_type} such as those of the model": not has_layers,
        f"multiplies in {', '.join(PRECISIONS)}, not in {precision}": precision not in PRECISIONS,
        f"shards as {' or '.join(SHARDINGS)} here, not as {plan.sharding}": plan.sharding not in SHARDINGS,
        f"splits {model.n_layer} layers evenly, not over {n_chunk} stages and chunks": (
            model.n_layer % n_chunk > 0 and (plan.vp > 1 or last_stage_layer(plan, model) < 1)
        ),
        f"interleaves stages for micro-batches in multiples of {plan.pp}, not {n_micro_batch:g}": (
            plan.vp > 1 and n_micro_batch % plan.pp > 0
        ),
        f"splits sequences over {plan.cp} ranks in multiples of {2 * plan.cp} tokens, not {n_token}": (
            plan.cp > 1 and n_token % (2 * plan.cp) > 0
        ),
        "multiplies grouped experts in bf16, not in fp16": model.n_expert > 0 and precision == "fp16",
        "needs sequence parallelism where experts and tensor parallelism meet": (
            model.n_expert > 0 and plan.tp > 1 and not plan.sequence_parallel
        ),
    }
    return next((reason for reason, holds in problems.items() if holds), "")


def megatron_command(plan: JobPlanResponse, hardware: Hardware, demand: JobDemand) -> str:
    """Return the command that trains, to be run in a copy of Megatron-LM.

    References
    ----------
    Megatron-LM at commit 000c4ac2, ``megatron/training/arguments.py``; ``examples/llama/train_llama3_8b_h100_fp8.sh``
    and ``examples/mixtral/train_mixtral_8x7b_distributed.sh``.
    """
    names = {
        "DATA": "prefix of the .bin and .idx files of tools/preprocess_data.py",
        "ROPE_THETA": "rope_theta of the config.json of the model, a whole number",
        "NORM_EPS": "rms_norm_eps of the config.json of the model, such as 1e-05",
        **OUTPUT,
        **LEARNING_RATE,
        **node_variables(hardware),
    }
    if demand.method != "pretrain":
        names["CHECKPOINT"] = "folder of the model as tools/checkpoint/convert.py writes it"
    arguments: list[tuple[str, Any]] = [
        *_architecture(demand.model, plan.tp),
        *_plan(plan, demand.model),
        *_precision(plan, demand.model),
        *_run(plan, demand),
    ]
    # Tensor and context parallelism need one connection before Blackwell
    head = f"CUDA_DEVICE_MAX_CONNECTIONS=1 {torchrun(hardware)} pretrain_gpt.py"
    remarks = (f"in a clone of NVIDIA/Megatron-LM at {COMMIT}; pip install megatron-core=={CORE_VERSION}", LOGIN)
    return subshell(names, command(head, arguments), remarks)


def _architecture(model: ModelSpec, tp: int) -> Arguments:
    layers = LAYERS[model.model_type]
    yield "num-layers", model.n_layer
    yield "hidden-size", model.hidden_size
    yield "ffn-hidden-size", model.intermediate_size or model.moe_intermediate_size
    yield "num-attention-heads", model.n_head
    yield "kv-channels", model.head_dim
    if model.n_kv_head < model.n_head:
        yield "group-query-attention", None
        yield "num-query-groups", model.n_kv_head
    yield "swiglu", None
    yield "normalization", "RMSNorm"
    yield "norm-epsilon", "$NORM_EPS"
    yield "disable-bias-linear", None
    if layers.has_qkv_bias:
        yield "add-qkv-bias", None
    if layers.has_qk_norm:
        yield "qk-layernorm", None
    yield "position-embedding-type", "rope"
    yield "rotary-base", "$ROPE_THETA"
    if model.family in ROPE_SCALING:
        yield "use-rope-scaling", None
        yield "rope-scaling-factor", ROPE_SCALING[model.family]
    if not model.tie_word_embeddings:
        yield "untie-embeddings-and-output-weights", None
    multiple = VOCABULARY_MULTIPLE * tp
    yield "padded-vocab-size", -(-model.vocab_size // multiple) * multiple
    yield "attention-dropout", 0
    yield "hidden-dropout", 0
    if model.n_expert:
        yield "num-experts", model.n_expert
        yield "moe-ffn-hidden-size", model.moe_intermediate_size
        yield "moe-router-topk", model.n_expert_per_token
        yield "moe-router-load-balancing-type", "aux_loss"
        yield "moe-aux-loss-coeff", "1e-3"
        yield "moe-grouped-gemm", None


def last_stage_layer(plan: JobPlanResponse, model: ModelSpec) -> int:
    """Return the layers of the last of a pipeline's stages; the others have as many as the mean, rounded up."""
    return model.n_layer - (plan.pp - 1) * -(-model.n_layer // plan.pp)


def _plan(plan: JobPlanResponse, model: ModelSpec) -> Arguments:
    yield "tensor-model-parallel-size", plan.tp
    yield "pipeline-model-parallel-size", plan.pp
    if model.n_layer % plan.pp:
        yield "decoder-last-pipeline-num-layers", last_stage_layer(plan, model)
    if plan.vp > 1:
        yield "num-layers-per-virtual-pipeline-stage", model.n_layer // (plan.pp * plan.vp)
    yield "context-parallel-size", plan.cp
    if model.n_expert:
        yield "expert-model-parallel-size", plan.ep
        yield "expert-tensor-parallel-size", 1
        yield "moe-token-dispatcher-type", "alltoall"
    if plan.sequence_parallel:
        yield "sequence-parallel", None
    yield "overlap-grad-reduce", None
    if plan.sharding == "zero1":
        yield "use-distributed-optimizer", None
        yield "overlap-param-gather", None
    if plan.recomputation == "full":
        yield "recompute-granularity", "full"
        yield "recompute-method", "uniform"
        yield "recompute-num-layers", 1
    elif plan.recomputation == "selective":
        yield "recompute-granularity", "selective"
        yield "recompute-modules", "layernorm moe_act" if model.n_expert else "layernorm mlp"


def _precision(plan: JobPlanResponse, model: ModelSpec) -> Arguments:
    yield ("fp16" if plan.compute_precision == "fp16" else "bf16"), None
    if plan.compute_precision == "fp8":
        yield "fp8-format", "hybrid"
        yield "fp8-recipe", "tensorwise"  # delayed scaling recomputes no norms
        if model.n_expert:
            yield "moe-router-padding-for-fp8", None
    yield "attention-backend", "flash"


def _run(plan: JobPlanResponse, demand: JobDemand) -> Arguments:
    yield "seq-length", demand.n_token
    yield "max-position-embeddings", demand.n_token
    yield "micro-batch-size", f"{plan.n_micro_batch_sequence:g}"
    yield "global-batch-size", f"{plan.n_global_batch_sequence:g}"
    yield "train-iters", demand.n_step
    yield "optimizer", "adam"
    yield "lr", "$LEARNING_RATE"
    yield "lr-decay-style", "cosine"
    yield "data-path", '"$DATA"'
    yield "split", "100,0,0"
    yield "eval-iters", 0
    yield "tokenizer-type", "HuggingFaceTokenizer"
    yield "tokenizer-model", shlex.quote(demand.model.id)
    if demand.method != "pretrain":
        yield "load", '"$CHECKPOINT"'
        yield "finetune", None
    yield "save", '"$OUT"'
    yield "save-interval", SAVE_INTERVAL
    yield "log-interval", 1
