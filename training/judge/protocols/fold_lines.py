"""Lines of a fold: measurements beside the predictions of roofcast and of the baselines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge.protocols.baselines import analytic_estimate, boosted_raw, nearest_measured
from judge.protocols.campaign_rows import UNANSWERED, CampaignRows
from roofcast.data.catalog import load_catalog
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import stack_owners
from roofcast.training.evaluation.metrics import error_summary, share_answered
from roofcast.training.learner.predictor import RoofcastPredictor

SCORED_METRICS: Final = {"ttft": "ttft_s", "tpot": "tpot_s", "output_throughput": "output_throughput_token_per_s"}
"""Columns of the metrics of the protocols."""

COLUMNS: Final = tuple(SCORED_METRICS.values())
THROUGHPUT: Final = SCORED_METRICS["output_throughput"]
DERIVED: Final = "derived_output_throughput"
"""Metric of the dump for throughputs that the source derived from other outcomes; only decisions use it
(`judge.protocols.regret`)."""

BASELINES: Final = ("analytic_calibrated", "analytic_priors", "nearest_measured", "xgboost_raw")
"""Baseline methods; their predictions are in columns ``by_NAME`` of the dump."""

LEVELS: Final = (0.5, 0.8, 0.9)
IN_FLIGHT: Final = (0.0, 1.0, 8.0, 64.0, 512.0, np.inf)
"""Bounds of the classes of requests in flight."""

LEAST_CLASS: Final = 200
"""Rows that a class has at least."""

N_PROCESS: Final = 2
"""Folds fitted at once."""

_ROW_COLUMNS: Final = (
    "campaign", "stack", "model", "lineage", "accelerator", "n_accelerator", "engine", "weight_precision", "load",
    "statistic", "n_input_token", "n_output_token", "concurrency", "request_rate", "rule",
)  # fmt: skip

IndexArray = npt.NDArray[np.intp]
Progress = Callable[[str, int, int], None]

Fit = Callable[[CampaignRows], RoofcastPredictor]

FoldT = TypeVar("FoldT")


@dataclass(frozen=True, slots=True)
class FittedFold:
    """A predictor, the rows that it was fitted to, and all rows, of which those at the indices `test` are judged."""

    predictor: RoofcastPredictor
    train: CampaignRows
    rows: CampaignRows
    test: IndexArray


Further = Callable[[FittedFold], dict[str, pd.DataFrame]]
"""Additional predictions of a protocol: tables of shape (n_test, n_metric), or of fewer rows, by column name."""


def map_folds(
    predict: Callable[[FoldT], pd.DataFrame], folds: Sequence[FoldT], progress: Progress | None, label: str
) -> pd.DataFrame:
    """Return the lines of all folds, numbered by fold; processes fit `N_PROCESS` folds at once."""
    from joblib import Parallel, delayed  # noqa: PLC0415  (serving fits nothing)

    results: Iterable[pd.DataFrame] = Parallel(n_jobs=N_PROCESS, return_as="generator")(
        delayed(predict)(fold) for fold in folds
    )
    parts = []
    for done, lines in enumerate(results, start=1):
        parts.append(lines if "fold" in lines else lines.assign(fold=done))
        if progress is not None:
            progress(label, done, len(folds))
    return pd.concat(parts, ignore_index=True)


def fit_predictor(rows: CampaignRows, config: TrainingConfig | None = None) -> RoofcastPredictor:
    """Return the predictor fitted to rows of the metrics of the protocols."""
    return RoofcastPredictor(config, COLUMNS).fit(rows.X, rows.y, rows.groups, stacks=rows.stacks)


def store_fits(folder: Path, config: TrainingConfig | None = None) -> Fit:
    """Return a fit that keeps predictors in a folder, for protocols that leave out the same rows of one table."""
    from joblib import Memory  # noqa: PLC0415  (serving fits nothing)

    return partial(_fit_once, Memory(folder, verbose=0).cache(_fit, ignore=["rows"]), config)


def _fit_once(
    fit: Callable[..., RoofcastPredictor], config: TrainingConfig | None, rows: CampaignRows
) -> RoofcastPredictor:
    return fit(rows.X.index.to_numpy(), config, rows)


def _fit(_: IndexArray, config: TrainingConfig | None, rows: CampaignRows) -> RoofcastPredictor:
    return fit_predictor(rows, config)


def predict_fold(further: Further, rows: CampaignRows, fit: Fit, fold: tuple[IndexArray, IndexArray]) -> pd.DataFrame:
    """Return the lines of a fold: roofcast, the baselines, and what `further` predicts.

    Training rows that are runs of the fold published again, by any owner, are left out.
    """
    train, test = fold
    run = rows.measurements["run"]
    is_repeat = run.iloc[train].isin(run.iloc[test]).to_numpy()
    train_rows = rows.take(train[rows.is_sound[train] & ~is_repeat])
    fitted = FittedFold(fit(train_rows), train_rows, rows, test)
    answers = {
        **plain_predictions(fitted.predictor, rows, test),
        **baseline_predictions(fitted),
        **further(fitted),
    }
    return build_lines(rows, test, answers)


def build_lines(rows: CampaignRows, test: npt.NDArray[np.intp], answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the lines of a fold, from tables of shape (n_test, n_metric) by column name."""
    test_rows = rows.measurements.iloc[test]
    question = pd.util.hash_pandas_object(rows.X.iloc[test], index=False)
    y, is_derived = rows.y.iloc[test], test_rows["derived"].str.contains(rf"\b{THROUGHPUT}\b")
    y = y.assign(**{THROUGHPUT: y[THROUGHPUT].mask(is_derived)})
    measured = {metric: (column, y[column]) for metric, column in SCORED_METRICS.items()}
    measured[DERIVED] = (THROUGHPUT, test_rows[THROUGHPUT].where(is_derived & (test_rows["load"] != "open_loop")))
    tables = []
    for metric, (column, truth) in measured.items():
        cells = {name: table[column] for name, table in answers.items() if column in table}
        table = test_rows[list(_ROW_COLUMNS)].assign(
            question=question, row=test, metric=metric, measured=truth, **cells
        )
        tables.append(table[table["measured"] > 0])
    return pd.concat(tables)


