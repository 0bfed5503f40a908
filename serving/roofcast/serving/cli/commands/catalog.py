"""The commands that list models, accelerators and offers, and add your own."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofcast.data.errors import InputError, SchemaError
from roofcast.serving.cli.console import show, step, warn
from roofcast.serving.cli.context import AsJson, open_catalog, open_model_catalog, today

if TYPE_CHECKING:
    from roofcast.data.catalog import Catalog
    from roofcast.serving.app_state.user_catalog import AddedOffers


def models(as_json: AsJson = False) -> None:
    """List the models of the catalogue and the registered ones."""
    columns = {
        "id",
        "lineage",
        "n_layer",
        "hidden_size",
        "n_param",
        "n_param_active",
        "attention",
        "weight_precision",
    }
    specs = open_model_catalog().models.values()
    show([spec.model_dump(mode="json", include=None if as_json else columns) for spec in specs], as_json=as_json)


def accelerators(
    add: Annotated[Path | None, typer.Option(metavar="FILE", help="Add an accelerator of your own.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="With --add: replace your own of the same id.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a template for --add.")] = False,
    lint: Annotated[bool, typer.Option("--lint", help="Report implausible numbers in data sheets.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the accelerators of the catalogue and your own, or add one."""
    _require_one({"add": add, "template": template, "lint": lint})
    _require_with("add", add, {"replace": replace})
    if template:
        from roofcast.data.catalog.accelerator_file import accelerator_template

        print(accelerator_template(), end="")
    elif add:
        _add_accelerator(add, replace=replace)
    elif lint:
        _show_findings(as_json=as_json)
    else:
        columns = {"id", "memory_byte", "bandwidth_byte_per_s", "link", "link_domain_size"}
        specs = open_catalog().accelerators.values()
        show([spec.model_dump(mode="json", include=None if as_json else columns) for spec in specs], as_json=as_json)


def _add_accelerator(file: Path, *, replace: bool) -> None:
    from roofcast.data.catalog import load_catalog
    from roofcast.data.catalog.accelerator_file import load_accelerator_file
    from roofcast.data.catalog.accelerator_lint import check_sheet_units
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_accelerator
    from roofcast.serving.app_state.user_files import ACCELERATORS

    home, sheet = load_settings().home, load_accelerator_file(file)
    try:
        check_sheet_units(sheet, load_catalog().accelerators.values())
    except InputError as error:
        cure = f"or, if it is correct, copy the file into {home / ACCELERATORS}"
        raise SchemaError(error.field, f"{error.problem}, {cure}", file.name) from error
    spec, path, findings = add_accelerator(file, home, open_catalog(), replace=replace)
    for finding in findings:
        warn(str(finding))
    print(f"{spec.id} is stored in {path}")
    if findings:
        step("if a number is wrong, correct your file and add it again with --replace")


def _show_findings(*, as_json: bool) -> None:
    from dataclasses import asdict

    from roofcast.data.catalog.accelerator_lint import lint_accelerators

    findings = lint_accelerators(open_catalog().accelerators.values())
    show([asdict(finding) for finding in findings], as_json=as_json)


def offers(
    *,
    add: Annotated[Path | None, typer.Option(metavar="FILE", help="Add the offers of a CSV or TOML file.")] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="CURRENCY=USD", help="With --add: exchange rate, such as EUR=1.08; repeatable."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --add: replace the offers of an earlier file of the same name.")
    ] = False,
    add_skypilot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the offers of a vms.csv of SkyPilot's catalogue.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="With --add-skypilot: provider of the instances.")] = None,
    as_of: Annotated[
        dt.datetime | None, typer.Option(formats=["%Y-%m-%d"], help="With --add-skypilot: date of the prices.")
    ] = None,
    licence: Annotated[str | None, typer.Option(help="With --add-skypilot: licence of the file.")] = None,
    add_owned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the hourly cost of a server of your own.")
    ] = None,
    owned_template: Annotated[
        bool, typer.Option("--owned-template", help="Print a template for --add-owned.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the dated prices of the catalogue and your own, or add some."""
    _require_one({"add": add, "add-skypilot": add_skypilot, "add-owned": add_owned, "owned-template": owned_template})
    _require_with("add", add, {"rate": rate, "replace": replace})
    _require_with("add-skypilot", add_skypilot, {"provider": provider, "as-of": as_of, "licence": licence})
    if owned_template:
        from roofcast.serving.app_state.user_catalog import OWNED_TEMPLATE

        print(OWNED_TEMPLATE, end="")
    elif add:
        _add_offers(add, rate or [], replace=replace)
    elif add_owned:
        _add_owned(add_owned)
    elif add_skypilot:
        _add_skypilot(add_skypilot, provider, as_of, licence)
    else:
        _list_offers(open_catalog(), as_json=as_json)


def _add_offers(file: Path, rates: list[str], *, replace: bool) -> None:
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_offers
    from roofcast.serving.cli.files import parse_rates

    parsed = parse_rates(rates)
    _show_added(add_offers(file, load_settings().home, open_catalog(), parsed, replace=replace))


def _add_owned(file: Path) -> None:
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_owned

    _show_added(add_owned(file, load_settings().home, open_catalog(), today()))


def _add_skypilot(file: Path, provider: str | None, as_of: dt.datetime | None, licence: str | None) -> None:
    from roofcast.serving.app_state.settings import load_settings
    from roofcast.serving.app_state.user_catalog import add_skypilot

    if not provider or as_of is None:
        raise InputError("add-skypilot", "needs --provider and --as-of, which the file does not hold")
    home, day = load_settings().home, as_of.date()
    _show_added(add_skypilot(file, home, open_catalog(), provider=provider, as_of=day, licence=licence or ""))


def _show_added(added: AddedOffers) -> None:
    for remark in added.remarks:
        warn(remark)
    if len(added.offers) == 1:
        (offer,) = added.offers
        print(f"{offer.id} at {offer.price_usd_per_h.normalize():f} USD/h is stored in {added.path}")
    else:
        print(f"{len(added.offers)} offers are stored in {added.path}")


def _list_offers(catalog: Catalog, *, as_json: bool) -> None:
    from roofcast.serving.app_state.user_files import staleness_warnings

    for warning in staleness_warnings(catalog.offers, today()):
        warn(warning)
    hidden = {"vcpu", "memory_byte", "source", "licence"}
    rows = [offer.model_dump(mode="json", exclude=None if as_json else hidden) for offer in catalog.offers]
    show(rows, as_json=as_json)


def _require_one(options: dict[str, Any]) -> None:
    set_ = [name for name, value in options.items() if value]
    if len(set_) > 1:
        raise InputError(set_[1], f"cannot be combined with --{set_[0]}; leave one out")


def _require_with(main: str, main_value: Any, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value and not main_value:
            raise InputError(name, f"requires --{main}")
