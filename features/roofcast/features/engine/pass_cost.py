"""What passes cost: decode steps per token with speculation, and passes in pipeline stages."""

import numpy as np

from roofcast.features.engine.coefficients import RowCoefficients
from roofcast.features.queries import FloatArray, Queries


def token_cost(d: Queries, c: RowCoefficients) -> FloatArray:
    """Return the decode steps per token of a sequence: 1, or less with accepted speculation.

    The acceptance probability is the query's, or the coefficient where it is unknown.
    """
    n_draft = d["config.n_draft_token"]
    given = d["config.acceptance_ratio"]
    chance = np.where(np.isnan(given), c["acceptance"], given)
    return (1 + n_draft * c["draft_ratio"]) / n_accepted(chance, n_draft)


def n_accepted(acceptance: FloatArray, n_draft: FloatArray) -> FloatArray:
    """Return the expected tokens per step and sequence: accepted drafts in a row, plus one.

    References
    ----------
    Y. Leviathan, M. Kalman and Y. Matias, "Fast Inference from Transformers via Speculative Decoding", ICML 2023,
    equation 1.

    Examples
    --------
    Three drafts, each accepted with probability 0.7:

    >>> n_accepted(np.array([0.7]), np.array([3.0])).round(3)
    array([2.533])
    """
    chance = np.minimum(acceptance, 0.999)
    return np.asarray((1 - chance ** (n_draft + 1)) / (1 - chance))


def chain_acceptance(length: FloatArray, n_draft: FloatArray) -> FloatArray:
    """Return the probability of a token, given those before it, at which a step has `length` tokens.

    The inverse of `n_accepted` by bisection; at most 0.999.

    Examples
    --------
    >>> chain_acceptance(np.array([2.533, 1.0]), np.array([3.0, 3.0])).round(3)
    array([0.7, 0. ])
    """
    low, high = np.zeros(len(length)), np.full(len(length), 0.999)
    for _ in range(30):
        middle = (low + high) / 2
        is_low = n_accepted(middle, n_draft) < length
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return low


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

    `whole_s` and `last_s`: time of all chunks, and of the last chunk, through all stages in sequence. `stage`: share
    of the longest stage, see `stage_ratio`.

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
