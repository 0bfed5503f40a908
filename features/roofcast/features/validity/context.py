"""How long a request a model can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from roofcast.data.errors import InputError
from roofcast.data.specs import ModelSpec

FloatArray = npt.NDArray[np.float64]


def context_limit(model: ModelSpec) -> float:
    """Return the most tokens, input and output together, that a request may have; infinite if nothing bounds them.

    Encoder-decoders have relative position embeddings (T5), which work at any length: the length in their
    configuration is that of their training.

    References
    ----------
    C. Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", JMLR
    21(140), 2020, section 2.1.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> context_limit(load_catalog().model("llama-3.1-8b")), context_limit(load_catalog().model("google/flan-t5-xl"))
    (131072.0, inf)
    """
    is_bound = model.max_context_token > 0 and model.n_encoder_layer == 0
    return float(model.max_context_token) if is_bound else math.inf


def context_limits(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return `context_limit` of each row of descriptors: shape (n_row,), tokens."""
    return np.where(d["model.n_encoder_layer"] > 0, np.inf, d["model.max_context_token"])


def context_error(model: ModelSpec, n_input_token: float, n_output_token: float) -> InputError | None:
    """Return why requests of these lengths cannot be served; None if they can.

    Examples
    --------
    >>> from roofcast.data.catalog import load_catalog
    >>> print(context_error(load_catalog().model("llama-3.1-8b"), 131_072, 1))
    n_input_token: 131072 with 1 output exceeds the model's context of 131072
    """
    limit = context_limit(model)
    if n_input_token + n_output_token <= limit:
        return None
    problem = f"{n_input_token:g} with {n_output_token:g} output exceeds the model's context of {limit:g}"
    return InputError("n_input_token", problem)
