"""The commands that tell why: parts and bounds of one question, and what other hardware would change."""

# ruff: noqa: PLC0415  (a command imports what it needs when it runs)

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from roofcast.data.errors import InputError, NotReadyError
from roofcast.serving.cli.console import show, warn
from roofcast.serving.cli.context import AsJson, ReferenceFile, open_app_state

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from roofcast.data.catalog import Catalog
    from roofcast.data.specs import AcceleratorSpec
    from roofcast.serving.app_state.app_state import AppState
    from roofcast.serving.explain.explanation import Explanation
    from roofcast.training.lifecycle.bundle import ModelBundle

QUESTION_OPTIONS: Final = {
    "model": "Catalogue name, path of a config.json, or owner/name on the hub.",
    "accelerator": "Catalogue name.",
    "n_accelerator": "Accelerators of the replica; 1.",
    "engine": "Such as vllm, sglang or trtllm.",
    "engine_version": "Of the engine.",
    "weight_precision": "Of the weights; that of the checkpoint.",
    "kv_precision": "Of the cache.",
    "tp": "Tensor parallelism; what the others leave.",
    "pp": "Pipeline parallelism.",
    "dp": "Data parallelism.",
    "ep": "Expert parallelism.",
    "n_input_token": "Mean input tokens.",
    "n_output_token": "Mean output tokens.",
    "concurrency": "Requests in flight.",
    "request_rate": "Requests a second.",
    "statistic": "Of the prediction: mean, p50, p90, p95 or p99.",
    "n_request": "Requests of the run that is asked about; 1e9 for a service that has run for long.",
}
"""The columns of one row of ``predict``, and the help of the option for each."""

PlotFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it into a PNG, SVG or PDF file.")]


