"""Replay of "measure next": whether the proposed runs lower the errors more than random or spread ones.

``python -m research.measure_next_replay FILE`` writes the table; one fit an owner of stacks, three CPU minutes each.

A unit is an engine and accelerator of a stack whose owner is left out of the fit. Half of its runs are the pool from
which runs are chosen, as if they were the plan; the rows of the other half are predicted, given the chosen runs.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.markdown import markdown_table
from judge.protocols.campaign_rows import CampaignRows, load_campaign_rows
from judge.protocols.fold_lines import COLUMNS, SCORED_METRICS, fit_predictor, is_unanswered
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

IndexArray = npt.NDArray[np.intp]

OWNERS: Final = ("dgx_spark", "llm_pilot", "rocm_vllm")
"""Owners of many runs with several metrics; without InferenceX, the largest, a fit would lack many rows."""

BUDGETS: Final = (1, 3, 10)
N_DRAW: Final = 5
"""Random choices, and spread ones, which differ in where they begin."""

LEAST_RUN: Final = 40
MOST_UNIT: Final = 4
"""Units of an owner, the largest ones."""

MOST_RUN: Final = 200
"""Runs of a unit, drawn at random from more."""

STRATEGIES: Final = {"proposal": "proposal", "random": "random", "spread": "spread over load and lengths"}

_UNIT: Final = ("stack", "engine", "accelerator")
_WORKLOAD: Final = ("workload.n_input_token", "workload.n_output_token", "workload.concurrency")

_TITLE: Final = """# Measure next, replayed

`roofcast measure --budget` and `roofcast stacks show` propose the runs that narrow the intervals of predictions most.
This page compares these proposals with other choices. A *unit* is an engine and an accelerator of one stack.
{n_unit} units of {n_owner} owners ({owners}) are replayed with predictors that were fitted without the owner. Half of
a unit's runs, drawn at random, are the plan. From it 1, 3 or 10 runs are chosen by the proposal, at random ({n_draw}
draws), or spread over load and lengths as in a grid ({n_draw} starts). The chosen runs are references for predictions
of the other half.

A cell has the median absolute percentage error of a unit's rows, averaged over draws and then over units. *Better in*
counts the units in which the proposal's error is below the mean of the random draws. {verdict}

