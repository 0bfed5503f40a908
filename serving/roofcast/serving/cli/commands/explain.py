"""The commands that explain an answer: parts and bounds of one question, and a sweep over hypothetical hardware."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError, NotReadyError
from roofcast.serving.cli.arguments.options import question_options, with_options
from roofcast.serving.cli.arguments.question import check_question, question_row, question_table
from roofcast.serving.cli.arguments.request_check import Problems, check_calibration, check_level
from roofcast.serving.cli.console import note, show, spinner, warn
from roofcast.serving.cli.context import (
    AsJson,
    Level,
    OperatorOption,
    ReferenceFile,
    Server,
    StackOption,
    load_predictor,
    note_stack,
    open_service,
)
from roofcast.serving.cli.files import read_references_table
from roofcast.serving.cli.remote import ask
from roofcast.serving.cli.text.explanation_text import explanation_text
from roofcast.serving.cli.text.text_tables import WIDTH, cell_text, fold
from roofcast.serving.defaults import DEFAULT_LEVEL, DEFAULT_OPERATOR, Operator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofcast.serving.app_state.champion_loader import LoadedModel
    from roofcast.serving.composition import Service
    from roofcast.serving.csv_table import CsvTable
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
    question: dict[str, str],
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
    references = None
    with problems:
        check_question(question, server)
    for one in scale or ():
        with problems:
            _check_scale([one])
    with problems:
        references = read_references_table(reference) if reference else None
    with problems:
        check_level(level)
    check_calibration(problems, references, reference, stack, server)
    problems.raise_all()
    if server:
        if scale or plot:
            raise InputError(
                "server", "cannot be combined with --scale or --plot, which need the command's own predictor"
            )
        (document,) = _ask_service(server, question, level, references, stack, operator=operator)
    else:
        with spinner("explaining"):
            explanation = _explain(question, scale or [], level, (references, reference), (stack, operator))
        if plot:
            from roofcast.serving.explain.explanation_plots import plot_explanation

            _save(plot_explanation(explanation), plot)
        document = explanation.to_json()
    if as_json:
        print(json.dumps(document, allow_nan=False))
    else:
        _show(document)


def _explain(
    question: dict[str, str],
    scale: list[str],
    level: float,
    references: tuple[CsvTable | None, Path | None],
    stack: tuple[str, Operator],
) -> Explanation:
    from roofcast.serving.explain.explanation import explain as explain_questions
    from roofcast.serving.explain.explanation import scale_accelerator

    rows, reference = references
    service = open_service()
    table, catalog = question_table(question, service)
    part = scale_accelerator(catalog.accelerator(question["accelerator"]), scale)
    active = _active_model(service, stack[0])
    bundle = active.bundle if active else None
    known = None
    if rows and reference:
        from roofcast.serving.predict.reference_rows import read_references

        if not bundle:
            raise InputError("reference", "needs a predictor; run `roofcast retrain`")
        known = read_references(rows.frame(), catalog, bundle.predictor, reference.name, rows.lines)
    if active:
        bundle, known = _choose_stack(service, active, *stack, known)
    return explain_questions(table, catalog, bundle, parts=[part], level=level, references=known)


def _choose_stack(
    service: Service, active: LoadedModel, stack: str, operator: Operator, known: CalibrationPoints | None = None
) -> tuple[ModelBundle, CalibrationPoints | None]:
    bundle, points, used = service.stacks.choose(service.catalog, active, "", stack, known, operator=operator)
    note_stack(used)
    return bundle, points


def _ask_service(
    url: str,
    question: dict[str, str],
    level: float,
    table: CsvTable | None,
    stack: str,
    sweep: str = "",
    operator: Operator = DEFAULT_OPERATOR,
) -> list[dict[str, Any]]:
    row, configs = question_row(question, url)
    references = table.records() if table else []
    request: dict[str, Any] = {"rows": [row], "models": configs, "references": references, "level": level}
    given = {"stack": stack, "sweep": sweep, "operator": operator}
    request |= {name: value for name, value in given.items() if value}
    with ask(url) as client:
        response = client.explain(**request)
    note_stack(response.get("stack"))
    return [dict(one) for one in response["rows"]]


def _check_sweep(sweep: Sequence[str]) -> None:
    from roofcast.serving.cli.context import open_catalog
    from roofcast.serving.explain.explanation import sweep_accelerator

    if len(sweep) != 1:
        raise InputError("sweep", f"one at a time, got {len(sweep)}: {' and '.join(sweep)}")
    sweep_accelerator(next(iter(open_catalog().accelerators.values())), sweep[0])


@with_options(partial(question_options, "model", "accelerator"))
def whatif(
    question: dict[str, str],
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
    check_calibration(problems, None, None, stack, server)
    problems.raise_all()
    if server and plot:
        raise InputError("server", "cannot be combined with --plot, which needs the command's own predictor")
    from roofcast.serving.explain.explanation import parse_option

    kind, labels = parse_option(sweep[0])
    if server:
        documents = _ask_service(server, question, DEFAULT_LEVEL, None, stack, sweep[0])
    else:
        explanation = _explain_sweep(question, sweep[0], stack)
        documents = [explanation.to_json(i) for i in range(len(labels))]
        if plot:
            from roofcast.serving.explain.explanation_plots import plot_sweep

            _save(plot_sweep(explanation, kind, labels), plot)
    rows = [{kind: label} | _step(document) for label, document in zip(labels, documents, strict=True)]
    if stack:
        rows = [row | _predicted(one["prediction"]) for row, one in zip(rows, documents, strict=True)]
    show(rows if as_json else [_with_units(row) for row in rows], as_json=as_json)


def _explain_sweep(question: dict[str, str], sweep: str, stack: str) -> Explanation:
    from roofcast.serving.explain.explanation import explain as explain_questions
    from roofcast.serving.explain.explanation import sweep_question

    with spinner("estimating"):
        service = open_service()
        table, catalog = question_table(question, service)
        repeated, parts = sweep_question(table, catalog, sweep)
        active = _active_model(service, stack)
        bundle, points = _choose_stack(service, active, stack, DEFAULT_OPERATOR) if active else (None, None)
        return explain_questions(repeated, catalog, bundle, parts=parts, references=points)


_STEP_ENDS: Final = {"_predicted": " predicted", "_uncalibrated": " without the stack"}
"""Ends of the columns that are predictions, in words; metrics without an end are estimates."""


def _with_units(row: dict[str, Any]) -> dict[str, str]:
    from roofcast.serving.counts import quantity_text
    from roofcast.serving.display_names import metric_name, without_unit

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


def _active_model(service: Service, stack: str) -> LoadedModel | None:
    try:
        return load_predictor(service).active_model
    except NotReadyError:
        warn("no predictor is in service: the estimate uses prior coefficients, and there is no prediction")
    except InputError as error:
        warn(f"the active predictor cannot be used: {error}")
    if stack:
        raise InputError("stack", "needs a predictor; run `roofcast retrain`")
    return None


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
    if prediction.get("reason"):
        warn(prediction["reason"])
    if prediction.get("outside"):
        warn(f"the prediction extrapolates in {', '.join(prediction['outside'])}")
    print(explanation_text(document), end="")
