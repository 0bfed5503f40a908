"""P4 and P5: every campaign's measurements, each lineage predicted by a predictor that never saw it.

P4 gives it nothing else; P5 gives it some measured points of the held-out LLM for each engine and accelerator, and
judges it by other runs. Whole lineages are dealt to the folds, so that each is held out exactly once.

Baselines stand beside it, trained and fitted on the same folds.
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
from roofcast.training.dataset.training_set import TRAINED_ON
from roofcast.training.evaluation.metrics import error_summary
from roofcast.training.evaluation.protocols.baselines import boosted_raw, estimated, nearest_measured
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor

JUDGED: Final = {"ttft": "ttft_s", "tpot": "tpot_s", "output_throughput": "output_throughput_token_per_s"}
"""Metrics of the protocols and their columns."""

COLUMNS: Final = tuple(JUDGED.values())
THROUGHPUT: Final = JUDGED["output_throughput"]
DERIVED: Final = "derived_output_throughput"
"""Metric under which the dump holds a throughput that the source computed from other outcomes; no figure counts it
but those of decisions (`roofcast.training.evaluation.protocols.regret`)."""

BASELINES: Final = ("analytic_calibrated", "analytic_priors", "nearest_measured", "xgboost_raw")
"""Methods beside roofcast; column ``by_NAME`` of the dump has what each says."""

LEVELS: Final = (0.5, 0.8, 0.9)
N_REFERENCE: Final = (1, 3, 5)
N_DRAW: Final = 3
"""Draws of the reference points, by chance."""

N_FOLD: Final = 12
UNANSWERED: Final = "beyond_estimate"
"""Rule whose rows count as asked and not answered: the predictor has no number for them."""

FAULTY: Final = "published_fault"
"""Rule whose rows are asked for P3's sake: P5 judges them among its questions, P4 does not."""

TWIN_RATIO: Final = 0.005
"""Difference of outcomes up to which rows of two campaigns are one run."""

PARTS: Final = ("campaign", "accelerator", "lineage", "engine", "load", "statistic")

_TOLD: Final = (
    "campaign", "model", "lineage", "accelerator", "n_accelerator", "engine", "weight_precision", "load", "statistic",
    "n_input_token", "n_output_token", "concurrency", "request_rate", "rule",
)  # fmt: skip

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CampaignRows:
    """Measurements and what is asked of them; the tables share one index.

    Parameters
    ----------
    measurements
        With columns `lineage`; `rule`, that of `review.review` which sets a row aside; `source`,
        the number of the published row that a row of the silicon campaign is; `n_published`, how many of P3's
        published rows it is or is repeated by; and `run`, which rows of several statistics share, and of several
        campaigns that published one run.
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
        """Whose stack measured each row: none is that of whoever asks."""
        return self.measurements["campaign"]

    @property
    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Whether a row may be learnt from."""
        return np.asarray(self.measurements["rule"] == "")

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> CampaignRows:
        """Return the rows at these places, or where the mask is true."""
        return CampaignRows(
            self.measurements.iloc[rows], self.X.iloc[rows], self.y.iloc[rows], self.groups.iloc[rows]
        )

    def of(self, campaigns: tuple[str, ...]) -> CampaignRows:
        """Return the rows of some campaigns."""
        return self.take(self.measurements["campaign"].isin(campaigns).to_numpy())


def load_campaign_rows(catalog: Catalog | None = None) -> CampaignRows:
    """Return the shipped rows that P4 and P5 ask about."""
    return build_campaign_rows(load_campaigns(TRAINED_ON), catalog or load_catalog())