def plain_predictions(
    predictor: RoofcastPredictor, rows: CampaignRows, test: npt.NDArray[np.intp]
) -> dict[str, pd.DataFrame]:
    """Return predictions and bounds without reference points; NaN if saturated or of rule `UNANSWERED`.

    Bounds are of a competent operator's stack, and at the highest of `LEVELS` of anybody's too: ``low_90_any``.

    The service does answer such rows, with a warning, up to four times the rate that saturates a replica. Their
    errors are not scored.
    """
    of_level = [f"{level * 100:.0f}" for level in LEVELS]
    names = [f"{side}_{of}" for of in (*of_level, f"{of_level[-1]}_any") for side in ("low", "high")]
    answers = {name: pd.DataFrame(np.nan, rows.X.index[test], list(COLUMNS)) for name in ("predicted", *names)}
    for about, rows_of in by_stack(predictor, rows.stacks.iloc[test]):
        part = test[rows_of]
        prediction = about.predict_distribution(rows.X.iloc[part])
        is_blank = is_unanswered(rows, part) | prediction.estimate.is_saturated
        bounds = [table for level in LEVELS for table in prediction.interval(level)]
        bounds += replace(prediction, errors={m: e.everyone or e for m, e in prediction.errors.items()}).interval(
            LEVELS[-1]
        )
        for name, table in zip(answers, (prediction.median, *bounds), strict=True):
            answers[name].loc[table.index, table.columns] = table.mask(is_blank, axis=0)
    return answers


def by_stack(
    predictor: RoofcastPredictor, stacks: pd.Series
) -> Iterator[tuple[RoofcastPredictor, npt.NDArray[np.bool_]]]:
    """Yield the predictor on the known stacks of each owner, then without stack, each with a mask of queries."""
    is_known = predictor.knows_stacks(stacks)
    owners = stack_owners(stacks).to_numpy(dtype=object)
    for owner in np.unique(owners[is_known]):
        is_own = is_known & (owners == owner)
        yield predictor.on_stack(stacks[is_own]), is_own
    if not is_known.all():
        yield predictor, ~is_known


def is_unanswered(rows: CampaignRows, test: npt.NDArray[np.intp]) -> pd.Series:
    """Return whether a row is left out of the scores, because its load is near saturation by the estimate."""
    return rows.measurements["rule"].iloc[test] == UNANSWERED


def calibrated_estimate(predictor: RoofcastPredictor, X: pd.DataFrame, stacks: pd.Series) -> pd.DataFrame:
    """Return the estimate with the coefficients that the predictor uses for each query's stack."""
    parts = by_stack(predictor, stacks)
    return pd.concat([analytic_estimate(X[rows], about.coefficients_, COLUMNS) for about, rows in parts]).loc[X.index]


