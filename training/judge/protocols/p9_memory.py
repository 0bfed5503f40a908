"""P9: memory of servers as they report it while they start, by the estimate and by rules of thumb.

Weights and cache of one accelerator, requests of the longest context that the cache holds, and whether the server
starts. What vLLM and SGLang keep for themselves is refitted without the lineage of the model in question; other
engines have too few lineages, and constants of graphs and ranks were set with the starts in view.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.memory_campaigns import load_starts
from roofcast.data.specs import BYTE_PER_WEIGHT
from roofcast.features.descriptors.descriptor_table import describe_queries
from roofcast.features.descriptors.prediction_input import column_arrays
from roofcast.features.engine.cache_pages import admitted_byte
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.memory import Memory, context_token, estimate_memory, weight_byte
from roofcast.training.dataset.server_starts import DEFAULT_CONTEXT, start_questions

FloatArray = npt.NDArray[np.float64]

QUANTITIES: Final = ("weights", "cache", "requests")
FALSE_ALARM: Final = 0.03
"""Share of the servers that start of which a method may say that they do not."""

USUAL_SHARE: Final = 0.9
"""Share of the memory in the rule of thumb."""

STATE_RATIO: Final = 0.9
"""SGLang's states of recurrent layers are in a pool of their own, beside the reported one: its option
``--mamba-full-memory-ratio``."""

LEAST_LINEAGES: Final = 5
"""Other lineages from whose medians the own bytes of an engine are fitted; with fewer the shipped ones stay."""

Method = Callable[[pd.DataFrame, Catalog], pd.DataFrame]
"""Function from starts to `QUANTITIES` by row, and `margin`: how likely the server starts, in any unit."""


def predict_starts(methods: Mapping[str, Method] | None = None, catalog: Catalog | None = None) -> pd.DataFrame:
    """Return the starts with the prediction of each method: a row for each start and method."""
    catalog, rows = catalog or load_catalog(), load_starts()
    rows["lineage"] = [catalog.models[name].fold_group for name in rows["model"]]
    tables = [
        pd.concat([rows.assign(method=name), predict(rows, catalog).add_prefix("predicted_")], axis=1)
        for name, predict in (methods or METHODS).items()
    ]
    return pd.concat(tables, ignore_index=True)


def estimate_starts(rows: pd.DataFrame, catalog: Catalog) -> pd.DataFrame:
    """Return the estimate of each start, with the engine's own bytes of other lineages."""
    d = describe_queries(column_arrays(start_questions(rows)), catalog.models, catalog.accelerators)
    memory = estimate_memory(d, DEFAULT_COEFFICIENTS.by_row(d["config.engine"]))
    n, held = d["config.n_accelerator"], admitted_byte(d, context_token(d))
    is_static = (rows["engine"] == "llama.cpp").to_numpy()  # a cache of all sequences, however much memory is left
    own = np.where(is_static, 0.0, _held_out_own_byte(rows, memory, n))
    pool = np.maximum(memory.usable_byte - memory.weight_byte - n * own, 0.0)
    loads_later = (rows["engine"] == "sglang").to_numpy()  # reports the weights before it loads those of drafts
    drafts = weight_byte(d) - weight_byte({**d, "config.n_draft_layer": np.zeros(len(rows))})
    attention = np.where((rows["engine"] == "sglang") & (d["model.n_linear_layer"] > 0), 1 + STATE_RATIO, 1.0)
    cache = np.where(is_static, held * rows["max_num_seqs"].fillna(1.0), pool / attention)
    return pd.DataFrame(
        {
            "weights": (memory.weight_byte - loads_later * drafts) / n, "cache": cache / n, "requests": pool / held,
            "margin": ((memory.usable_byte - memory.needed_byte) / n - own) / d["hardware.memory_byte"],
        },
        index=rows.index,
    )  # fmt: skip


