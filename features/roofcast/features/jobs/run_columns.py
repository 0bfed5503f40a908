"""Training runs as columns: model, hardware, job and plan, one array of shape (n_row,) for each quantity."""

from dataclasses import dataclass

from roofcast.features.engine.kernels.efficiency import GemmEfficiency, LinkEfficiency, PrefillAttentionEfficiency
from roofcast.features.queries import FloatArray


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Widths and counts of the model; products outside experts are means over all layers.

    - `mixer_in_width`, `mixer_out_width`: Output columns of the products before attention, and input rows of the one
      after it.
    - `mlp_width`, `n_mlp_layer`, `n_mlp_matrix`: Width of an MLP, layers that have one, and its matrices: three if
      gated, two if plain.
    - `moe_width`, `n_moe_layer`: The same for one routed expert.
    - `dispatch_width`: Width of the vectors that are sent to experts.
    - `n_full_layer`, `n_sliding_layer`, `n_linear_layer`: Layers by kind of attention; `sliding_window` in tokens. A
      full layer reads at most `sparse_top_k` tokens, if positive.
    - `is_causal`: 1 if a token attends to earlier ones alone, 0 for encoders.
    - `n_param`, `n_param_expert`, `n_param_embedding`: Weights of all, of the routed experts, and of the input
      embedding (also counted in the head unless `is_tied`).
    """

    n_layer: FloatArray
    hidden_size: FloatArray
    mixer_in_width: FloatArray
    mixer_out_width: FloatArray
    mlp_width: FloatArray
    n_mlp_layer: FloatArray
    n_mlp_matrix: FloatArray
    moe_width: FloatArray
    n_moe_layer: FloatArray
    dispatch_width: FloatArray
    n_expert: FloatArray
    n_expert_per_token: FloatArray
    n_head: FloatArray
    n_kv_head: FloatArray
    qk_dim: FloatArray
    v_dim: FloatArray
    n_full_layer: FloatArray
    n_sliding_layer: FloatArray
    n_linear_layer: FloatArray
    sliding_window: FloatArray
    sparse_top_k: FloatArray
    is_causal: FloatArray
    vocab_size: FloatArray
    is_tied: FloatArray
    n_param: FloatArray
    n_param_expert: FloatArray
    n_param_embedding: FloatArray


@dataclass(frozen=True, slots=True)
class JobHardware:
    """Accelerators and their links; peaks are dense.

    - `flop_per_s`, `half_flop_per_s`: Peak of the precision of the products, and of attention and head, which stay in
      16 bits.
    - `link_byte_per_s`: Data-sheet link inside a domain, both directions; `domain_size` accelerators share it.
    - `network_byte_per_s`: Nominal bandwidth of one accelerator between domains, one direction.
    - `host_byte_per_s`: Bandwidth to the memory of the host, one direction.
    - `family`: Code of the family, see `roofcast.features.jobs.step.job_coefficients.family_code`.
    """

    flop_per_s: FloatArray
    half_flop_per_s: FloatArray
    bandwidth_byte_per_s: FloatArray
    memory_byte: FloatArray
    link_byte_per_s: FloatArray
    domain_size: FloatArray
    network_byte_per_s: FloatArray
    host_byte_per_s: FloatArray
    family: FloatArray
    gemm: GemmEfficiency
    half_gemm: GemmEfficiency
    attention: PrefillAttentionEfficiency
    all_reduce: LinkEfficiency
    all_gather: LinkEfficiency
    all_to_all: LinkEfficiency


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained, how, and in which precisions; switches are 0 or 1.

    - `framework`: Code of the family of frameworks: its index in `step.coefficients.FRAMEWORK_PRIORS`.
    - `n_accelerator`, `n_token`: Accelerators of the run, and tokens of a sequence as processed: with padding and
      virtual tokens of a prompt.
    - `content_ratio`: Share of the processed tokens that are the data set's, which rates count.
    - `n_global_batch`: Sequences of an optimizer step over all replicas.
    - `weight_byte`, `gradient_byte`, `optimizer_byte`: Bytes of one trained weight, of its gradient (as accumulated),
      and of its optimizer states with any master copy.
    - `frozen_byte`: Bytes of one frozen weight.
    - `reduced_byte`: Bytes of one gradient as reduced over replicas.
    - `is_frozen`: 1 if the model's own weights are frozen: adapter methods. Their gradients are not computed.
    - `is_quantised`: 1 if frozen weights are unpacked for each product.
    - `n_param_trained`: Trained weights of an adapter method; ignored if the model is not frozen.
    - `adapter_expert_ratio`: Share of them that is in routed experts.
    - `n_adapter_width`: Sum over the adapted projections that a token passes of the widths that their adapters read
      and write, of the mean layer.
    - `is_input_frozen`: 1 if adapters do not keep their inputs (LoRA-FA).
    - `element_byte`: Bytes of an activation: 4 where products take 32-bit operands.
    - `has_dropout`, `is_flash`, `is_compiled`: Dropout of activations; attention without stored scores; a compiled
      program, which needs no launches from the host.
    - `is_eager`: 1 if norms, rotations and activations run as many kernels.
    - `loops_experts`: 1 if experts run one after the other.
    - `is_attention_portable`: 1 if attention does not use the kernels of Hopper and later.
    - `is_context_uneven`: 1 if context-parallel ranks hold consecutive tokens, so that the last has the most
      attention.
    - `is_tensor_strided`: 1 if tensor-parallel ranks of a pipeline on several nodes stand on different nodes.
    - `launch_ratio`: Launches of a layer relative to Megatron-LM's.
    - `gather_ratio`: Time of collectives of sharded weights relative to one collective a layer.
    - `activation_ratio`: Kept activations relative to fused kernels'.
    - `logit_ratio`: Bytes at the peak for each logit, relative to those that hold 16- and 32-bit copies and the
      gradients of both.
    - `update_ratio`: Bytes that the optimizer's step holds for a time relative to the trained weights'.
    - `host_ratio`: Time of transfers to the host relative to pinned memory's.
    - `host_memory_byte`: Memory of the host for each accelerator; infinite if unknown.
    - `has_host_gradients`: 1 if an optimizer on the host brings the gradients with it.
    - `step_byte`, `bucket_param`, `live_param`: Bytes of a trained weight's shard that the optimizer's step holds for
      a time; weights of each buffer of ZeRO, and those that ZeRO-3 keeps gathered.
    - `frees_gradients`: 1 if gradients are freed after a step, so that they grow while activations are freed.
    - `is_operator_recomputed`: 1 if selective recomputation keeps every second product and recomputes the rest.
    - `is_eight_bit`: 1 if products take 8- or 4-bit operands.
    - `recomputed_ratio`: Share of the layers to which full or selective recomputation applies.
    - `is_stage_balanced`: 1 if layers are spread over pipeline stages by cost, 0 if evenly.
    - `is_stage_gathered`: 1 if a fully sharded pipeline keeps its stage's weights gathered over the micro-batches, 0
      if it gathers them in each.
    - `is_gpipe`: 1 if a pipeline runs all micro-batches forward before the first runs backward.
    """

    framework: FloatArray
    n_accelerator: FloatArray
    n_token: FloatArray
    content_ratio: FloatArray
    n_global_batch: FloatArray
    weight_byte: FloatArray
    gradient_byte: FloatArray
    optimizer_byte: FloatArray
    frozen_byte: FloatArray
    reduced_byte: FloatArray
    is_frozen: FloatArray
    is_quantised: FloatArray
    n_param_trained: FloatArray
    adapter_expert_ratio: FloatArray
    n_adapter_width: FloatArray
    is_input_frozen: FloatArray
    element_byte: FloatArray
    has_dropout: FloatArray
    is_flash: FloatArray
    is_compiled: FloatArray
    is_eager: FloatArray
    step_byte: FloatArray
    bucket_param: FloatArray
    live_param: FloatArray
    frees_gradients: FloatArray
    is_operator_recomputed: FloatArray
    loops_experts: FloatArray
    is_attention_portable: FloatArray
    is_context_uneven: FloatArray
    is_tensor_strided: FloatArray
    launch_ratio: FloatArray
    gather_ratio: FloatArray
    activation_ratio: FloatArray
    logit_ratio: FloatArray
    update_ratio: FloatArray
    host_ratio: FloatArray
    host_memory_byte: FloatArray
    has_host_gradients: FloatArray
    is_eight_bit: FloatArray
    recomputed_ratio: FloatArray
    is_stage_balanced: FloatArray
    is_stage_gathered: FloatArray
    is_gpipe: FloatArray


