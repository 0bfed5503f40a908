"""Generator of docs/REFERENCE.md: settings, errors, columns and coefficients, read from the code."""

import inspect
from collections.abc import Iterable, Iterator

import numpy as np

import roofcast.data.store.database.sqlite_file  # noqa: F401  (it defines an error)
from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info
from roofcast.data.catalog.accelerator_file import FIELDS as ACCELERATOR_FIELDS
from roofcast.data.errors import RoofcastError
from roofcast.data.importers import FORMATS
from roofcast.data.measurements.schema import (
    CONTEXT_COLUMNS,
    INPUT_COLUMNS,
    OUTCOME_COLUMNS,
    QUESTION_COLUMNS,
    REFERENCE_METRICS,
)
from roofcast.data.prices.offer_file import OFFER_FIELDS
from roofcast.features.columns import DESCRIPTORS, FEATURES, Column
from roofcast.features.descriptors.assumptions import USUAL
from roofcast.features.engine.coefficients import PRIORS
from roofcast.serving.app_state.catalog.user_files import OWNED_FIELDS
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.jobs.job_predictions import ANSWER_COLUMNS as JOB_ANSWERS
from roofcast.serving.jobs.rows import JOB_COLUMNS
from roofcast.serving.predict.row_answers import MEANINGS, UNCALIBRATED_COLUMNS
from roofcast.serving.recommend.demand.slo import FLOORS, METRIC_OF


def reference() -> str:
    """Return the reference in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Reference"
    yield ""
    yield "Written by `make reference` from the code; a test fails when the two differ."
    yield from _section("Settings", _table(("variable", "default", "meaning"), _settings()))
    yield from _section("Errors", _table(("error", "is a", "meaning"), _errors(RoofcastError)))
    yield from _section("Limits", _limits())
    yield from _section("Rows of questions", [_names(INPUT_COLUMNS)])
    yield from _section("Usual values", _usual_values())
    yield from _section("Rows of answers", _answer_columns())
    yield from _section("Rows of references", [_names([*INPUT_COLUMNS, *REFERENCE_METRICS])])
    yield from _section("Rows of measurements", [_names([*QUESTION_COLUMNS, *OUTCOME_COLUMNS, *CONTEXT_COLUMNS])])
    yield from _section("Rows of training jobs", [_names(JOB_COLUMNS)])
    yield from _section("Rows of training answers", [_names(JOB_ANSWERS)])
    yield from _section("Import formats", _table(("format", "title"), ((f.name, f.title) for f in FORMATS.values())))
    yield from _section("Files of accelerators", [_names(ACCELERATOR_FIELDS)])
    yield from _section("Files of offers", [_names(OFFER_FIELDS)])
    yield from _section("Files of owned hardware", [_names(OWNED_FIELDS)])
    yield from _section("Campaigns", _table(("campaign", "rows", "licence", "source"), _campaigns()))
    yield from _section("Descriptors", _table(("column", "unit", "meaning"), _columns(DESCRIPTORS)))
    yield from _section("Features", _table(("column", "unit", "meaning"), _columns(FEATURES)))
    yield from _section(
        "Coefficients",
        _table(("coefficient", "prior", "between engines", "unit", "meaning", "source"), _coefficients()),
    )


def _limits() -> Iterator[str]:
    yield _names(name for name in METRIC_OF if name not in FLOORS)
    yield from ("", "read `metric:statistic<=value` in `ms` or `s`;", "")
    yield _names(FLOORS)
    yield from ("", "read `metric>=value` in tokens per second. [WORKLOADS.md](WORKLOADS.md) says more.")


def _usual_values() -> Iterator[str]:
    yield "A question is about a service in steady state. An answer assumes these values where columns are blank,"
    yield "lists in `assumed` those that have an effect, and its interval is that of the question with these values."
    yield ""
    yield from _table(("column", "usual value"), ((f"`{name}`", value) for name, value in USUAL.items()))


def _answer_columns() -> Iterator[str]:
    yield from _table(("column", "unit", "meaning"), ((f"`{name}`", *of) for name, of in MEANINGS.items()))
    yield from ("", "With references there follow, without them,", "", _names(UNCALIBRATED_COLUMNS) + ".")


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    yield from lines


def _table(header: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _settings() -> Iterator[tuple[object, ...]]:
    for name, field in Settings.model_fields.items():
        variable = field.validation_alias or f"ROOFCAST_{name.upper()}"
        default = "the platform's user data folder" if field.default_factory else f"`{field.default!r}`"
        yield f"`{variable}`", default, " ".join((field.description or "").split())


def _errors(error: type[RoofcastError]) -> Iterator[tuple[object, ...]]:
    first_line = (inspect.getdoc(error) or "").partition("\n")[0]
    yield f"`{error.__name__}`", f"`{error.__base__.__name__}`" if error.__base__ else "", first_line
    for child in (one for one in error.__subclasses__() if one.__module__ == RoofcastError.__module__):
        yield from _errors(child)


def _campaigns() -> Iterator[tuple[object, ...]]:
    for info in map(load_campaign_info, CAMPAIGNS):
        yield f"`{info.name}`", info.n_row, info.licence, info.source


def _columns(columns: Iterable[Column]) -> Iterator[tuple[object, ...]]:
    for column in columns:
        sign = {1: " More of it never shortens a latency.", -1: " More of it never lengthens a latency.", 0: ""}
        yield f"`{column.name}`", column.unit, column.meaning + sign[column.sign]


def _coefficients() -> Iterator[tuple[object, ...]]:
    for name, prior in PRIORS.items():
        spread = f"x/ {np.exp(prior.engine_log_sd):.2f}" if prior.engine_log_sd else ""
        value = f"{prior.median:g} (x/ {np.exp(prior.log_sd):.2f})"
        yield f"`{name}`", value, spread, prior.unit, prior.meaning, prior.source
