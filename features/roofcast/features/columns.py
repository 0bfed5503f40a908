"""Descriptor and feature columns: name, unit, group, meaning and monotone sign.

`DESCRIPTORS` describe one query (model, hardware, configuration, workload); `FEATURES` are the inputs of the learner.
This module is the only definition of their order.
"""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    - `name`: ``group.name_unit``; the groups are model, hardware, config, workload, memory and roofline.
    - `unit`: SI unit; ``1`` for ratios, flags and codes; ``log`` and a unit for the natural logarithm of a quantity
      in that unit.
    - `meaning`: Description in one sentence.
    - `sign`: Monotone constraint: 1 or -1 if a larger value can only lengthen or shorten latencies relative to the
      estimate; 0 if there is no constraint.
    - `is_analytic`: Whether the estimate alone reads it, so that bundles fitted before it was added are still valid.
    """

    name: str
    unit: str
    meaning: str
    sign: Literal[-1, 0, 1] = 0
    is_analytic: bool = False


DESCRIPTORS: Final = (
    Column("model.n_layer", "layer", "Decoder layers."),
    Column("model.n_encoder_layer", "layer", "Encoder layers; 0 for decoder-only models."),
    Column("model.n_full_layer", "layer", "Layers of full attention, whose cost grows with the context."),
    Column("model.n_sliding_layer", "layer", "Layers with sliding-window attention."),
    Column("model.n_sparse_layer", "layer", "Layers of sparse attention, which reads only the tokens chosen by an "
           "indexer."),
    Column("model.sparse_top_k", "token", "Most tokens that a sparse layer reads; 0 without sparse layers."),
    Column("model.n_linear_layer", "layer", "Layers of linear attention, whose state does not grow with the "
           "context."),
    Column("model.n_moe_layer", "layer", "Layers with routed experts."),
    Column("model.n_mlp_layer", "layer", "Layers with a dense MLP or shared experts."),
    Column("model.n_mla_layer", "layer", "Layers of multi-head latent attention."),
    Column("model.hidden_size", "element", "Width of the residual stream."),
    Column("model.mixer_in_width", "element", "Output width of the input projections of attention or linear "
           "attention, mean over the layers."),
    Column("model.mixer_out_width", "element", "Input width of the output projection of attention."),
    Column("model.mlp_width", "element", "Width of dense MLPs and shared experts, mean over the layers that have "
           "one."),
    Column("model.moe_width", "element", "Width of one routed expert."),
    Column("model.n_mlp_matrix", "matrix", "Matrices of an MLP: three if gated, two if plain."),
    Column("model.vocab_size", "token", "Entries of the vocabulary."),
    Column("model.n_param", "element", "All weights of the text model."),
    Column("model.n_param_dense", "element", "Weights that each decode step reads: without routed experts, encoder "
           "and input embedding."),
    Column("model.n_param_expert", "element", "Weights of all routed experts."),
    Column("model.n_param_encoder", "element", "Weights of the encoder."),
    Column("model.n_param_linear", "element", "Weights of the layers outside routed experts that a quantised "
           "checkpoint quantises: attention, states, MLPs, shared experts, encoder.", is_analytic=True),
    Column("model.n_param_head", "element", "Weights of the output head, which may be the input embedding.",
           is_analytic=True),
    Column("model.n_param_embedding", "element", "Weights that are looked up: an input embedding of its own, and "
           "embeddings of layers and of n-grams.", is_analytic=True),
    Column("model.tower_byte", "byte", "Towers of images and sound beside the text model.", is_analytic=True),
    Column("model.n_param_prediction", "element", "Weights of layers that predict further tokens.", is_analytic=True),
    Column("model.n_param_copied", "element", "Weights of attention that each tensor-parallel rank holds.",
           is_analytic=True),
    Column("model.n_param_absorbed", "element", "Up-projections of latents, which engines keep in 16 bits as well.",
           is_analytic=True),
    Column("model.n_expert", "expert", "Routed experts per MoE layer; 0 for dense models."),
    Column("model.n_expert_per_token", "expert", "Routed experts that one token uses."),
    Column("model.n_head", "head", "Query heads of the layers of full attention; of all if there are none."),
    Column("model.n_kv_head", "head", "Key-value heads; 1 for MLA, whose cache is copied to each rank."),
    Column("model.qk_dim", "element", "Head width of the product of queries and keys in prefill."),
    Column("model.v_dim", "element", "Head width of the product with values in prefill."),
    Column("model.decode_qk_dim", "element", "Head width of the product of queries and keys in decode; for MLA the "
           "width of the cached latent."),
    Column("model.decode_v_dim", "element", "Head width of the product with values in decode."),
    Column("model.kv_width", "element", "Cache elements per token, summed over the layers whose cache grows."),
    Column("model.kv_width_sliding", "element", "Cache elements per token of windows, summed over their layers."),
    Column("model.kv_width_layer", "element", "Cache elements per token of one layer of full attention."),
    Column("model.n_head_sliding", "head", "Query heads of the sliding-window layers.", is_analytic=True),
    Column("model.n_kv_head_sliding", "head", "Key-value heads of the sliding-window layers.", is_analytic=True),
    Column("model.decode_qk_dim_sliding", "element", "Head width of queries and keys in the sliding-window layers.",
           is_analytic=True),
    Column("model.decode_v_dim_sliding", "element", "Head width of values in the sliding-window layers.",
           is_analytic=True),
    Column("model.kv_width_layer_sliding", "element", "Cache elements per token of one sliding-window layer.",
           is_analytic=True),
    Column("model.sliding_window", "token", "Window of the sliding-window layers, mean over their cache; 0 without."),
    Column("model.index_byte", "byte", "Bytes per token that indexers of sparse attention cache.", is_analytic=True),
    Column("model.entry_byte", "byte", "Bytes per token that sparse attention caches beside elements of 8 bits: "
           "rotary keys in 16 bits and scales.", is_analytic=True),
    Column("model.window_block", "block", "Blocks of vLLM's cache per token of a window, of models that compress the "
           "rest; 0 for others.", is_analytic=True),
    Column("model.state_byte", "byte", "Recurrent and convolution state of one request.", is_analytic=True),
    Column("model.max_context_token", "token", "Context limit of the configuration; infinite if unknown."),
    Column("hardware.memory_byte", "byte", "Memory of one accelerator that its driver reports."),
    Column("hardware.bandwidth_byte_per_s", "byte/s", "Memory bandwidth of one accelerator."),
    Column("hardware.flop_per_s", "flop/s", "Dense peak at the compute precision of the experts, or of all weights "
           "without them."),
    Column("hardware.dense_flop_per_s", "flop/s", "Dense peak at the compute precision of the weights outside "
           "experts."),
    Column("hardware.attention_flop_per_s", "flop/s", "Dense peak at 16 bits."),
    Column("hardware.link_byte_per_s", "byte/s", "Link bandwidth per accelerator, sum of both directions."),
    Column("hardware.peer_to_peer", "1", "1 if accelerators of a host read each other's memory, 0 if messages pass "
           "through the memory of the host."),
    Column("hardware.link_domain_size", "accelerator", "Accelerators in one scale-up domain."),
    Column("hardware.host_size", "accelerator", "Accelerators that communicate without a network: one scale-up "
           "domain, or the PCIe of one host."),
    Column("hardware.network_byte_per_s", "byte/s", "Network bandwidth between domains per accelerator, one "
           "direction."),
    Column("hardware.network_latency_s", "s", "Latency of one network message."),
    Column("hardware.host_byte_per_s", "byte/s", "Reading rate of the memory of the host.", is_analytic=True),
    Column("hardware.bus_byte_per_s", "byte/s", "Rate from the memory of the host to one accelerator.",
           is_analytic=True),
    Column("hardware.tdp_w", "W", "Thermal design power of one accelerator."),
    Column("hardware.accelerator", "1", "Code of the accelerator among those with measured kernels; the last for "
           "others."),
    Column("hardware.is_amd", "1", "1 if the vendor is AMD.", is_analytic=True),
    Column("hardware.family", "1", "Code of the family among those with measured kernels; the last for others."),
    Column("config.n_accelerator", "accelerator", "Accelerators of one replica."),
    Column("config.n_prefill_accelerator", "accelerator", "Accelerators of disaggregated prefill; 0 if prefill and "
           "decode share accelerators."),
    Column("config.tp", "accelerator", "Tensor parallelism."),
    Column("config.pp", "accelerator", "Pipeline parallelism."),
    Column("config.dp", "accelerator", "Data parallelism inside the replica."),
    Column("config.cp", "accelerator", "Context parallelism."),
    Column("config.ep", "accelerator", "Expert parallelism."),
    Column("config.expert_rank", "accelerator", "Accelerators that share one copy of a layer's experts."),
    Column("config.engine", "1", "Code of the engine: index in `ENGINES`."),
    Column("config.expert_precision", "1", "Code of the experts' kernel precision: index in `PRECISIONS`."),
    Column("config.dense_precision", "1", "Code of the kernel precision of the other weights."),
    Column("config.attention_precision", "1", "Code of the kernel precision of attention."),
    Column("config.weight_byte_per_element", "byte", "Bytes of one expert weight, or of one weight without experts."),
    Column("config.dense_byte_per_element", "byte", "Bytes of one weight outside the experts."),
    Column("config.activation_byte_per_element", "byte", "Bytes of one activation in the products outside experts."),
    Column("config.kv_byte_per_element", "byte", "Bytes of one cache element."),
    Column("config.head_byte_per_element", "byte", "Bytes of one weight of the output head."),
    Column("config.embedding_byte_per_element", "byte", "Bytes of one weight that is looked up.", is_analytic=True),
    Column("config.is_eager", "1", "1 if the host launches each kernel, 0 if it replays the graph of a step."),
    Column("config.flash_attention", "1", "1 if attention is fused and unpadded, 0 if padded to the longest "
           "sequence."),
    Column("config.n_draft_token", "token", "Speculated tokens per sequence and step; 0 without speculation."),
    Column("config.n_draft_layer", "layer", "Layers that draft, with weights and a cache of their own; 0 without.",
           is_analytic=True),
    Column("config.acceptance_ratio", "1", "Probability that a speculated token is accepted; NaN for the "
           "coefficient's value."),
    Column("config.lora_rank", "1", "Rank of the requests' LoRA adapter; 0 without."),
    Column("config.poll_interval_step", "step", "Decode steps between two polls for new requests."),
    Column("config.batching_wait_step", "step", "Decode steps that the engine waits to batch more prompts."),
    Column("config.chunk_token", "token", "Most prompt tokens of one step: the chunk size."),
    Column("config.max_num_seqs", "request", "Most sequences of one step of an attention rank; infinite if only "
           "memory limits them."),
    Column("config.date", "year", "Date of the measurement; blank is that of the engine's release."),
    Column("config.age_year", "year", "Years from the date to 2025; 0 after it.", is_analytic=True),
    Column("config.host_ratio", "1", "Time of the host that the accelerator waits for in a step, relative to vLLM "
           "0.8; 0 if scheduling overlaps.", is_analytic=True),
    Column("config.is_overlapped", "1", "1 if the next step is scheduled while one is under way.", is_analytic=True),
    Column("config.is_mixed", "1", "1 if a decode step takes prompts along, 0 if prompts and decoding alternate.",
           is_analytic=True),
    Column("config.memory_ratio", "1", "Share of memory that the engine takes, in its own sense.", is_analytic=True),
    Column("config.is_recent", "1", "1 for releases of vLLM that count the graphs in their share.", is_analytic=True),
    Column("config.in_flight_token", "token", "Prompt tokens whose cache outlives its window: the chunks under way.",
           is_analytic=True),
    Column("config.host_weight_byte", "byte", "Weights of the replica in the memory of the host.", is_analytic=True),
    Column("config.host_dense_ratio", "1", "Share of the layers' weights outside experts in the memory of the host.",
           is_analytic=True),
    Column("config.host_expert_ratio", "1", "Share of the routed experts in the memory of the host.",
           is_analytic=True),
    Column("config.served_context_token", "token", "Longest request of the server; 0 if unknown.", is_analytic=True),
    Column("config.keeps_prefixes", "1", "1 if the prefix cache is on.", is_analytic=True),
    Column("workload.n_input_token", "token", "Mean input length."),
    Column("workload.n_output_token", "token", "Mean output length."),
    Column("workload.length_variation", "1", "Coefficient of variation of the output lengths; 0 if fixed."),
    Column("workload.n_wave", "1", "Requests per slot of concurrency over the run, all slots starting together; NaN "
           "if unknown."),
    Column("workload.n_request", "request", "Requests of the run; NaN if unknown or an outcome, infinite in a steady "
           "state."),
    Column("workload.prefix_cache_ratio", "1", "Share of the input that the prefix cache holds."),
    Column("workload.concurrency", "request", "Requests in flight (closed loop) or in the static batch; NaN "
           "otherwise."),
    Column("workload.request_rate_per_s", "request/s", "Arrival rate (open loop); NaN otherwise."),
    Column("workload.is_static", "1", "1 for a static batch, which starts and ends together."),
    Column("workload.is_mean", "1", "1 if the statistic is the mean, 0 if a percentile."),
    Column("workload.quantile", "1", "Quantile of the statistic; 0.5 for the mean."),
)  # fmt: skip

ENGINES: Final = (
    "vllm", "sglang", "trtllm", "tgi", "tgis", "lmdeploy", "turbomind", "llama.cpp", "deepspeed", "deepspeed-mii",
    "mlc-llm", "fastertransformer", "transformers-neuronx", "optimum-habana", "transformers", "other",
)  # fmt: skip
"""Engines with coefficients of their own if they were measured; ``other`` has the typical coefficients."""

FEATURES: Final = (
    Column("model.n_layer_log", "log layer", "Decoder layers."),
    Column("model.hidden_size_log", "log element", "Width of the residual stream."),
    Column("model.is_encoder_decoder", "1", "1 for encoder-decoder models."),
    Column("model.is_moe", "1", "1 for mixtures of experts."),
    Column("model.is_mla", "1", "1 for multi-head latent attention."),
    Column("model.is_linear", "1", "1 if the model has layers of linear attention."),
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
    Column("config.flash_attention", "1", "1 if attention is fused and unpadded."),
    Column("config.is_vllm", "1", "1 if the engine is vLLM."),
    Column("config.is_sglang", "1", "1 if the engine is SGLang."),
    Column("config.is_trtllm", "1", "1 if the engine is TensorRT-LLM."),
    Column("config.n_draft_token", "token", "Speculated tokens per sequence and step."),
    Column("config.poll_interval_step", "step", "Decode steps between two polls for new requests."),
    Column("config.date", "year", "Date of the measurement: age of the software."),
    Column("workload.n_input_token_log", "log token", "Mean input length."),
    Column("workload.n_output_token_log", "log token", "Mean output length."),
    Column("workload.concurrency_log", "log request", "Requests in flight per replica."),
    Column("workload.is_static", "1", "1 for a static batch, which starts and ends together."),
    Column("workload.is_open", "1", "1 for an open loop: requests arrive at a rate."),
    Column("workload.is_offline", "1", "1 for offline load: all requests are queued from the start."),
    Column("workload.length_variation", "1", "Coefficient of variation of the output lengths."),
    Column("workload.n_wave_log", "log 1", "Requests per slot of concurrency over the run, at most 300."),
    Column("workload.is_mean", "1", "1 if the statistic is the mean."),
    Column("workload.quantile", "1", "Quantile of the statistic; 0.5 for the mean.", sign=1),
    Column("memory.weight_ratio", "1", "Weights over usable memory."),
    Column("memory.pressure_log", "log 1", "KV cache demand of the requests in flight over the cache capacity."),
    Column("memory.capacity_log", "log request", "Requests whose KV cache fits."),
    Column("roofline.batch_log", "log request", "Requests that run together."),
    Column("roofline.queue_ratio", "1", "Share of TTFT spent queueing for a slot in the batch."),
    Column("roofline.prefill_ratio", "1", "Share of TPOT spent on prefills of other requests."),
    Column("roofline.weight_time_ratio", "1", "Share of a decode step spent on products outside experts."),
    Column("roofline.expert_time_ratio", "1", "Share of a decode step spent on routed experts."),
    Column("roofline.kv_time_ratio", "1", "Share of a decode step spent on attention over the cache."),
    Column("roofline.overhead_ratio", "1", "Share of a decode step spent on launches and other overhead."),
    Column("roofline.link_time_ratio", "1", "Share of a decode step spent on communication."),
    Column("roofline.step_log", "log s", "Estimated decode step."),
    Column("roofline.prefill_log", "log s", "Estimated prefill of one request."),
)  # fmt: skip

DESCRIPTOR_NAMES: Final = tuple(column.name for column in DESCRIPTORS)
MODEL_NAMES: Final = tuple(name for name in DESCRIPTOR_NAMES if name.startswith("model."))
FEATURE_NAMES: Final = tuple(column.name for column in FEATURES)
