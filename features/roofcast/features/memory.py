"""What fits: weights, cache per sequence and the number of sequences that can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roofcast.features.coefficients import Coefficients

FloatArray = npt.NDArray[np.float64]
Descriptors = Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one replica, summed over its accelerators; every array has shape (n_question,).

    Parameters
    ----------
    usable_byte
        What an engine may use.
    weight_byte
        What the weights take, with the copies that data parallelism makes.
    kv_byte_per_sequence
        Cache of one running request at its mean length.
    capacity
        Requests that the engine can run beside the weights; 0 if not even the weights fit.
    """

    usable_byte: FloatArray
    weight_byte: FloatArray
    kv_byte_per_sequence: FloatArray
    capacity: FloatArray

    @property
    def needed_byte(self) -> FloatArray:
        """Weights and the bare cache of one request."""
        return self.weight_byte + self.kv_byte_per_sequence

    @property
    def fits(self) -> npt.NDArray[np.bool_]:
        """Whether the weights and the bare cache of one request fit."""
        return self.needed_byte <= self.usable_byte


def kv_token(d: Descriptors) -> tuple[FloatArray, FloatArray]:
    """Return the mean tokens in cache of a running request: in full and in sliding-window layers.

    Notes
    -----
    A request's context grows from its input to input plus output; over its life it averages input plus half the
    output. Encoder-decoder models cache the input (cross attention) and the output alike.
    """
    context = d["workload.n_input_token"] + d["workload.n_output_token"] / 2
    window = np.where(d["model.sliding_window"] > 0, d["model.sliding_window"], np.inf)
    return context, np.minimum(context, window)


def kv_replication(d: Descriptors) -> FloatArray:
    """Return how many copies of each cache element tensor parallelism makes: ranks over key-value heads."""
    return np.maximum(1.0, d["config.tp"] / d["model.n_kv_head"])


def estimate_memory(d: Descriptors, c: Coefficients) -> Memory:
    """Return what fits.

    Examples
    --------
    A 7-billion-parameter model in 16 bits takes 14 GB of an 80 GB accelerator:

    >>> from roofcast.features.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.examples import example_descriptors
    >>> memory = estimate_memory(example_descriptors(), DEFAULT_COEFFICIENTS)
    >>> float(memory.weight_byte[0]) / 1e9
    14.0

    References
    ----------
    W. Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", SOSP 2023.
    """
    n = d["config.n_accelerator"]
    usable = np.maximum(n * (c.memory_ratio * d["hardware.memory_byte"] - c.reserve_byte), 0.0)
    weight = d["model.n_param"] * d["config.weight_byte_per_element"] * d["config.dp"]
    full, window = kv_token(d)
    element = d["model.kv_width"] * full + d["model.kv_width_sliding"] * window
    kv = element * d["config.kv_byte_per_element"] * kv_replication(d)
    waste = np.where(d["config.flash_attention"] > 0.5, c.kv_waste_flash, c.kv_waste_padded)
    waste = waste * np.where(d["model.n_encoder_layer"] > 0, c.kv_waste_encoder_decoder, 1.0)
    kv = np.maximum(kv, 1.0)
    return Memory(usable, weight, kv, np.maximum(usable - weight, 0.0) / (kv * waste))
