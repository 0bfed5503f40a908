"""The command that watches a running server's metrics, and imports what they count as measurements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.serving.cli.commands.drift_command import show_drift
from roofcast.serving.cli.console import count_steps, note, step, warn
from roofcast.serving.cli.context import AsJson, Compare, DryRun, ModelConfigs, open_service
from roofcast.serving.cli.files import parse_configs
from roofcast.serving.display_names import count_text, quantity_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roofcast.data.importers.server_metrics import Scrape
    from roofcast.serving.measure.server_watch import ServerWatch

FORMAT: Final = "prometheus"
"""In place of a file's format, and the campaign by default."""


def watch(
    *,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="Base URL of a vLLM or SGLang server, whose /metrics is read; its API key is that of "
            "ROOFCAST_ENDPOINT_KEY, or its user:password that of ROOFCAST_ENDPOINT_LOGIN.",
        ),
    ],
    duration_s: Annotated[
        float, typer.Option("--duration", "--duration-s", min=1, max=604_800, help="Seconds to watch.")
    ] = 300,
    interval_s: Annotated[
        float, typer.Option("--interval", "--interval-s", min=0.1, max=3600, help="Seconds between two scrapes.")
    ] = 5,
    served_model: Annotated[str, typer.Option(help="Name of the model at the server, if it serves several.")] = "",
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="COLUMN=VALUE",
            help="What the server does not state, such as accelerator=nvidia-h100-sxm-80gb and n_accelerator=1; "
            "repeatable. A model that is set replaces the served name.",
        ),
    ] = None,
    campaign: Annotated[str, typer.Option(help="Name of the campaign in the store.")] = FORMAT,
    model_config: ModelConfigs = None,
    dry_run: DryRun = False,
    compare: Compare = True,
    as_json: AsJson = False,
) -> None:
    """Watch a running server's metrics for a while, and import its latencies with their load."""
    from roofcast.data.importers.client_runs import table_of_runs
    from roofcast.data.importers.name_check import NameCheck
    from roofcast.data.importers.overrides import check_overrides, check_required, fill_blanks, parse_overrides
    from roofcast.data.importers.server_metrics import run_of_scrapes
    from roofcast.serving.app_state.imports.measurement_import import check_names
    from roofcast.serving.cli.commands.measurement_commands import import_table, model_cure, summary_text
    from roofcast.serving.measure.guidellm import find_key, find_login
    from roofcast.serving.measure.server_watch import ServerWatch

    configs, overrides = parse_configs(model_config or []), check_overrides(parse_overrides(given or []))
    service = open_service()
    watched = ServerWatch(url, find_key(), find_login(), served_model)
    cells = watched.settings(watched.scrape())
    cells |= {"model": ""} if "model" in overrides else {}
    place = f"{watched.url}/metrics"
    known = fill_blanks(cells, overrides, place)

    def names() -> NameCheck:
        return check_names(service.catalogs, configs, dry_run=dry_run, model_cure=model_cure)

    with (check := names()).all_errors():  # before the wait, not after it
        check.check(known, place)
        check_required({**dict.fromkeys(("n_input_token", "n_output_token", "concurrency"), 1), **known}, place)
    scrapes = _watch(watched, duration_s, interval_s)
    with (check := names()).all_errors():
        table = table_of_runs([run_of_scrapes(scrapes, cells, place)], campaign, overrides, check)
    summary, report = import_table(service, FORMAT, table, configs, dry_run=dry_run, compare=compare)
    row = {str(name): value for name, value in table.iloc[0].items()}
    if as_json:
        measured = {name: value for name, value in row.items() if value == value and value != ""}  # noqa: PLR0124
        summary |= {"row": measured, "n_scrape": len(scrapes), "n_missed": watched.n_missed}
        print(json.dumps([{**summary, "drift": report and report.model_dump()}], default=str, allow_nan=False))
        return
    print(_row_text(row))
    print(summary_text(summary))
    if report:
        show_drift(report)


def _watch(watched: ServerWatch, duration_s: float, interval_s: float) -> list[Scrape]:
    step(f"watching {watched.url} for {duration_s:g} s; an interrupt ends it early and keeps what was counted")
    with count_steps("watching") as update:
        scrapes = watched.watch(
            duration_s, interval_s, lambda passed_s: update("watching", int(passed_s), int(duration_s))
        )
    note(f"{count_text(len(scrapes), 'scrape')} of {scrapes[0].engine}")
    if watched.n_missed:
        warn(
            f"{count_text(watched.n_missed, 'scrape')} failed and {'is' if watched.n_missed == 1 else 'are'} left out"
        )
    return scrapes


def _row_text(row: Mapping[str, Any]) -> str:
    load = f"{row['concurrency']:.3g} requests in flight, {row['request_throughput_per_s']:.3g} finished a second"
    lengths = f"{row['n_input_token']:.0f} tokens in, {row['n_output_token']:.0f} out"
    names = {"ttft_s": "TTFT", "tpot_s": "TPOT", "itl_s": "ITL", "e2e_s": "E2E"}
    times = [f"{label} {quantity_text(name, row[name])}" for name, label in names.items() if row[name] == row[name]]
    return "\n".join([f"{lengths}; {load}", f"means: {', '.join(times)}", str(row["note"])])
