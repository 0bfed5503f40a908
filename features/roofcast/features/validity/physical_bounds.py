"""Physical bounds of outcomes: data-sheet peaks, perfect scaling over all accelerators, the least possible work."""

import numpy as np

from roofcast.features.engine.estimate import Estimate
from roofcast.features.engine.operators import new_token
from roofcast.features.queries import FloatArray, Queries


def least_step_s(d: Queries) -> FloatArray:
    """Return the least time of a decode step: all accelerators together read the weights of one token.

    Examples
    --------
    14 GB over 2 TB/s:

    >>> from roofcast.features.examples import example_descriptors
    >>> least_step_s(example_descriptors())
    array([0.007])
    """
    return _n_param_per_token(d) * d["config.weight_byte_per_element"] / _bandwidth(d)


def flop_per_token(d: Queries) -> FloatArray:
    """Return the least operations of one token: two for each of its weights."""
    return 2 * _n_param_per_token(d)


def peak_flop_per_s(d: Queries) -> FloatArray:
    """Return the dense peak of all accelerators together, at the precision of most weights."""
    return d["config.n_accelerator"] * d["hardware.flop_per_s"]


def physical_bounds(d: Queries, e: Estimate) -> dict[str, FloatArray]:
    """Return the least latency of each metric, and the greatest throughput: shapes (n_row,).

    TTFT computes the prompt outside the prefix cache, the output head for its last token alone, and reads the weights
    once. TPOT reads the weights of one token and the cache of the running requests, if attention is not sparse, for
    as many tokens as are drafted. Throughput computes the prompt and the output tokens, and keeps a stated number of
    requests in flight for the least latency.

    Parameters
    ----------
    e
        Of the same rows: their running requests and memory.

    Examples
    --------
    >>> from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
    >>> from roofcast.features.engine.estimate import estimate
    >>> from roofcast.features.examples import example_descriptors
    >>> d = example_descriptors()
    >>> bounds = physical_bounds(d, estimate(d, DEFAULT_COEFFICIENTS))
    >>> bool(least_step_s(d)[0] < bounds["tpot_s"][0])
    True
    """
    head, n_output = 2 * d["model.n_param_head"], d["workload.n_output_token"]
    n_new = new_token(d)
    prompt_s = ((flop_per_token(d) - head) * n_new + head) / peak_flop_per_s(d)
    step_s = least_step_s(d)
    ttft_s = np.maximum(prompt_s, step_s)
    cache_byte = e.batch * e.memory.kv_byte_per_sequence * (1 - d["workload.prefix_cache_ratio"])
    cache_s = np.where(d["model.n_sparse_layer"] > 0, 0.0, cache_byte / _bandwidth(d))
    tpot_s = (step_s + cache_s) / (1 + d["config.n_draft_token"])
    e2e_s = ttft_s + (n_output - 1) * tpot_s
    request_s = np.nan_to_num(e2e_s / d["workload.concurrency"])
    request_s = np.maximum(request_s, prompt_s + (n_output - 1) * flop_per_token(d) / peak_flop_per_s(d))
    return {
        "ttft_s": ttft_s,
        "nttft_s_per_token": ttft_s / d["workload.n_input_token"],
        "tpot_s": tpot_s,
        "itl_s": tpot_s,
        "e2e_s": e2e_s,
        "output_throughput_token_per_s": n_output / request_s,
    }


def _bandwidth(d: Queries) -> FloatArray:
    return d["config.n_accelerator"] * d["hardware.bandwidth_byte_per_s"]


def _n_param_per_token(d: Queries) -> FloatArray:
    expert_ratio = d["model.n_expert_per_token"] / np.maximum(d["model.n_expert"], 1.0)
    return d["model.n_param_dense"] + d["model.n_param_expert"] * expert_ratio
