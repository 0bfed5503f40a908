"""The commands that explain an answer: parts and bounds of one question, and a sweep over hypothetical hardware."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.units import BYTE_PER_GB, ms_from_s
from roofcast.serving.cli.arguments.options import question_options, with_options
from roofcast.serving.cli.arguments.request_check import (
    Calibration,
    Problems,
    check_question,
    local_question,
    question_row,
)
from roofcast.serving.cli.commands.predict import support_text
from roofcast.serving.cli.console import INDENT, WIDTH, cell_text, fold, note, show, spinner, table_text, warn
from roofcast.serving.cli.context import (
    AsJson,
    Level,
    OperatorOption,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    open_service,
)
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR
from roofcast.serving.display_names import (
    engine_name,
    interval_text,
    metric_name,
    precision_name,
    quantity_text,
    three_digits,
    without_unit,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofcast.data.catalog import Catalog
    from roofcast.serving.composition import Service
    from roofcast.serving.explain.explanation import Explanation
    from roofcast.training.learner.predictor import CalibrationPoints
    from roofcast.training.lifecycle.bundles.bundle import ModelBundle

PlotFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a plot: PNG, SVG or PDF.")]


def _check_scale(options: Sequence[str]) -> None:
    from roofcast.serving.cli.context import open_catalog
    from roofcast.serving.explain.explanation import scale_accelerator

    scale_accelerator(next(iter(open_catalog().accelerators.values())), options)


@with_options(partial(question_options, "model", "accelerator"))
def explain(
    question: dict[str, Any],
    *,
    context: typer.Context,
    scale: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT=FACTOR", help="Scale bandwidth, flops, memory, link or power; repeatable."),
    ] = None,
    level: Level = DEFAULT_LEVEL,
    reference: ReferenceFile = None,
    stack: StackOption = "",
    operator: OperatorOption = DEFAULT_OPERATOR,
    plot: PlotFile = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Explain one question: where the time goes, what bounds it, what fits in memory, and why it is predicted so."""
    problems: Problems = context.obj
    with problems:
        check_question(question, server)
    for one in scale or ():
        with problems:
            _check_scale([one])
    asked = Calibration(stack, server, level, operator, reference).check(problems)
    problems.raise_all()
    if server:
        if scale or plot:
            raise InputError(
                "server", "cannot be combined with --scale or --plot, which need the command's own predictor"
            )
        row, models = question_row(question, server)
        (document,) = asked.ask_service("explain", [row], models)
    else:
        with spinner("explaining"):
            explanation = _explain(question, asked, scale or [])
        if plot:
            from roofcast.serving.explain.explanation_plots import plot_explanation

            _save(plot_explanation(explanation), plot)
        document = explanation.to_json()
    if as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        _show(document)


def _explain(question: dict[str, Any], asked: Calibration, scale: Sequence[str] = (), sweep: str = "") -> Explanation:
    from roofcast.serving.explain import explanation
    from roofcast.serving.predict.question_rows import table_from_rows

    service = open_service()
    row, catalog = local_question(question, service)
    table = table_from_rows([row])
    part = explanation.scale_accelerator(catalog.accelerator(question["accelerator"]), scale)
    table, parts = explanation.sweep_question(table, catalog, sweep) if sweep else (table, [part])
    bundle, points = _choose(service, catalog, asked)
    return explanation.explain(table, catalog, bundle, parts=parts, level=asked.level, references=points)


def _choose(
    service: Service, catalog: Catalog, asked: Calibration
) -> tuple[ModelBundle | None, CalibrationPoints | None]:
    try:
        active = load_predictor(service).active_model
    except NotReadyError:
        warn("no predictor is in service: the estimate uses prior coefficients, and there is no prediction")
    except InputError as error:
        warn(f"the active predictor cannot be used: {error}")
    else:
        return asked.choose(service, catalog, active)
    for option, value in (("stack", asked.stack), ("reference", asked.file)):
        if value:
            raise InputError(option, "needs a predictor; run `roofcast retrain`")
    return None, None


def _check_sweep(sweep: Sequence[str]) -> None:
    from roofcast.serving.cli.context import open_catalog
    from roofcast.serving.explain.explanation import sweep_accelerator

    if len(sweep) != 1:
        raise InputError("sweep", f"one at a time, got {len(sweep)}: {' and '.join(sweep)}")
    sweep_accelerator(next(iter(open_catalog().accelerators.values())), sweep[0])


