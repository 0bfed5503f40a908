"""P1 and P2: recommend a GPU profile for an LLM that was never measured, on LLM-Pilot's benchmark.

Ten LLMs, each held out in turn, on up to 14 GPU profiles with 1 to 128 concurrent users. P1 asks the paper's one
question of each LLM; P2 asks ninety, of which 885 pairs of LLM and question can be met by some profile and count.

A machine with two GPUs costs exactly twice the machine with one, so predicted costs tie: never for a peer under P1,
but under P2 in 29 of the 885 pairs for LLM-Pilot and 22 for RF. Profiles stand in the order of `load_tie_order`, the
first of a tie is chosen (see `protocols.capacity`), and the row order of predictions does not
matter.

PARIS, Selecta and Morphling were given measurements of the new LLM on two profiles; there the measurement takes the
place of the prediction, as in the published evaluation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import pandas as pd

from roofcast.data.campaigns.llm_pilot_peers import (
    LATENCY_COLUMNS,
    MEASURED_COLUMNS,
    PEERS,
    POINT_COLUMNS,
    load_measured_points,
    load_peer_predictions,
    load_profile_prices,
    load_tie_order,
)
from roofcast.data.errors import SchemaError, UnknownNameError
from roofcast.training.evaluation.metrics import mean_overspend, overspends, so_score, success_share
from roofcast.training.evaluation.protocols.capacity import (
    NO_PROFILE,
    Choices,
    LatencyTable,
    Question,
    Rule,
    Verdicts,
    cheapest,
    judge,
)

P1_QUESTIONS: Final = (Question(0.1, 0.05, 200),)
P2_QUESTIONS: Final = tuple(
    itertools.starmap(
        Question,
        itertools.product((0.01, 0.025, 0.05, 0.1, 0.2), (0.02, 0.03, 0.04, 0.05, 0.075, 0.1), (50, 200, 1000)),
    )
)
QUESTIONS: Final = {"P1": P1_QUESTIONS, "P2": P2_QUESTIONS}

REFERENCE_PROFILES: Final = ("1 x T4", "4 x H100")
REFERENCE_GIVEN: Final = ("PARIS", "Selecta", "Morphling")
"""Peers that were given the new LLM's measurements on `REFERENCE_PROFILES`."""

_VALUE_COLUMNS: Final = (*LATENCY_COLUMNS, *MEASURED_COLUMNS)


@dataclass(frozen=True)
class Score:
    """Share of successes, their mean overspend (NaN without a success) and the S/O score of both."""

    success: float
    overspend: float
    so: float

    def figures(self) -> dict[str, float]:
        """Return the figures under their names on the scoreboard."""
        return asdict(self)


def score_p1(predictions: pd.DataFrame, rule: Rule = cheapest) -> Score:
    """Return the score at the paper's limits: nTTFT 100 ms, ITL 50 ms, 200 users.

    Parameters
    ----------
    predictions
        A row for each of the 528 points: `model`, `profile`, `users`, and predicted `nttft_s_per_token` and `itl_s`.
        Measured columns may come along; otherwise the published ones are joined.
    rule
        How a profile is chosen from the predicted latencies.

    Raises
    ------
    SchemaError
        If a column or a point is missing, or a point stands there twice.

    Examples
    --------
    >>> published = load_peer_predictions()
    >>> score_p1(published[published["method"] == "LLM-Pilot"]).success
    0.8
    """
    return score_decisions(decide(predictions, P1_QUESTIONS, rule))


def score_p2(predictions: pd.DataFrame, rule: Rule = cheapest) -> Score:
    """Return the score over the grid of limits and users; otherwise as `score_p1`."""
    return score_decisions(decide(predictions, P2_QUESTIONS, rule))


def score_decisions(decisions: pd.DataFrame) -> Score:
    """Return the score of a table of decisions, all rows weighing the same.

    Examples
    --------
    >>> score_decisions(pd.DataFrame({"is_success": [True, False], "overspend": [0.5, float("nan")]}))
    Score(success=0.5, overspend=0.5, so=0.5)
    """
    success = success_share(decisions["is_success"])
    overspend = mean_overspend(decisions["overspend"], decisions["is_success"])
    return Score(success, overspend, so_score(success, overspend))


