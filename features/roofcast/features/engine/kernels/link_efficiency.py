"""Link efficiency of collectives: from a data sheet's links to `roofcast.features.engine.links.Links`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roofcast.features.engine.kernels.efficiency import LinkEfficiency, Number
from roofcast.features.engine.links import Links, split_ranks
from roofcast.features.queries import FloatArray


def links_inside(n: Number, link_byte_per_s: Number, efficiency: LinkEfficiency, *, is_direct: Number = 1.0) -> Links:
    """Return the links of `n` ranks in one scale-up domain, as used by a collective with `efficiency`.

    Parameters
    ----------
    n
        Ranks; more of them contend for a shared bus.
    link_byte_per_s
        Data-sheet bandwidth of one accelerator, sum of both directions.
    efficiency
        Parameters, each a number or of shape (n_row,).
    is_direct
        See `roofcast.features.engine.links.Links`.

    Examples
    --------
    One direction has half of 900 GB/s, of which 80 % is achieved:

    >>> links_inside(2.0, 900e9, LinkEfficiency(5e-6, 1e-6, 0.8, 0.1)).link_byte_per_s
    array(3.6e+11)
    """
    return links_among(n, Links(n, link_byte_per_s, 0.0, np.inf, 0.0, is_direct=is_direct), efficiency)


def links_among(n: Number, sheet: Links, efficiency: LinkEfficiency) -> Links:
    """Return the links of a data sheet as used by a collective with `efficiency` over `n` ranks.

    Parameters
    ----------
    n
        Ranks, in one scale-up domain or several.
    sheet
        Link bandwidth of the data sheet, sum of both directions. The network is kept; latency inside a domain and
        launch are replaced by the measured ones.
    efficiency
        Parameters, each a number or of shape (n_row,).

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
