"""Pipeline stages: the longest one, and prefills whose chunks pass through all of them."""

from __future__ import annotations

import numpy as np

from roofcast.features.queries import FloatArray, Queries


def stage_ratio(d: Queries) -> FloatArray:
    """Return the share of a pass spent in the longest pipeline stage; layers are not divided.

    Examples
    --------
    Four stages of 32 layers have eight each; of 30 layers, two have eight:

    >>> stage_ratio({"model.n_layer": np.array([32.0, 30.0]), "config.pp": np.array([4.0, 4.0])}).round(3)
    array([0.25 , 0.267])
    """
    n_layer, pp = d["model.n_layer"], d["config.pp"]
    return np.where(pp > 1, np.ceil(n_layer / pp) / n_layer, 1.0)


def pipelined_s(whole_s: FloatArray, last_s: FloatArray, stage: FloatArray) -> FloatArray:
    """Return the time of a prefill whose chunks are pipelined over the stages.

    Parameters
    ----------
    whole_s, last_s
        Time of all chunks, and of the last chunk, through all stages in sequence.
    stage
        Share of the longest stage, see `stage_ratio`.

    Notes
    -----
    The longest stage processes all chunks in turn; the last chunk then passes the other stages. With m equal chunks
    and p equal stages this is ``(m + p - 1) / (m p)`` of the sequential time.

    References
    ----------
    Y. Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", NeurIPS 2019,
    section 2.3.

    Examples
    --------
    Eight chunks of a second in four stages take eleven quarters:

    >>> pipelined_s(np.array([8.0]), np.array([1.0]), np.array([0.25]))
    array([2.75])
    """
    return np.asarray(stage * whole_s + (1 - stage) * last_s)
