"""Bytes of a checkpoint's weights as an engine loads them, by role."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from roofcast.features.engine.kernels.row_kernels import PRECISIONS
from roofcast.features.queries import FloatArray

MXFP4: Final = [float(i) for i, name in enumerate(PRECISIONS) if name.startswith("mxfp4")]

DRAFT_WIDTHS: Final = 12.0
"""Weights of a layer of a draft model, in squared widths of the model: four of attention and eight of an MLP."""

FULL_BYTE: Final = 2.0
"""Bytes of a norm, a router or another weight that no checkpoint quantises."""


def loaded_byte(d: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the bytes of one copy of the weights by role: arrays of shape (n_row,).

    Roles are ``expert`` (routed experts), ``linear`` (the other matrices of the layers), ``head``, ``embedding``,
    ``other`` (norms, routers, positions), ``absorbed`` (up-projections of latents, unfolded for decode beside those
    of the checkpoint), ``tower`` (of images and sound) and ``prediction``, whose layers are loaded for speculation
    alone and have experts as the model has. Embedding, head and others stay in 16 bits unless the checkpoint says
    otherwise.

    Examples
    --------
    >>> from roofcast.features.examples import example_descriptors
    >>> {role: float(byte[0] / 1e9) for role, byte in loaded_byte(example_descriptors()).items() if byte[0]}
    {'linear': 13.475712, 'head': 0.262144, 'embedding': 0.262144}

    References
    ----------
    compressed-tensors, ``ignore``; Transformers, ``modules_to_not_convert``; vLLM,
    ``model_executor/layers/quantization``: embeddings have no quantised method but in GGUF.
    """
    roles = ("expert", "linear", "head", "embedding")
    known = [d[f"model.n_param_{role}"] for role in roles]
    n_draft = d["config.n_draft_layer"]
    drafted = d["model.n_param_prediction"] * (n_draft == 1)
    apart = np.where(drafted > 0, 0.0, n_draft * DRAFT_WIDTHS * d["model.hidden_size"] ** 2)
    routed = drafted * known[0] / d["model.n_param"]
    return {
        "expert": (known[0] + routed) * d["config.weight_byte_per_element"] * expert_padding(d),
        "linear": known[1] * d["config.dense_byte_per_element"],
        "head": known[2] * d["config.head_byte_per_element"],
        "embedding": known[3] * d["config.embedding_byte_per_element"],
        "other": (d["model.n_param"] - sum(known)) * FULL_BYTE,
        "absorbed": d["model.n_param_absorbed"] * FULL_BYTE,
        "tower": d["model.tower_byte"],
        "prediction": (drafted - routed) * d["config.dense_byte_per_element"] + apart * FULL_BYTE,
    }


def expert_padding(d: Mapping[str, FloatArray]) -> FloatArray:
    """Return what kernels of MXFP4 experts hold over the weights, whose widths they round up: shape (n_row,).

    References
    ----------
    vLLM, ``mxfp4.py``: Marlin takes widths in multiples of 128 and streams in multiples of 256; gpt-oss-120b, of
    width 2,880, loads 66.0 GiB where its checkpoint has 60.8.
    """
    padding = np.ones_like(d["model.moe_width"])
    for name, multiple in (("model.moe_width", 128.0), ("model.hidden_size", 256.0)):
        padding = padding * np.ceil(d[name] / multiple) * multiple / np.maximum(d[name], 1.0)
    is_padded = np.isin(d["config.expert_precision"], MXFP4) & (d["model.moe_width"] > 0)
    return np.where(is_padded, padding, 1.0)