@dataclass(frozen=True, slots=True)
class Plan:
    """Parallelism, sharding of states, recomputation, loss, offload and micro-batch.

    - `tp`, `pp`, `vp`, `cp`, `dp`, `ep`: Sizes of tensor and pipeline parallelism, model chunks of a stage, and sizes
      of context, data and expert parallelism. Experts spread over ranks of the others: ``ep <= tp * cp * dp``. There
      are ``tp * pp * cp * dp`` accelerators.
    - `zero_stage`: 0 to 3: optimizer states, gradients and weights sharded in turn; 3 is FSDP.
    - `n_shard`: Ranks over which they are sharded, at most ``cp dp`` (fewer for HSDP).
    - `recomputation`: 0 none, 1 selective (operators, modules, or attention's scores if they are stored), 2 full.
    - `is_sequence_parallel`: 1 if norms and residuals are split over the tensor-parallel ranks.
    - `micro_batch`: Sequences of a micro-batch; may be below 1 if a sequence spans steps of a pipeline.
    - `n_micro_batch`: Micro-batches of a replica in a step.
    - `logit_share`: Share of the logits that the loss holds at a time: 1 unless it is chunked or fused.
    - `offload_optimizer`, `offload_parameter`, `offload_activation`: 1 if the memory of the host holds the
      optimizer's states; the weights and gradients; the kept activations.
    """

    tp: FloatArray
    pp: FloatArray
    vp: FloatArray
    cp: FloatArray
    dp: FloatArray
    ep: FloatArray
    zero_stage: FloatArray
    n_shard: FloatArray
    recomputation: FloatArray
    is_sequence_parallel: FloatArray
    micro_batch: FloatArray
    n_micro_batch: FloatArray
    logit_share: FloatArray
    offload_optimizer: FloatArray
    offload_parameter: FloatArray
    offload_activation: FloatArray


@dataclass(frozen=True, slots=True)
class JobRuns:
    """Runs with known plans: the input of `roofcast.features.jobs.step.step.estimate_training`."""

    model: ModelShape
    hardware: JobHardware
    job: Job
    plan: Plan
