"""Rows of log errors with lineages, owners and accelerators that have effects."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from roofcast.training.jobs.held_out import ErrorRows
from roofcast.training.jobs.job_effects import TERMS

N_LINEAGE, N_OWNER, N_ACCELERATOR = 8, 6, 3


def error_rows(n: int, seed: int = 0) -> ErrorRows:
    """Return rows whose error depends on one column, the lineage and the owner."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, size, n) for name, size in
             (("lineage", N_LINEAGE), ("owner", N_OWNER), ("accelerator", N_ACCELERATOR))}  # fmt: skip
    x = rng.normal(size=(n, 3))
    error = 0.2 * x[:, 0] + 0.05 * codes["lineage"] - 0.05 * codes["owner"] + rng.normal(0, 0.05, n)
    names = {name for term in TERMS for name in term}
    hashes = {name: (codes[name] + 1 if name in codes else np.ones(n)).astype(np.uint64) for name in names}
    keys = np.column_stack([
        sum(hashes[name] * np.uint64(31**i) for i, name in enumerate(term)) * np.uint64(2 * k + 1)
        for k, term in enumerate(TERMS)
    ])  # fmt: skip
    lineage, owner = (np.array([f"{name}-{i}" for i in codes[name]], dtype=object) for name in ("lineage", "owner"))
    return ErrorRows(("a", "b", "c"), x, keys, error, lineage, owner, owner, np.ones(n, dtype=bool),
                     np.zeros(n, dtype=bool))  # fmt: skip


def with_upload(rows: ErrorRows, *, n: int, error: float) -> ErrorRows:
    """Return rows and `n` of them again as those of an API key, with another error."""
    parts: dict[str, Any] = {}
    for field in ("x", "keys", "error", "lineage", "owner", "stack", "is_measured", "is_plain"):
        values = getattr(rows, field)
        own = values[:n].copy()
        if field == "error":
            own = own + error
        if field in {"owner", "stack"}:
            own = np.full(n, "key:evil" if field == "owner" else "key:evil/rig", dtype=object)
        parts[field] = np.concatenate([values, own])
    return dataclasses.replace(rows, **parts)


def slices_of(rows: ErrorRows) -> pd.DataFrame:
    """Return the slices on which a candidate is judged."""
    accelerator = rows.keys[:, list(TERMS).index(("accelerator",))].astype(str)
    cell = pd.Series(range(len(rows.error))).astype(str)
    return pd.DataFrame({"lineage": rows.lineage, "cell": cell, "accelerator": accelerator, "stack": rows.owner})
