"""The commands that list models, accelerators and what engines run, remove a model, and add an accelerator."""

from pathlib import Path
from typing import Annotated, Final

import typer

from roofcast.data.errors import InputError, SchemaError
from roofcast.data.model_config.class_defaults import table_version
from roofcast.data.units import BYTE_PER_GB, PARAMETER_PER_BILLION
from roofcast.serving.cli.arguments.options import require_one, require_with
from roofcast.serving.cli.console import note, show, step, warn
from roofcast.serving.cli.context import COMMAND_LINE, AsJson, Server, open_catalog, open_model_catalog, open_service
from roofcast.serving.cli.remote import ask

N_EXAMPLE: Final = 2
"""Most accelerators that stand for a target."""

models = typer.Typer(help="List the models of the catalogue and the registered ones, remove a registered one.")


@models.callback(invoke_without_command=True)
def list_models(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the models of the catalogue and the registered ones."""
    if context.invoked_subcommand:
        return
    specs = open_model_catalog().models.values()
    rows = [
        {
            "id": spec.id,
            "n_param": f"{spec.n_param / PARAMETER_PER_BILLION:,.1f}B",
            "active": f"{spec.n_param_active / PARAMETER_PER_BILLION:,.1f}B",
            "precision": spec.weight_precision,
        }
        for spec in specs
    ]
    show([spec.model_dump(mode="json") for spec in specs] if as_json else rows, as_json=as_json)
    if not as_json:
        note(f"what a config leaves to its class is that of transformers {table_version()}")


@models.command()
def remove(
    name: Annotated[str, typer.Argument(help="A model that an import or a profile registered.")],
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Remove a registered model; withdraw the measurements that refer to it first."""
    if server:
        with ask(server) as client:
            id_ = client.remove_model(name)["id"]
    else:
        id_ = open_service().catalogs.remove_model(name, COMMAND_LINE).id
    show([{"removed": id_}], as_json=as_json)


def accelerators(
    add: Annotated[Path | None, typer.Option(metavar="FILE", help="Add an accelerator of your own.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="With --add: replace your own of the same id.")] = False,
    template: Annotated[bool, typer.Option("--template", help="Print a template for --add.")] = False,
    lint: Annotated[bool, typer.Option("--lint", help="Report implausible numbers in data sheets.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the accelerators of the catalogue and your own, or add one."""
    require_one({"add": add, "template": template, "lint": lint})
    require_with("add", add, {"replace": replace})
    if template:
        from roofcast.data.catalog.accelerator_file import accelerator_template

        print(accelerator_template(), end="")
    elif add:
        _add_accelerator(add, replace=replace, as_json=as_json)
    elif lint:
        _show_findings(as_json=as_json)
    else:
        specs = open_catalog().accelerators.values()
        rows = [
            {
                "id": spec.id,
                "memory_gb": round(spec.memory_byte / BYTE_PER_GB, 1),
                "bandwidth_gb_per_s": round(spec.bandwidth_byte_per_s / BYTE_PER_GB),
            }
            for spec in specs
        ]
        show([spec.model_dump(mode="json") for spec in specs] if as_json else rows, as_json=as_json)


_PROVENANCE: Final = {"source", "date", "evidence"}
"""Cells of a fact that only JSON has."""


def engines(
    engine: Annotated[str, typer.Option(help="Facts about this engine alone.")] = "",
    accelerator: Annotated[str, typer.Option(help="Facts about this accelerator alone.")] = "",
    as_json: AsJson = False,
) -> None:
    """List what runs and what does not: engine, versions, targets of accelerators, formats, kinds of models.

    JSON has the source and date of each fact too.
    """
    from roofcast.data.catalog.support_rows import load_support, target_of
    from roofcast.features.validity.engine_choice import is_engine, unknown_engine_error
    from roofcast.features.validity.engine_support import canonical_engine, rows_of_target

    if engine and not is_engine(engine):
        raise unknown_engine_error(engine)
    part = open_catalog().accelerator(accelerator) if accelerator else None
    target = target_of(part) if part else ""
    rows = rows_of_target(target) if part else load_support()
    facts = [row.model_dump() for row in rows if engine in ("", row.engine) or row.engine == canonical_engine(engine)]
    cells = [{name: value for name, value in row.items() if name not in _PROVENANCE} for row in facts]
    for row in cells:
        row["targets"] = (target,) if target and "*" not in row["targets"] else row["targets"]
    words = [{name: " ".join(one) if isinstance(one, tuple) else one for name, one in row.items()} for row in cells]
    show(facts if as_json else words, as_json=as_json)
    if not as_json:
        _explain_targets({name for row in cells for name in row["targets"]} | {target}, part.name if part else "")


def _explain_targets(shown: set[str], part: str) -> None:
    from roofcast.data.catalog.support_rows import target_names, target_of

    parts: dict[str, list[str]] = {}
    for spec in open_catalog().accelerators.values():
        parts.setdefault(target_of(spec), []).append(spec.name)
    meanings = [
        f"{code} = {name.removesuffix(f' ({code})')}: "
        f"{part or ', '.join(parts[code][:: -(-len(parts[code]) // N_EXAMPLE)])}"
        for code, name in sorted(target_names().items())
        if code in shown & parts.keys() and name.endswith(f"({code})")
    ]
    note("; ".join(["targets: * is any", *meanings]))


def _add_accelerator(file: Path, *, replace: bool, as_json: bool) -> None:
    from roofcast.data.catalog import load_catalog
    from roofcast.data.catalog.accelerator_file import load_accelerator_file
    from roofcast.data.catalog.accelerator_lint import check_sheet_units
    from roofcast.serving.app_state.catalog.user_files import ACCELERATORS, add_accelerator
    from roofcast.serving.app_state.settings import load_settings

    home, sheet = load_settings().home, load_accelerator_file(file)
    try:
        check_sheet_units(sheet, load_catalog().accelerators.values())
    except InputError as error:
        cure = f"or, if it is correct, copy the file into {home / ACCELERATORS}"
        raise SchemaError(error.field, f"{error.problem}, {cure}", file.name) from error
    spec, path, findings = add_accelerator(file, home, open_catalog(), replace=replace)
    for finding in findings:
        warn(str(finding))
    if as_json:
        show([{"id": spec.id, "path": path}], as_json=True)
    else:
        print(f"{spec.id} is stored in {path}")
    if findings:
        step("if a number is wrong, correct your file and add it again with --replace")


def _show_findings(*, as_json: bool) -> None:
    from dataclasses import asdict

    from roofcast.data.catalog.accelerator_lint import lint_accelerators

    findings = lint_accelerators(open_catalog().accelerators.values())
    show([asdict(finding) for finding in findings], as_json=as_json)
