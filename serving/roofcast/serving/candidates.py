"""Every way to run a model on what is on offer, and how many users a replica of each can serve."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from roofcast.data.specs import AcceleratorSpec, ModelSpec, Offer
from roofcast.features.batching import Estimate
from roofcast.features.descriptors import QUANTILE, describe
from roofcast.features.precisions import served_precision
from roofcast.serving.demand import Constraints, Demand
from roofcast.serving.splits import split_problem
from roofcast.training.bundle import ModelBundle
from roofcast.training.conditioning import narrowed
from roofcast.training.predictor import RoofcastPredictor

FloatArray = npt.NDArray[np.float64]

TENSOR_PARALLEL: Final = (1, 2, 4, 8, 16)
THROUGHPUT: Final = "output_throughput_token_per_s"

_ANY_LEVEL: Final = 0.5


@dataclass(frozen=True, slots=True)
class Candidate:
    """One replica: so many accelerators of one kind under tensor parallelism."""

    accelerator: str
    tp: int


@dataclass(frozen=True, slots=True)
class Capacities:
    """What one replica of each candidate does; arrays have shape (n_candidate,) unless they say otherwise.

    Parameters
    ----------
    users
        Most users within every limit; 0 if even one is too many.
    request_rate_per_s
        Requests that it finishes with so many users.
    excess : shape (n_candidate, n_limit)
        Prediction over limit with a single user.
    estimate
        Of a single user.
    """

    users: FloatArray
    request_rate_per_s: FloatArray
    excess: FloatArray
    estimate: Estimate


def enumerate_candidates(
    model: ModelSpec, accelerators: Mapping[str, AcceleratorSpec], offers: Iterable[Offer]
) -> list[Candidate]:
    """Return each accelerator on offer with each split that instances and attention heads admit."""
    largest: dict[str, int] = {}
    for offer in offers:
        if offer.accelerator in accelerators:
            largest[offer.accelerator] = max(largest.get(offer.accelerator, 0), offer.n_accelerator)
    return [
        Candidate(accelerator, tp)
        for accelerator, n in sorted(largest.items())
        for tp in TENSOR_PARALLEL
        if tp <= n and not split_problem(model, tp)
    ]


def question_table(
    candidates: list[Candidate], model: ModelSpec, demand: Demand, constraints: Constraints
) -> pd.DataFrame:
    """Return one question per candidate: a single user, means."""
    return pd.DataFrame(
        {
            "model": model.id,
            "accelerator": [c.accelerator for c in candidates],
            "n_accelerator": [float(c.tp) for c in candidates],
            "engine": constraints.engine,
            "weight_precision": constraints.weight_precision or served_precision(model.weight_precision),
            "kv_precision": constraints.kv_precision,
            "n_input_token": demand.n_input_token,
            "n_output_token": demand.n_output_token,
            "concurrency": 1.0,
            "statistic": "mean",
        }
    )


def most_users(bundle: ModelBundle) -> float:
    """Return the most users that any replica was measured with, for each of its accelerators."""
    rows = bundle.anchors.rows
    closed = rows[rows["load"] == "closed_loop"]
    return float((closed["concurrency"] / closed["n_accelerator"]).max())


def user_levels(bundle: ModelBundle) -> FloatArray:
    """Return the numbers of users to try: up to `most_users` on the largest replica, in steps of about 1.4."""
    top = most_users(bundle) * max(TENSOR_PARALLEL)
    steps = np.unique(np.round(2.0 ** np.arange(0, np.log2(max(top, 1.0)) + 0.25, 0.5)))
    return np.asarray(steps[steps <= top + 0.5], dtype=np.float64)


def describe_candidates(
    table: pd.DataFrame, model: ModelSpec, accelerators: Mapping[str, AcceleratorSpec]
) -> pd.DataFrame:
    """Return the descriptors of the questions."""
    return describe(table, {model.id: model}, accelerators)


def at_load(descriptors: pd.DataFrame, users: FloatArray, statistic: str) -> pd.DataFrame:
    """Return the descriptors with another load and statistic; `users` has shape (n_row,)."""
    loaded = descriptors.copy()
    loaded["workload.concurrency"] = users
    loaded["workload.request_rate_per_s"] = np.nan
    loaded["workload.is_mean"] = float(statistic == "mean")
    loaded["workload.quantile"] = QUANTILE[statistic]
    return loaded


def measure_capacities(descriptors: pd.DataFrame, demand: Demand, bundle: ModelBundle) -> Capacities:
    """Return how many users each candidate's replica serves within the limits.

    Latency is taken to rise with users: what more users can have, fewer can have too, so levels are walked upward
    and the last one before the first miss counts. A replica is never loaded beyond `most_users`; more users mean more
    replicas.
    """
    levels = user_levels(bundle)
    n_level, n_candidate = len(levels), len(descriptors)
    stacked = descriptors.iloc[np.repeat(np.arange(n_candidate), n_level)].reset_index(drop=True)
    users = np.tile(levels, n_candidate)
    excess = np.zeros((n_candidate, n_level, len(demand.limits)))
    for statistic in dict.fromkeys(limit.statistic for limit in demand.limits):
        chosen = [(j, limit) for j, limit in enumerate(demand.limits) if limit.statistic == statistic]
        metrics = {limit.metric for _, limit in chosen}
        value = predict_medians(bundle.predictor, at_load(stacked, users, statistic), metrics)
        for j, limit in chosen:
            predicted = value[limit.metric].to_numpy(dtype=float)
            excess[:, :, j] = limit.excess(predicted).reshape(n_candidate, n_level)
    n_accelerator = descriptors["config.n_accelerator"].to_numpy(dtype=float)[:, None]
    is_measured = levels <= np.maximum(most_users(bundle) * n_accelerator, 1.0)
    within = np.logical_and.accumulate((excess <= 1).all(axis=2) & is_measured, axis=1)
    n_within = within.sum(axis=1)
    most = np.concatenate([[0.0], levels])[n_within]
    at_most = at_load(descriptors, np.maximum(most, 1.0), "mean")
    throughput = predict_medians(bundle.predictor, at_most, {THROUGHPUT})
    _, _, estimate = bundle.predictor.predict_parts(at_load(descriptors, np.ones(n_candidate), "mean"), ())
    rate = throughput[THROUGHPUT].to_numpy(dtype=float) / demand.n_output_token
    return Capacities(most, rate, excess[:, 0, :], estimate)


def predict_medians(
    predictor: RoofcastPredictor, descriptors: pd.DataFrame, metrics: Collection[str]
) -> pd.DataFrame:
    """Return the predicted medians of some metrics, what is known of similar questions counted in."""
    return narrowed(predictor, metrics).predict_interval(descriptors, _ANY_LEVEL).value


def load_at_rate(
    descriptors: pd.DataFrame, rate_per_s: FloatArray, most: FloatArray, demand: Demand, bundle: ModelBundle
) -> FloatArray:
    """Return the users at which each replica finishes requests at a rate: the fewest of `user_levels` that do.

    Parameters
    ----------
    descriptors
        Of the replicas.
    rate_per_s, most : shape (n_replica,)
        The rate of each, and its capacity in users, which is the answer where no lower level will do.
    """
    levels = user_levels(bundle)
    n_level, n_row = len(levels), len(descriptors)
    stacked = descriptors.iloc[np.repeat(np.arange(n_row), n_level)].reset_index(drop=True)
    value = predict_medians(bundle.predictor, at_load(stacked, np.tile(levels, n_row), "mean"), {THROUGHPUT})
    finished = value[THROUGHPUT].to_numpy(dtype=float).reshape(n_row, n_level) / demand.n_output_token
    is_enough = finished >= rate_per_s[:, None]
    fewest = np.where(is_enough.any(axis=1), levels[is_enough.argmax(axis=1)], most)
    return np.minimum(fewest, most)
