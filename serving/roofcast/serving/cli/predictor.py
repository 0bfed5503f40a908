"""The commands about the predictor itself: as a file, and what would make it surer."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from roofcast.data.errors import InputError
from roofcast.serving.cli.console import note, show
from roofcast.serving.cli.context import AsJson, open_app_state


def export(
    file: Annotated[Path, typer.Argument(help="To write; its SHA-256 goes beside it.")], as_json: AsJson = False
) -> None:
    """Write the predictor in service into a file that Python loads without a server or MLflow."""
    from roofcast.training.lifecycle.bundle import checksum_file

    bench = open_app_state()
    bench.refresh()
    loaded = bench.in_service
    try:
        checksum = loaded.bundle.save(file)
    except OSError as error:
        raise InputError("file", f"{file} cannot be written: {error.strerror or error}") from error
    told = {"version": loaded.champion.version, "file": str(file), "sha256": checksum}
    typer.echo(
        json.dumps(told)
        if as_json
        else f"version {told['version']} is in {file}, its checksum in {checksum_file(file).name}: {checksum}"
    )


def measure_next(
    *,
    model: Annotated[
        list[str] | None, typer.Option(help="Of interest, as of `recommend`; may be repeated. All but copies.")
    ] = None,
    accelerator: Annotated[list[str] | None, typer.Option(help="Of interest; may be repeated. All on offer.")] = None,
    isl: Annotated[float, typer.Option(help="Mean input tokens.")] = 1024,
    osl: Annotated[float, typer.Option(help="Mean output tokens.")] = 256,
    concurrency: Annotated[float, typer.Option(help="Requests in flight.")] = 16,
    n: Annotated[int, typer.Option(help="Measurements to name.", min=1, max=100)] = 5,
    as_json: AsJson = False,
) -> None:
    """Name the measurements that would narrow the intervals most, one after another."""
    from roofcast.serving.cli.files import named_or_read
    from roofcast.serving.predict.measure_next import Workload
    from roofcast.serving.predict.measure_next import measure_next as rank

    bench = open_app_state()
    catalog = bench.catalog
    found = [named_or_read(name, catalog) for name in model or ()]
    specs = [catalog.model(m) if isinstance(m, str) else bench.read_config(m["name"], m["config"]) for m in found]
    specs = specs or list({spec.fold_group: spec for spec in catalog.models.values()}.values())
    parts = [catalog.accelerator(name).id for name in accelerator or ()]
    bench.refresh()
    bundle, workload = bench.in_service.bundle, Workload(isl, osl, concurrency)
    rows, n_compared, n_setting = rank(specs, catalog, bundle, accelerators=parts, workload=workload, n=n)
    if n_compared < n_setting:
        note(f"{n_compared} of {n_setting} settings are compared, spread evenly; name a model or accelerator for all")
    title = "measure next; of each metric, the share that it takes off the intervals' width in logarithms, on average"
    show(rows, as_json=as_json, title=title)
