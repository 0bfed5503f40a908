"""Conventions of training frameworks: states, sharding and kernels where a run does not state them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Framework:
    """Conventions of a family of frameworks.

    Parameters
    ----------
    weight_byte, gradient_byte, optimizer_byte, reduced_byte
        See `roofcast.features.jobs.run_columns.Job`.
    sharding
        Sharding of states if blank.
    has_tensor_parallel
        Whether a blank split may hold tensor or pipeline parallelism.
    is_compiled
        Whether whole steps are compiled, without launches from the host.
    is_flash
        Whether attention stores no scores if blank.
    is_stage_balanced
        Whether layers are spread over pipeline stages by cost.
    is_stage_gathered
        Whether a fully sharded pipeline keeps its stage's weights gathered over the micro-batches.
    has_dropout
        Whether pretraining keeps dropout masks.
    is_attention_portable
        Whether attention does not use the kernels of Hopper and later: FlashAttention-2 and before.
    is_context_uneven
        Whether context-parallel ranks hold consecutive tokens, so that the last has the most attention.
    is_tensor_strided
        Whether tensor-parallel ranks of a pipeline on several nodes stand on different nodes.
    launch_ratio
        Launches of a layer relative to Megatron-LM's.
    gather_ratio
        Time of collectives of sharded weights (ZeRO-3) relative to one collective a layer at the links' bandwidth.
    activation_ratio
        Kept activations relative to fused kernels': copies in 32 bits, rotated heads, activations before products.
    precision
        Compute precision if blank, where the accelerator has it.
    has_distributed_optimizer
        Whether replicas shard the optimizer's states even where sharding is called DDP.
    is_eager
        Whether norms, rotations and activations run as many kernels if `compiled` is blank.
    loops_experts
        Whether experts run one after the other.
    step_byte
        Bytes of a trained weight's shard that the optimizer's step holds for a time: gradients in 32 bits.
    bucket_param
        Weights of each of the two buffers, of gradients and of updated weights, of ZeRO's collectives.
    live_param
        Weights that ZeRO-3 keeps gathered: DeepSpeed's ``stage3_max_live_parameters``.
    frees_gradients
        Whether gradients are freed after a step, so that they grow while activations are freed.
    has_eight_bit_weights
        Whether frozen weights are kept in 8 bits where products take 8 bits.
    is_operator_recomputed
        Whether selective recomputation keeps every second product and recomputes the rest, instead of attention.
    backward_gradient_byte
        Bytes of `gradient_byte` that the backward pass writes beside the accumulated gradient.
    has_weight_gradients
        Whether gradients are kept in the precision of the weights, whatever they are reduced in.
    keeps_weights
        Whether weights and gradients have the stated precision of the weights, without a 16-bit copy.
    recomputation, loss, offload
        These of a run that states none; an unknown recomputation is the fastest that fits.
    is_offload_whole
        Whether parameters on the host bring gradients and optimizer with them.
    update_ratio
        Bytes that the optimizer's step holds for a time relative to the trained weights': torch's ``foreach`` steps.
    logit_ratio
        On one accelerator, see `roofcast.features.jobs.run_columns.Job`: on several, Accelerate adds a 32-bit copy.
    chunk_ratio
        Share of the logits that a chunked loss holds at a time: torchtune's eight chunks.
    host_ratio
        Time of transfers to the host relative to pinned memory's: of pageable memory, layer after layer.
    """

    weight_byte: float
    gradient_byte: float
    optimizer_byte: float
    reduced_byte: float
    sharding: str
    has_tensor_parallel: bool = False
    is_compiled: bool = False
    is_flash: bool = True
    is_stage_balanced: bool = False
    is_stage_gathered: bool = False
    has_dropout: bool = False
    is_attention_portable: bool = False
    is_context_uneven: bool = False
    is_tensor_strided: bool = False
    launch_ratio: float = 1.0
    gather_ratio: float = 1.0
    activation_ratio: float = 1.0
    precision: str = "bf16"
    has_distributed_optimizer: bool = False
    is_eager: bool = False
    loops_experts: bool = False
    step_byte: float = 0.0
    bucket_param: float = 0.0
    live_param: float = 0.0
    frees_gradients: bool = False
    has_eight_bit_weights: bool = False
    is_operator_recomputed: bool = False
    backward_gradient_byte: float = 0.0
    has_weight_gradients: bool = False
    keeps_weights: bool = False
    recomputation: str = ""
    loss: str = "full"
    offload: str = "none"
    is_offload_whole: bool = False
    update_ratio: float = 0.0
    logit_ratio: float = 1.0
    chunk_ratio: float = 0.125
    host_ratio: float = 1.0


FRAMEWORKS: Final[dict[str, Framework]] = {
    "megatron": Framework(2.0, 4.0, 12.0, 4.0, "zero1", has_tensor_parallel=True, has_eight_bit_weights=True),
    "nemo": Framework(2.0, 2.0, 12.0, 2.0, "zero1", has_tensor_parallel=True, precision="fp8",
                      has_distributed_optimizer=True, has_eight_bit_weights=True),
    "megatron-deepspeed": Framework(2.0, 2.0, 12.0, 2.0, "zero1", has_tensor_parallel=True, is_flash=False,
                                    has_dropout=True, gather_ratio=4.0, step_byte=4.0, bucket_param=5e8),
    "nanotron": Framework(2.0, 6.0, 12.0, 4.0, "ddp", has_tensor_parallel=True, is_stage_balanced=True,
                          is_attention_portable=True, is_tensor_strided=True, launch_ratio=2.0, activation_ratio=1.4,
                          backward_gradient_byte=2.0),
    "fsdp": Framework(4.0, 4.0, 8.0, 2.0, "fsdp", is_operator_recomputed=True, is_stage_gathered=True,
                      is_attention_portable=True, frees_gradients=True, has_weight_gradients=True,
                      is_offload_whole=True),
    "torchtitan": Framework(4.0, 4.0, 8.0, 4.0, "fsdp", is_eager=True, is_operator_recomputed=True,
                            is_attention_portable=True, is_context_uneven=True, frees_gradients=True,
                            has_weight_gradients=True, is_stage_gathered=True, is_offload_whole=True),
    "deepspeed": Framework(2.0, 2.0, 12.0, 2.0, "zero2", is_eager=True, is_attention_portable=True, step_byte=4.0,
                           bucket_param=5e8, live_param=1e9, host_ratio=8.0, loops_experts=True),
    "transformers": Framework(2.0, 2.0, 8.0, 2.0, "ddp", is_eager=True, is_attention_portable=True,
                              activation_ratio=1.5, frees_gradients=True, keeps_weights=True, is_offload_whole=True,
                              logit_ratio=0.7, update_ratio=1.0, loops_experts=True),
    "torchtune": Framework(2.0, 2.0, 4.0, 2.0, "fsdp", is_eager=True, is_attention_portable=True,
                           frees_gradients=True, has_weight_gradients=True, keeps_weights=True, recomputation="full",
                           loss="chunked", is_offload_whole=True),
    "unsloth": Framework(2.0, 2.0, 4.0, 2.0, "ddp", is_attention_portable=True, frees_gradients=True,
                         keeps_weights=True, recomputation="full", loss="chunked", offload="activations",
                         is_offload_whole=True, logit_ratio=0.7, chunk_ratio=1.0 / 32.0),
    "nanogpt": Framework(4.0, 4.0, 8.0, 4.0, "ddp", is_attention_portable=True, frees_gradients=True),
    "jax": Framework(4.0, 4.0, 8.0, 2.0, "fsdp", has_tensor_parallel=True, is_compiled=True),
    "neuron": Framework(2.0, 4.0, 12.0, 4.0, "zero1", has_tensor_parallel=True, is_compiled=True, is_flash=False),
}  # fmt: skip
"""Conventions by family.

