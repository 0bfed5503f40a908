"""Every column once: name, unit, group, meaning and the physical sign of its effect on latency.

`DESCRIPTORS` are facts about one question (a model on hardware in a configuration under a workload);
`FEATURES` are what the learner sees. Their order is written here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Group = Literal["model", "hardware", "config", "workload", "memory", "roofline"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name
        ``group.name_unit``.
    unit
        SI unit, ``1`` for ratios and flags, or ``log`` followed by the unit whose natural logarithm is taken.
    meaning
        One sentence.
    sign
        1 or -1 if more of it can only lengthen or shorten every latency relative to the estimate; 0 if physics
        does not say.
    """

    name: str
    unit: str
    meaning: str
    sign: Literal[-1, 0, 1] = 0

    @property
    def group(self) -> str:
        """Part of the name before the dot."""
        return self.name.partition(".")[0]


DESCRIPTORS: Final = (
    Column("model.n_layer", "layer", "Decoder layers."),
    Column("model.n_encoder_layer", "layer", "Encoder layers; 0 for decoder-only models."),
    Column("model.n_full_layer", "layer", "Layers whose cost grows with the whole context."),
    Column("model.n_sliding_layer", "layer", "Layers that see a sliding window."),
    Column("model.n_sparse_layer", "layer", "Layers whose attention reads only the tokens that an indexer picks."),
    Column("model.sparse_top_k", "token", "Tokens that such a layer reads at most; 0 without."),
    Column("model.n_linear_layer", "layer", "Layers whose state does not grow with context."),
    Column("model.n_moe_layer", "layer", "Layers with routed experts."),
    Column("model.n_mlp_layer", "layer", "Layers with a dense MLP or shared experts."),
    Column("model.n_mla_layer", "layer", "Layers of multi-head latent attention."),
    Column("model.hidden_size", "element", "Width of the residual stream."),
    Column("model.mixer_in_width", "element", "Columns of the products before attention and its kin, mean of "
           "the layers."),
    Column("model.mixer_out_width", "element", "Depth of the product after it."),
    Column("model.mlp_width", "element", "Width of dense MLPs and shared experts, mean of the layers that have one."),
    Column("model.moe_width", "element", "Width of one routed expert."),
    Column("model.n_mlp_matrix", "matrix", "Matrices of an MLP: three if gated, two if plain."),
    Column("model.vocab_size", "token", "Entries of the vocabulary."),
    Column("model.n_param", "element", "All weights of the text model."),
    Column("model.n_param_dense", "element", "Weights that every decode step reads: all but routed experts, "
           "encoder and input embedding."),
    Column("model.n_param_expert", "element", "Weights of all routed experts."),
    Column("model.n_param_encoder", "element", "Weights of the encoder."),
    Column("model.n_expert", "expert", "Routed experts per MoE layer; 0 for dense models."),
    Column("model.n_expert_per_token", "expert", "Routed experts that one token uses."),
    Column("model.n_head", "head", "Query heads."),
    Column("model.n_kv_head", "head", "Key-value heads; 1 for MLA, whose cache every rank holds."),
    Column("model.qk_dim", "element", "Width of a head in the product with keys, in prefill."),
    Column("model.v_dim", "element", "Width of a head in the product with values, in prefill."),
    Column("model.decode_qk_dim", "element", "The first in a decode step: the latent of MLA as cached."),
    Column("model.decode_v_dim", "element", "The second in a decode step."),
    Column("model.kv_width", "element", "Cache elements per token, summed over the layers of full attention."),
    Column("model.kv_width_sliding", "element", "Cache elements per token of sliding-window layers."),
    Column("model.kv_width_layer", "element", "Cache elements per token of one layer."),
    Column("model.sliding_window", "token", "Window of those layers; 0 without."),
    Column("model.max_context_token", "token", "Longest request by the configuration; infinite if unknown."),
    Column("hardware.memory_byte", "byte", "Memory of one accelerator, as its driver offers it."),
    Column("hardware.bandwidth_byte_per_s", "byte/s", "Memory bandwidth of one accelerator."),
    Column("hardware.flop_per_s", "flop/s", "Dense peak at the precision that most weights are computed in."),
    Column("hardware.dense_flop_per_s", "flop/s", "Dense peak at the precision of the weights outside experts."),
    Column("hardware.attention_flop_per_s", "flop/s", "Dense peak at 16 bits."),
    Column("hardware.link_byte_per_s", "byte/s", "Link bandwidth per accelerator, both directions together."),
    Column("hardware.link_domain_size", "accelerator", "Accelerators that the link joins."),
    Column("hardware.host_size", "accelerator", "Accelerators that need no network between them: those that the link "
           "joins, or one host's on PCIe."),
    Column("hardware.network_byte_per_s", "byte/s", "Network between domains, one way, of one accelerator."),
    Column("hardware.network_latency_s", "s", "Latency of one message over it."),
    Column("hardware.tdp_w", "W", "Thermal design power of one accelerator."),
    Column("hardware.accelerator", "1", "Place among the accelerators with measured kernels; the last for others."),
    Column("hardware.family", "1", "Place among the families with measured kernels; the last for others."),
    Column("config.n_accelerator", "accelerator", "Accelerators of one replica."),
    Column("config.n_prefill_accelerator", "accelerator", "Accelerators that prefill apart; 0 if the same do both."),
    Column("config.tp", "accelerator", "Tensor parallelism."),
    Column("config.pp", "accelerator", "Pipeline parallelism."),
    Column("config.dp", "accelerator", "Data parallelism inside the replica."),
    Column("config.cp", "accelerator", "Context parallelism."),
    Column("config.ep", "accelerator", "Expert parallelism."),
    Column("config.expert_rank", "accelerator", "Accelerators that share one copy of a layer's experts."),
    Column("config.engine", "1", "Place of the engine in `ENGINES`; the last place for any other."),
    Column("config.expert_precision", "1", "Place of the experts' precision in `PRECISIONS` of the kernels."),
    Column("config.dense_precision", "1", "Place of that of the other weights."),
    Column("config.attention_precision", "1", "Place of that of attention."),
    Column("config.weight_byte_per_element", "byte", "Bytes of one weight, of an expert's if there are experts."),
    Column("config.dense_byte_per_element", "byte", "Bytes of one weight outside the experts."),
    Column("config.activation_byte_per_element", "byte", "Bytes of one activation as the other weights multiply it."),
    Column("config.kv_byte_per_element", "byte", "Bytes of one cache element."),
    Column("config.flash_attention", "1", "1 if attention runs unpadded and fused, 0 if padded to the longest."),
    Column("config.n_draft_token", "token", "Tokens proposed per sequence and step by speculation; 0 without."),
    Column("config.acceptance_ratio", "1", "Chance that one of them is accepted; NaN for the engine's usual one."),
    Column("config.lora_rank", "1", "Rank of the adapter that requests use; 0 without."),
    Column("config.poll_interval_step", "step", "Decode steps between two looks for new requests."),
    Column("config.batching_wait_step", "step", "Decode steps that an engine waits for more prompts to batch."),
    Column("workload.n_input_token", "token", "Mean input length."),
    Column("workload.n_output_token", "token", "Mean output length."),
    Column("workload.length_variation", "1", "Standard deviation of the output lengths over their mean; 0 if fixed."),
    Column("workload.n_wave", "1", "Requests sent for each in flight, from a common start; NaN if unknown."),
    Column("workload.prefix_cache_ratio", "1", "Share of the input found in the prefix cache."),
    Column("workload.concurrency", "request", "Requests in flight (closed loop) or in the batch; NaN otherwise."),
    Column("workload.request_rate_per_s", "request/s", "Arrivals (open loop); NaN otherwise."),
    Column("workload.is_static", "1", "1 if one batch starts and ends together."),
    Column("workload.is_mean", "1", "1 if the statistic asked is the mean, 0 if a percentile."),
    Column("workload.quantile", "1", "Quantile asked; 0.5 for the mean."),
)  # fmt: skip