def baseline_predictions(fold: FittedFold) -> dict[str, pd.DataFrame]:
    """Return the predictions of `BASELINES`; the calibrated estimate shares the predictor's coefficients."""
    train, queries = fold.train, fold.rows.X.iloc[fold.test]
    answers = (
        calibrated_estimate(fold.predictor, queries, fold.rows.stacks.iloc[fold.test]),
        analytic_estimate(queries, DEFAULT_COEFFICIENTS, COLUMNS),
        nearest_measured(train.X, train.y, queries, COLUMNS),
        boosted_raw(train.X, train.y, queries, COLUMNS),
    )
    return {f"by_{name}": answer for name, answer in zip(BASELINES, answers, strict=True)}


def scored_lines(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines that P4 and P7 score: measured metrics of rows without a fault."""
    return dump[dump["rule"].isin(["", UNANSWERED]) & dump["metric"].isin(list(SCORED_METRICS))]


def compared_summary(lines: pd.DataFrame, column: str) -> dict[str, float]:
    """Return the errors of a method on the rows that roofcast answers, and the share of all rows that it answers.

    For the share within 25 %, a row that roofcast does not answer counts as missed by every method.
    `median_ln` is the median absolute logarithm of predicted over measured.
    """
    compared = lines[column].where(lines["predicted"].notna())
    log_error = (compared / lines["measured"]).map(np.log).abs()
    summary = error_summary(lines["measured"], compared)
    return {**summary, "answered": share_answered(lines[column]), "median_ln": float(log_error.median())}


def method_figures(
    lines: pd.DataFrame, baselines: Sequence[str] = BASELINES
) -> dict[str, dict[str, dict[str, float]]]:
    """Return the errors of roofcast and of the baselines, by method and metric; see `compared_summary`."""
    columns, scored = {"roofcast": "predicted", **{name: f"by_{name}" for name in baselines}}, scored_lines(lines)
    return {
        method: {str(metric): compared_summary(part, column) for metric, part in scored.groupby("metric", sort=False)}
        for method, column in columns.items()
    }


def interval_scores(answered: pd.DataFrame, bounds: str) -> dict[str, float]:
    """Return coverage, median width and mean interval score of the 90 % interval in these columns.

    The interval score (Winkler, 1972) is the logarithm of the width, plus by how much a measurement is outside
    over half of one minus the level; lower is better.
    """
    low, high, measured = (answered[name].astype(float) for name in (f"low_{bounds}", f"high_{bounds}", "measured"))
    missed = (low / measured).clip(lower=1.0) * (measured / high).clip(lower=1.0)
    return {
        "coverage_90": float(measured.between(low, high).mean()),
        "width_90": float((high / low).median()),
        "interval_score": float(np.log(high / low * missed ** (2.0 / (1.0 - LEVELS[-1]))).mean()),
    }


def class_scores(lines: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return `interval_scores` of the answered lines of a metric, by class of `LEAST_CLASS` rows or more."""
    answered = lines[lines["predicted"].notna()]
    in_flight = (
        pd.cut(answered["concurrency"].astype(float), IN_FLIGHT)
        .astype(str)
        .where(answered["load"] != "open_loop", "open loop")
    )
    architecture = answered["accelerator"].map(
        {part.id: part.architecture for part in load_catalog().accelerators.values()}
    )
    classes = {
        "engine": answered["engine"], "statistic": answered["statistic"], "in flight": in_flight,
        "architecture": architecture,
    }  # fmt: skip
    return {
        f"{name} {value}": {"n": len(part), **interval_scores(part, "90")}
        for name, values in classes.items()
        for value, part in answered.groupby(values)
        if len(part) >= LEAST_CLASS
    }


def with_classes(figures: Mapping[str, Mapping[str, Any]], dump: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return figures by metric with `class_scores` of the dump's lines as `classes`."""
    lines = scored_lines(dump)
    return {m: {**of, "classes": class_scores(lines[lines["metric"] == m])} for m, of in figures.items()}


def class_parts(figures: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return the `classes` of figures by metric as a table."""
    rows = [
        {"metric": metric, "class": name, **scores}
        for metric, of in figures.items()
        for name, scores in of["classes"].items()
    ]
    return pd.DataFrame(rows, columns=["metric", "class", "n", "coverage_90", "width_90", "interval_score"])