@with_options(partial(question_options, "model", "accelerator"))
def whatif(
    question: dict[str, Any],
    *,
    context: typer.Context,
    sweep: Annotated[
        list[str],
        typer.Option(
            metavar="WHAT=A,B,...",
            help="Factors on bandwidth, flops, memory, link or power; or node=N5,N3,... or dram=HBM3,HBM4,..., the "
            "first of which is the accelerator's own.",
        ),
    ],
    stack: StackOption = "",
    plot: PlotFile = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Estimate one question on hypothetical hardware, for each step of a sweep; with a stack, predict it too."""
    problems: Problems = context.obj
    with problems:
        check_question(question, server)
    with problems:
        _check_sweep(sweep or [])
    asked = Calibration(stack, server).check(problems)
    problems.raise_all()
    if server and plot:
        raise InputError("server", "cannot be combined with --plot, which needs the command's own predictor")
    from roofcast.serving.explain.explanation import parse_option

    kind, labels = parse_option(sweep[0])
    if server:
        row, models = question_row(question, server)
        documents = asked.ask_service("explain", [row], models, sweep=sweep[0])
    else:
        with spinner("estimating"):
            explanation = _explain(question, asked, sweep=sweep[0])
        documents = [explanation.to_json(i) for i in range(len(labels))]
        if plot:
            from roofcast.serving.explain.explanation_plots import plot_sweep

            _save(plot_sweep(explanation, kind, labels), plot)
    rows = [{kind: label} | _step(document) for label, document in zip(labels, documents, strict=True)]
    if stack:
        rows = [row | _predicted(one["prediction"]) for row, one in zip(rows, documents, strict=True)]
    show(rows if as_json else [_with_units(row) for row in rows], as_json=as_json)


_STEP_ENDS: Final = {"_predicted": " predicted", "_uncalibrated": " without the stack"}
"""Ends of the columns that are predictions, in words; metrics without an end are estimates."""


def _with_units(row: dict[str, Any]) -> dict[str, str]:
    cells, is_predicted = {}, any(name.endswith("_predicted") for name in row)
    for name, value in row.items():
        end = next((end for end in _STEP_ENDS if name.endswith(end)), "")
        metric = name.removesuffix(end)
        if isinstance(value, float) and without_unit(metric) != metric:
            kind = _STEP_ENDS[end] if end else " estimated" if is_predicted else ""
            cells[f"{metric_name(metric)}{kind}"] = quantity_text(metric, value)
        else:
            cells[name] = cell_text(
                {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
            )
    return cells


def _step(document: Mapping[str, Any]) -> dict[str, Any]:
    bounds, memory = document["bounds"]["tpot_s"], document["memory"]
    return {
        **document["estimate"],
        "tpot_bound": max(bounds, key=lambda name: bounds[name]),
        "fits": memory["fits"],
        "greatest_concurrency": memory["greatest_concurrency"],
    }


def _predicted(prediction: dict[str, Any]) -> dict[str, float]:
    metrics = {name: reasons for name, reasons in prediction.items() if isinstance(reasons, dict)}
    return {
        f"{name}_{text}": reasons["value"]
        for name, of_metric in metrics.items()
        for text, reasons in (("predicted", of_metric), ("uncalibrated", of_metric["uncalibrated"]))
        if reasons
    }


def _save(figure: Figure, file: Path) -> None:
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InputError("plot", f"cannot be written: {str(error)[:200]}") from error


def _show(document: dict[str, Any]) -> None:
    for remark in document["remarks"]:
        warn(remark)
    if document["assumed"]:
        note(fold(f"assumed, as not given: {', '.join(document['assumed'])}", width=WIDTH - len("note: ")))
    prediction = document["prediction"] or {}
    if prediction.get("reason") and prediction["reason"] not in document["remarks"]:
        warn(prediction["reason"])
    if prediction.get("outside"):
        warn(f"the prediction extrapolates in {', '.join(prediction['outside'])}")
    print(explanation_text(document), end="")


def explanation_text(document: Mapping[str, Any]) -> str:
    """Return the tables of an explanation in JSON values, in lines of up to 80 characters where names allow it."""
    return "\n".join(_sections(document)) + "\n"


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    row, prediction = document["question"], document["prediction"] or {}
    metrics = {name: reasons for name, reasons in prediction.items() if isinstance(reasons, dict)}
    level = f", intervals of {prediction['level']:.0%}" if metrics else ""
    yield fold(f"{row['model']} on {row['n_accelerator']:g} x {row['accelerator']}{level}")
    yield table_text(
        [_metric(name, value, metrics.get(name)) for name, value in document["estimate"].items() if value is not None]
    )
    if prediction.get("support"):
        yield fold(support_text(prediction))
    yield "\nshare of the time by bound"
    yield table_text([{"metric": metric_name(name), **_shares(of)} for name, of in document["bounds"].items()])
    yield "\noperators: prefill and queue make TTFT, decode makes TPOT"
    yield table_text([_operator(part) for part in document["operators"] if part["seconds"]])
    yield f"\nmemory\n{table_text(_memory(document['memory']))}"
    if metrics:
        yield "\nfactors whose product is the prediction"
        yield table_text(_factors(metrics))
    if any(reasons["nearest"] for reasons in metrics.values()):
        yield "\nnearest measurements, and what differs there"
        for name, reasons in metrics.items():
            yield metric_name(name)
            yield from (fold(_near(name, one), INDENT) for one in reasons["nearest"])


def _metric(name: str, estimate: float, reasons: Mapping[str, Any] | None) -> dict[str, str]:
    row = {"metric": metric_name(name), "estimate": quantity_text(name, estimate)}
    if reasons:
        row["prediction"] = _interval(name, reasons)
        if reasons["uncalibrated"]:
            row["without own runs"] = _interval(name, reasons["uncalibrated"])
    return row


def _interval(name: str, values: Mapping[str, float]) -> str:
    return interval_text(name, values["value"], values["low"], values["high"])


def _shares(shares: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{share:.1%}" for name, share in shares.items()}


def _operator(part: Mapping[str, Any]) -> dict[str, str]:
    return {
        "phase": part["phase"],
        "operator": part["operator"],
        "ms": three_digits(ms_from_s(part["seconds"])),
        "share": f"{part['share']:.1%}",
        "FLOP/byte": three_digits(part["intensity_flop_per_byte"]) if part["flop"] and part["byte"] else "",
        "bound": part["bound"],
    }


def _memory(memory: Mapping[str, Any]) -> list[dict[str, str]]:
    rows = []
    for name, value in memory.items():
        if isinstance(value, bool) or value is None:
            text = {True: "yes", False: "no", None: ""}[value]
        else:
            text = f"{three_digits(value / BYTE_PER_GB)} GB" if "byte" in name else f"{value:,.0f}"
        rows.append({"of the replica": name.replace("_byte", "").replace("_", " "), "value": text})
    return rows


def _factors(metrics: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    parts = dict.fromkeys(part for reasons in metrics.values() for part in reasons["contributions"])
    return [
        {"factor": part} | {metric_name(name): _factor(part, name, of) for name, of in metrics.items()}
        for part in parts
    ]


def _factor(part: str, name: str, reasons: Mapping[str, Any]) -> str:
    factor = exp(reasons["contributions"][part])
    return quantity_text(name, factor) if part == "estimate" else f"{factor:.3f}"


def _near(name: str, row: Mapping[str, Any]) -> str:
    rate = row["request_rate"]
    load = f"{three_digits(rate)}/s" if rate else f"{three_digits(row['concurrency'] or 0)} in flight"
    lengths = f"{row['n_input_token']:,.0f} in, {row['n_output_token']:,.0f} out"
    engine = f"{engine_name(row['engine'])} {precision_name(row['weight_precision'])}".strip()
    on = ", ".join(filter(None, [f"{row['n_accelerator']:g} x {row['accelerator']}", engine]))
    differs: Sequence[str] = row["differs"]
    return (
        f"{quantity_text(name, row['measured'])}, correlation {row['correlation']:.2f}: {row['model']} on {on}; "
        f"{lengths}, {load}, {row['load']} ({row['campaign']})"
        + (f"; differs in {', '.join(differs)}" if differs else "")
    )
