"""The commands that list accelerators and offers, and take in one's own."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofcast.data.errors import InputError, SchemaError
from roofcast.serving.cli.console import show, warn
from roofcast.serving.cli.context import AsJson, open_catalog, today

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.serving.app_state.user_catalog import AddedOffers


def accelerators(
    add: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep an accelerator of your own.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --add: in place of your own of the same id.")
    ] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a file to fill in for --add.")] = False,
    lint: Annotated[bool, typer.Option("--lint", help="Tell what looks wrong in the data sheets.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the accelerators of the catalogue and your own, or add one."""
    from roofcast.data.catalog.accelerator_file import accelerator_template

    _require_one({"add": add, "template": template, "lint": lint})
    _require_with("add", add, {"replace": replace})
    if template:
        print(accelerator_template(), end="")
    elif add:
        _add_accelerator(add, replace=replace)
    elif lint:
        _show_findings(as_json=as_json)
    else:
        keys = {"id", "memory_byte", "bandwidth_byte_per_s", "link", "link_domain_size"}
        specs = open_catalog().accelerators.values()
        show([s.model_dump(mode="json", include=None if as_json else keys) for s in specs], as_json=as_json)


def _add_accelerator(file: Path, *, replace: bool) -> None:
    from roofcast.data.catalog import load_catalog
    from roofcast.data.catalog.accelerator_file import load_accelerator_file
    from roofcast.data.catalog.accelerator_lint import check_sheet_units
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_accelerator
    from roofcast.serving.app_state.user_files import ACCELERATORS

    home, described = load_settings().home, load_accelerator_file(file)
    try:
        check_sheet_units(described, load_catalog().accelerators.values())
    except InputError as error:
        cure = f"or, if it is right, put the file into {home / ACCELERATORS} yourself"
        raise SchemaError(error.field, f"{error.problem}, {cure}", file.name) from error
    spec, path, findings = add_accelerator(file, home, open_catalog(), replace=replace)
    for finding in findings:
        warn(str(finding))
    typer.echo(f"{spec.id} is kept in {path}")
    if findings:
        typer.echo("if a number is wrong, mend it in your file and add that again with --replace", err=True)


def _show_findings(*, as_json: bool) -> None:
    from dataclasses import asdict

    from roofcast.data.catalog.accelerator_lint import lint_accelerators

    findings = lint_accelerators(open_catalog().accelerators.values())
    show([asdict(finding) for finding in findings], as_json=as_json)


def offers(
    *,
    add: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the offers of a CSV or TOML file.")] = None,
    rate: Annotated[
        list[str] | None, typer.Option(metavar="CURRENCY=USD", help="With --add: what a unit is worth, as EUR=1.08.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --add: drop what a file of the same name brought and this lacks.")
    ] = False,
    add_skypilot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the offers of a vms.csv of SkyPilot's catalogue.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="With --add-skypilot: whose prices they are.")] = None,
    as_of: Annotated[
        dt.datetime | None, typer.Option(formats=["%Y-%m-%d"], help="With --add-skypilot: of which day.")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="With --add-skypilot: that of the file.")] = None,
    add_owned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what a server of your own costs by the hour.")
    ] = None,
    owned_template: Annotated[
        bool, typer.Option("--owned-template", help="Print a file to fill in for --add-owned.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the dated prices of the catalogue and your own, or add some."""
    from roofcast.serving.app_state import user_catalog
    from roofcast.serving.app_state.settings import load_settings

    chosen = {"add": add, "add-skypilot": add_skypilot, "add-owned": add_owned, "owned-template": owned_template}
    _require_one(chosen)
    _require_with("add", add, {"rate": rate, "replace": replace})
    _require_with("add-skypilot", add_skypilot, {"provider": provider, "as-of": as_of, "licence": licence})
    if owned_template:
        print(user_catalog.OWNED_TEMPLATE, end="")
    elif add:
        _add_offers(add, rate or [], replace=replace)
    elif add_owned:
        _show_added(user_catalog.add_owned(add_owned, load_settings().home, open_catalog(), today()))
    elif add_skypilot:
        _add_skypilot(add_skypilot, provider, as_of, licence)
    else:
        _list_offers(open_catalog(), as_json=as_json)


def _add_offers(file: Path, rates: list[str], *, replace: bool) -> None:
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_offers
    from roofcast.serving.cli.files import named_rates

    _show_added(add_offers(file, load_settings().home, open_catalog(), named_rates(rates), replace=replace))


def _add_skypilot(file: Path, provider: str | None, as_of: dt.datetime | None, licence: str | None) -> None:
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_skypilot

    if not provider or as_of is None:
        raise InputError("add-skypilot", "needs --provider and --as-of, which the file does not tell")
    home, day = load_settings().home, as_of.date()
    _show_added(add_skypilot(file, home, open_catalog(), provider=provider, as_of=day, licence=licence or ""))


def _show_added(added: AddedOffers) -> None:
    for remark in added.remarks:
        warn(remark)
    if len(added.offers) == 1:
        (offer,) = added.offers
        typer.echo(f"{offer.id} at {offer.price_usd_per_h.normalize():f} USD/h is kept in {added.path}")
    else:
        typer.echo(f"{len(added.offers)} offers are kept in {added.path}")


def _list_offers(catalog: Catalog, *, as_json: bool) -> None:
    from roofcast.serving.app_state.user_files import staleness_warnings

    listed = catalog.offers
    for warning in staleness_warnings(listed, today()):
        warn(warning)
    dropped = {"vcpu", "memory_byte", "source", "licence"}
    show([o.model_dump(mode="json", exclude=None if as_json else dropped) for o in listed], as_json=as_json)


def _require_one(chosen: dict[str, Any]) -> None:
    given = [f"--{name}" for name, value in chosen.items() if value]
    if len(given) > 1:
        raise InputError(given[1].lstrip("-"), f"does one thing at a time; leave {given[0]} out")


def _require_with(main: str, value: Any, options: dict[str, Any]) -> None:
    for name, given in options.items():
        if given and not value:
            raise InputError(name, f"goes with --{main}")
