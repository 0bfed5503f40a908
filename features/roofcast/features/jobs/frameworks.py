"""Conventions of training frameworks: states, sharding and kernels where a run does not state them."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Final


@dataclass(frozen=True, slots=True)
class Framework:
    """Conventions of a family of frameworks; `roofcast.features.jobs.run_columns.Job` has fields of the same names.

    - `sharding`, `precision`, `recomputation`, `loss`, `offload`: Of a run that states none, the precision where the
      accelerator has it; an unknown recomputation is the fastest that fits.
    - `has_tensor_parallel`: Whether a blank split may hold tensor or pipeline parallelism.
    - `has_dropout`: Whether pretraining keeps dropout masks.
    - `logit_ratio`: On one accelerator: on several, Accelerate adds a 32-bit copy.
    - `chunk_ratio`: Share of the logits that a chunked loss holds at a time: torchtune's eight chunks.
    - `has_distributed_optimizer`: Whether replicas shard the optimizer's states even where sharding is called DDP.
    - `has_eight_bit_weights`: Whether frozen weights are kept in 8 bits where products take 8 bits.
    - `backward_gradient_byte`: Bytes of `gradient_byte` that the backward pass writes beside the accumulated
      gradient.
    - `has_weight_gradients`: Whether gradients are kept in the precision of the weights, whatever they are reduced
      in.
    - `keeps_weights`: Whether weights, gradients and moments have the stated precision of the weights, without
      another copy.
    - `is_offload_whole`: Whether parameters on the host bring gradients and optimizer with them.
    - `has_host_gradients`: Whether an optimizer on the host brings the gradients with it.
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
    update_ratio: float = 0.0
    logit_ratio: float = 1.0
    chunk_ratio: float = 0.125
    host_ratio: float = 1.0
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
    has_host_gradients: bool = False


_TABLES: Final = tomllib.loads((resources.files(__package__) / "frameworks.toml").read_text(encoding="utf-8"))
_WORDS: Final[dict[str, str]] = _TABLES.pop("words")

FRAMEWORKS: Final = {name: Framework(**fields) for name, fields in _TABLES.items()}
"""Conventions by family."""

FALLBACK: Final = "transformers"
"""Family of other names, plain trainers: Trainer, TRL, PEFT, LLaMA-Factory, ms-swift, axolotl, Lightning."""

PLAIN_FAMILIES: Final = (FALLBACK, "deepspeed", "torchtune", "unsloth", "nanogpt")
"""Families of ordinary trainers, whose settings are their users'."""


def framework_family(name: str, sharding: str = "") -> str:
    """Return the family of a framework's name, in `FRAMEWORKS`; plain trainers run a stage of ZeRO with DeepSpeed.

    Examples
    --------
    >>> framework_family("NVIDIA NeMo Framework Release 25.09"), framework_family("llm-foundry")
    ('nemo', 'fsdp')
    """
    lower = name.lower()
    family = next((family for word, family in _WORDS.items() if word in lower), FALLBACK)
    return "deepspeed" if family == FALLBACK and sharding.startswith("zero") else family
