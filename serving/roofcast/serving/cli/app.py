"""The command line: everything that the service does, without a server."""

import gc
import importlib.metadata
from typing import Annotated, Final

import typer

from roofcast.serving.cli.arguments.usage import Command, Group
from roofcast.serving.cli.commands.catalog_commands import accelerators, engines, models
from roofcast.serving.cli.commands.drift_command import drift
from roofcast.serving.cli.commands.explain import explain, whatif
from roofcast.serving.cli.commands.job_commands import predict as train_predict
from roofcast.serving.cli.commands.job_commands import recommend as train_recommend
from roofcast.serving.cli.commands.job_commands import training
from roofcast.serving.cli.commands.measure import measure
from roofcast.serving.cli.commands.measurement_commands import campaigns, formats, import_, measurements
from roofcast.serving.cli.commands.offers import offers
from roofcast.serving.cli.commands.predict import predict
from roofcast.serving.cli.commands.predictor_commands import (
    export,
    measure_next,
    promote,
    retrain,
    retrainings,
    rollback,
    scoreboard,
)
from roofcast.serving.cli.commands.recommend import recommend
from roofcast.serving.cli.commands.service_commands import keys, serve
from roofcast.serving.cli.commands.stack_commands import stacks
from roofcast.serving.cli.commands.versions import runs, versions
from roofcast.serving.cli.commands.watch import watch
from roofcast.serving.cli.console import report_errors
from roofcast.serving.logs import configure_logs

GC_THRESHOLD: Final = 50_000
"""New objects after which the collector of cycles looks at them."""

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=__doc__,
    context_settings={
        "token_normalize_func": lambda name: name.replace("_", "-")
    },  # names as in files: --n_input_token
)

for command in (serve, recommend, predict, explain, whatif, measure_next, measure, watch, drift):
    app.command()(command)
for command in (retrain, promote, rollback):
    app.command()(command)
app.command("import")(import_)
for command in (runs, accelerators, engines, offers, campaigns, formats, export, scoreboard):
    app.command()(command)
app.add_typer(models, name="models")
app.add_typer(measurements, name="measurements")
app.add_typer(versions, name="versions")
app.add_typer(retrainings, name="retrainings")
app.add_typer(keys, name="keys")
app.add_typer(stacks, name="stacks")
app.add_typer(training, name="training")
for name, command in (("train-predict", train_predict), ("train-recommend", train_recommend)):
    app.command(name, hidden=True)(command)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"roofcast {importlib.metadata.version('roofcast')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the package's version, and exit."
        ),
    ] = False,
) -> None:
    """Take the options before the command."""


@app.command()
def reference() -> None:
    """Print the reference of settings, errors and columns in Markdown."""
    from roofcast.serving.cli.reference import reference as markdown

    print(markdown(), end="")


for registered in app.registered_groups:
    registered.cls = Group
for group in (app, *(one.typer_instance for one in app.registered_groups)):
    for info in group.registered_commands if group else ():
        info.cls = Command


def main() -> None:
    """Run the command line.

    Imports make many objects and no cycles, so the collector of cycles runs seldom: a tenth of the time of a start.
    """
    gc.set_threshold(GC_THRESHOLD)
    configure_logs()
    with report_errors():
        app()
