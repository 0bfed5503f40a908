"""Argument names of launchers, as their parsers list them.

Sources: ``torchrun`` of PyTorch 2.13.0; ``tyro`` over ``Trainer.Config`` of torchtitan 0.3.0 (PyPI);
``TrlParser`` of ``trl/scripts/sft.py`` of TRL 1.16.0 with transformers 5.23.0; fields of ``ClusterConfig``
and keys that ``commands/config/cluster.py`` of accelerate 1.15.0 writes; ``add_argument`` calls of
``megatron/training/arguments.py`` of NVIDIA/Megatron-LM at commit 000c4ac24f61159c138b0975def722c65245983c.
Names that a launch does not need are left out.

On 2026-11-24 the parsers of TRL 1.16.0 (``TrlParser.parse_args_and_config``) and accelerate 1.15.0
(``load_config_from_file``, ``launch_command_parser``, ``_validate_launch_command``) accepted all 124 commands of
three models with all weights, LoRA and QLoRA, over recomputation, precision and sharding.
"""

from typing import Final

TORCHRUN: Final = frozenset({"nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "standalone"})

TORCHTITAN: Final = frozenset({
    "module", "config", "hf_assets_path", "dump_folder", "dataloader.dataset", "dataloader.dataset_path",
    "dataloader.infinite", "training.local_batch_size", "training.global_batch_size", "training.seq_len",
    "training.max_norm", "training.steps", "training.enable_cpu_offload", "training.disable_cuda_graphs",
    "training.dtype", "training.mixed_precision_param", "training.mixed_precision_reduce",
    "parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree",
    "parallelism.fsdp_reshard_after_forward", "parallelism.tensor_parallel_degree",
    "parallelism.enable_sequence_parallel", "parallelism.pipeline_parallel_degree",
    "parallelism.pipeline_parallel_schedule", "parallelism.pipeline_parallel_microbatch_size",
    "parallelism.context_parallel_degree", "parallelism.expert_parallel_degree", "compile.enable",
    "checkpoint.enable", "checkpoint.folder", "checkpoint.interval", "checkpoint.initial_load_path",
    "checkpoint.initial_load_model_only", "checkpoint.initial_load_in_hf", "checkpoint.last_save_model_only",
    "checkpoint.last_save_in_hf", "lr_scheduler.warmup_steps",
})  # fmt: skip

TRL: Final = frozenset({
    "activation_checkpointing", "activation_offloading", "attn_implementation", "bf16",
    "bnb_4bit_quant_storage", "bnb_4bit_quant_type",
    "dataset_config", "dataset_name", "dataset_text_field", "dataset_train_split", "dtype", "fp16", "fsdp",
    "gradient_accumulation_steps", "learning_rate",
    "load_in_4bit", "load_in_8bit", "logging_steps", "lora_alpha", "lora_dropout", "lora_modules_to_save", "lora_r",
    "lora_target_modules", "lora_target_parameters", "lr_scheduler_type", "max_grad_norm", "max_length",
    "max_steps", "model_name_or_path", "model_revision", "num_train_epochs", "optim", "output_dir", "packing",
    "packing_strategy", "padding_free", "per_device_train_batch_size", "report_to", "save_steps", "seed",
    "trust_remote_code", "use_bnb_nested_quant", "use_dora", "use_liger_kernel", "use_peft", "use_rslora",
    "warmup_steps", "weight_decay",
})  # fmt: skip

ACCELERATE: Final = frozenset({
    "compute_environment", "distributed_type", "mixed_precision", "use_cpu", "debug", "num_processes",
    "machine_rank", "num_machines", "gpu_ids", "main_process_ip", "main_process_port", "rdzv_backend",
    "same_network", "main_training_function", "enable_cpu_affinity", "fp8_config", "deepspeed_config",
    "fsdp_config", "parallelism_config", "megatron_lm_config", "fsdp_version", "fsdp_reshard_after_forward",
    "fsdp_offload_params", "fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap", "fsdp_min_num_params",
    "fsdp_state_dict_type", "fsdp_cpu_ram_efficient_loading", "fsdp_activation_checkpointing",
    "parallelism_config_dp_replicate_size", "parallelism_config_dp_shard_size", "parallelism_config_tp_size",
    "parallelism_config_cp_size", "parallelism_config_cp_comm_strategy",
})  # fmt: skip

MEGATRON: Final = frozenset({
    "num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "attention-backend", "kv-channels",
    "group-query-attention", "num-query-groups", "softmax-type", "window-size", "window-attn-skip-freq",
    "max-position-embeddings", "position-embedding-type", "rotary-base", "rotary-percent", "rotary-interleaved",
    "use-rope-scaling", "rope-scaling-factor", "make-vocab-size-divisible-by", "normalization", "norm-epsilon",
    "apply-layernorm-1p", "squared-relu", "swiglu", "quick-geglu", "untie-embeddings-and-output-weights",
    "multi-latent-attention", "mtp-num-layers", "attention-dropout", "hidden-dropout", "weight-decay", "clip-grad",
    "adam-beta1", "adam-beta2", "adam-eps", "micro-batch-size", "global-batch-size", "rampup-batch-size",
    "recompute-activations", "recompute-granularity", "recompute-method", "recompute-num-layers",
    "recompute-modules", "distribute-saved-activations", "train-iters", "train-samples", "log-interval",
    "exit-interval", "disable-bias-linear", "add-qkv-bias", "optimizer", "optimizer-cpu-offload", "dataloader-type",
    "sequence-parallel", "use-flash-attn", "use-mcore-models", "tp-comm-overlap", "rope-type",
    "cross-entropy-loss-fusion", "seed", "lr", "lr-decay-style", "lr-decay-iters", "lr-warmup-fraction",
    "lr-warmup-iters", "min-lr", "save", "save-interval", "load", "no-load-optim", "no-load-rng", "finetune",
    "pretrained-checkpoint", "use-checkpoint-args", "ckpt-format", "fp16", "bf16", "grad-reduce-in-bf16",
    "fp8-format", "fp8-recipe", "fp8-param-gather", "tensor-model-parallel-size", "pipeline-model-parallel-size",
    "num-layers-per-virtual-pipeline-stage", "decoder-last-pipeline-num-layers",
    "num-virtual-stages-per-pipeline-rank", "distributed-backend",
    "overlap-grad-reduce", "overlap-param-gather", "use-distributed-optimizer", "use-megatron-fsdp",
    "use-torch-fsdp2", "context-parallel-size", "cp-comm-type", "eval-iters", "eval-interval", "vocab-size",
    "padded-vocab-size", "tokenizer-type", "tokenizer-model", "data-path", "split", "data-cache-path", "mock-data",
    "seq-length", "num-workers", "qk-layernorm", "expert-model-parallel-size", "expert-tensor-parallel-size",
    "num-experts", "moe-layer-freq", "moe-ffn-hidden-size", "moe-shared-expert-intermediate-size",
    "moe-grouped-gemm", "moe-router-load-balancing-type", "moe-router-score-function", "moe-router-topk",
    "moe-router-padding-for-fp8", "moe-aux-loss-coeff", "moe-token-dispatcher-type",
})  # fmt: skip