ENGINES: Final = (
    "vllm", "sglang", "trtllm", "tgi", "tgis", "lmdeploy", "turbomind", "llama.cpp", "deepspeed", "deepspeed-mii",
    "mlc-llm", "fastertransformer", "transformers-neuronx", "optimum-habana", "other",
)  # fmt: skip
"""Engines that have coefficients of their own once they are measured; ``other`` has the typical ones."""

FEATURES: Final = (
    Column("model.n_layer_log", "log layer", "Decoder layers."),
    Column("model.hidden_size_log", "log element", "Width of the residual stream."),
    Column("model.is_encoder_decoder", "1", "1 if an encoder reads the input."),
    Column("model.is_moe", "1", "1 if experts are routed."),
    Column("model.is_mla", "1", "1 if attention is to latents."),
    Column("model.is_linear", "1", "1 if some layers keep a state instead of a cache."),
    Column("model.active_ratio", "1", "Share of the weights that one token uses."),
    Column("model.kv_ratio", "1", "Cache elements per token over attention width: 2 for MHA, less for GQA and MLA."),
    Column("hardware.bandwidth_log", "log byte/s", "Memory bandwidth of the replica's tensor-parallel group."),
    Column("hardware.balance_log", "log flop/byte", "Peak operations per byte of bandwidth."),
    Column("hardware.link_ratio_log", "log 1", "Link bandwidth over memory bandwidth."),
    Column("config.tp_log", "log accelerator", "Tensor parallelism."),
    Column("config.pp_log", "log accelerator", "Pipeline parallelism."),
    Column("config.dp_log", "log accelerator", "Data parallelism inside the replica."),
    Column("config.weight_byte_per_element", "byte", "Bytes of one weight."),
    Column("config.kv_byte_per_element", "byte", "Bytes of one cache element."),
    Column("config.flash_attention", "1", "1 if attention runs unpadded and fused."),
    Column("config.is_vllm", "1", "1 if the engine is vLLM."),
    Column("config.is_sglang", "1", "1 if it is SGLang."),
    Column("config.is_trtllm", "1", "1 if it is TensorRT-LLM."),
    Column("config.n_draft_token", "token", "Tokens proposed per sequence and step by speculation."),
    Column("config.poll_interval_step", "step", "Decode steps between two looks for new requests."),
    Column("workload.n_input_token_log", "log token", "Mean input length."),
    Column("workload.n_output_token_log", "log token", "Mean output length."),
    Column("workload.concurrency_log", "log request", "Requests in flight per replica."),
    Column("workload.is_static", "1", "1 if one batch starts and ends together."),
    Column("workload.is_open", "1", "1 if requests arrive at a rate."),
    Column("workload.is_offline", "1", "1 if all requests wait from the start."),
    Column("workload.length_variation", "1", "Standard deviation of the output lengths over their mean."),
    Column("workload.n_wave_log", "log 1", "Logarithm of the requests sent for each in flight, at most 300."),
    Column("workload.is_mean", "1", "1 if the statistic asked is the mean."),
    Column("workload.quantile", "1", "Quantile asked; 0.5 for the mean.", sign=1),
    Column("memory.weight_ratio", "1", "Weights over usable memory."),
    Column("memory.pressure_log", "log 1", "Cache that the requests in flight ask for over the cache there is."),
    Column("memory.capacity_log", "log request", "Requests whose cache fits."),
    Column("roofline.batch_log", "log request", "Requests that run together."),
    Column("roofline.queue_ratio", "1", "Share of TTFT spent waiting for a place in the batch."),
    Column("roofline.prefill_ratio", "1", "Share of TPOT spent on the prefills of others."),
    Column("roofline.weight_time_ratio", "1", "Share of a decode step spent on products outside experts."),
    Column("roofline.expert_time_ratio", "1", "Share of a decode step spent on routed experts."),
    Column("roofline.kv_time_ratio", "1", "Share of a decode step spent on attention over the cache."),
    Column("roofline.overhead_ratio", "1", "Share of a decode step spent on launches and other fixed costs."),
    Column("roofline.link_time_ratio", "1", "Share of a decode step spent on messages."),
    Column("roofline.step_log", "log s", "Estimated decode step."),
    Column("roofline.prefill_log", "log s", "Estimated prefill of one request."),
)  # fmt: skip

DESCRIPTOR_NAMES: Final = tuple(column.name for column in DESCRIPTORS)
FEATURE_NAMES: Final = tuple(column.name for column in FEATURES)
