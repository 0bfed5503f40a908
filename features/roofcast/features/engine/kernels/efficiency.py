"""How well kernels use an accelerator: the fitted parameters, one frozen dataclass for each kind of kernel.

Every parameter is a float or an array of shape (n_question,), so that each row can have its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Number = float | FloatArray


@dataclass(frozen=True, slots=True)
class GemmEfficiency:
    """Parameters of a dense matrix product.

    Parameters
    ----------
    launch_s
        Time of a product of nothing: launch, prologue, scaling of the activations where they are quantised.
    bandwidth_ratio, flop_ratio
        Shares of the peak bandwidth and of the peak operations that a very large product reaches.
    pad_row, pad_column
        Rows and columns by which a product computes as if it were larger: tiles that are partly empty, and
        multiprocessors without one.
    depth_s
        Time in which one tile takes one more element of the sum, whatever the other tiles do.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_row: Number
    pad_column: Number
    depth_s: Number


@dataclass(frozen=True, slots=True)
class PrefillAttentionEfficiency:
    """Parameters of attention of many new tokens.

    Parameters
    ----------
    launch_s
        Time of attention over nothing.
    bandwidth_ratio, flop_ratio
        Shares of the peak bandwidth and of the peak operations reached by long prompts.
    pad_query, pad_key
        New tokens and cached tokens by which each sequence computes as if it were longer.
    pad_head
        Sequence-heads by which the work seems more: multiprocessors that have none.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_query: Number
    pad_key: Number
    pad_head: Number


@dataclass(frozen=True, slots=True)
class DecodeAttentionEfficiency:
    """Parameters of attention of one new token a sequence.

    Parameters
    ----------
    launch_s
        Time of attention over nothing.
    bandwidth_ratio, flop_ratio
        Shares of the peak bandwidth and of the peak operations reached by long caches.
    pad_key
        Cached tokens by which each sequence reads as if it were longer: pages and splits that are partly empty.
    pad_group
        Query heads by which each key-value head computes as if it served more: tiles that are partly empty.
    pad_head
        Key-value heads of all sequences by which the work seems more: multiprocessors that have none.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_key: Number
    pad_group: Number
    pad_head: Number


@dataclass(frozen=True, slots=True)
class MoeEfficiency:
    """Parameters of the routed experts of one layer: both grouped products with sorting and summing.

    Parameters
    ----------
    launch_s
        Time of a layer without tokens: routing, sorting, launches.
    bandwidth_ratio, flop_ratio
        Shares of the peak bandwidth and of the peak operations that very large experts reach.
    pad_row
        Rows by which each touched expert computes as if it had more: tiles that are partly empty.
    token_ratio
        Passes over the hidden vector of each chosen token-expert pair: gather, activation, quantisation, sum.
    imbalance
        Exponent of the expert-parallel ranks by which the busiest rank has more than its share.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_row: Number
    token_ratio: Number
    imbalance: Number


@dataclass(frozen=True, slots=True)
class LinkEfficiency:
    """Parameters of a collective inside one scale-up domain.

    Parameters
    ----------
    launch_s
        Time of a collective of nothing, without its steps.
    step_s
        Latency of one step of the algorithm.
    bandwidth_ratio
        Share of the data sheet's link bandwidth that two ranks reach; above 1 where the switch adds up.
    crowding
        Exponent by which each rank's share falls with their number: 0 behind a switch, more on a shared bus.
    """

    launch_s: Number
    step_s: Number
    bandwidth_ratio: Number
    crowding: Number


def joint_s(*times: FloatArray) -> FloatArray:
    """Return the time of moving, computing and waiting that overlap, though not wholly: a soft maximum of power 4.

    Examples
    --------
    Where both take as long, the kernel takes 19 % longer than either:

    >>> joint_s(np.array([1.0, 1.0]), np.array([0.0, 1.0])).round(3)
    array([1.   , 1.189])
    """
    squares = [time * time for time in times]
    total: FloatArray = squares[0] * squares[0]
    for square in squares[1:]:
        total = total + square * square
    return np.sqrt(np.sqrt(total))
