"""Every column once: name, unit, group, meaning and the physical sign of its effect on latency.

`DESCRIPTORS` are facts about one question (a model on hardware in a configuration under a workload);
`FEATURES` are what the learner sees. Their order is written here and nowhere else.
"""

from __future__ import annotations

import hashlib
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
    Column("model.hidden_size", "element", "Width of the residual stream."),
    Column("model.n_param", "element", "All weights of the text model."),
    Column("model.n_param_dense", "element", "Weights that every decode step reads: all but routed experts, "
           "encoder and input embedding."),
    Column("model.n_param_expert", "element", "Weights of all routed experts."),
    Column("model.n_param_encoder", "element", "Weights of the encoder."),
    Column("model.n_expert", "expert", "Routed experts per MoE layer; 0 for dense models."),
    Column("model.n_expert_per_token", "expert", "Routed experts that one token uses."),
    Column("model.attention_width", "element", "Query heads x head size, summed over the layers whose cost grows "
           "with context."),
    Column("model.kv_width", "element", "Cache elements per token, summed over those layers."),
    Column("model.kv_width_sliding", "element", "Cache elements per token of sliding-window layers."),
    Column("model.sliding_window", "token", "Window of those layers; 0 without."),
    Column("model.n_kv_head", "head", "Key-value heads; 1 for MLA, whose cache every rank holds."),
    Column("hardware.memory_byte", "byte", "Memory of one accelerator."),
    Column("hardware.bandwidth_byte_per_s", "byte/s", "Memory bandwidth of one accelerator."),
    Column("hardware.flop_per_s", "flop/s", "Dense peak at the precision computed in."),
    Column("hardware.link_byte_per_s", "byte/s", "Link bandwidth per accelerator, both directions together."),
    Column("config.n_accelerator", "accelerator", "Accelerators of one replica."),
    Column("config.tp", "accelerator", "Tensor parallelism."),
    Column("config.pp", "accelerator", "Pipeline parallelism."),
    Column("config.dp", "accelerator", "Data parallelism inside the replica."),
    Column("config.weight_byte_per_element", "byte", "Bytes of one weight."),
    Column("config.kv_byte_per_element", "byte", "Bytes of one cache element."),
    Column("config.flash_attention", "1", "1 if attention runs unpadded and fused, 0 if padded to the longest."),
    Column("workload.n_input_token", "token", "Mean input length."),
    Column("workload.n_output_token", "token", "Mean output length."),
    Column("workload.concurrency", "request", "Requests in flight (closed loop); NaN for an open loop."),
    Column("workload.request_rate_per_s", "request/s", "Arrivals (open loop); NaN for a closed loop."),
    Column("workload.is_mean", "1", "1 if the statistic asked is the mean, 0 if a percentile."),
    Column("workload.quantile", "1", "Quantile asked; 0.5 for the mean."),
)  # fmt: skip

FEATURES: Final = (
    Column("model.n_layer_log", "log layer", "Decoder layers."),
    Column("model.hidden_size_log", "log element", "Width of the residual stream."),
    Column("model.is_encoder_decoder", "1", "1 if an encoder reads the input."),
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
    Column("workload.n_input_token_log", "log token", "Mean input length."),
    Column("workload.n_output_token_log", "log token", "Mean output length."),
    Column("workload.concurrency_log", "log request", "Requests in flight per replica."),
    Column("workload.is_mean", "1", "1 if the statistic asked is the mean."),
    Column("workload.quantile", "1", "Quantile asked; 0.5 for the mean.", sign=1),
    Column("memory.weight_ratio", "1", "Weights over usable memory."),
    Column("memory.pressure_log", "log 1", "Cache that the requests in flight ask for over the cache there is."),
    Column("memory.capacity_log", "log request", "Requests whose cache fits."),
    Column("roofline.batch_log", "log request", "Requests that run together."),
    Column("roofline.queue_ratio", "1", "Share of TTFT spent waiting for a place in the batch."),
    Column("roofline.prefill_ratio", "1", "Share of TPOT spent on the prefills of others."),
    Column("roofline.weight_time_ratio", "1", "Share of a decode step spent reading weights."),
    Column("roofline.kv_time_ratio", "1", "Share of a decode step spent reading the cache."),
    Column("roofline.overhead_ratio", "1", "Share of a decode step spent on launches and other fixed costs."),
    Column("roofline.link_time_ratio", "1", "Share of a decode step spent on all-reduces."),
    Column("roofline.step_log", "log s", "Estimated decode step."),
    Column("roofline.prefill_log", "log s", "Estimated prefill of one request."),
)  # fmt: skip

DESCRIPTOR_NAMES: Final = tuple(column.name for column in DESCRIPTORS)
FEATURE_NAMES: Final = tuple(column.name for column in FEATURES)


def fingerprint() -> str:
    """Return a digest of the columns; a bundle made with other columns is refused.

    Examples
    --------
    >>> len(fingerprint())
    16
    """
    text = "\n".join(f"{c.name}\t{c.unit}\t{c.sign}" for c in (*DESCRIPTORS, *FEATURES))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
