"""The commands that import benchmark files, and list measurements, campaigns and formats."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import RoofcastError, SchemaError, UnknownNameError
from roofcast.data.measurements.target import INFERENCE, Target
from roofcast.serving.cli.commands.drift_command import show_drift
from roofcast.serving.cli.console import fold, note, show, track, warn
from roofcast.serving.cli.context import (
    COMMAND_LINE,
    AsJson,
    Claim,
    Compare,
    DryRun,
    ModelConfigs,
    SetColumns,
    TargetOption,
    count_own_campaigns,
    load_predictor,
    open_model_catalog,
    open_service,
    open_store,
)
from roofcast.serving.cli.files import parse_configs
from roofcast.serving.display_names import count_text

if TYPE_CHECKING:
    import pandas as pd

    from roofcast.data.store.measurement_store import Added
    from roofcast.data.store.provenance import Action
    from roofcast.serving.composition import Service
    from roofcast.training.drift.drift_report import DriftReport

logger = logging.getLogger(__name__)

TABLE_COLUMNS: Final = (
    "campaign", "date", "model", "accelerator", "n_accelerator", "engine", "engine_version", "n_input_token",
    "n_output_token", "concurrency", "request_rate", "n_request", "statistic", "ttft_s", "tpot_s", "e2e_s",
    "output_throughput_token_per_s", "import_id", "key", "state", "reason",
)  # fmt: skip
"""Columns of the printed table, which leaves out those without a value; JSON has all columns."""

TRAINING_TABLE_COLUMNS: Final = (
    "campaign", "model", "accelerator", "n_accelerator", "framework", "method", "n_token_per_sequence",
    "n_global_batch_sequence", "throughput_token_per_s", "memory_byte_per_accelerator", "import_id", "key", "state",
    "reason",
)  # fmt: skip
"""The same of measured training jobs."""

AUTO: Final = "auto"
"""In place of a format: detect it."""

REPORT_HELP: Final = """Report the rows of each campaign: n_read published rows, n_rejected of them by a rule, n_kept
measurements (one row for each statistic), and n_learnable of these that training uses; rejected and not_learnt
count the rows by rule. Campaigns that teach the predictor of training jobs follow those of serving.
Your own campaigns come last: an import stores all rows of a file or none, so none is rejected."""


def import_(
    *,
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="A name of `roofcast formats`, or auto.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files or folders.")],
    campaign: Annotated[str | None, typer.Option(help="Name of the campaign; the format's name by default.")] = None,
    model_config: ModelConfigs = None,
    given: SetColumns = None,
    dry_run: DryRun = False,
    claim: Claim = False,
    compare: Compare = True,
    as_json: AsJson = False,
) -> None:
    """Import benchmark files into the store: all rows, or none."""
    summary, report = import_files(
        format_, paths, campaign, model_config or [], given or [], dry_run=dry_run, claim=claim, compare=compare
    )
    if as_json:
        show([{**summary, "drift": report and report.model_dump()}], as_json=True)
        return
    print(summary_text(summary))
    if report:
        show_drift(report)
    print(next_step(summary, paths))


def import_files(
    format_: str,
    paths: list[Path],
    campaign: str | None,
    model_config: list[str],
    given: list[str],
    *,
    dry_run: bool = False,
    claim: bool = False,
    compare: bool = True,
) -> tuple[dict[str, Any], DriftReport | None]:
    """Import files with the options of `import_`; return the summary, and the comparison with the predictor."""
    from roofcast.data.importers import FORMATS, detect_format, read_measurements
    from roofcast.data.importers.overrides import MissingColumnsError, parse_overrides
    from roofcast.serving.app_state.imports.measurement_import import check_names
    from roofcast.serving.request_fields import unknown_name_error

    configs, values = parse_configs(model_config), parse_overrides(given)
    name = detect_format(paths).name if format_ == AUTO else format_
    if name not in FORMATS:
        raise unknown_name_error("format", name, [AUTO, *FORMATS])
    service = open_service()
    names = check_names(service.catalogs, configs, dry_run=dry_run, model_cure=model_cure)
    try:
        table = read_measurements(name, paths, campaign, track, values, names=names)
    except MissingColumnsError as error:
        options = {"--campaign": [campaign] if campaign else [], "--model-config": model_config, "--set": given}
        command = ["import", name, *map(str, paths), *_arguments(options), *error.examples]
        example = "for example, with made-up values in place of yours:"
        problem = f"is not in the file; set what is missing, {example}\nroofcast {shlex.join(command)}"
        raise SchemaError(error.field, problem, error.source, error.line) from error
    return import_table(service, name, table, configs, dry_run=dry_run, claim=claim, compare=compare)


def import_table(
    service: Service,
    format_name: str,
    table: pd.DataFrame,
    configs: list[tuple[str, Mapping[str, Any]]],
    *,
    dry_run: bool = False,
    claim: bool = False,
    compare: bool = True,
) -> tuple[dict[str, Any], DriftReport | None]:
    """Import measurements and warn of what is odd; return the summary, and the comparison with the predictor."""
    from roofcast.serving.app_state.imports.import_report import added_warnings, count_failed_runs, import_warnings
    from roofcast.serving.app_state.imports.measurement_import import import_rows

    for warning in import_warnings(table):
        warn(warning)
    added = import_rows(service.stores, service.catalogs, table, configs, dry_run=dry_run, claim_of_keys=claim)
    for warning in added_warnings(added, "command"):
        warn(warning)
    shared = {column: sorted(table[column].unique()) for column in ("campaign", "model", "accelerator")}
    counts = {"n_row": len(table), "n_failed_run": count_failed_runs(table), **asdict(added)}
    summary = {"format": format_name, **shared, **counts, "is_kept": not dry_run}
    report = _compare(service, added) if compare and added.n_new and not dry_run else None
    return summary, report


def summary_text(summary: Mapping[str, Any]) -> str:
    """Return what became of the rows of an import, in lines of up to 80 characters."""
    counts = [f"{summary['n_new']} new", f"{summary['n_known']} stored before"]
    counts += [f"{summary['n_failed_run']} of failed runs"] if summary["n_failed_run"] else []
    counts += [f"{summary['n_quarantined']} in quarantine"] if summary["n_quarantined"] else []
    counts += [f"{summary['n_claimed']} claimed"] if summary["n_claimed"] else []
    rows = f"{count_text(summary['n_row'], 'row')} of the format {summary['format']}: {', '.join(counts)}"
    names = [f"{column} {_shortened(summary[column])}" for column in ("campaign", "model", "accelerator")]
    names += [f"import {summary['import_id']}"] if summary["import_id"] else []
    return "\n".join([fold(rows), *(fold(name) for name in names)])


def _shortened(names: Sequence[str], n: int = 5) -> str:
    more = f" and {len(names) - n} more" if len(names) > n else ""
    return f"{', '.join(names[:n])}{more}"


def next_step(summary: Mapping[str, Any], paths: Sequence[Path]) -> str:
    """Return what to do after an import, with the commands."""
    if not summary["is_kept"]:
        return "\nnext: without --dry-run the rows are stored"
    if not summary["n_new"] + summary["n_claimed"]:
        return "\nnext: nothing, all rows were stored before; `roofcast measurements` lists them"
    files = shlex.join(map(str, paths))
    return (
        f"\nnext: `roofcast campaigns --report` says which rows count, `roofcast retrain` learns them,\n"
        f"and `roofcast stacks add my-stack {files}` calibrates with them at once: --stack my-stack"
    )


def _compare(service: Service, added: Added) -> DriftReport | None:
    from roofcast.serving.drift.import_drift import report_import

    try:
        loaded = load_predictor(service)
        return report_import(loaded.store, loaded.compared_models, added.import_id)
    except RoofcastError as error:
        note(f"the rows are stored, and not compared with the predictor: {error}")
        return None
    except Exception:
        logger.exception("the rows are stored, and not compared with the predictor")
        return None


def _arguments(options: Mapping[str, list[str] | None]) -> list[str]:
    return [part for option, texts in options.items() for text in texts or [] for part in (option, text)]


def model_cure(name: str) -> str:
    """Return how to register a model that is unknown."""
    cure = "give the configuration of your own model with --model-config NAME=PATH, such as"
    return f"{cure} --model-config {shlex.quote(f'{name}=config.json')}"


def formats(as_json: AsJson = False) -> None:
    """List the benchmark formats that `import` reads."""
    from roofcast.data.importers import FORMATS

    rows = [{"name": f.name, "title": f.title, "delivers": f.delivers} for f in FORMATS.values()]
    show(rows, as_json=as_json)


measurements = typer.Typer(help="List the imported measurements, withdraw or confirm them.", no_args_is_help=False)

OfTarget = Annotated[
    Target | None,
    typer.Option(
        "--target",
        help="What they are about: inference or training. Both by default; required where a campaign or a "
        "confirmation matches measurements of both.",
    ),
]


@measurements.callback(invoke_without_command=True)
def list_measurements(
    context: typer.Context,
    *,
    campaign: Annotated[str | None, typer.Option(help="Select an imported campaign.")] = None,
    model: Annotated[str | None, typer.Option(help="Select a model.")] = None,
    accelerator: Annotated[str | None, typer.Option(help="Select an accelerator.")] = None,
    target: TargetOption = INFERENCE,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of rows.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the imported measurements, withdrawn ones too; `campaigns` lists the shipped ones."""
    if context.invoked_subcommand:
        return
    from roofcast.serving.predict.question_rows import rows_from_table

    store, catalog = open_store().of(target), open_model_catalog()
    known = store.campaigns()
    if campaign is not None and campaign not in known:
        raise UnknownNameError("campaign", campaign, known)
    table = store.load(
        campaign,
        limit=limit + 1,
        model=model and catalog.model(model).id,
        accelerator=accelerator and catalog.accelerator(accelerator).id,
        provenance=True,
    )
    if len(table) > limit:
        warn(f"only the first {limit} rows are listed; raise --limit for more")
    first = table.head(limit)
    if not as_json:
        columns = TABLE_COLUMNS if target == INFERENCE else TRAINING_TABLE_COLUMNS
        first = first[[name for name in columns if (first[name].notna() & (first[name] != "")).any()]]
    show(rows_from_table(first), as_json=as_json)


