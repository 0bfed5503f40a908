"""P4 and P5: measurements of all campaigns, each predicted without training rows of its lineage.

P5 adds reference measurements of the held-out LLM for each engine and accelerator and scores the other runs. Lineages
are assigned to folds, so that each is held out exactly once.

Baselines are fitted on the same folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from roofcast.data.campaigns import load_campaigns
from roofcast.data.campaigns.silicon_index import load_silicon_index, source_row
from roofcast.data.catalog import Catalog, load_catalog
from roofcast.data.measurements.schema import KEY_COLUMNS
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.folds import leave_one_group_out
from roofcast.training.dataset.review import review
from roofcast.training.dataset.targets import outcomes
from roofcast.training.dataset.training_set import TRAINED_ON, name_stacks
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.evaluation.protocols.baselines import analytic_estimate, boosted_raw, nearest_measured
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

SCORED_METRICS: Final = {"ttft": "ttft_s", "tpot": "tpot_s", "output_throughput": "output_throughput_token_per_s"}
"""Columns of the metrics of the protocols."""

COLUMNS: Final = tuple(SCORED_METRICS.values())
THROUGHPUT: Final = SCORED_METRICS["output_throughput"]
DERIVED: Final = "derived_output_throughput"
"""Metric of the dump for throughputs that the source derived from other outcomes; only decisions use it
(`roofcast.training.evaluation.protocols.regret`)."""

BASELINES: Final = ("analytic_calibrated", "analytic_priors", "nearest_measured", "xgboost_raw")
"""Baseline methods; their predictions are in columns ``by_NAME`` of the dump."""

LEVELS: Final = (0.5, 0.8, 0.9)
N_REFERENCE: Final = (1, 3, 5)
N_DRAW: Final = 3
"""Random draws of the reference points."""

N_FOLD: Final = 12
UNANSWERED: Final = "beyond_estimate"
"""Review rule whose rows are scored as unanswered, because the predictor has no number for them."""

FAULTY: Final = "published_fault"
"""Review rule of faulty published rows, which P5 scores among P3's rows and P4 does not."""

EQUAL_RUN_RATIO: Final = 0.005
"""Relative difference of outcomes up to which rows of two campaigns are one run."""

PARTS: Final = ("campaign", "accelerator", "lineage", "engine", "load", "statistic")

_ROW_COLUMNS: Final = (
    "campaign", "model", "lineage", "accelerator", "n_accelerator", "engine", "weight_precision", "load", "statistic",
    "n_input_token", "n_output_token", "concurrency", "request_rate", "rule",
)  # fmt: skip

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CampaignRows:
    """Measurements and their prediction input; the tables share one index.

    Parameters
    ----------
    measurements
        With additional columns `lineage`; `rule`, the rule of `review.review` that excludes a row; `source`, the
        number of the published row of the silicon campaign; `n_published`, the number of P3's published rows that it
        represents; and `run`, shared by rows of several statistics, and by rows of several campaigns that published
        one run.
    X : shape (n_row, n_descriptor)
    y : shape (n_row, n_metric)
    groups : shape (n_row,)
        Fold groups.
    """

    measurements: pd.DataFrame
    X: pd.DataFrame
    y: pd.DataFrame
    groups: pd.Series

    @property
    def stacks(self) -> pd.Series:
        """Stack of each row; no row is of the user's own stack."""
        return name_stacks(self.measurements)

    @property
    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Whether a row may be used for training."""
        return np.asarray(self.measurements["rule"] == "")

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> CampaignRows:
        """Return a subset of the rows, by index or mask."""
        return CampaignRows(
            self.measurements.iloc[rows], self.X.iloc[rows], self.y.iloc[rows], self.groups.iloc[rows]
        )

    def of(self, campaigns: tuple[str, ...]) -> CampaignRows:
        """Return the rows of the given campaigns."""
        return self.take(self.measurements["campaign"].isin(campaigns).to_numpy())


def load_campaign_rows(catalog: Catalog | None = None) -> CampaignRows:
    """Return the rows of P4 and P5 from the shipped campaigns."""
    return build_campaign_rows(load_campaigns(TRAINED_ON), catalog or load_catalog())


def build_campaign_rows(measurements: pd.DataFrame, catalog: Catalog) -> CampaignRows:
    """Return the rows of P4 and P5: accepted measurements, P3's rows, and those of rule `UNANSWERED`."""
    rows = measurements.reset_index(drop=True)
    rules = review(rows, catalog.models, catalog.accelerators)["rule"].reindex(rows.index).fillna("")
    rows = _with_published(rows.assign(rule=rules))
    rows = split_totals(rows[rows["rule"].isin(["", UNANSWERED]) | (rows["n_published"] > 0)]).reset_index(drop=True)
    specs = catalog.models
    rows["lineage"] = rows["model"].map({name: spec.lineage for name, spec in specs.items()})
    rows["run"] = merge_equal_runs(
        rows, rows.groupby([n for n in KEY_COLUMNS if n != "statistic"], dropna=False).ngroup()
    )
    groups = rows["model"].map({name: spec.fold_group for name, spec in specs.items()}).rename("group")
    return CampaignRows(rows, describe(rows, specs, catalog.accelerators), outcomes(rows), groups)


