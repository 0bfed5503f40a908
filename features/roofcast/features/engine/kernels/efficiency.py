"""Kernel efficiency: the fitted parameters, one frozen dataclass for each kind of kernel.

Each parameter is a number or an array of shape (n_row,). A pad is the extra work of partly filled tiles. Pads in rows
or heads are fractions of the ridge point (operations per byte at which compute time equals memory time), because
kernels scale their tiles with it. Pads of fixed numbers of rows predict accelerators outside the fit worse
(docs/KERNELS.md).
"""

from dataclasses import dataclass

from roofcast.features.queries import FloatArray

Number = float | FloatArray


@dataclass(frozen=True, slots=True)
class GemmEfficiency:
    """Parameters of a dense matrix product.

    - `launch_s`: Time of an empty product: launch, prologue, and scaling of quantised activations.
    - `bandwidth_ratio`, `flop_ratio`: Shares of peak bandwidth and of peak operations that a very large product
      achieves.
    - `pad_ridge`: Rows added to a product for its compute time, as a share of the ridge point: partly filled tiles.
    - `pad_column`: Columns added to a product for its compute time: idle multiprocessors.
    - `depth_s`: Time of one tile per element of the reduction, independent of other tiles.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_ridge: Number
    pad_column: Number
    depth_s: Number


@dataclass(frozen=True, slots=True)
class PrefillAttentionEfficiency:
    """Parameters of attention of many new tokens.

    - `launch_s`: Time of attention over an empty context.
    - `bandwidth_ratio`, `flop_ratio`: Shares of peak bandwidth and of peak operations achieved with long prompts.
    - `pad_query`, `pad_key`: New and cached tokens added to each sequence for its compute time.
    - `pad_head`: Sequence-heads added to the work: idle multiprocessors.
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

    - `launch_s`: Time of attention over an empty context.
    - `bandwidth_ratio`, `flop_ratio`: Shares of peak bandwidth and of peak operations achieved with long caches.
    - `pad_key`: Cached tokens added to each sequence: partly filled pages and splits.
    - `pad_ridge`: Query heads added to each key-value head, as a share of the ridge point: partly filled tiles.
    - `pad_head`: Key-value heads added over all sequences: idle multiprocessors.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_key: Number
    pad_ridge: Number
    pad_head: Number


@dataclass(frozen=True, slots=True)
class MoeEfficiency:
    """Parameters of the routed experts of one layer: both grouped products with sorting and summing.

    - `launch_s`: Time of a layer without tokens: routing, sorting, launches.
    - `bandwidth_ratio`, `flop_ratio`: Shares of peak bandwidth and of peak operations that very large experts
      achieve.
    - `pad_ridge`: Rows added to each touched expert, as a share of the ridge point: partly filled tiles.
    - `token_ratio`: Passes over the hidden vector of each token-expert pair: gather, activation, quantisation, sum.
    - `imbalance`: The busiest of R expert-parallel ranks has ``R ** imbalance`` times the mean load.
    """

    launch_s: Number
    bandwidth_ratio: Number
    flop_ratio: Number
    pad_ridge: Number
    token_ratio: Number
    imbalance: Number


@dataclass(frozen=True, slots=True)
class LinkEfficiency:
    """Parameters of a collective inside one scale-up domain.

    - `launch_s`: Time of an empty collective, without its steps.
    - `step_s`: Latency of one step of the algorithm.
    - `bandwidth_ratio`: Share of the data sheet's link bandwidth that two ranks achieve; above 1 with in-switch
      reduction.
    - `crowding`: Exponent of the decrease of each rank's bandwidth with their number: 0 behind a switch, larger on a
      shared bus.
    """

    launch_s: Number
    step_s: Number
    bandwidth_ratio: Number
    crowding: Number