@measurements.command("imports")
def list_imports(as_json: AsJson = False) -> None:
    """List the imports with their keys and numbers of rows, the latest first."""
    summaries = open_store().provenance.imports()
    show([{**summary, "added_at": summary["added_at"].isoformat()} for summary in summaries], as_json=as_json)


def _add_change(name: str, action: Action, help_: str) -> None:
    @measurements.command(name, help=help_)
    def change(
        *,
        import_: Annotated[str | None, typer.Option("--import", metavar="ID", help="Select an import.")] = None,
        campaign: Annotated[str | None, typer.Option("--campaign", help="Select a campaign.")] = None,
        key: Annotated[
            str | None, typer.Option("--key", metavar="NAME", help="Select what an API key stored.")
        ] = None,
        target: OfTarget = None,
        as_json: AsJson = False,
    ) -> None:
        given = {"import_id": import_, "campaign": campaign, "key": key}
        selection = {column: value for column, value in given.items() if value is not None}
        changed = open_store().provenance.change(action, COMMAND_LINE, selection, target=target)
        show([{"action": action, **selection, "n_row": changed.n_row}], as_json=as_json)


_add_change(
    "withdraw",
    "withdrawal",
    "Withdraw measurements: they stay listed, and the next retraining does without them.",
)
_add_change("restore", "restoration", "Undo a withdrawal.")
_add_change(
    "confirm",
    "confirmation",
    "Confirm that measurements in quarantine are right: the next retraining uses them.",
)


