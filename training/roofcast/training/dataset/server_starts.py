"""Starts of servers as questions: one request of the longest context, which a server that starts can hold."""

from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.measurements.schema import INPUT_COLUMNS

DEFAULT_CONTEXT: Final = 4096.0
"""Context where a start does not state it."""


def start_questions(starts: pd.DataFrame) -> pd.DataFrame:
    """Return the questions of starts, on their index.

    llama.cpp shares a cache of its context among its sequences, so its requests have a part of it. Decode context
    parallelism shares the ranks of tensor parallelism, so `cp`, which has ranks of its own, is left out.
    """
    is_shared = (starts["engine"] == "llama.cpp").to_numpy()
    n_sequence = np.where(is_shared, starts["max_num_seqs"].fillna(1.0), 1.0)
    context = starts["max_context_token"].fillna(DEFAULT_CONTEXT).to_numpy(dtype=float) / n_sequence
    stated = [name for name in starts if name in INPUT_COLUMNS and name != "cp"]
    return starts[stated].assign(
        n_input_token=np.maximum(context - 1, 1.0), n_output_token=2.0, concurrency=1.0, statistic="mean",
        load="closed_loop", flash_attention=True,
        max_context_token=starts["max_context_token"].mask(is_shared),
    )  # fmt: skip


def tried_starts(starts: pd.DataFrame) -> pd.DataFrame:
    """Return the questions of the starts that are judged, with their status, campaign and stack."""
    judged = starts[starts["judged"].str.split().map(lambda parts: "starts" in parts).astype(bool)]
    return start_questions(judged).assign(**{name: judged[name] for name in ("status", "campaign", "stack")})