Sources: Megatron-LM's README on the distributed optimizer (18 bytes a weight, 6 + 12 / dp); nanotron's
``fp32 gradient accumulation``, measured at 2 + 2 + 4 + 12 bytes; Megatron Bridge's performance recipes (distributed
optimizer, 16-bit reduction); NeMo's performance pages, whose tables without a precision agree with FP8
(docs/TRAINING.md); torch's FSDP mixed precision (32-bit shards, 16-bit compute and reduction); S. Rajbhandari et al.,
"ZeRO", 2020, section 3.1; torch's ``fully_shard``, which casts reduced gradients to the precision of the shards;
DeepSpeed's ``reduce_bucket_size`` and ``allgather_bucket_size``, and the 32-bit gradients of its ``stage_1_and_2``
optimizer; MaxText's 32-bit weights and Adam, and its ``pipeline_fsdp_ag_once``, false by default.
"""

_WORDS: Final = (
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("nanotron", "nanotron"),
    ("bridge", "nemo"),
    ("automodel", "torchtitan"),
    ("neuron", "neuron"),
    ("nxd", "neuron"),
    ("maxtext", "jax"),
    ("paxml", "jax"),
    ("t5x", "jax"),
    ("jax", "jax"),
    ("tpu", "jax"),
    ("nemo", "nemo"),
    ("megatron", "megatron"),
    ("foundry", "fsdp"),
    ("fsdp", "fsdp"),
    ("torchtitan", "torchtitan"),
    ("vectorlm", "fsdp"),
    ("torchtune", "torchtune"),
    ("unsloth", "unsloth"),
    ("nanogpt", "nanogpt"),
    ("nanochat", "nanogpt"),
    ("kempner", "torchtitan"),
    ("deepspeed", "deepspeed"),
    ("colossalai", "deepspeed"),
    ("mlperf", "megatron"),
    ("alpa", "megatron"),
    ("oneflow", "megatron"),
    ("libai", "megatron"),
    ("paddle", "megatron"),
    ("internevo", "megatron"),
)
"""Families by a word in a framework's name, the first that occurs."""

FALLBACK: Final = "transformers"
"""Family of other names, plain trainers: Trainer, TRL, PEFT, LLaMA-Factory, ms-swift, axolotl, Lightning."""


PLAIN_FAMILIES: Final = (FALLBACK, "deepspeed", "torchtune", "unsloth", "nanogpt")
"""Families of ordinary trainers, whose settings are their users'."""


def framework_family(name: str) -> str:
    """Return the family of a framework's name, in `FRAMEWORKS`.

    Examples
    --------
    >>> framework_family("NVIDIA NeMo Framework Release 25.09"), framework_family("llm-foundry")
    ('nemo', 'fsdp')
    """
    lower = name.lower()
    return next((family for word, family in _WORDS if word in lower), FALLBACK)
