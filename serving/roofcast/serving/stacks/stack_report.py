"""Report of a profile: errors with and without it by leave-one-run-out, and what to measure next for it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, Field

from roofcast.data.catalog import Catalog
from roofcast.data.measurements.schema import INPUT_COLUMNS, REFERENCE_METRICS
from roofcast.data.specs import ModelSpec
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.serving.defaults import DEFAULT_LEVEL
from roofcast.serving.predict.next_measurements import RANKED_METRICS
from roofcast.serving.predict.question_rows import table_from_rows
from roofcast.serving.predict.row_checks import assumed_split_problems, capacity_problems, check_table
from roofcast.serving.request_fields import Value
from roofcast.serving.stacks.profiles import Profile, central_rows
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.learner.prediction import Prediction
from roofcast.training.learner.predictor import RoofcastPredictor
from roofcast.training.lifecycle.bundles.bundle import ModelBundle

MAX_SETUP: Final = 4
"""Setups of a profile, the most frequent ones, for which the next measurement is sought."""

MAX_MODEL: Final = 12
"""Models for which it is sought: the profile's, and recent ones of other lineages, spread evenly over the sizes."""

N_RECENT: Final = 40
"""Lineages that count as recent."""

FACTORS: Final = (0.25, 4.0)
"""Loads of the profile's own models that are candidates too, over the least and the greatest that were measured."""

SAME_RATIO: Final = 0.05
"""Relative difference of lengths and loads up to which two settings are one run."""

_STATISTIC: Final = ("workload.is_mean", "workload.quantile")
"""Descriptors of the statistic, in which rows of one run differ."""

_SETUP: Final = ("accelerator", "n_accelerator", "engine", "tp", "pp", "dp", "ep")
_LOAD: Final = ("concurrency", "request_rate")
_TEXTS: Final = ("model", "accelerator", "engine", "weight_precision")
_SHOWN: Final = (
    "model", *_SETUP, "weight_precision", "n_input_token", "n_output_token",
    *_LOAD,
)  # fmt: skip


class StackErrors(BaseModel):
    """Errors of predictions of a profile's own rows."""

    mape: Annotated[float, Field(description="Mean absolute percentage error, as a fraction.")]
    median_ape: float
    bias: Annotated[float, Field(description="Median of log(measured / predicted).")]
    coverage: Annotated[float, Field(description="Share of the rows inside their interval.")]
    width: Annotated[float, Field(description="Median ratio of the ends of the intervals.")]


class StackMetric(BaseModel):
    """Errors of one metric without the profile, and with its other runs; null where there are none."""

    metric: str
    n_row: int
    before: StackErrors
    after: StackErrors | None


class StackReport(BaseModel):
    """A profile, the errors of its rows by leave-one-run-out, and the runs that would narrow its intervals most."""

    name: str
    level: float
    notes: Annotated[list[str], Field(description="Such as rows that cannot be used any more.")]
    n_row: int
    n_run: int
    models: list[str]
    accelerators: list[str]
    engines: list[str]
    errors: list[StackMetric]
    measure_next: list[dict[str, Value | dict[str, float]]]


def profile_errors(profile: Profile, bundle: ModelBundle, level: float) -> list[StackMetric]:
    """Return the errors of each measured metric; a row's own run is never among what its prediction is given.

    `before` has the intervals of a prediction without a profile.

    Raises `OutOfRangeError` if the measurements cannot support the level.
    """
    runs, table = run_numbers(profile.points.X), table_from_rows(profile.rows)
    before = bundle.predictor.predict_distribution(profile.points.X)
    after = None
    if len(np.unique(runs)) > 1:
        after = bundle.predictor.predict_left_out(profile.points, runs, central_rows(profile.rows))
    errors = []
    for metric in REFERENCE_METRICS:
        if metric not in table or metric not in before.median:
            continue
        measured = pd.to_numeric(table[metric]).to_numpy(dtype=float)
        if n_row := int((~np.isnan(measured)).sum()):
            own = _errors(measured, after, metric, level) if after else None
            errors.append(
                StackMetric(metric=metric, n_row=n_row, before=_errors(measured, before, metric, level), after=own)
            )
    return errors


