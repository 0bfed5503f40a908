"""Import of measured training jobs into the store, for HTTP and command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from roofcast.data.catalog import Catalog
from roofcast.data.errors import SchemaError, join_errors
from roofcast.data.importers.job_logs import is_job_log, read_job_log
from roofcast.data.importers.overrides import fill_blanks
from roofcast.data.measurements.job_schema import TRAINING_CONFIG_COLUMNS
from roofcast.data.measurements.job_validation import token_per_step, validate_training_measurements
from roofcast.data.measurements.target import TRAINING
from roofcast.serving.app_state.catalog.live_catalog import Config, LiveCatalog
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.imports.measurement_import import ImportOptions, compare_if_possible, import_checked
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.csv_table import CsvTable, parse_table
from roofcast.serving.jobs.rows import parse_jobs
from roofcast.training.drift.drift_report import GroupErrors, score_groups
from roofcast.training.jobs.job_bundle import JobBundle
from roofcast.training.jobs.job_table import JobTable, build_job_table, framework_families
from roofcast.training.jobs.run_ratios import run_ratios
from roofcast.training.lifecycle.shipped import shipped_limits

if TYPE_CHECKING:
    from roofcast.data.store.measurement_store import Added, MeasurementStore

SOURCE: Final = "rows"
"""Name of JSON rows in messages; their lines count from 1."""

OWN_CAMPAIGN: Final = "own"
RATE: Final = "throughput_token_per_s"

_LOG_SUFFIXES: Final = (".log", ".out")
"""Of files that are logs whatever they hold, so that a message names what was expected."""


def read_runs(
    rows: Sequence[Mapping[str, Any]],
    catalog: Catalog,
    campaign: str | None = None,
    source: str = SOURCE,
    lines: Sequence[int] = (),
) -> pd.DataFrame:
    """Return the validated runs of rows in the columns of the training schema, with ids of the catalogue.

    A cell that is absent, null or an empty text is blank. A throughput that is blank follows from the step time, the
    global batch and the length of the sequences.

    `campaign`: campaign of the rows without one; `OWN_CAMPAIGN` by default. `source` and `lines`: file name and line
    of each row, for messages; rows are counted from 1 if there are no lines. Raises `SchemaError` if a row breaks the
    schema, has an unknown name, or a split that the model or accelerators do not admit; names line and field of the
    first fault of each column and row.
    """
    lines = lines or range(1, len(rows) + 1)
    filled = [{**row, "campaign": row.get("campaign") or campaign or OWN_CAMPAIGN} for row in rows]
    names = dict.fromkeys(name for row in filled for name in row)
    cells = {name: [None if row.get(name) == "" else row.get(name) for row in filled] for name in names}
    try:
        table = validate_training_measurements(pd.DataFrame(cells, dtype=object), source, lines)
    except SchemaError as error:
        jobs = [{name: cell for name, cell in row.items() if name in TRAINING_CONFIG_COLUMNS} for row in filled]
        named = {(one.line, one.field) for one in error.all if isinstance(one, SchemaError)}
        others = [one for one in _job_errors(jobs, catalog, source, lines) if (one.line, one.field) not in named]
        raise join_errors([error, *others]) from error
    _raise_all(_job_errors(_jobs_of(table), catalog, source, lines))
    computed = token_per_step(table) / table["step_time_s"]
    is_derived = table[RATE].isna() & computed.notna()
    derived = table["derived"].mask(is_derived, (table["derived"] + " " + RATE).str.strip())
    runs = table.assign(**{RATE: table[RATE].fillna(computed), "derived": derived})
    models = {name: catalog.model(name).id for name in runs["model"].unique()}
    accelerators = {name: catalog.accelerator(name).id for name in runs["accelerator"].unique()}
    return runs.assign(model=runs["model"].map(models), accelerator=runs["accelerator"].map(accelerators))


def _jobs_of(table: pd.DataFrame) -> list[Any]:
    return table[list(TRAINING_CONFIG_COLUMNS)].to_dict("records")


def _job_errors(
    jobs: Sequence[Mapping[str, Any]], catalog: Catalog, source: str, lines: Sequence[int]
) -> list[SchemaError]:
    _, problems = parse_jobs(jobs, catalog, TRAINING_CONFIG_COLUMNS, is_measured=True)
    return [
        SchemaError(one.field, one.message, source, line)
        for line, problem in zip(lines, problems, strict=True)
        if problem is not None
        for one in (problem, *problem.further)
    ]


def _raise_all(errors: Sequence[SchemaError]) -> None:
    if errors:
        raise join_errors(errors)


def import_runs(
    stores: StoreAccess,
    catalogs: LiveCatalog,
    rows: Sequence[Mapping[str, Any]],
    configs: Iterable[tuple[str, Config]] = (),
    *,
    campaign: str | None = None,
    source: str = SOURCE,
    lines: Sequence[int] = (),
    **options: Unpack[ImportOptions],
) -> Added:
    """Store measured training jobs and the models of named configurations: see `import_checked` and `read_runs`.

    Rows far from what others measured on alike stacks are in quarantine.

    Raises `SchemaError` if a row is invalid, see `read_runs`, or has a rate above the peak; names the line and field
    of each. Raises `InputError` or `NotReadyError` as of `import_checked`.
    """

    def check(catalog: Catalog) -> tuple[pd.DataFrame, pd.Series]:
        runs = read_runs(rows, catalog, campaign, source, lines)
        job_rows = build_job_table(runs, catalog)
        _check_rates(job_rows, source, lines or range(1, len(rows) + 1))
        return runs, shipped_limits(TRAINING).reasons(*run_ratios(job_rows))

    return import_checked(stores, catalogs, TRAINING, check, configs, **options)


def read_run_file(
    content: bytes, name: str, overrides: Mapping[str, str], catalog: Catalog, max_row: int | None = None
) -> CsvTable:
    """Return the measured training jobs of a CSV file, or the one of a log, with the user's values in blank cells.

    `name`: of the file, for messages; by the suffix `.log` or `.out` it is a log, whatever it holds. `max_row`: most
    rows of a CSV file. Raises `SchemaError` as of `parse_table` and `read_job_log`, if there is no row, a column is
    named twice, a cell contradicts its value, or the model of the catalogue has other layers or another width than
    the log's.
    """
    text = content.decode(errors="replace")
    if Path(name).suffix in _LOG_SUFFIXES or is_job_log(text, name):
        return _log_table(text, name, overrides, catalog)
    table = parse_table(content, name, max_row)
    if not table.rows:
        raise SchemaError("", "holds no row below its header", name, 2)
    return _filled(table, overrides, name)


def _log_table(text: str, name: str, overrides: Mapping[str, str], catalog: Catalog) -> CsvTable:
    log = read_job_log(text, name, overrides)
    spec = catalog.model(str(log.cells["model"]))
    for shape, count in log.shape.items():
        if getattr(spec, shape) != count:
            problem = f"is {spec.id}, whose {shape} is {getattr(spec, shape)}; the log says {count}"
            raise SchemaError("model", problem, name, log.line)
    return CsvTable(list(log.cells), [[str(cell) for cell in log.cells.values()]], [log.line])


def _filled(table: CsvTable, overrides: Mapping[str, str], name: str) -> CsvTable:
    rows = [fill_blanks(row, overrides, name, line) for row, line in zip(table.records(), table.lines, strict=True)]
    header = list(dict.fromkeys(column for row in rows for column in row))
    return CsvTable(header, [[row[column] for column in header] for row in rows], table.lines)


def _check_rates(rows: JobTable, source: str, lines: Sequence[int]) -> None:
    # no run reaches the peak of its accelerators: the unit or the count is wrong
    mfu = rows.measured_rate / rows.peak_token_per_s
    _raise_all([
        SchemaError(
            RATE,
            f"of all accelerators together is {mfu[i]:.3g} times what their peak admits; check the unit, "
            "n_accelerator and the length of the sequences",
            source,
            lines[i],
        )
        for i in np.flatnonzero(mfu > 1.0).tolist()
    ])  # fmt: skip


MAX_COMPARED: Final = 200
"""Runs of an import that are predicted: those with the least ids, which are hashes of their content."""

LEVEL: Final = 0.9


class JobImportErrors(BaseModel):
    """Predicted against actual of the runs of an import that the predictor has not learnt.

    `groups`: errors of rates and peak memory, by accelerator, framework (`engine_version`), lineage and stack.
    """

    predictor_version: str
    level: float
    n_row: Annotated[int, Field(description="Runs that were compared, 200 at most.")]
    n_learnt: Annotated[int, Field(description="Runs of the import that the predictor has learnt.")]
    groups: list[GroupErrors]


def compare_runs(
    store: MeasurementStore, catalog: Catalog, champion: Callable[[], LoadedModel[JobBundle]], added: Added
) -> JobImportErrors | None:
    """Return the errors of the champion on an import: see `compare_if_possible`."""

    def compare(import_id: str) -> JobImportErrors:
        runs = store.training.imported.load_import(import_id, MAX_COMPARED)
        return score_runs(champion(), catalog, runs)

    return compare_if_possible(added, compare)


def score_runs(active: LoadedModel[JobBundle], catalog: Catalog, runs: pd.DataFrame) -> JobImportErrors:
    """Return the errors of the champion on stored runs, whose plans are as they were stated."""
    new = runs[~runs["id"].isin(active.bundle.row_ids)]
    level = min(LEVEL, active.bundle.predictor.highest_coverage)
    return JobImportErrors(
        predictor_version=active.champion.version,
        level=level,
        n_row=len(new),
        n_learnt=len(runs) - len(new),
        groups=score_groups(_scores(active, build_job_table(new, catalog), level, catalog)) if len(new) else [],
    )


def _scores(active: LoadedModel[JobBundle], rows: JobTable, level: float, catalog: Catalog) -> pd.DataFrame:
    p = active.bundle.predictor.predict(rows.measurements, coverage=level, catalog=catalog)
    groups = pd.DataFrame({
        "row": range(len(rows)), "configuration": range(len(rows)), "accelerator": rows.text("accelerator"),
        "engine_version": framework_families(rows.measurements), "lineage": rows.groups, "stack": rows.text("stack"),
    })  # fmt: skip
    rate = rows.measured_rate, p.token_per_s_per_accelerator, p.token_per_s_per_accelerator_low
    memory = rows.measured_memory, p.peak_memory_byte, p.peak_memory_byte_low
    parts = [
        groups.assign(metric=metric, measured=measured, predicted=predicted, width=np.log(predicted / low))
        for metric, (measured, predicted, low) in (
            ("throughput_token_per_s", rate), ("memory_byte_per_accelerator", memory),
        )
    ]  # fmt: skip
    scored = pd.concat(parts, ignore_index=True).dropna(subset="measured")
    return scored.assign(log_error=np.log(scored["measured"] / scored["predicted"]))
