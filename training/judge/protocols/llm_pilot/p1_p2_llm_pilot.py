"""P1 and P2: recommend a GPU profile for an unmeasured LLM, on LLM-Pilot's benchmark.

Ten LLMs, each held out in turn, on up to 14 GPU profiles with 1 to 128 concurrent users. P1 has the paper's one
demand per LLM; P2 has ninety, of which 885 pairs of LLM and demand can be met by some profile and pods.

A machine with two GPUs costs exactly twice the machine with one, so predicted costs tie: for no peer under P1, under
P2 in 29 of the 885 pairs for LLM-Pilot and 22 for RF. Profiles are in the order of `load_tie_order` and the first of
a tie is chosen (see `protocols.capacity`); the row order of predictions does not matter.

PARIS, Selecta and Morphling use measurements of the new LLM on two profiles; these replace the predictions, as in the
published evaluation.
"""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import pandas as pd

from judge.decision_metrics import mean_overspend, overspends, so_score, success_share
from judge.peers.llm_pilot_peers import (
    LATENCY_COLUMNS,
    MEASURED_COLUMNS,
    PEERS,
    POINT_COLUMNS,
    load_measured_points,
    load_peer_predictions,
    load_profile_prices,
    load_tie_order,
)
from judge.protocols.llm_pilot.capacity import (
    NO_PROFILE,
    Choices,
    Demand,
    LatencyTable,
    Outcomes,
    Rule,
    cheapest,
    evaluate_choices,
)
from roofcast.data.errors import SchemaError, UnknownNameError

P1_DEMANDS: Final = (Demand(0.1, 0.05, 200),)
P2_DEMANDS: Final = tuple(
    itertools.starmap(
        Demand,
        itertools.product((0.01, 0.025, 0.05, 0.1, 0.2), (0.02, 0.03, 0.04, 0.05, 0.075, 0.1), (50, 200, 1000)),
    )
)
DEMANDS: Final = {"P1": P1_DEMANDS, "P2": P2_DEMANDS}

REFERENCE_PROFILES: Final = ("1 x T4", "4 x H100")
PEERS_WITH_REFERENCES: Final = ("PARIS", "Selecta", "Morphling")
"""Peers with the new LLM's measurements on `REFERENCE_PROFILES`."""

_VALUE_COLUMNS: Final = (*LATENCY_COLUMNS, *MEASURED_COLUMNS)


@dataclass(frozen=True)
class Score:
    """Success share, mean overspend of successes (NaN without one) and S/O score."""

    success: float
    overspend: float
    so: float

    def figures(self) -> dict[str, float]:
        """Return the scores by their scoreboard names."""
        return asdict(self)


def score_decisions(decisions: pd.DataFrame) -> Score:
    """Return the score of a table of decisions with equal weights.

    Examples
    --------
    >>> score_decisions(pd.DataFrame({"is_success": [True, False], "overspend": [0.5, float("nan")]}))
    Score(success=0.5, overspend=0.5, so=0.5)
    """
    success = success_share(decisions["is_success"])
    overspend = mean_overspend(decisions["overspend"], decisions["is_success"])
    return Score(success, overspend, so_score(success, overspend))


def decide(predictions: pd.DataFrame, demands: tuple[Demand, ...], rule: Rule = cheapest) -> pd.DataFrame:
    """Return the recommendation and its outcome for each LLM and demand that some profile can meet.

    `predictions`: a row for each of the 528 points: `model`, `profile`, `users`, and predicted `nttft_s_per_token`
    and `itl_s`. Measured columns are optional; otherwise the published ones are joined. Raises `SchemaError` if a
    column or a point is missing, or a point is duplicated.

    Returns
    -------
    One row per pair, with the limits and `n_user`; the chosen `profile` (empty for none), `n_pod` and
    `cost_usd_per_h`; `measured_users`, the measured capacity of one pod; `least_cost_usd_per_h`; `is_success`; and
    `overspend`, NaN without success
    """
    price_of = {profile: float(price) for profile, price in load_profile_prices().items()}
    tables = []
    for predicted, measured in _latency_tables(join_measured(predictions)):
        prices = np.array([price_of[profile] for profile in predicted.profiles])
        choices = rule(predicted, demands, prices)
        outcomes = evaluate_choices(choices, measured, demands, prices)
        tables.append(_decision_table(predicted, demands, choices, outcomes))
    return pd.concat(tables, ignore_index=True)


