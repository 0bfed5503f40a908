"""The scoreboard: every method's figures under every protocol, and the rows from which they follow.

roofcast's own figures under P1 and P2 are medians over seeds, each figure's median by itself, so that success,
overspend and S/O need not belong to one seed. What a peer published is a single run; it stands under seed 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from roofcast.data.campaigns.peers import PEERS
from roofcast.data.errors import UnknownNameError
from roofcast.training.protocols.capacity import Rule, cheapest
from roofcast.training.protocols.llm_pilot import (
    QUESTIONS,
    decide,
    measured_beside,
    peer_predictions,
    score_decisions,
)
from roofcast.training.protocols.silicon import (
    Method,
    SiliconCampaign,
    figures_by_part,
    load_silicon_campaign,
    predict_silicon,
    silicon_figures,
)
from roofcast.training.protocols.silicon_methods import METHODS

PROTOCOLS: Final = (*QUESTIONS, "P3")
"""Names that `run_scoreboard` takes. P3 gives two results: all rows, and ``P3_clean``."""

OWN: Final = "roofcast"
"""Name under which our own figures stand."""

POINTS: Final = "llm_pilot_points"
"""File name of the latencies that P1 and P2 both decide by, one row a method, seed and point."""

Predict = Callable[[int], pd.DataFrame]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ProtocolResult:
    """Figures of one protocol as they stand in the JSON, and the tables of its dump by file name."""

    figures: Mapping[str, object]
    tables: Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Scoreboard:
    """Results by protocol."""

    results: Mapping[str, ProtocolResult] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the figures as JSON; a figure that does not exist, such as overspend without a success, is null.

        Examples
        --------
        >>> Scoreboard({"P1": ProtocolResult({"RF": {"success": 0.0, "overspend": float("nan")}}, {})}).to_json()
        '{"P1": {"RF": {"success": 0.0, "overspend": null}}}'
        """
        return json.dumps({name: _finite(r.figures) for name, r in self.results.items()}, allow_nan=False)

    def dump(self, folder: Path) -> list[Path]:
        """Write one CSV a protocol, and those that protocols share, into the folder; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        tables = {name: table for result in self.results.values() for name, table in result.tables.items()}
        paths = []
        for name, table in tables.items():
            paths.append(folder / f"{name}.csv")
            table.to_csv(paths[-1], index=False)
        return paths


def run_scoreboard(
    protocols: Iterable[str] = tuple(QUESTIONS),
    predict_llm_pilot: Predict | None = None,
    n_seed: int = 10,
    progress: Progress | None = None,
    rule_llm_pilot: Callable[[int], Rule] | None = None,
    *,
    methods_silicon: Mapping[str, Method] = METHODS,
    silicon: SiliconCampaign | None = None,
) -> Scoreboard:
    """Return the scoreboard of the protocols named.

    Parameters
    ----------
    protocols
        Names of protocols, such as ``P1``; their order is kept.
    predict_llm_pilot
        From a seed to predictions for LLM-Pilot's 528 points, each by a model that never saw the point's LLM, with
        the columns that `score_p1` wants. Without it the peers stand alone.
    n_seed
        Number of seeds, counted from 0.
    progress
        Called after each step with what was done, how many steps are done and how many there are.
    rule_llm_pilot
        From a seed to the rule by which roofcast's predictions of that seed become a choice; without it, and always
        for the peers, the cheapest profile by the predictions taken at their word.
    methods_silicon
        Who is judged under P3, by name.
    silicon
        What P3 asks; None for the shipped campaign.

    Raises
    ------
    UnknownNameError
        If there is no such protocol.
    SchemaError
        If predictions lack a column or a point.
    """
    wanted = tuple(dict.fromkeys(protocols))
    for name in wanted:
        if name not in PROTOCOLS:
            raise UnknownNameError("protocol", name, PROTOCOLS)
    has_llm_pilot = any(name in QUESTIONS for name in wanted)
    runs = [_Run(method, 0, peer_predictions(method)) for method in PEERS] if has_llm_pilot else []
    if has_llm_pilot and predict_llm_pilot is not None:
        runs += _own_runs(predict_llm_pilot, n_seed, progress, rule_llm_pilot)
    results: dict[str, ProtocolResult] = {}
    for name in wanted:
        if name in QUESTIONS:
            results[name] = _llm_pilot_result(name, runs)
        else:
            results |= _silicon_results(silicon or load_silicon_campaign(), methods_silicon, progress)
    return Scoreboard(results)


def figure_rows(figures: Mapping[str, object]) -> list[dict[str, object]]:
    """Return a protocol's figures as the lines of one table.

    Examples
    --------
    >>> figure_rows({"RF": {"success": 0.7}})
    [{'method': 'RF', 'success': 0.7}]
    >>> figure_rows({"leave_one_lineage_out": {"roofcast": {"tpot": {"mape": 0.2}}}})
    [{'split': 'leave_one_lineage_out', 'method': 'roofcast', 'metric': 'tpot', 'mape': 0.2}]
    """
    rows = []
    for path, values in _leaves(figures, ()):
        names = ("method",) if len(path) == 1 else ("split", "method", "metric")
        rows.append({**dict(zip(names, path, strict=True)), **values})
    return rows


def _leaves(
    figures: Mapping[str, object], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, object]]]:
    below = {name: value for name, value in figures.items() if isinstance(value, Mapping)}
    if not below:
        yield path, dict(figures)
    for name, value in below.items():
        yield from _leaves(value, (*path, name))


def _silicon_results(
    campaign: SiliconCampaign, methods: Mapping[str, Method], progress: Progress | None
) -> dict[str, ProtocolResult]:
    dump = predict_silicon(campaign, methods, progress)
    tables = {"P3": dump, "P3_parts": figures_by_part(dump)}
    return {
        "P3": ProtocolResult(silicon_figures(dump), tables),
        "P3_clean": ProtocolResult(silicon_figures(dump[dump["is_clean"]]), {}),
    }


class _Run(NamedTuple):
    method: str
    seed: int
    predictions: pd.DataFrame
    rule: Rule = cheapest


def _own_runs(
    predict: Predict, n_seed: int, progress: Progress | None, rule_of: Callable[[int], Rule] | None
) -> Iterator[_Run]:
    for seed in range(n_seed):
        yield _Run(OWN, seed, predict(seed), cheapest if rule_of is None else rule_of(seed))
        if progress is not None:
            progress(f"LLM-Pilot, seed {seed}", seed + 1, n_seed)


def _llm_pilot_result(name: str, runs: list[_Run]) -> ProtocolResult:
    decisions = [decide(run.predictions, QUESTIONS[name], run.rule) for run in runs]
    scores: dict[str, list[dict[str, float]]] = {}
    for run, table in zip(runs, decisions, strict=True):
        scores.setdefault(run.method, []).append(score_decisions(table).figures())
    points = [measured_beside(run.predictions) for run in runs]
    return ProtocolResult(
        figures={method: _medians(of_method) for method, of_method in scores.items()},
        tables={name: _labelled(runs, decisions), POINTS: _labelled(runs, points)},
    )


def _labelled(runs: list[_Run], tables: list[pd.DataFrame]) -> pd.DataFrame:
    labelled = []
    for run, table in zip(runs, tables, strict=True):
        copy = table.rename(columns={"model": "fold"})
        copy.insert(0, "method", run.method)
        copy.insert(1, "seed", run.seed)
        labelled.append(copy)
    return pd.concat(labelled, ignore_index=True)


def _medians(scores: list[dict[str, float]]) -> dict[str, float]:
    figures = {}
    for name in scores[0]:
        values = np.array([score[name] for score in scores])
        defined = values[~np.isnan(values)]
        figures[name] = float(np.median(defined)) if defined.size else float("nan")
    return figures


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
