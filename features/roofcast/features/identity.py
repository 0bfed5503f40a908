"""What two questions have in common: hashes of their physical descriptions, so that names do not matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.features.columns import DESCRIPTORS

KeyArray = npt.NDArray[np.uint64]

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "model": tuple(column.name for column in DESCRIPTORS if column.group == "model"),
    "accelerator": (
        "hardware.memory_byte",
        "hardware.bandwidth_byte_per_s",
        "hardware.attention_flop_per_s",
        "hardware.link_byte_per_s",
    ),
    "engine": ("config.engine",),
    "precision": ("config.expert_precision", "config.dense_precision", "config.weight_byte_per_element"),
    "split": (
        "config.n_accelerator",
        "config.n_prefill_accelerator",
        "config.tp",
        "config.pp",
        "config.dp",
        "config.expert_rank",
    ),
}

CELL: Final = ("model", "accelerator", "engine", "precision", "load")
"""What rows share that say much the same."""


def identities(descriptors: pd.DataFrame) -> dict[str, KeyArray]:
    """Return one key a question for its model, accelerator, engine, precision, split, load and kind of architecture.

    Two questions have the same key if and only if they are described alike: two names of one architecture and size
    share a model, and an accelerator from a data sheet is the catalogue's if the numbers are.

    Parameters
    ----------
    descriptors : shape (n_question, n_descriptor)

    Returns
    -------
    arrays of shape (n_question,)
    """
    keys = {name: _hash(descriptors[list(columns)].astype(float)) for name, columns in _COLUMNS.items()}
    keys["load"] = _hash(
        pd.DataFrame(
            {
                "is_static": descriptors["workload.is_static"],
                "is_open": descriptors["workload.request_rate_per_s"].notna(),
                "is_closed": descriptors["workload.concurrency"].notna(),
            }
        )
    )
    keys["kind"] = _hash(_kind(descriptors))
    return keys


def joined(keys: Mapping[str, KeyArray], names: tuple[str, ...]) -> KeyArray:
    """Return one key for several together.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1, 1, 2], dtype=np.uint64)
    >>> len(set(joined({"a": one, "b": one[::-1]}, ("a", "b")).tolist()))
    3
    """
    return _hash(pd.DataFrame({name: keys[name] for name in names}))


def _kind(descriptors: pd.DataFrame) -> pd.DataFrame:
    """Return what decides which kernels an engine runs."""
    columns = {
        name: descriptors[f"model.{name}"] > 0
        for name in ("n_encoder_layer", "n_mla_layer", "n_linear_layer", "n_sparse_layer", "n_expert")
    }
    return pd.DataFrame(columns).assign(is_padded=descriptors["config.flash_attention"] < 0.5)


def _hash(table: pd.DataFrame) -> KeyArray:
    return np.asarray(pd.util.hash_pandas_object(table, index=False), dtype=np.uint64)
