"""Options of one training job, a column of a row of ``training predict`` each."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from roofcast.data.measurements.target import TRAINING
from roofcast.serving.cli.arguments.completion import complete_accelerator, complete_column, complete_model
from roofcast.serving.cli.arguments.options import Option, number_option

_OPTIONS: Final = {
    "model": Option(
        "Catalogue name, path of a config.json, or owner/name on the Hugging Face hub.",
        default="",
        complete=complete_model,
    ),
    "accelerator": Option("Catalogue name.", default="", complete=complete_accelerator),
    "n_accelerator": number_option("Accelerators of the run; 1 by default."),
    "n_node": number_option("Hosts of the run."),
    "n_accelerator_per_node": number_option("Accelerators of a host."),
    "network": Option("infiniband, roce, ethernet, efa, slingshot, nvlink or ici between hosts.", default=""),
    "node_bandwidth_byte_per_s": number_option("Nominal network bandwidth of a host and direction."),
    "all_reduce_bandwidth_byte_per_s": number_option("Measured bus bandwidth of an all-reduce."),
    "link_bandwidth_byte_per_s": number_option("Link bandwidth in place of the data sheet's, one direction."),
    "power_limit_w": number_option(
        "Power limit of one accelerator: a quarter of its design power to one and a half of it."
    ),
    "framework": Option("Such as torchtitan, megatron-lm, transformers or deepspeed.", default=""),
    "framework_version": Option("Version of the framework.", default=""),
    "method": Option("pretrain, full, lora, qlora or adapter; pretrain by default.", default=""),
    "adapter": Option("lora-fa, bottleneck or prompt-tuning; other variants count as LoRA.", default=""),
    "adapter_rank": number_option("Rank of LoRA, 16 by default; width or virtual tokens of other adapters."),
    "adapter_targets": Option(
        "Projections that adapters change, such as 'q k v o'; embedding and head are trained in full. With latent "
        "attention k or v are both projections that give them.",
        default="",
    ),
    "n_param_trained": number_option("Trained parameters, if not those of the adapter's rank."),
    "weight_precision": Option("Precision of the weights in memory.", default=""),
    "compute_precision": Option("Precision of the products, such as bf16 or fp8.", default=""),
    "precision_recipe": Option("Scaling of that precision, such as mxfp8.", default=""),
    "gradient_precision": Option("Precision in which gradients accumulate and are reduced.", default=""),
    "state_precision": Option("Precision of the optimizer's moments; by default the optimizer's.", default=""),
    "tp": number_option("Tensor parallelism.", names=("--tp", "--tensor-parallel")),
    "sequence_parallel": Option("Norms split over the tensor-parallel ranks: on or off.", default=""),
    "pp": number_option("Pipeline parallelism.", names=("--pp", "--pipeline-parallel")),
    "vp": number_option("Model chunks of a pipeline stage."),
    "pipeline_schedule": Option(
        "gpipe, 1f1b, interleaved or zero_bubble; the estimate takes the last as 1f1b.", default=""
    ),
    "cp": number_option("Context parallelism.", names=("--cp", "--context-parallel")),
    "dp": number_option("Data-parallel replicas.", names=("--dp", "--data-parallel")),
    "ep": number_option("Expert parallelism.", names=("--ep", "--expert-parallel")),
    "sharding": Option("ddp, zero1, zero2, zero3, fsdp or hsdp.", default=""),
    "recomputation": Option("none, selective or full.", default=""),
    "recomputed_layer_ratio": number_option("Share of the layers that recompute."),
    "offload": Option("none, optimizer, parameters, activations or optimizer+parameters.", default=""),
    "n_micro_batch_sequence": number_option("Sequences of a micro-batch."),
    "n_global_batch_sequence": number_option("Sequences of an optimizer step."),
    "n_token_per_sequence": number_option("Tokens of a sequence; 2048 by default."),
    "n_gradient_accumulation": number_option("Micro-batches of a replica in a step."),
    "optimizer": Option("Such as adamw or adamw-8bit.", default=""),
    "packing": Option("packed or padded sequences; half of padded ones is taken for padding.", default=""),
    "flash_attention": Option("Attention without stored scores: on or off.", default=""),
    "loss": Option("full, or chunked, which never holds all logits.", default=""),
    "compiled": Option("Compiled kernels: on or off.", default=""),
}

JOB_OPTIONS: Final = {
    name: option if option.complete else replace(option, complete=complete_column(name, TRAINING))
    for name, option in _OPTIONS.items()
}
"""Options of one job: the columns of a row of ``training predict``; `--rows` takes many."""