def peer_predictions(method: str) -> pd.DataFrame:
    """Return the predictions that a peer's recommendations use, with the measured columns.

    They are the published predictions, replaced by measurements where the peer had them.

    Raises `UnknownNameError` if the peer is unknown.
    """
    if method not in PEERS:
        raise UnknownNameError("method", method, PEERS)
    published = load_peer_predictions()
    predictions = published[published["method"] == method].drop(columns="method").reset_index(drop=True)
    if method in PEERS_WITH_REFERENCES:
        is_reference = predictions["profile"].isin(REFERENCE_PROFILES)
        for column, measured in zip(LATENCY_COLUMNS, MEASURED_COLUMNS, strict=True):
            predictions[column] = predictions[column].where(~is_reference, predictions[measured])
    return predictions


def join_measured(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each of the 528 points, in the published order, with predicted and measured latencies.

    Raises `SchemaError`: see `decide`.
    """
    for column in (*POINT_COLUMNS, *LATENCY_COLUMNS):
        if column not in predictions.columns:
            raise SchemaError(column, "must be a column of the predictions")
    key = list(POINT_COLUMNS)
    is_repeated = predictions.duplicated(key)
    if is_repeated.any():
        raise SchemaError("users", f"must be unique per point, got twice {_first_point(predictions, is_repeated)}")
    has_measured = set(MEASURED_COLUMNS) <= set(predictions.columns)
    values = list(_VALUE_COLUMNS if has_measured else LATENCY_COLUMNS)
    points = load_measured_points()
    left = points[key] if has_measured else points
    merged = left.merge(predictions[key + values], on=key, how="left", indicator="found_in")
    is_missing = merged["found_in"] == "left_only"
    if is_missing.any():
        raise SchemaError("model", f"must cover every point, missing {_first_point(merged, is_missing)}")
    return merged[[*key, *_VALUE_COLUMNS]]


def _first_point(table: pd.DataFrame, mask: pd.Series) -> str:
    row = table[mask].iloc[0]
    return f"{row['model']} on {row['profile']} with {row['users']} users"


def _latency_tables(points: pd.DataFrame) -> Iterator[tuple[LatencyTable, LatencyTable]]:
    for model, of_model in points.groupby("model", sort=False):
        profiles = load_tie_order()[str(model)]
        users = np.sort(of_model["users"].unique()).astype(np.int64)
        row = pd.Index(profiles).get_indexer(pd.Index(of_model["profile"]))
        level = np.searchsorted(users, of_model["users"].to_numpy())
        grids = np.full((len(_VALUE_COLUMNS), len(profiles), len(users)), np.nan)
        grids[:, row, level] = of_model[list(_VALUE_COLUMNS)].to_numpy(dtype=np.float64).T
        name = str(model)
        yield LatencyTable(name, profiles, users, *grids[:2]), LatencyTable(name, profiles, users, *grids[2:])


def _decision_table(
    predicted: LatencyTable, demands: tuple[Demand, ...], choices: Choices, outcomes: Outcomes
) -> pd.DataFrame:
    names = np.array([*predicted.profiles, ""], dtype=object)
    overspend = overspends(outcomes.cost_usd_per_h, outcomes.least_cost_usd_per_h)
    table = pd.DataFrame(demands, columns=list(Demand._fields)).assign(
        profile=names[np.where(choices.profile == NO_PROFILE, len(predicted.profiles), choices.profile)],
        n_pod=choices.n_pod,
        cost_usd_per_h=outcomes.cost_usd_per_h,
        measured_users=outcomes.measured_users,
        least_cost_usd_per_h=outcomes.least_cost_usd_per_h,
        is_success=outcomes.is_success,
        overspend=np.where(outcomes.is_success, overspend, np.nan),
    )
    table.insert(0, "model", predicted.model)
    return table[outcomes.can_answer]
