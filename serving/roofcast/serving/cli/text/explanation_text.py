"""Text of an explanation for a terminal of 80 columns; ``--json`` has every figure."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any

from roofcast.data.units import BYTE_PER_GB, ms_from_s
from roofcast.serving.cli.text.prediction_text import support_text
from roofcast.serving.cli.text.text_tables import INDENT, fold, table_text
from roofcast.serving.display_names import (
    engine_name,
    interval_text,
    metric_name,
    precision_name,
    quantity_text,
    three_digits,
)


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