def decide(predictions: pd.DataFrame, questions: tuple[Question, ...], rule: Rule = cheapest) -> pd.DataFrame:
    """Return what is recommended for each LLM and each question that some profile can meet, and how it fares.

    Returns
    -------
    One row an answerable pair, with the limits and `n_user`; the chosen `profile` (empty for none), `n_pod` and
    `cost_usd_per_h`; `measured_users`, what one such pod truly serves; `least_cost_usd_per_h`; `is_success`; and
    `overspend`, NaN where not successful

    Raises
    ------
    SchemaError
        As `score_p1`.
    """
    price_of = {profile: float(price) for profile, price in load_profile_prices().items()}
    tables = []
    for predicted, measured in _latency_tables(measured_beside(predictions)):
        prices = np.array([price_of[profile] for profile in predicted.profiles])
        choices = rule(predicted, questions, prices)
        verdicts = judge(choices, measured, questions, prices)
        tables.append(_decision_table(predicted, questions, choices, verdicts))
    return pd.concat(tables, ignore_index=True)


def peer_predictions(method: str) -> pd.DataFrame:
    """Return a peer's predictions as its recommendations use them, measured columns along.

    They are the published ones, save that measurements stand where the peer was given them.

    Raises
    ------
    UnknownNameError
        If there is no such peer.
    """
    if method not in PEERS:
        raise UnknownNameError("method", method, PEERS)
    published = load_peer_predictions()
    predictions = published[published["method"] == method].drop(columns="method").reset_index(drop=True)
    if method in REFERENCE_GIVEN:
        is_given = predictions["profile"].isin(REFERENCE_PROFILES)
        for column, measured in zip(LATENCY_COLUMNS, MEASURED_COLUMNS, strict=True):
            predictions[column] = predictions[column].where(~is_given, predictions[measured])
    return predictions


def score_peers() -> dict[str, dict[str, Score]]:
    """Return the scores of every peer under P1 and P2."""
    return {
        method: {name: score_decisions(decide(predictions, questions)) for name, questions in QUESTIONS.items()}
        for method, predictions in ((method, peer_predictions(method)) for method in PEERS)
    }


def measured_beside(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each of the 528 points, in the published order, with predicted and measured latencies.

    Raises
    ------
    SchemaError
        As `score_p1`.
    """
    for column in (*POINT_COLUMNS, *LATENCY_COLUMNS):
        if column not in predictions.columns:
            raise SchemaError(column, "must be a column of the predictions")
    key = list(POINT_COLUMNS)
    is_repeated = predictions.duplicated(key)
    if is_repeated.any():
        raise SchemaError("users", f"must stand once a point, got twice {_first(predictions, is_repeated)}")
    has_measured = set(MEASURED_COLUMNS) <= set(predictions.columns)
    values = list(_VALUE_COLUMNS if has_measured else LATENCY_COLUMNS)
    points = load_measured_points()
    left = points[key] if has_measured else points
    merged = left.merge(predictions[key + values], on=key, how="left", indicator="found_in")
    is_missing = merged["found_in"] == "left_only"
    if is_missing.any():
        raise SchemaError("model", f"must cover every point, lacks {_first(merged, is_missing)}")
    return merged[[*key, *_VALUE_COLUMNS]]


def _first(table: pd.DataFrame, mask: pd.Series) -> str:
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
    predicted: LatencyTable, questions: tuple[Question, ...], choices: Choices, verdicts: Verdicts
) -> pd.DataFrame:
    names = np.array([*predicted.profiles, ""], dtype=object)
    overspend = overspends(verdicts.cost_usd_per_h, verdicts.least_cost_usd_per_h)
    table = pd.DataFrame(questions, columns=list(Question._fields)).assign(
        profile=names[np.where(choices.profile == NO_PROFILE, len(predicted.profiles), choices.profile)],
        n_pod=choices.n_pod,
        cost_usd_per_h=verdicts.cost_usd_per_h,
        measured_users=verdicts.measured_users,
        least_cost_usd_per_h=verdicts.least_cost_usd_per_h,
        is_success=verdicts.is_success,
        overspend=np.where(verdicts.is_success, overspend, np.nan),
    )
    table.insert(0, "model", predicted.model)
    return table[verdicts.can_answer]
