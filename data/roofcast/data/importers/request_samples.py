"""Samples over the requests of a run, their statistics, and the columns of their lengths."""

import math
from collections.abc import Mapping

import numpy as np

from roofcast.data.importers.json_input import Floats
from roofcast.data.specs import STATISTICS


def request_samples(
    ttft_s: Floats, tpot_s: Floats, e2e_s: Floats, n_input: Floats, n_output: Floats, *, gap_s: Floats
) -> dict[str, Floats]:
    """Return the known values by column of the measurement table.

    - `ttft_s`, `e2e_s`, `n_input`, `n_output`: shape (n_request,)
    - `tpot_s`: Of the requests with several output tokens.
    - `gap_s`: The gaps between tokens of all requests, pooled.
    """
    samples = {
        "ttft_s": ttft_s,
        "nttft_s_per_token": ttft_s[n_input > 0] / n_input[n_input > 0],
        "itl_s": gap_s,
        "tpot_s": tpot_s,
        "e2e_s": e2e_s,
        "n_input_token_at_statistic": n_input,
        "n_output_token_at_statistic": n_output,
    }
    return {column: values[~np.isnan(values)] for column, values in samples.items()}


def length_cells(n_input: Floats, n_output: Floats) -> dict[str, float]:
    """Return the columns of the lengths of all requests."""
    return {
        "n_input_token": float(n_input.mean()),
        "n_output_token": float(n_output.mean()),
        "length_variation": variation_of(n_output),
    }


def statistics_of(samples: Mapping[str, Floats]) -> dict[str, dict[str, float]]:
    """Return mean and percentiles of samples; NaN where a sample is empty.

    Examples
    --------
    >>> statistics_of({"ttft_s": np.array([1.0, 2.0, 6.0])})["mean"]
    {'ttft_s': 3.0}
    """
    return {name: {column: _statistic(name, values) for column, values in samples.items()} for name in STATISTICS}


def variation_of(lengths: Floats) -> float:
    """Return the coefficient of variation of lengths, their standard deviation over their mean; NaN if undefined.

    Examples
    --------
    >>> variation_of(np.array([50.0, 150.0]))
    0.5
    """
    known = lengths[~np.isnan(lengths)]
    with np.errstate(over="ignore"):  # validation refuses infinite values
        return float(known.std() / known.mean()) if len(known) and known.mean() > 0 else math.nan


def _statistic(name: str, values: Floats) -> float:
    if not len(values):
        return math.nan
    return float(values.mean() if name == "mean" else np.percentile(values, float(name[1:])))
