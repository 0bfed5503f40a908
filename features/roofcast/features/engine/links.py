"""Collectives over links: their times, and the links of a data sheet as a collective uses them."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from roofcast.features.engine.kernels.efficiency import LinkEfficiency, Number
from roofcast.features.queries import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class Links:
    """Links between the accelerators of each row; each a number or of shape (n_row,).

    - `domain_size`: Accelerators in one scale-up domain: NVLink, xGMI or the PCIe of one host.
    - `link_byte_per_s`, `link_latency_s`: Per accelerator inside its domain: bandwidth of one direction, and latency
      of one step.
    - `network_byte_per_s`, `network_latency_s`: The same for its share of the network between domains.
    - `launch_s`: Cost of launching any collective.
    - `is_direct`: Above 0.5 if each accelerator of a domain reads from all others at once (switches, engines' own
      kernels); otherwise messages use a ring.
    """

    domain_size: Number
    link_byte_per_s: Number
    link_latency_s: Number
    network_byte_per_s: Number
    network_latency_s: Number
    launch_s: Number = 0.0
    is_direct: Number = 1.0


@dataclass(frozen=True, slots=True)
class Network:
    """A network between domains: bandwidth of one direction per accelerator, latency of one step, source."""

    byte_per_s: float
    latency_s: float
    source: str


NETWORKS: Final[dict[str, Network]] = {
    "infiniband_xdr": Network(100e9, 5e-6, "NVIDIA Quantum-X800: 800 Gbit/s a port; latency: judgement"),
    "infiniband_ndr": Network(50e9, 5e-6, "NVIDIA DGX H100: one 400 Gbit/s port for each GPU; latency: judgement"),
    "infiniband_hdr": Network(25e9, 5e-6, "NVIDIA DGX A100: one 200 Gbit/s port for each GPU; latency: judgement"),
    "roce_400g": Network(50e9, 8e-6, "400 Gbit/s Ethernet with RDMA; latency: judgement"),
    "ethernet_100g": Network(12.5e9, 30e-6, "IEEE 802.3ba; latency of TCP through the kernel: judgement"),
    "ethernet_25g": Network(3.125e9, 30e-6, "IEEE 802.3by; latency: as above"),
    "ethernet_10g": Network(1.25e9, 50e-6, "IEEE 802.3ae; latency: as above"),
    "ethernet_1g": Network(0.125e9, 100e-6, "IEEE 802.3ab; latency: as above"),
    "wide_area_100m": Network(12.5e6, 50e-3, "Borzunov et al., Petals, 2023: 100 Mbit/s and 100 ms there and back"),
}
"""Typical networks with one port per accelerator; accelerators on one port share its bandwidth."""


def ring_all_reduce_s(message_byte: FloatArray, n: Number, byte_per_s: Number, latency_s: Number) -> FloatArray:
    """Return the time of a ring all-reduce: ``2 (n - 1)`` steps of 1/n of the message.

    References
    ----------
    P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal of
    Parallel and Distributed Computing 69(2), 2009.

    Examples
    --------
    Four ranks, 1 GB, 1 GB/s: six steps of a quarter.

    >>> ring_all_reduce_s(np.array([1e9]), 4.0, 1e9, 0.0)
    array([1.5])
    """
    n_step = 2.0 * (np.asarray(n) - 1.0)
    return n_step * (latency_s + message_byte / (n * np.asarray(byte_per_s)))


def tree_all_reduce_s(message_byte: FloatArray, n: Number, byte_per_s: Number, latency_s: Number) -> FloatArray:
    """Return the time of an all-reduce on a pipelined double binary tree.

    References
    ----------
    P. Sanders, J. Speck and J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
    Parallel Computing 35(12), 2009; NVIDIA, "Massively scale your deep learning training with NCCL 2.4", 2019.

    Examples
    --------
    Eight ranks are three steps from the root:

    >>> tree_all_reduce_s(np.array([0.0]), 8.0, 1e9, 1e-6)
    array([6.e-06])
    """
    n_step = 2.0 * np.log2(np.maximum(n, 1.0))
    moved = np.where(np.asarray(n) > 1.0, 2.0 * message_byte, 0.0)
    return n_step * latency_s + moved / byte_per_s


def direct_all_reduce_s(message_byte: FloatArray, n: Number, byte_per_s: Number, latency_s: Number) -> FloatArray:
    """Return the time of an all-reduce in which each rank reads from all others at once.

    Small messages are read by all ranks in one step; large ones are reduced in shards and gathered, in two.

    References
    ----------
    NVIDIA, TensorRT-LLM, "One-shot and two-shot all-reduce"; R. Thakur, R. Rabenseifner and W. Gropp, "Optimization
    of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005.

    Examples
    --------
    Eight ranks, 8 GB over 1 GB/s: two shots of seven eighths.

    >>> direct_all_reduce_s(np.array([8e9]), 8.0, 1e9, 0.0)
    array([14.])
    """
    others = np.asarray(n) - 1.0
    moving = others * (message_byte / byte_per_s)
    two_shot = 2.0 * (np.minimum(others, 1.0) * latency_s + moving / n)
    return np.minimum(np.minimum(others, 1.0) * latency_s + moving, two_shot)


def all_reduce_s(message_byte: FloatArray, n: Number, links: Links) -> FloatArray:
    """Return the time of an all-reduce of `message_byte` held by each of `n` ranks: shape (n_row,).

    Across domains it is hierarchical: shards are reduced inside each domain, each shard is reduced over the network
    by the faster of ring and tree, and the result is gathered inside each domain.

    Examples
    --------
    Sixteen ranks in two domains; 8 GB at 1 GB/s inside (14 s) and a shard of 1 GB at 0.1 GB/s across (10 s):

    >>> links = Links(8.0, 1e9, 0.0, 1e8, 0.0)
    >>> all_reduce_s(np.array([8e9]), 16.0, links)
    array([24.])
    """
    inner, outer = split_ranks(n, links.domain_size)
    is_direct = np.asarray(links.is_direct) > 0.5
    total = direct_all_reduce_s(message_byte, inner, links.link_byte_per_s, links.link_latency_s)
    if not is_direct.all():
        ring = ring_all_reduce_s(message_byte, inner, links.link_byte_per_s, links.link_latency_s)
        total = np.where(is_direct, total, ring)
    if (outer > 1).any():
        shard = message_byte / inner
        total = total + np.minimum(
            ring_all_reduce_s(shard, outer, links.network_byte_per_s, links.network_latency_s),
            tree_all_reduce_s(shard, outer, links.network_byte_per_s, links.network_latency_s),
        )
    return _among_several(n, links.launch_s + total)


def all_gather_s(message_byte: FloatArray, n: Number, links: Links) -> FloatArray:
    """Return the time of an all-gather of `message_byte`, of which each of `n` ranks holds 1/n.

    A reduce-scatter of the same size takes the same time: its traffic is reversed.

    References
    ----------
    E. Chan et al., "Collective communication: theory, practice, and experience", CCPE 19(13), 2007.

    Examples
    --------
    Four ranks, 1 GB, 1 GB/s: three quarters come from the others.

    >>> all_gather_s(np.array([1e9]), 4.0, Links(8.0, 1e9, 0.0, 1e8, 0.0))
    array([0.75])
    """
    inner, outer = split_ranks(n, links.domain_size)
    is_direct = np.asarray(links.is_direct) > 0.5
    n_step = np.where(is_direct, np.minimum(inner - 1.0, 1.0), inner - 1.0)
    inside = n_step * links.link_latency_s + (inner - 1.0) / inner * (message_byte / links.link_byte_per_s)
    shard = message_byte / inner
    network_s = (outer - 1.0) * links.network_latency_s
    across = network_s + (outer - 1.0) / outer * (shard / links.network_byte_per_s)
    return _among_several(n, links.launch_s + inside + across)


def reduce_scatter_s(message_byte: FloatArray, n: Number, links: Links) -> FloatArray:
    """Return the time of a reduce-scatter over `n` ranks of `message_byte` each.

    Examples
    --------
    >>> reduce_scatter_s(np.array([1e9]), 4.0, Links(8.0, 1e9, 0.0, 1e8, 0.0))
    array([0.75])
    """
    return all_gather_s(message_byte, n, links)


def all_to_all_s(message_byte: FloatArray, n: Number, links: Links) -> FloatArray:
    """Return the time of an all-to-all in which each of `n` ranks sends 1/n of its `message_byte` to each.

    Traffic inside the domain and across the network overlaps; the slower one counts.

    References
    ----------
    E. Chan et al., "Collective communication: theory, practice, and experience", CCPE 19(13), 2007.

    Examples
    --------
    Sixteen ranks in two domains, 16 GB each: 7 GB inside at 1 GB/s, 8 GB outside at 0.5 GB/s.

    >>> all_to_all_s(np.array([16e9]), 16.0, Links(8.0, 1e9, 0.0, 5e8, 0.0))
    array([16.])
    """
    inner, outer = split_ranks(n, links.domain_size)
    part = message_byte / (inner * outer)
    inside = np.minimum(inner - 1.0, 1.0) * links.link_latency_s + (inner - 1.0) * part / links.link_byte_per_s
    leaving = (outer - 1.0) * inner * part / links.network_byte_per_s
    across = np.minimum(outer - 1.0, 1.0) * links.network_latency_s + leaving
    return _among_several(n, links.launch_s + np.maximum(inside, across))


def point_to_point_s(message_byte: FloatArray, is_inside: BoolArray, links: Links) -> FloatArray:
    """Return the time of one message between two ranks, inside a domain or across the network.

    References
    ----------
    R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994.

    Examples
    --------
    >>> point_to_point_s(np.array([1e9, 1e9]), np.array([True, False]), Links(8.0, 1e9, 0.0, 1e8, 0.0))
    array([ 1., 10.])
    """
    latency = np.where(is_inside, links.link_latency_s, links.network_latency_s)
    bandwidth = np.where(is_inside, links.link_byte_per_s, links.network_byte_per_s)
    return links.launch_s + latency + message_byte / bandwidth


def split_ranks(n: Number, domain_size: Number) -> tuple[FloatArray, FloatArray]:
    """Return the ranks of a group in one domain and the domains it spans; their product is at least `n`.

    Examples
    --------
    >>> split_ranks(np.array([4.0, 16.0]), 8.0)
    (array([4., 8.]), array([1., 2.]))
    """
    inner = np.minimum(n, np.maximum(domain_size, 1.0))
    return inner, np.ceil(np.asarray(n) / inner)


def _among_several(n: Number, time_s: FloatArray) -> FloatArray:
    return np.where(np.asarray(n) > 1.0, time_s, 0.0)


def links_inside(n: Number, link_byte_per_s: Number, efficiency: LinkEfficiency, *, is_direct: Number = 1.0) -> Links:
    """Return the links of `n` ranks in one scale-up domain, as used by a collective with `efficiency`.

    - `n`: Ranks; more of them contend for a shared bus.
    - `link_byte_per_s`: Data-sheet bandwidth of one accelerator, sum of both directions.
    - `efficiency`: Parameters, each a number or of shape (n_row,).
    - `is_direct`: See `roofcast.features.engine.links.Links`.

    Examples
    --------
    One direction has half of 900 GB/s, of which 80 % is achieved:

    >>> links_inside(2.0, 900e9, LinkEfficiency(5e-6, 1e-6, 0.8, 0.1)).link_byte_per_s
    array(3.6e+11)
    """
    return links_among(n, Links(n, link_byte_per_s, 0.0, np.inf, 0.0, is_direct=is_direct), efficiency)


def links_among(n: Number, sheet: Links, efficiency: LinkEfficiency) -> Links:
    """Return the links of a data sheet as used by a collective with `efficiency` over `n` ranks.

    - `n`: Ranks, in one scale-up domain or several.
    - `sheet`: Link bandwidth of the data sheet, sum of both directions. The network is kept; latency inside a domain
      and launch are replaced by the measured ones.
    - `efficiency`: Parameters, each a number or of shape (n_row,).

    Examples
    --------
    Sixteen ranks in domains of eight contend like eight ranks:

    >>> sheet = Links(8.0, 900e9, 0.0, 50e9, 5e-6)
    >>> links_among(16.0, sheet, LinkEfficiency(5e-6, 1e-6, 0.8, 0.5)).link_byte_per_s
    array(1.8e+11)
    """
    inner, _ = split_ranks(n, sheet.domain_size)
    return replace(
        sheet,
        link_byte_per_s=achieved_byte_per_s(inner, sheet.link_byte_per_s, efficiency),
        link_latency_s=efficiency.step_s,
        launch_s=efficiency.launch_s,
    )


def achieved_byte_per_s(n: Number, link_byte_per_s: Number, efficiency: LinkEfficiency) -> FloatArray:
    """Return the bandwidth per direction that each of `n` ranks achieves: ``ratio link / 2 (2 / n) ** crowding``.

    Examples
    --------
    >>> achieved_byte_per_s(np.array([2.0, 8.0]), 64e9, LinkEfficiency(0.0, 0.0, 0.5, 0.5))
    array([1.6e+10, 8.0e+09])
    """
    several = np.maximum(n, 2.0)
    return np.asarray(efficiency.bandwidth_ratio * link_byte_per_s / 2.0 * (2.0 / several) ** efficiency.crowding)