No choice of method used these figures. `python -m research.measure_next_replay` writes this page.
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows of an engine and accelerator of a stack: the pool of runs to choose from, and the rows to predict."""

    name: str
    pool: IndexArray
    judged: IndexArray


def units_of(rows: CampaignRows, owner: str) -> list[Unit]:
    """Return the largest units of an owner, at most `MOST_UNIT`."""
    table = rows.measurements.assign(stack=rows.stacks, place=np.arange(len(rows.measurements)))
    table = table[(rows.owners == owner) & (table["rule"] == "")]
    units = []
    for number, (key, part) in enumerate(table.groupby(list(_UNIT), sort=True)):
        central = part[part["statistic"].isin(["mean", "p50"]) & part[list(COLUMNS)].notna().any(axis=1)]
        rng = np.random.default_rng([number, 9])
        runs = rng.permutation(np.unique(central["run"]))[:MOST_RUN]
        if len(runs) < LEAST_RUN:
            continue
        in_pool = central["run"].isin(runs[: len(runs) // 2])
        pool = central[in_pool].sort_values("statistic").drop_duplicates("run")
        judged = part[part["run"].isin(runs[len(runs) // 2 :])]
        units.append(Unit(", ".join(map(str, key)), pool["place"].to_numpy(), judged["place"].to_numpy()))
    return sorted(units, key=lambda unit: -len(unit.judged))[:MOST_UNIT]


def choices(predictor: RoofcastPredictor, rows: CampaignRows, unit: Unit) -> Iterator[tuple[str, int, IndexArray]]:
    """Yield strategy, draw and the order in which the strategy takes runs of the pool."""
    X, n = rows.X.iloc[unit.pool], max(BUDGETS)
    measured = [metric for metric in COLUMNS if rows.y[metric].iloc[unit.pool].notna().any()]
    metrics = [metric for metric in measured if metric in predictor.metrics_]
    ranked = rank_measurements(predictor, X.reset_index(drop=True), metrics, n)
    yield "proposal", 0, unit.pool[[one.row for one in ranked]]
    for draw in range(N_DRAW):
        rng = np.random.default_rng([draw, 10])
        yield "random", draw, rng.permutation(unit.pool)[:n]
        yield "spread", draw, unit.pool[spread(X, n, rng)]


def spread(X: pd.DataFrame, n: int, rng: np.random.Generator) -> IndexArray:
    """Return runs in the order of a maximin design over load and lengths, from a random start.

    Each is the farthest from all before it in standardised logarithms; ties are broken at random.
    """
    place = np.log(X[list(_WORKLOAD)].to_numpy(dtype=float))
    place = np.nan_to_num((place - np.nanmean(place, axis=0)) / np.maximum(np.nanstd(place, axis=0), 1e-9))
    order = [int(rng.integers(len(place)))]
    distance = np.full(len(place), np.inf)
    while len(order) < min(n, len(place)):
        distance = np.minimum(distance, np.linalg.norm(place - place[order[-1]], axis=1))
        distance[order] = -1.0
        farthest = np.flatnonzero(distance >= distance.max() - 1e-9)
        order.append(int(rng.choice(farthest)))
    return np.array(order, dtype=np.intp)


def replay(predictor: RoofcastPredictor, rows: CampaignRows, owner: str) -> pd.DataFrame:
    """Return one line a unit, strategy, draw, number of runs and metric.

    Returns
    -------
    Columns `owner`, `unit`, `strategy`, `draw`, `n_run`, `metric`, `error` (the median absolute percentage error) and
    `n` (rows)
    """
    lines: list[dict[str, object]] = []
    for unit in units_of(rows, owner):
        cases: list[tuple[str, int, IndexArray]] = [("none", 0, unit.pool[:0])]
        cases += [
            (strategy, draw, order[:n])
            for strategy, draw, order in choices(predictor, rows, unit)
            for n in BUDGETS
            if len(order) >= n
        ]
        for strategy, draw, chosen in cases:
            common = {"owner": owner, "unit": unit.name, "strategy": strategy, "draw": draw, "n_run": len(chosen)}
            lines += [common | scores for scores in _scores(predictor, rows, unit, chosen)]
    return pd.DataFrame(lines)


def _scores(
    predictor: RoofcastPredictor, rows: CampaignRows, unit: Unit, chosen: IndexArray
) -> Iterator[dict[str, object]]:
    points = CalibrationPoints(rows.X.iloc[chosen], rows.y.iloc[chosen]) if len(chosen) else None
    prediction = predictor.predict_distribution(rows.X.iloc[unit.judged], points)
    is_blank = is_unanswered(rows, unit.judged) | prediction.estimate.is_saturated
    measured = rows.y.iloc[unit.judged]
    for name, column in SCORED_METRICS.items():
        error = (prediction.median[column] / measured[column] - 1).abs()[~is_blank.to_numpy()].dropna()
        if len(error):
            yield {"metric": name, "error": float(error.median()), "n": len(error)}


def page(lines: pd.DataFrame) -> str:
    """Return the Markdown report of the replay: the mean errors over all owners of stacks."""
    errors = lines.groupby(["metric", "n_run", "strategy", "unit"])["error"].mean()
    parts = []
    lower: dict[int, dict[str, bool]] = {n_run: {} for n_run in BUDGETS}
    for metric in SCORED_METRICS:
        if metric not in errors.index:
            continue
        by_unit = errors[metric].unstack("strategy")  # noqa: PD010  (a series)
        none = errors[metric, 0, "none"]
        for n_run in BUDGETS:
            table = by_unit.loc[n_run].dropna(subset=list(STRATEGIES))
            lower[n_run][metric] = bool(table["proposal"].mean() < table["random"].mean())
            better = int((table["proposal"] < table["random"]).sum())
            cells = [f"{table[name].mean():.3f}" for name in STRATEGIES]
            before = f"{none[table.index].mean():.3f}"
            parts.append((metric, str(n_run), before, *cells, f"{better} of {len(table)}"))
    header = ("metric", "runs", "none", *STRATEGIES.values(), "better in")
    title = _TITLE.format(
        n_unit=lines["unit"].nunique(),
        n_owner=lines["owner"].nunique(),
        owners=", ".join(sorted(lines["owner"].unique())),
        n_draw=N_DRAW,
        verdict="\n".join(_verdict(n_run, comparison) for n_run, comparison in lower.items()),
    )
    return f"{title}\n{markdown_table(header, parts)}\n"


def _verdict(n_run: int, is_lower: Mapping[str, bool]) -> str:
    better, worse = (", ".join(name for name, lower in is_lower.items() if lower is side) for side in (True, False))
    others = f"; not in {worse}" if better and worse else ""
    runs = f"{n_run} run{'s' * (n_run > 1)}"
    return f"With {runs} the proposal's mean error is below that of random choice in {better or 'no metric'}{others}."


def fit_without(rows: CampaignRows, owner: str) -> RoofcastPredictor:
    """Return the predictor fitted without the owner's rows, and without its runs that others published."""
    test = (rows.owners == owner).to_numpy()
    run = rows.measurements["run"]
    return fit_predictor(rows.take(~test & rows.is_sound & ~run.isin(run[test]).to_numpy()))


def main() -> None:
    """Write the page to the file that the first argument names."""
    rows = load_campaign_rows()
    lines = pd.concat([replay(fit_without(rows, owner), rows, owner) for owner in OWNERS], ignore_index=True)
    Path(sys.argv[1]).write_text(page(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