def build_campaign_rows(measurements: pd.DataFrame, catalog: Catalog) -> CampaignRows:
    """Return what P4 and P5 ask about measurements: those that are sound, P3's, and those beyond the estimate."""
    rows = measurements.reset_index(drop=True)
    rules = review(rows, catalog.models, catalog.accelerators)["rule"].reindex(rows.index).fillna("")
    rows = _with_published(rows.assign(rule=rules))
    rows = with_halves(rows[rows["rule"].isin(["", UNANSWERED]) | (rows["n_published"] > 0)]).reset_index(drop=True)
    specs = catalog.models
    rows["lineage"] = rows["model"].map({name: spec.lineage for name, spec in specs.items()})
    rows["run"] = with_twins(rows, rows.groupby([n for n in KEY_COLUMNS if n != "statistic"], dropna=False).ngroup())
    groups = rows["model"].map({name: spec.fold_group for name, spec in specs.items()}).rename("group")
    return CampaignRows(rows, describe(rows, specs, catalog.accelerators), outcomes(rows), groups)


def with_twins(rows: pd.DataFrame, run: pd.Series) -> pd.Series:
    """Return the runs, one where two campaigns tell the same TTFT and TPOT of a lineage on an accelerator.

    They name different days, versions or splits of what was one run, so nothing but its outcome shows that.

    Parameters
    ----------
    rows
        With `lineage` and the columns of measurements.
    run : shape (n_row,)
        Numbers of runs, from 0.
    """
    told = rows[(rows["ttft_s"] > 0) & (rows["tpot_s"] > 0)]
    pairs = []
    for _, some in told.groupby(["lineage", "accelerator", "weight_precision", "statistic"], dropna=False):
        campaign, of = some["campaign"].to_numpy(), run[some.index].to_numpy()
        if len(set(campaign)) > 1:
            outcome = np.log(some[["ttft_s", "tpot_s"]].to_numpy(dtype=float))
            is_near = (np.abs(outcome[:, None] - outcome) <= np.log1p(TWIN_RATIO)).all(axis=2)
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