def campaigns(
    report: Annotated[bool, typer.Option("--report", help=REPORT_HELP)] = False,
    as_json: AsJson = False,
) -> None:
    """List the measurement campaigns: the shipped ones, then the imported ones."""
    if report:
        _report(as_json=as_json)
        return
    from roofcast.data.campaigns import CAMPAIGNS, load_campaign_info
    from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS, load_job_campaign_info

    shipped = [load_campaign_info(name) for name in CAMPAIGNS]
    shipped += [load_job_campaign_info(name) for name in TRAINING_CAMPAIGNS]
    rows = [{"name": c.name, "n_row": c.n_row, "licence": c.licence, "source": c.source} for c in shipped]
    own = count_own_campaigns()
    rows += [{"name": name, "n_row": n, "licence": "", "source": "imported here"} for name, n in own.items()]
    show(rows, as_json=as_json)


def _report(*, as_json: bool) -> None:
    from roofcast.data.catalog import load_catalog
    from roofcast.serving.app_state.imports.import_report import own_campaign_report
    from roofcast.serving.predict.question_rows import rows_from_table
    from roofcast.training.dataset.review import campaign_report

    store, catalog = open_store(), open_model_catalog()
    own = own_campaign_report(store.load(provenance=True), catalog)
    show([*rows_from_table(campaign_report(load_catalog())), *own], as_json=as_json)
