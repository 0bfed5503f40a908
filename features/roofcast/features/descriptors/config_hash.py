"""Configuration hashes: keys by physical description, so that equal hardware under two names is equal."""

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from roofcast.features.columns import DESCRIPTORS
from roofcast.features.queries import FloatArray, QueryTable, descriptor_arrays

HashArray = npt.NDArray[np.uint64]

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "model": tuple(c.name for c in DESCRIPTORS if c.name.startswith("model.") and not c.is_analytic),
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

_KERNELS: Final = (
    "model.n_encoder_layer",
    "model.n_mla_layer",
    "model.n_linear_layer",
    "model.n_sparse_layer",
    "model.n_expert",
)
"""Descriptors whose being zero or not selects the kernels of an engine."""

_HASHED: Final = (*(name for columns in _COLUMNS.values() for name in columns), "workload.is_static")
_NAN: Final = np.array(np.nan).view(np.uint64)
_START: Final = np.uint64(0x345678)
_END: Final = np.uint64(97_531)

CELL: Final = ("model", "accelerator", "engine", "precision", "load")
"""Columns of `config_hashes` that define a cell: rows in one cell are strongly correlated."""


def config_hashes(descriptors: QueryTable) -> dict[str, HashArray]:
    """Return hashes of each row's model, accelerator, engine, precision, split, load and architecture kind.

    Two rows have equal hashes if and only if their descriptors are equal: two names of one architecture and size
    share a model hash, and an accelerator from a data sheet shares that of the catalogue entry with the same numbers.

    Returns
    -------
    arrays of shape (n_row,) by name
    """
    d = descriptor_arrays(descriptors)
    number = dict(zip(_HASHED, _mix(_bits(np.stack([d[name] for name in _HASHED]))), strict=True))
    is_open, is_closed = (~np.isnan(d[f"workload.{name}"]) for name in ("request_rate_per_s", "concurrency"))
    has_kernel = [d[name] > 0 for name in _KERNELS]
    is_padded = d["config.flash_attention"] < 0.5
    flags = _mix(np.stack([is_open, is_closed, *has_kernel, is_padded]).astype(np.uint64))
    keys = {name: _combine([number[column] for column in columns]) for name, columns in _COLUMNS.items()}
    return keys | {"load": _combine([number["workload.is_static"], *flags[:2]]), "kind": _combine([*flags[2:]])}


def joint_hash(hashes: Mapping[str, HashArray], names: tuple[str, ...]) -> HashArray:
    """Return one hash a row of the named hashes together.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1, 1, 2], dtype=np.uint64)
    >>> len(set(joint_hash({"a": one, "b": one[::-1]}, ("a", "b")).tolist()))
    3
    """
    return joint_hashes(hashes, [names])[:, 0]


def joint_hashes(hashes: Mapping[str, HashArray], terms: Sequence[tuple[str, ...]]) -> HashArray:
    """Return, for each term (a tuple of names), one hash a row of the hashes that it names: shape (n_row, n_term)."""
    index = {name: i for i, name in enumerate(hashes)}
    mixed = _mix(np.stack([*hashes.values()]))
    joint = np.full((len(terms), mixed.shape[1]), _START, dtype=np.uint64)
    for i in range(max(map(len, terms))):
        rows = [k for k, term in enumerate(terms) if i < len(term)]
        parts = mixed[[index[terms[k][i]] for k in rows]]
        factor = np.array([_factors(len(terms[k]))[i] for k in rows], dtype=np.uint64)
        joint[rows] = (joint[rows] ^ parts) * factor[:, None]
    return np.ascontiguousarray((joint + _END).T)


def _bits(values: FloatArray) -> HashArray:
    bits = (values + 0.0).view(np.uint64)
    bits[np.isnan(values)] = _NAN
    return bits


def _mix(bits: HashArray) -> HashArray:
    """Return each number hashed so that flipping one input bit flips about half of the output bits.

    References
    ----------
    G. Steele, D. Lea and C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014: the finaliser of
    SplitMix64.
    """
    mixed = bits ^ (bits >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _combine(parts: Sequence[HashArray]) -> HashArray:
    # The hash of several columns in order, equal to `pandas.util.hash_pandas_object` of a table.
    key = np.full(len(parts[0]), _START, dtype=np.uint64)
    for part, factor in zip(parts, _factors(len(parts)), strict=True):
        key ^= part
        key *= factor
    key += _END
    return key


@functools.cache
def _factors(n: int) -> tuple[np.uint64, ...]:
    # The multiplier after each of `n` columns, as in `pandas.core.util.hashing.combine_hash_arrays`.
    return tuple(np.uint64(1_000_003 + sum(82_520 + 2 * (n - i) for i in range(k))) for k in range(n))
