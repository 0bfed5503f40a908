"""Time of weights that stay in the memory of the host: computed there, or streamed to the accelerators."""

from typing import Final

import numpy as np

from roofcast.features.columns import ENGINES
from roofcast.features.engine.kernel_times import touched_expert
from roofcast.features.engine.loaded_weights import loaded_byte
from roofcast.features.queries import FloatArray, Queries

STREAMED_TOKEN: Final = 32.0
"""Tokens of a pass from which llama.cpp copies weights to the accelerator rather than computing on the host:
``min_batch_size`` of ``ggml_backend_cuda_device_offload_op``."""

HOST_FLOP_PER_BYTE: Final = 15.0
"""Operations of a host for each byte that it reads: about 1 TFLOP/s of a desktop (eight cores with AVX2 at 4 GHz have
twice 8 lanes, each two operations). Judgement."""

_LLAMA_CPP: Final = float(ENGINES.index("llama.cpp"))


def added_s(
    d: Queries, n_token: FloatArray, n_gathered: FloatArray, dense_s: FloatArray, expert_s: FloatArray
) -> FloatArray:
    """Return what weights in the host's memory add to a pass whose weights are all on accelerators: shape (n_row,).

    `n_token` and `n_gathered`: tokens of a rank, and of the ranks that share experts. `dense_s` and `expert_s`: time
    of the products outside and inside experts with all weights on accelerators.

    Notes
    -----
    llama.cpp computes short passes on the host, at the larger of reading and computing, and copies weights before
    longer ones. Other engines read them over the bus while they compute. Of the experts the chosen ones are read.

    References
    ----------
    llama.cpp, pull requests 15077 (``--n-cpu-moe``) and 15346 (only chosen experts are copied); vLLM,
    option ``--cpu-offload-gb``: each forward pass loads these weights over the link to the host.
    """
    dense_ratio, expert_ratio = d["config.host_dense_ratio"], d["config.host_expert_ratio"]
    if not (np.maximum(dense_ratio, expert_ratio) > 0).any():
        return np.zeros_like(n_token)
    byte, host = loaded_byte(d), d["hardware.host_byte_per_s"]
    is_llama = d["config.engine"] == _LLAMA_CPP
    n_pass = np.maximum(n_token / d["config.chunk_token"], 1.0)

    def added(read: FloatArray, flop: FloatArray, n_rank: FloatArray, device_s: FloatArray) -> FloatArray:
        computed_s = np.maximum(read, flop / HOST_FLOP_PER_BYTE) / host
        streamed_s = n_pass * read / np.minimum(n_rank * d["hardware.bus_byte_per_s"], host)
        is_computed = is_llama & (n_token < STREAMED_TOKEN)
        hidden_s = np.where(is_llama & ~is_computed, 0.0, device_s)
        return np.asarray(np.maximum(np.where(is_computed, computed_s, streamed_s) - hidden_s, 0.0))

    n_expert, n_choice = d["model.n_expert"], d["model.n_expert_per_token"]
    chosen = touched_expert(n_expert, n_choice, n_gathered / n_pass) / np.maximum(n_expert, 1.0)
    expert_flop = 2 * n_gathered * d["model.n_param_expert"] * n_choice / np.maximum(n_expert, 1.0)
    dense_flop = 2 * n_token * d["model.n_param_linear"]
    dense = added(byte["linear"] + byte["other"], dense_flop, d["config.tp"], dense_s)
    expert = added(byte["expert"] * chosen, expert_flop, d["config.expert_rank"], expert_s)
    return dense_ratio * dense + expert_ratio * expert
