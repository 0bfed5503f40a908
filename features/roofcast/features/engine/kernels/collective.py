"""How well collectives use the links: what turns a data sheet's link into `roofcast.features.engine.links.Links`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roofcast.features.engine.kernels.efficiency import FloatArray, LinkEfficiency, Number
from roofcast.features.engine.links import Links, split_ranks


def links_inside(n: Number, link_byte_per_s: Number, efficiency: LinkEfficiency, *, is_direct: Number = 1.0) -> Links:
    """Return the links of `n` ranks that share a scale-up domain, as a collective with `efficiency` reaches them.

    Parameters
    ----------
    n
        Ranks that take part; more of them crowd the links where they share a bus.
    link_byte_per_s
        Data-sheet bandwidth of one accelerator, both ways together.
    efficiency
        Parameters, each a number or of shape (n_question,).
    is_direct
        See `roofcast.features.engine.links.Links`.

    Examples
    --------
    Half of 900 GB/s is one way, 80 % of which is reached:

    >>> links_inside(2.0, 900e9, LinkEfficiency(5e-6, 1e-6, 0.8, 0.1)).link_byte_per_s
    array(3.6e+11)
    """
    return links_among(n, Links(n, link_byte_per_s, 0.0, np.inf, 0.0, is_direct=is_direct), efficiency)


def links_among(n: Number, sheet: Links, efficiency: LinkEfficiency) -> Links:
    """Return what a collective with `efficiency` among `n` ranks makes of the links of a data sheet.

    Parameters
    ----------
    n
        Ranks that take part, in one scale-up domain or several.
    sheet
        Its link bandwidth is the data sheet's, both ways together; its network stays as it is, and its latencies
        inside a domain and its launch give way to those measured.
    efficiency
        Parameters, each a number or of shape (n_question,).

    Examples
    --------
    Sixteen ranks in domains of eight crowd the links as eight do:

    >>> sheet = Links(8.0, 900e9, 0.0, 50e9, 5e-6)
    >>> links_among(16.0, sheet, LinkEfficiency(5e-6, 1e-6, 0.8, 0.5)).link_byte_per_s
    array(1.8e+11)
    """
    inner, _ = split_ranks(n, sheet.domain_size)
    return replace(
        sheet,
        link_byte_per_s=reached_byte_per_s(inner, sheet.link_byte_per_s, efficiency),
        link_latency_s=efficiency.step_s,
        launch_s=efficiency.launch_s,
    )


def reached_byte_per_s(n: Number, link_byte_per_s: Number, efficiency: LinkEfficiency) -> FloatArray:
    """Return the bandwidth one way that each of `n` ranks reaches: ``ratio link / 2 (2 / n) ** crowding``.

    Examples
    --------
    >>> reached_byte_per_s(np.array([2.0, 8.0]), 64e9, LinkEfficiency(0.0, 0.0, 0.5, 0.5))
    array([1.6e+10, 8.0e+09])
    """
    several = np.maximum(n, 2.0)
    return np.asarray(efficiency.bandwidth_ratio * link_byte_per_s / 2.0 * (2.0 / several) ** efficiency.crowding)