def with_question(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with one option for each of `QUESTION_OPTIONS`; it gets them as its first argument."""

    @wraps(command)
    def called(**given: Any) -> None:
        command({name: given.pop(name) for name in QUESTION_OPTIONS}, **given)

    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in {"model", "accelerator"} else "",
            annotation=Annotated[str, typer.Option(help=text, show_default=False)],
        )
        for name, text in QUESTION_OPTIONS.items()
    ]
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    called.__signature__ = inspect.Signature([*parameters, *own])  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *own)}
    return called


@with_question
def explain(
    question: dict[str, str],
    *,
    scale: Annotated[
        list[str] | None, typer.Option(metavar="WHAT=FACTOR", help="Of bandwidth, flops, memory, link or power.")
    ] = None,
    level: Annotated[float, typer.Option(help="Probability of the predicted intervals.")] = 0.8,
    reference: ReferenceFile = None,
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Tell where a question's time goes, what bounds it, what fits, and what is predicted and why."""
    from roofcast.serving.cli.files import read_reference_file
    from roofcast.serving.explain.explanation import explain as explain_question
    from roofcast.serving.explain.explanation import scaled_by

    bench = open_app_state()
    table, catalog = _asked(question, bench)
    part = scaled_by(_accelerator(question, catalog), scale or [])
    bundle = _champion(bench)
    if reference and not bundle:
        raise InputError("reference", "needs a predictor; run `roofcast retrain`")
    known = read_reference_file(reference, catalog, bundle.predictor) if reference and bundle else None
    explanation = explain_question(table, catalog, bundle, parts=[part], level=level, references=known)
    if plot:
        from roofcast.serving.explain.plots import plot_explanation

        _draw(plot_explanation(explanation), plot)
    if as_json:
        print(json.dumps(explanation.to_json(), allow_nan=False))
    else:
        _show(explanation)


@with_question
def whatif(
    question: dict[str, str],
    *,
    sweep: Annotated[
        list[str],
        typer.Option(
            metavar="WHAT=A,B,...",
            help="Factors on bandwidth, flops, memory, link or power; or node=N5,N3,... or dram=HBM3,HBM4,..., the "
            "first of which is the accelerator's own.",
        ),
    ],
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Estimate a question on hardware that does not exist, step by step."""
    from roofcast.serving.explain.explanation import explain as explain_question
    from roofcast.serving.explain.explanation import parsed, swept_by

    if len(sweep) != 1:
        raise InputError("sweep", f"one at a time, got {len(sweep)}: {' and '.join(sweep)}")
    bench = open_app_state()
    table, catalog = _asked(question, bench)
    parts = swept_by(_accelerator(question, catalog), sweep[0])
    repeated = table.loc[table.index.repeat(len(parts))].reset_index(drop=True)
    explanation = explain_question(repeated, catalog, _champion(bench), parts=parts)
    kind, labels = parsed(sweep[0])
    if plot:
        from roofcast.serving.explain.plots import plot_sweep

        _draw(plot_sweep(explanation, kind, labels), plot)
    rows = [{kind: label} | _step(explanation, i) for i, label in enumerate(labels)]
    show(rows, as_json=as_json)


def _step(explanation: Explanation, i: int) -> dict[str, Any]:
    bounds = explanation.bounds(i)["tpot_s"]
    memory = explanation.memory(i)
    return {
        **explanation.metrics(i),
        "tpot_bound": max(bounds, key=lambda name: bounds[name]),
        "fits": memory["fits"],
        "greatest_concurrency": memory["greatest_concurrency"],
    }


def _asked(question: dict[str, str], bench: AppState) -> tuple[pd.DataFrame, Catalog]:
    import pandas as pd

    from roofcast.serving.cli.files import named_or_read

    catalog = bench.catalog
    model = named_or_read(question["model"], catalog)
    if not isinstance(model, str):
        spec = bench.read_config(model["name"], model["config"])
        # its name may be one that the catalogue knows
        catalog = replace(catalog, models={spec.id: spec}, model_aliases={}, alias_precisions={})
        model = spec.id
    return pd.DataFrame([question | {"model": model}], dtype=object), catalog


def _accelerator(question: dict[str, str], catalog: Catalog) -> AcceleratorSpec:
    return catalog.accelerator(question["accelerator"])


def _champion(bench: AppState) -> ModelBundle | None:
    """Return the champion if there is one that can be used; the estimate needs none."""
    try:
        bench.refresh()
        return bench.in_service.bundle
    except NotReadyError:
        warn("no predictor is in service: the estimate has its priors' coefficients, and there is no prediction")
    except InputError as error:
        warn(f"the champion cannot be used: {error}")
    return None


def _draw(figure: Figure, file: Path) -> None:
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InputError("plot", f"cannot be written: {str(error)[:200]}") from error


def _show(explanation: Explanation) -> None:
    document = explanation.to_json()
    memory, predicted = document["memory"], document["prediction"] or {}
    estimated = [
        {"metric": name, "estimate": value, **_predicted(predicted.get(name))}
        for name, value in document["estimate"].items()
    ]
    row = document["question"]
    show(estimated, as_json=False, title=f"{row['model']} on {row['n_accelerator']:g} x {row['accelerator']}")
    if document["is_saturated"]:
        warn("request_rate: is more than one replica can serve")
    for remark in document["remarks"]:
        warn(remark)
    bounds = [{"metric": metric, **shares} for metric, shares in document["bounds"].items()]
    show(bounds, as_json=False, title="\nshare of the time by bound")
    wanted = ("phase", "operator", "seconds", "share", "flop", "byte", "intensity_flop_per_byte", "bound")
    parts = [{name: part[name] for name in wanted} for part in document["operators"] if part["seconds"]]
    show(parts, as_json=False, title="\nparts: prefill and queue make TTFT, decode makes TPOT")
    show([{"memory": name, "value": value} for name, value in memory.items()], as_json=False, title="\nmemory")
    _show_reasons({name: reasons for name, reasons in predicted.items() if isinstance(reasons, dict)})
    if predicted.get("reason"):
        warn(predicted["reason"])
    if predicted.get("outside"):
        warn(f"the prediction extrapolates in {', '.join(predicted['outside'])}")


def _predicted(metric: dict[str, Any] | None) -> dict[str, Any]:
    found = metric or {}
    told = {"prediction": found.get("value"), "low": found.get("low"), "high": found.get("high")}
    without = found.get("uncalibrated")
    return told | ({f"{name} uncalibrated": without[name] for name in without} if without else {})


def _show_reasons(metrics: dict[str, dict[str, Any]]) -> None:
    """Print the factors of each prediction, and the measurements that tell most about it."""
    factors = [
        {"metric": metric, **{part: exp(log) for part, log in reasons["contributions"].items()}}
        for metric, reasons in metrics.items()
    ]
    show(factors, as_json=False, title="\nthe prediction is the estimate times these")
    near = [{"metric": metric, **_near(row)} for metric, reasons in metrics.items() for row in reasons["nearest"]]
    show(near, as_json=False, title="\nnearest measurements, and what differs there")


def _near(row: dict[str, Any]) -> dict[str, Any]:
    rate = row["request_rate"]
    load = f"{rate:g}/s" if rate else f"{row['concurrency'] or 0:g} at once"
    return {
        "measured": row["measured"],
        "alike": row["correlation"],
        "model": row["model"],
        "run": f"{row['n_accelerator']:g} x {row['accelerator']} {row['engine']} {row['weight_precision']}",
        "load": f"{row['n_input_token']:g} in, {row['n_output_token']:g} out, {load}, {row['load']}",
        "campaign": row["campaign"],
        "differs": row["differs"],
    }
