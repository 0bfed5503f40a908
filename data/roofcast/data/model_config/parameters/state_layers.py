"""Parameter counts of layers with a recurrent state of fixed size instead of a cache, and of sparse indexers."""

from __future__ import annotations


def gated_delta_net(hidden: int, n_key_head: int, key_dim: int, n_value_head: int, value_dim: int) -> int:
    """Return the weights of a gated delta-rule layer with a convolution of four taps.

    References
    ----------
    S. Yang, J. Kautz and A. Hatamizadeh, "Gated Delta Networks", ICLR 2025.
    """
    key, value = n_key_head * key_dim, n_value_head * value_dim
    projections = hidden * (2 * key + 2 * value + 2 * n_value_head) + value * hidden
    return projections + 4 * (2 * key + value) + 2 * n_value_head + value_dim


def mamba2(hidden: int, n_head: int, head_dim: int, n_group: int, n_state: int) -> int:
    """Return the weights of a Mamba-2 layer with a convolution of four taps.

    References
    ----------
    T. Dao and A. Gu, "Transformers are SSMs", ICML 2024.
    """
    inner, group = n_head * head_dim, 2 * n_group * n_state
    projections = hidden * (2 * inner + group + n_head) + inner * hidden
    return projections + 5 * (inner + group) + 3 * n_head + inner


def mamba1(hidden: int, inner: int, n_state: int, dt_rank: int, n_tap: int) -> int:
    """Return the weights of a Mamba layer with normalised time step, input and output maps, as in Jamba.

    Examples
    --------
    Two inputs of width 1, one state, rank 1 and one tap: 4 + 4 + 6 + 4 + 2 + 2 + 2 + 3.

    >>> mamba1(hidden=1, inner=2, n_state=1, dt_rank=1, n_tap=1)
    27

    References
    ----------
    A. Gu and T. Dao, "Mamba", 2023; O. Lieber et al., "Jamba", 2024.
    """
    projections = hidden * 2 * inner + inner * hidden
    convolution = (n_tap + 1) * inner
    selection = inner * (dt_rank + 2 * n_state) + (dt_rank + 1) * inner
    return projections + convolution + selection + inner * n_state + inner + dt_rank + 2 * n_state


def short_convolution(hidden: int, n_tap: int) -> int:
    """Return the weights of a gated short convolution: three input projections, `n_tap` taps, one output projection.

    Examples
    --------
    >>> short_convolution(2, 3)
    22
    """
    return 4 * hidden * hidden + n_tap * hidden


def kimi_delta(hidden: int, n_head: int, head_dim: int, n_tap: int, *, full_gate: bool = False) -> int:
    """Return the weights of a layer of Kimi delta attention.

    Notes
    -----
    Queries, keys, values and output have one width; the decay, and the output gate unless `full_gate`, have the rank
    `head_dim`.

    References
    ----------
    Kimi Team, "Kimi Linear", 2025.
    """
    width = n_head * head_dim
    projections = 4 * hidden * width + 3 * n_tap * width
    low_rank = hidden * head_dim + head_dim * width
    gates = low_rank + (hidden * width if full_gate else low_rank) + hidden * n_head
    return projections + gates + n_head + width + head_dim


def lightning(hidden: int, n_head: int, head_dim: int) -> int:
    """Return the weights of a layer of lightning attention with an output gate.

    Examples
    --------
    >>> lightning(hidden=2, n_head=1, head_dim=2)
    22

    References
    ----------
    MiniMax, "MiniMax-01", 2025.
    """
    width = n_head * head_dim
    return 5 * hidden * width + width


def sparse_indexer(hidden: int, query_rank: int, n_head: int, head_dim: int) -> int:
    """Return the weights of the indexer that selects the tokens of a sparse-attention layer.

    Examples
    --------
    That of DeepSeek-V3.2:

    >>> sparse_indexer(hidden=7168, query_rank=1536, n_head=64, head_dim=128)
    13959424

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3.2", 2025.
    """
    return query_rank * n_head * head_dim + hidden * head_dim + 2 * head_dim + hidden * n_head