def merge_equal_runs(rows: pd.DataFrame, run: pd.Series) -> pd.Series:
    """Return run numbers, with runs merged that have equal TTFT and TPOT in two campaigns.

    Campaigns may give one run different dates, versions or splits, so only its outcome identifies it.

    Parameters
    ----------
    rows
        With `lineage` and the columns of measurements.
    run : shape (n_row,)
        Numbers of runs, from 0.
    """
    measured = rows[(rows["ttft_s"] > 0) & (rows["tpot_s"] > 0)]
    pairs = []
    for _, group in measured.groupby(["lineage", "accelerator", "weight_precision", "statistic"], dropna=False):
        campaign, of = group["campaign"].to_numpy(), run[group.index].to_numpy()
        if len(set(campaign)) > 1:
            outcome = np.log(group[["ttft_s", "tpot_s"]].to_numpy(dtype=float))
            is_near = (np.abs(outcome[:, None] - outcome) <= np.log1p(EQUAL_RUN_RATIO)).all(axis=2)
            pairs.append(of[np.argwhere(is_near & (campaign[:, None] != campaign))])
    first, second = np.concatenate([np.empty((0, 2), dtype=np.intp), *pairs]).T
    n_run = int(run.max()) + 1
    graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_run, n_run))
    return pd.Series(connected_components(graph, directed=False)[1][run], index=run.index)


def _with_published(rows: pd.DataFrame) -> pd.DataFrame:
    index = load_silicon_index()
    n_published = index.loc[index["mode"] == "agg", "measured_in"].value_counts()
    source = rows.loc[rows["campaign"] == "silicon", "note"].map(source_row).reindex(rows.index)
    return rows.assign(source=source, n_published=source.map(n_published).fillna(0).astype(int))


def split_totals(questions: pd.DataFrame) -> pd.DataFrame:
    """Return queries with half of the accelerators for prefill and half for decode where the split is unknown.

    Such a row gives the total of a disaggregated deployment as if it were one replica (`disaggregated_total`).

    Examples
    --------
    >>> rows = pd.DataFrame({"n_accelerator": [8.0, 36.0], "tp": [8.0, float("nan")], "note": ["", "faulty: "
    ...     "disaggregated_total"], "n_prefill_accelerator": float("nan"), "n_decode_accelerator": float("nan")})
    >>> split_totals(rows)[["n_prefill_accelerator", "n_decode_accelerator"]].iloc[1].tolist()
    [18.0, 18.0]
    """
    is_total = questions["note"].str.contains("disaggregated_total", regex=False)
    prefill = questions["n_accelerator"] // 2
    return questions.assign(
        n_prefill_accelerator=questions["n_prefill_accelerator"].mask(is_total, prefill),
        n_decode_accelerator=questions["n_decode_accelerator"].mask(is_total, questions["n_accelerator"] - prefill),
    )