def run_numbers(X: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the number of each row's run: rows whose descriptors differ in their statistic alone are of one run.

    `X`: shape (n_row, n_descriptor).
    """
    keys = pd.util.hash_pandas_object(X.drop(columns=list(_STATISTIC)), index=False)
    return np.unique(keys.to_numpy(), return_inverse=True)[1]


def _errors(measured: npt.NDArray[np.float64], prediction: Prediction, metric: str, level: float) -> StackErrors:
    known = ~np.isnan(measured)
    low, high = (part[metric].to_numpy()[known] for part in prediction.interval(level))
    truth, predicted = measured[known], prediction.median[metric].to_numpy()[known]
    relative = np.abs(predicted - truth) / truth
    return StackErrors(
        mape=float(relative.mean()),
        median_ape=float(np.median(relative)),
        bias=float(np.median(np.log(truth / predicted))),
        coverage=float(((truth >= low) & (truth <= high)).mean()),
        width=float(np.median(high / low)),
    )


def next_measurements(
    profile: Profile, predictor: RoofcastPredictor, catalog: Catalog, n: int
) -> list[dict[str, Any]]:
    """Return the runs on the profile's setups that would narrow the intervals of its own models most, given its rows.

    Candidates are models of the catalogue on each setup of the profile, at the least and the greatest load that the
    profile has of it, and the profile's own models also beyond these; what the profile has is no candidate. Where
    none of its own models can run there, the intervals of all candidates count.
    """
    table, problems = check_table(table_from_rows([*_candidates(profile, catalog)]), catalog)
    table = table[[problem is None for problem in problems]].reset_index(drop=True)
    if table.empty:
        return []
    X = describe(table, catalog.models, catalog.accelerators)
    checks = assumed_split_problems(X, table, catalog), capacity_problems(X, predictor.predict_ratio(X, ()).estimate)
    can_run = np.array([not any(pair) for pair in zip(*checks, strict=True)], dtype=bool)
    if not can_run.any():
        return []
    table, X = table[can_run].reset_index(drop=True), X[can_run].reset_index(drop=True)
    metrics = [metric for metric in RANKED_METRICS if metric in predictor.metrics_]
    is_own = table["model"].isin({str(row["model"]) for row in profile.rows}).to_numpy(dtype=bool)
    target = is_own if is_own.any() else None
    is_measured = same_runs(table, profile.rows)
    ranked = rank_measurements(
        predictor.condition_on(profile.central), X, metrics, n, target, is_measured=is_measured
    )
    shown = table.reindex(columns=list(_SHOWN)).astype(object)
    shown = shown.where(shown.notna() & (shown != ""), None)
    settings = [{str(name): cell for name, cell in shown.loc[one.row].items()} for one in ranked]
    return [
        {"rank": rank, **setting, "narrower": dict(one.narrower)}
        for rank, (setting, one) in enumerate(zip(settings, ranked, strict=True), 1)
    ]


def _candidates(profile: Profile, catalog: Catalog) -> Iterator[dict[str, Any]]:
    rows = pd.DataFrame(list(profile.rows), dtype=object).reindex(columns=list(INPUT_COLUMNS))
    models = _models({str(row["model"]) for row in profile.rows}, catalog)
    by_setup = sorted(rows.groupby(list(_SETUP), dropna=False), key=lambda pair: -len(pair[1]))
    for _, setup in by_setup[:MAX_SETUP]:
        load = pd.to_numeric(setup["concurrency"].fillna(setup["request_rate"])).fillna(1.0)
        ends = setup.loc[[load.idxmin(), load.idxmax()]] if load.min() < load.max() else setup.loc[[load.idxmin()]]
        for cells in ends.to_dict("records"):
            base: dict[str, Any] = {str(name): value for name, value in cells.items() if pd.notna(value)}
            yield from (base | {"model": model, "statistic": "mean"} for model in models)
            if name := next((name for name in _LOAD if name in base), None):
                plain = {column: value for column, value in base.items() if column != "n_request"}
                loads = {float(_whole(factor * float(base[name]), name)) for factor in FACTORS}
                yield from (plain | {name: one, "statistic": "mean"} for one in sorted(loads))


def _whole(load: float, name: str) -> float:
    return max(round(load), 1) if name == "concurrency" else load


def same_runs(table: pd.DataFrame, rows: Iterable[Mapping[str, Any]]) -> npt.NDArray[np.bool_]:
    """Return whether each setting is one of the runs of a profile: its model, setup, lengths and load, to 5 %.

    Returns
    -------
    shape (n_setting,)
    """
    known = pd.DataFrame(list(rows), dtype=object)
    settings, runs = (frame.reindex(columns=list(_SHOWN)).astype(object) for frame in (table, known))
    is_same = np.ones((len(settings), len(runs)), dtype=bool)
    for name in _SHOWN:
        if name in _TEXTS:
            texts = [frame[name].fillna("").astype(str).to_numpy() for frame in (settings, runs)]
            is_same &= texts[0][:, None] == texts[1][None]
        else:
            cells = [pd.to_numeric(frame[name], errors="coerce") for frame in (settings, runs)]
            numbers = [column.fillna(0.0).to_numpy(dtype=float) for column in cells]
            is_same &= np.isclose(numbers[0][:, None], numbers[1][None], rtol=SAME_RATIO, atol=0.0)
    return np.asarray(is_same.any(axis=1))


def _models(own: Iterable[str], catalog: Catalog) -> list[str]:
    specs = [catalog.model(name) for name in sorted(own)]
    known = {spec.fold_group for spec in specs}
    others: dict[str, ModelSpec] = {}
    for spec in sorted(catalog.listed_models.values(), key=lambda spec: str(spec.released or ""), reverse=True):
        if spec.fold_group not in known:
            others.setdefault(spec.fold_group, spec)
    ordered = sorted([*others.values()][:N_RECENT], key=lambda spec: (spec.n_param, spec.id))
    n = max(MAX_MODEL - len(specs), 0)
    picks = {int(i) for i in np.linspace(0, len(ordered) - 1, min(n, len(ordered)))}
    return [spec.id for spec in specs][:MAX_MODEL] + [ordered[i].id for i in sorted(picks)]


def stack_report(
    profile: Profile, bundle: ModelBundle, catalog: Catalog, *, level: float = DEFAULT_LEVEL, n_next: int = 3
) -> StackReport:
    """Return a profile's errors before and after, and what to measure next."""
    return StackReport(
        name=profile.name,
        level=level,
        notes=[*profile.notes],
        **profile_contents(profile),
        errors=profile_errors(profile, bundle, level),
        measure_next=next_measurements(profile, bundle.predictor, catalog, n_next) if n_next else [],
    )


def profile_contents(profile: Profile) -> dict[str, Any]:
    """Return the number of rows and runs of a profile, and the names in it."""
    names = {
        f"{name}s": sorted({str(row[name]) for row in profile.rows if row.get(name)})
        for name in ("model", "accelerator", "engine")
    }
    return {"n_row": len(profile.rows), "n_run": len(np.unique(run_numbers(profile.points.X))), **names}
