"""Choice among the runs of a plan: those that would narrow the predictions of all of its runs most."""

from collections.abc import Mapping, Sequence

import pandas as pd

from roofcast.data.catalog import Catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.serving.measure.plan import PlannedRun
from roofcast.serving.predict.next_measurements import RANKED_METRICS
from roofcast.serving.predict.question_rows import table_from_rows
from roofcast.serving.predict.row_checks import check_table
from roofcast.training.explain.measure_next import rank_measurements
from roofcast.training.learner.predictor import CalibrationPoints, RoofcastPredictor


def planned_inputs(runs: Sequence[PlannedRun], cells: Mapping[str, object], catalog: Catalog) -> pd.DataFrame:
    """Return the prediction input of each run, of shape (n_run, n_column).

    `cells`: columns that all runs share, such as the model and the accelerator. Raises `SchemaError` if the model or
    the accelerator is missing or unknown, or a run is impossible, such as one beyond the context.
    """
    table, problems = check_table(table_from_rows([{**cells, **run.cells} for run in runs]), catalog)
    for run, problem in zip(runs, problems, strict=True):
        if problem is not None:
            raise problem.error(run.name)
    return table


def choose_runs(
    runs: Sequence[PlannedRun],
    inputs: pd.DataFrame,
    catalog: Catalog,
    predictor: RoofcastPredictor,
    *,
    points: CalibrationPoints | None,
    n: int,
) -> list[PlannedRun]:
    """Return the n runs that would narrow the intervals of all most, given earlier measurements, the best first.

    `inputs`: shape (n_run, n_column): result of `planned_inputs`.
    """
    X = describe(inputs, catalog.models, catalog.accelerators)
    metrics = [metric for metric in RANKED_METRICS if metric in predictor.metrics_]
    ranked = rank_measurements(predictor.condition_on(points), X, metrics, n)
    return [runs[one.row] for one in ranked]


def predict_e2e(
    runs: Sequence[PlannedRun], inputs: pd.DataFrame, catalog: Catalog, predictor: RoofcastPredictor
) -> dict[str, float]:
    """Return the predicted mean latency of a request of each run, in seconds, by the run's name.

    `inputs`: shape (n_run, n_column): result of `planned_inputs`.
    """
    X = describe(inputs, catalog.models, catalog.accelerators)
    e2e_s = predictor.predict_distribution(X, metrics={"e2e_s"}).median["e2e_s"]
    return {run.name: float(value) for run, value in zip(runs, e2e_s, strict=True)}