def apply_rules_of_thumb(rows: pd.DataFrame, catalog: Catalog) -> pd.DataFrame:
    """Return parameters times bytes, and the textbook's cache in nine tenths of the memory that they leave."""
    n = rows["n_accelerator"].to_numpy(dtype=float)
    models = [catalog.models[name] for name in rows["model"]]
    stated = zip(models, rows["weight_precision"], rows["kv_precision"], strict=True)
    byte = [(BYTE_PER_WEIGHT[own or m.weight_precision], BYTE_PER_WEIGHT[kv or "fp16"]) for m, own, kv in stated]
    of_weights, of_cache = np.array(byte).T
    weights = np.array([model.n_param for model in models]) * of_weights / n
    card = np.array([catalog.accelerators[name].memory_byte for name in rows["accelerator"]])
    width = np.array([2.0 * model.n_layer * model.n_kv_head * model.head_dim for model in models])
    cache = USUAL_SHARE * card - weights
    request = width * of_cache * rows["max_context_token"].fillna(DEFAULT_CONTEXT).to_numpy(dtype=float) / n
    return pd.DataFrame(
        {"weights": weights, "cache": np.maximum(cache, 0.0), "requests": np.maximum(cache, 0.0) / request,
         "margin": (cache - request) / card},
        index=rows.index,
    )  # fmt: skip


METHODS: Final[Mapping[str, Method]] = {"roofcast": estimate_starts, "rule_of_thumb": apply_rules_of_thumb}


def _held_out_own_byte(rows: pd.DataFrame, memory: Memory, n: FloatArray) -> FloatArray:
    """Return what engines keep beyond the estimate: medians over the other lineages."""
    figures = rows[list(_MEASURED.values())].to_numpy(dtype=float)
    excess = pd.Series(memory.usable_byte / n - figures[:, 0] - figures[:, 1], index=rows.index)
    excess = excess.where(_is_judged(rows, "cache"))
    own = np.zeros(len(rows))
    for (engine, lineage), part in rows.groupby(["engine", "lineage"]):
        others = excess[(rows["engine"] == engine) & (rows["lineage"] != lineage)].dropna()
        by_lineage = others.groupby(rows["lineage"]).median()
        if len(by_lineage) >= LEAST_LINEAGES:
            own[rows.index.get_indexer(part.index)] = by_lineage.median()
    return own


def _is_judged(lines: pd.DataFrame, quantity: str) -> pd.Series:
    return lines["judged"].str.split().map(lambda names: quantity in names).astype(bool)


_MEASURED: Final = {
    "weights": "weight_byte_per_accelerator", "cache": "cache_byte_per_accelerator", "requests": "n_full_request",
}  # fmt: skip


def log_errors(lines: pd.DataFrame, quantity: str) -> pd.Series:
    """Return the logarithms of predicted over reported figures of the lines that are judged on a quantity."""
    judged = lines[_is_judged(lines, quantity)]
    predicted = judged[f"predicted_{quantity}"].clip(lower=judged[_MEASURED[quantity]] / 100)
    ratio: pd.Series = predicted / judged[_MEASURED[quantity]]
    return ratio.map(math.log)


def start_figures(lines: pd.DataFrame) -> dict[str, float]:
    """Return the recall of servers that do not start, at `FALSE_ALARM` of those that do.

    Examples
    --------
    >>> lines = pd.DataFrame({"status": ["ok", "ok", "out_of_memory"], "predicted_margin": [0.5, 0.2, 0.1]})
    >>> start_figures(lines.assign(judged="starts"))
    {'recall': 1.0, 'false_alarm': 0.0, 'n': 3, 'n_failed': 1}
    """
    judged = lines[_is_judged(lines, "starts")]
    has_failed, margin = judged["status"] != "ok", judged["predicted_margin"]
    n_allowed = int(FALSE_ALARM * (~has_failed).sum())
    limit = margin[~has_failed].sort_values().iloc[n_allowed]
    alarm = margin < limit
    return {
        "recall": float(alarm[has_failed].mean()), "false_alarm": float(alarm[~has_failed].mean()),
        "n": len(judged), "n_failed": int(has_failed.sum()),
    }  # fmt: skip


def memory_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return the scores of `predict_starts` by method and quantity: quantiles of absolute logarithmic errors."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for method, lines in dump.groupby("method", sort=False):
        errors = {name: log_errors(lines, name).abs() for name in QUANTITIES}
        figures[str(method)] = {
            name: {"median_ln": float(of.median()), "q90_ln": float(of.quantile(0.9)), "n": len(of)}
            for name, of in errors.items()
        } | {"starts": start_figures(lines)}
    return figures