def predict_campaigns(
    rows: CampaignRows,
    config: TrainingConfig | None = None,
    progress: Progress | None = None,
    n_fold: int = N_FOLD,
) -> pd.DataFrame:
    """Return the dump of P4 and P5.

    Returns
    -------
    One line per row and metric that was measured or derived: `fold`, `row`, the query and its source, `question`
    (equal for equal descriptors), `metric`, `measured`, `predicted`, ``low_50`` to ``high_90``, ``by_NAME`` for each
    of `BASELINES`, and with k reference points in draw i ``predicted_k_draw_i``, ``low_90_k_draw_i`` and
    ``high_90_k_draw_i``, NaN for rows of the reference runs
    """
    folds = list(leave_one_group_out(rows.groups, n_fold))
    parts = []
    for done, (train, test) in enumerate(folds, start=1):
        train_rows = rows.take(train[rows.is_sound[train]])
        predictor = RoofcastPredictor(config, COLUMNS).fit(
            train_rows.X, train_rows.y, train_rows.groups, stacks=train_rows.stacks
        )
        answers = {
            **_plain_predictions(predictor, rows, test),
            **_baseline_predictions(predictor, train_rows, rows.X.iloc[test]),
        }
        parts.append(
            _lines(rows, test, {**answers, **_reference_predictions(predictor, rows, test)}).assign(fold=done)
        )
        if progress is not None:
            progress("campaigns, leave one lineage out", done, len(folds))
    return pd.concat(parts, ignore_index=True)