def with_halves(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the questions with half of the accelerators to prefill and half to decode, where no split is told.

    Such a row states the total of a disaggregated deployment as if it were one replica (`disaggregated_total`).

    Examples
    --------
    >>> rows = pd.DataFrame({"n_accelerator": [8.0, 36.0], "tp": [8.0, float("nan")], "note": ["", "faulty: "
    ...     "disaggregated_total"], "n_prefill_accelerator": float("nan"), "n_decode_accelerator": float("nan")})
    >>> with_halves(rows)[["n_prefill_accelerator", "n_decode_accelerator"]].iloc[1].tolist()
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
    One line a row and metric that was measured, or derived: `fold`, `row`, what was asked of whom, `question` (equal
    where the descriptors are), `metric`, `measured`, `predicted`, ``low_50`` to ``high_90``, ``by_NAME`` for each of
    `BASELINES`, and given k reference points in draw i ``predicted_k_draw_i``, ``low_90_k_draw_i`` and
    ``high_90_k_draw_i``, NaN for rows of the points' own runs
    """
    folds = list(leave_one_group_out(rows.groups, n_fold))
    parts = []
    for done, (train, test) in enumerate(folds, start=1):
        seen = rows.take(train[rows.is_sound[train]])
        predictor = RoofcastPredictor(config, COLUMNS).fit(seen.X, seen.y, seen.groups, stacks=seen.stacks)
        answers = {**_plain(predictor, rows, test), **_baselines(predictor, seen, rows.X.iloc[test])}
        parts.append(_lines(rows, test, {**answers, **_given(predictor, rows, test)}).assign(fold=done))
        if progress is not None:
            progress("campaigns, leave one lineage out", done, len(folds))
    return pd.concat(parts, ignore_index=True)


def _lines(rows: CampaignRows, test: npt.NDArray[np.intp], answers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the dump's lines of a fold from each answer's name and its table of shape (n_test, n_metric)."""
    told = rows.measurements.iloc[test]
    question = pd.util.hash_pandas_object(rows.X.iloc[test], index=False)
    y, is_derived = rows.y.iloc[test], told["derived"].str.contains(rf"\b{THROUGHPUT}\b")
    y = y.assign(**{THROUGHPUT: y[THROUGHPUT].mask(is_derived)})
    measured = {metric: (column, y[column]) for metric, column in JUDGED.items()}
    measured[DERIVED] = (THROUGHPUT, told[THROUGHPUT].where(is_derived & (told["load"] != "open_loop")))
    tables = []
    for metric, (column, truth) in measured.items():
        cells = {name: table[column] for name, table in answers.items() if column in table}
        table = told[list(_TOLD)].assign(question=question, row=test, metric=metric, measured=truth, **cells)
        tables.append(table[table["measured"] > 0])
    return pd.concat(tables)


def _plain(predictor: RoofcastPredictor, rows: CampaignRows, test: npt.NDArray[np.intp]) -> dict[str, pd.DataFrame]:
    """Return predictions and bounds without reference points, blank where a user is refused or the rule says so."""
    X = rows.X.iloc[test]
    answers: dict[str, pd.DataFrame] = {}
    prediction = predictor.predict_distribution(X)
    is_blank = _is_blank(rows, test) | prediction.estimate.is_saturated
    for level in LEVELS:
        (low, high), name = prediction.interval(level), f"{level * 100:.0f}"
        answers |= {"predicted": prediction.median, f"low_{name}": low, f"high_{name}": high}
    return {name: table.mask(is_blank, axis=0) for name, table in answers.items()}


def _is_blank(rows: CampaignRows, test: npt.NDArray[np.intp]) -> pd.Series:
    return rows.measurements["rule"].iloc[test] == UNANSWERED


def _baselines(predictor: RoofcastPredictor, seen: CampaignRows, asked: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what each of `BASELINES` says; the calibrated estimate shares the predictor's coefficients."""
    answers = (
        estimated(asked, predictor.coefficients_, COLUMNS),
        estimated(asked, DEFAULT_COEFFICIENTS, COLUMNS),
        nearest_measured(seen.X, seen.y, asked, COLUMNS),
        boosted_raw(seen.X, seen.y, asked, COLUMNS),
    )
    return {f"by_{name}": answer for name, answer in zip(BASELINES, answers, strict=True)}


def _given(predictor: RoofcastPredictor, rows: CampaignRows, test: npt.NDArray[np.intp]) -> dict[str, pd.DataFrame]:
    """Return predictions given reference points, blank for every row of the points' own runs."""
    run = rows.measurements["run"].iloc[test]
    answers: dict[str, pd.DataFrame] = {}
    for k in N_REFERENCE:
        for draw in range(N_DRAW):
            points = _drawn_points(rows, test, k, draw)
            chosen = test[points.to_numpy()]
            references = CalibrationPoints(rows.X.iloc[chosen], rows.y.iloc[chosen])
            prediction = predictor.predict_distribution(rows.X.iloc[test], references)
            is_blank = run.isin(run[points]) | _is_blank(rows, test) | prediction.estimate.is_saturated
            low, high = prediction.interval(LEVELS[-1])
            tables = {"predicted": prediction.median, "low_90": low, "high_90": high}
            answers |= {f"{name}_{k}_draw_{draw}": table.mask(is_blank, axis=0) for name, table in tables.items()}
    return answers


def _drawn_points(rows: CampaignRows, test: npt.NDArray[np.intp], k: int, draw: int) -> pd.Series:
    """Return which held-out rows are given: means or medians of k sound runs for each LLM, engine and accelerator."""
    told = rows.measurements.iloc[test]
    order = pd.Series(np.random.default_rng([draw, 7]).permutation(len(test)), index=told.index)
    is_central = told["statistic"].isin(["mean", "p50"]) & (told["rule"] == "")
    order = order[is_central].sort_values()
    order = order[~told["run"].loc[order.index].duplicated()]
    rank = order.groupby([told["model"], told["engine"], told["accelerator"]]).rank()
    return (rank <= k).reindex(told.index, fill_value=False)


def campaign_figures(dump: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the figures of P4 from its dump, or from some rows of it, by metric.

    Examples
    --------
    >>> line = {"metric": "tpot", "rule": "", "measured": 1.0, "predicted": 1.5}
    >>> bounds = {f"{side}_{level}": value for level in (50, 80, 90) for side, value in (("low", 1.2), ("high", 2.4))}
    >>> figures = campaign_figures(pd.DataFrame([line | bounds]))["tpot"]
    >>> figures["mape"], figures["coverage_90"], figures["width_90"]
    (0.5, 0.0, 2.0)
    """
    figures = {}
    for metric, rows in judged(dump).groupby("metric", sort=False):
        answered = rows[rows["predicted"].notna()]
        values = error_summary(rows["measured"], rows["predicted"])
        for level in ("50", "80"):
            is_inside = answered["measured"].between(answered[f"low_{level}"], answered[f"high_{level}"])
            values[f"coverage_{level}"] = float(is_inside.mean())
        figures[str(metric)] = {**values, **_inside(answered, "90")}
    return figures


def _inside(answered: pd.DataFrame, bounds: str) -> dict[str, float]:
    """Return the share of measurements within the 90 % interval of these columns, and its median width."""
    low, high = answered[f"low_{bounds}"], answered[f"high_{bounds}"]
    is_inside = answered["measured"].between(low, high)
    return {"coverage_90": float(is_inside.mean()), "width_90": float((high / low).median())}


def judged(dump: pd.DataFrame) -> pd.DataFrame:
    """Return the lines that P4 judges: what was measured itself, in rows that no rule faults."""
    return dump[dump["rule"].isin(["", UNANSWERED]) & dump["metric"].isin(list(JUDGED))]


def method_figures(dump: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return P4's errors of roofcast and of each baseline in the dump, by method and metric."""
    lines = judged(dump)
    columns = {"roofcast": "predicted", **{name: f"by_{name}" for name in BASELINES}}
    return {
        method: {
            str(metric): error_summary(rows["measured"], rows[column])
            for metric, rows in lines.groupby("metric", sort=False)
        }
        for method, column in columns.items()
    }


def reference_figures(dump: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Return the figures of P5 by number of points: P3's questions at the top, P4's under ``P4``.

    Each figure is the mean over the draws; a row of a run that was given is not judged in that draw. A row counts
    once for each of P3's published rows that it stands for, as in P3.
    """
    published = dump.loc[dump.index.repeat(dump["n_published"])]
    lines = judged(dump)
    return {
        str(k): {**_draw_means(published, k, ("tpot", "ttft")), "P4": _draw_means(lines, k, tuple(JUDGED))}
        for k in N_REFERENCE
    }


def _draw_means(rows: pd.DataFrame, k: int, metrics: tuple[str, ...]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for metric in metrics:
        of_metric = rows[rows["metric"] == metric]
        draws = []
        for place in (f"{k}_draw_{i}" for i in range(N_DRAW)):
            column = f"predicted_{place}"
            asked = of_metric[of_metric[column].notna() | of_metric["predicted"].isna()]
            inside = _inside(asked[asked[column].notna()], f"90_{place}")
            draws.append({**error_summary(asked["measured"], asked[column]), **inside})
        if len(of_metric):
            figures[metric] = {name: float(np.mean([draw[name] for draw in draws])) for name in draws[0]}
    return figures


def campaign_parts(dump: pd.DataFrame) -> pd.DataFrame:
    """Return P4's figures for each campaign, accelerator, lineage, engine, load and statistic.

    Returns
    -------
    Columns `by`, `part`, `metric`, `n_row` and the figures
    """
    lines = [
        {"by": by, "part": str(name), "metric": metric, "n_row": int((part["metric"] == metric).sum()), **values}
        for by in PARTS
        for name, part in judged(dump).groupby(by)
        for metric, values in campaign_figures(part).items()
    ]
    return pd.DataFrame(lines)


def with_sources(dump: pd.DataFrame, rows: CampaignRows) -> pd.DataFrame:
    """Return the dump with `source` and `n_published` of `CampaignRows`, by which P5 finds P3's questions."""
    return dump.join(rows.measurements[["source", "n_published"]].reset_index(drop=True), on="row")