def _lines(rows: CampaignRows, test: npt.NDArray[np.intp], answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
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


def _plain_predictions(
    predictor: RoofcastPredictor, rows: CampaignRows, test: npt.NDArray[np.intp]
) -> dict[str, pd.DataFrame]:
    """Return predictions and bounds without reference points; NaN if saturated or of rule `UNANSWERED`."""
    X = rows.X.iloc[test]
    answers: dict[str, pd.DataFrame] = {}
    prediction = predictor.predict_distribution(X)
    is_blank = _is_unanswered(rows, test) | prediction.estimate.is_saturated
    for level in LEVELS:
        (low, high), name = prediction.interval(level), f"{level * 100:.0f}"
        answers |= {"predicted": prediction.median, f"low_{name}": low, f"high_{name}": high}
    return {name: table.mask(is_blank, axis=0) for name, table in answers.items()}


def _is_unanswered(rows: CampaignRows, test: npt.NDArray[np.intp]) -> pd.Series:
    return rows.measurements["rule"].iloc[test] == UNANSWERED


def _baseline_predictions(
    predictor: RoofcastPredictor, train_rows: CampaignRows, queries: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Return the predictions of `BASELINES`; the calibrated estimate shares the predictor's coefficients."""
    answers = (
        analytic_estimate(queries, predictor.coefficients_, COLUMNS),
        analytic_estimate(queries, DEFAULT_COEFFICIENTS, COLUMNS),
        nearest_measured(train_rows.X, train_rows.y, queries, COLUMNS),
        boosted_raw(train_rows.X, train_rows.y, queries, COLUMNS),
    )
    return {f"by_{name}": answer for name, answer in zip(BASELINES, answers, strict=True)}


def _reference_predictions(
    predictor: RoofcastPredictor, rows: CampaignRows, test: npt.NDArray[np.intp]
) -> dict[str, pd.DataFrame]:
    """Return predictions with reference points; NaN for rows of the reference runs."""
    run = rows.measurements["run"].iloc[test]
    answers: dict[str, pd.DataFrame] = {}
    for k in N_REFERENCE:
        for draw in range(N_DRAW):
            points = _draw_reference_rows(rows, test, k, draw)
            reference_rows = test[points.to_numpy()]
            references = CalibrationPoints(rows.X.iloc[reference_rows], rows.y.iloc[reference_rows])
            prediction = predictor.predict_distribution(rows.X.iloc[test], references)
            is_blank = run.isin(run[points]) | _is_unanswered(rows, test) | prediction.estimate.is_saturated
            low, high = prediction.interval(LEVELS[-1])
            tables = {"predicted": prediction.median, "low_90": low, "high_90": high}
            answers |= {f"{name}_{k}_draw_{draw}": table.mask(is_blank, axis=0) for name, table in tables.items()}
    return answers


def _draw_reference_rows(rows: CampaignRows, test: npt.NDArray[np.intp], k: int, draw: int) -> pd.Series:
    """Return a mask of reference rows: means or medians of k runs per LLM, engine and accelerator."""
    test_rows = rows.measurements.iloc[test]
    order = pd.Series(np.random.default_rng([draw, 7]).permutation(len(test)), index=test_rows.index)
    is_central = test_rows["statistic"].isin(["mean", "p50"]) & (test_rows["rule"] == "")
    order = order[is_central].sort_values()
    order = order[~test_rows["run"].loc[order.index].duplicated()]
    rank = order.groupby([test_rows["model"], test_rows["engine"], test_rows["accelerator"]]).rank()
    return (rank <= k).reindex(test_rows.index, fill_value=False)


def campaign_figures(dump: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return P4's scores of a dump, or a subset of it, by metric.

    Examples
    --------
    >>> line = {"metric": "tpot", "rule": "", "measured": 1.0, "predicted": 1.5}
    >>> bounds = {f"{side}_{level}": value for level in (50, 80, 90) for side, value in (("low", 1.2), ("high", 2.4))}
    >>> figures = campaign_figures(pd.DataFrame([line | bounds]))["tpot"]
    >>> figures["mape"], figures["coverage_90"], figures["width_90"]
    (0.5, 0.0, 2.0)
    """
    figures = {}
    for metric, rows in scored_lines(dump).groupby("metric", sort=False):
        answered = rows[rows["predicted"].notna()]
        values = error_summary(rows["measured"], rows["predicted"])
        for level in ("50", "80"):
            is_inside = answered["measured"].between(answered[f"low_{level}"], answered[f"high_{level}"])
            values[f"coverage_{level}"] = float(is_inside.mean())
        figures[str(metric)] = {**values, **_interval_scores(answered, "90")}
    return figures


def _interval_scores(answered: pd.DataFrame, bounds: str) -> dict[str, float]:
    """Return coverage and median width of the 90 % interval in these columns."""
    low, high = answered[f"low_{bounds}"], answered[f"high_{bounds}"]
    is_inside = answered["measured"].between(low, high)
    return {"coverage_90": float(is_inside.mean()), "width_90": float((high / low).median())}


def scored_lines(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines that P4 scores: measured metrics of rows without a fault."""
    return dump[dump["rule"].isin(["", UNANSWERED]) & dump["metric"].isin(list(SCORED_METRICS))]


def method_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return P4's errors of roofcast and of the baselines, by method and metric."""
    lines = scored_lines(dump)
    columns = {"roofcast": "predicted", **{name: f"by_{name}" for name in BASELINES}}
    return {
        method: {
            str(metric): error_summary(rows["measured"], rows[column])
            for metric, rows in lines.groupby("metric", sort=False)
        }
        for method, column in columns.items()
    }


def reference_figures(dump: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Return P5's scores by number of reference points: P3's rows at the top level, P4's under ``P4``.

    Each score is the mean over the draws; rows of a reference run are excluded in that draw. A row counts once for
    each of P3's published rows that it represents, as in P3.
    """
    published = dump.loc[dump.index.repeat(dump["n_published"])]
    lines = scored_lines(dump)
    return {
        str(k): {**_draw_means(published, k, ("tpot", "ttft")), "P4": _draw_means(lines, k, tuple(SCORED_METRICS))}
        for k in N_REFERENCE
    }


def _draw_means(rows: pd.DataFrame, k: int, metrics: tuple[str, ...]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for metric in metrics:
        metric_lines = rows[rows["metric"] == metric]
        draws = []
        for draw_name in (f"{k}_draw_{i}" for i in range(N_DRAW)):
            column = f"predicted_{draw_name}"
            answerable = metric_lines[metric_lines[column].notna() | metric_lines["predicted"].isna()]
            inside = _interval_scores(answerable[answerable[column].notna()], f"90_{draw_name}")
            draws.append({**error_summary(answerable["measured"], answerable[column]), **inside})
        if len(metric_lines):
            figures[metric] = {name: float(np.mean([draw[name] for draw in draws])) for name in draws[0]}
    return figures


def campaign_parts(dump: pd.DataFrame) -> pd.DataFrame:
    """Return P4's scores by campaign, accelerator, lineage, engine, load and statistic.

    Returns
    -------
    Columns `by`, `part`, `metric`, `n_row` and the scores
    """
    lines = [
        {"by": by, "part": str(name), "metric": metric, "n_row": int((part["metric"] == metric).sum()), **values}
        for by in PARTS
        for name, part in scored_lines(dump).groupby(by)
        for metric, values in campaign_figures(part).items()
    ]
    return pd.DataFrame(lines)


def with_sources(dump: pd.DataFrame, rows: CampaignRows) -> pd.DataFrame:
    """Return the dump with `source` and `n_published` of `CampaignRows`, which identify P3's rows in P5."""
    return dump.join(rows.measurements[["source", "n_published"]].reset_index(drop=True), on="row")
