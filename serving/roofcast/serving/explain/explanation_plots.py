"""Plots of an explanation; each function returns a figure and writes no file."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from roofcast.data.units import BYTE_PER_GB, FLOP_PER_TFLOP, S_PER_MS
from roofcast.features.analysis.breakdown import METRIC_PHASES, OperatorTime
from roofcast.features.engine.kernels.row_kernels import HYPOTHETICAL
from roofcast.features.queries import FloatArray, Queries
from roofcast.serving.explain.explanation import NAMED_STEPS, Explanation

COLOURS: Final = {
    "projections and MLP": "#4477aa", "head": "#66ccee", "experts": "#228833", "attention": "#ccbb44",
    "element-wise": "#ee6677", "messages": "#aa3377", "launches and gaps": "#aaaaaa",
    "weights in the host": "#882255",
    "prefills of others": "#ddaa77", "steps under way": "#dddddd", "slot in the batch": "#bbbbbb",
}  # fmt: skip
"""Colour of each operator, safe for colour-blind readers (P. Tol, "Colour schemes", 2021)."""

LOG_SPAN: Final = 10.0
"""Ratio of the largest to the smallest factor above which a sweep has a logarithmic axis."""

_DARK: Final = ("projections and MLP", "experts", "messages", "weights in the host")
_MARKERS: Final = {"prefill": "o", "decode": "s"}
_PEAKS: Final = {
    "attention, head": "hardware.attention_flop_per_s",
    "other weights": "hardware.dense_flop_per_s",
    "experts": "hardware.flop_per_s",
}


_SWEEP_METRICS: Final = {
    "ttft_s": ("TTFT", "ms", S_PER_MS),
    "tpot_s": ("TPOT", "ms", S_PER_MS),
    "output_throughput_token_per_s": ("output throughput", "token/s", 1.0),
    "power_w": ("power", "W", 1.0),
}


def plot_explanation(explanation: Explanation, i: int = 0) -> Figure:
    """Plot question `i`: the roofline with its operators on the left, TTFT and TPOT by operator on the right."""
    figure = Figure(figsize=(13, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    _plot_roofline(left, explanation, i)
    _plot_parts(right, explanation, i)
    row = explanation.table.iloc[i]
    load = "offline"
    for name, unit in (("request_rate", "requests/s"), ("concurrency", "in flight")):
        if np.isfinite(row[name]):
            load = f"{row[name]:g} {unit}"
    figure.suptitle(
        f"{row['model']} on {row['n_accelerator']:g} x {row['accelerator']}, "
        f"{row['n_input_token']:g} tokens in, {row['n_output_token']:g} out, {load}",
        fontsize=11,
    )
    return figure


def _plot_roofline(axes: Axes, explanation: Explanation, i: int) -> None:
    shown = [part for part in explanation.operators if part.flop[i] > 0 and part.byte[i] > 0 and part.seconds[i] > 0]
    for part in shown:
        axes.scatter(
            part.flop[i] / part.byte[i],
            part.flop[i] / part.seconds[i] / FLOP_PER_TFLOP,
            s=_area(part, shown, i),
            marker=_MARKERS[part.phase],
            color=COLOURS[part.operator],
            edgecolor="black",
            alpha=0.85,
            zorder=3,
            label=f"{part.operator}, {part.phase}",
        )
    _plot_roofs(axes, explanation.d, i, np.array([part.flop[i] / part.byte[i] for part in shown]))
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP/byte", ylabel="achieved, TFLOP/s")
    bandwidth = explanation.d["hardware.bandwidth_byte_per_s"][i] / BYTE_PER_GB
    axes.set_title(f"operators under the roofs of one accelerator; slope: {bandwidth:.4g} GB/s", fontsize=10)
    axes.grid(visible=True, which="major", alpha=0.3)
    legend = axes.legend(fontsize=8, loc="lower right")
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([45])


def _plot_roofs(axes: Axes, d: Queries, i: int, intensity: FloatArray) -> None:
    bandwidth = float(d["hardware.bandwidth_byte_per_s"][i])
    peaks: dict[float, list[str]] = {}
    for name, column in _PEAKS.items():
        if name != "experts" or d["model.n_expert"][i]:
            peaks.setdefault(float(d[column][i]), []).append(name)
    span = np.geomspace(min(intensity.min() / 3, 0.5), max(intensity.max(), max(peaks) / bandwidth) * 5, 200)
    for peak, names in peaks.items():
        axes.plot(span, np.minimum(span * bandwidth, peak) / FLOP_PER_TFLOP, color="black", linewidth=1.2)
        text = f"{peak / FLOP_PER_TFLOP:.0f} TFLOP/s ({', '.join(names)})"
        axes.annotate(
            text,
            (span[-1], peak / FLOP_PER_TFLOP),
            (0, 5),
            textcoords="offset points",
            ha="right",
            size=8,
            bbox={"facecolor": "white", "linewidth": 0, "pad": 0.5},
        )


def _area(part: OperatorTime, shown: Sequence[OperatorTime], i: int) -> float:
    total = sum(other.seconds[i] for other in shown if other.phase == part.phase)
    return float(40 + 260 * part.seconds[i] / total)


def _plot_parts(axes: Axes, explanation: Explanation, i: int) -> None:
    seen: dict[str, None] = {}
    for x, phases in enumerate(METRIC_PHASES.values()):
        parts = [part for part in explanation.operators if part.phase in phases]
        total = sum(part.seconds[i] for part in parts)
        bottom = 0.0
        for part in parts:
            share = float(part.seconds[i] / total)
            if share < 0.001:
                continue
            label = part.operator if part.operator not in seen else None
            seen[part.operator] = None
            axes.bar(x, share, 0.62, bottom, color=COLOURS[part.operator], edgecolor="white", label=label)
            if share > 0.045:
                text = f"{_time(part.seconds[i])}, {part.bound[i]}"
                colour = "white" if part.operator in _DARK else "black"
                axes.text(x, bottom + share / 2, text, ha="center", va="center", fontsize=8, color=colour)
            bottom += share
    metrics = explanation.metrics(i)
    names = [f"{name}\n{_time(metrics[column])}" for name, column in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"))]
    axes.set_xticks([0, 1], names)
    axes.set(ylabel="share", ylim=(0, 1), xlim=(-0.45, 1.45))
    axes.set_title("where the time goes, and what bounds it", fontsize=10)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds / S_PER_MS:.3g} ms"


def plot_sweep(explanation: Explanation, kind: str, labels: Sequence[str]) -> Figure:
    """Plot latencies, throughput and power at each step of a sweep over `kind`, relative to the first step.

    Factors have a linear axis, or a logarithmic one above `LOG_SPAN`; named steps are equally spaced.
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    x = _step_positions(axes, kind, labels)
    order = np.argsort(x, kind="stable")
    rows = [explanation.metrics(i) for i in range(len(labels))]
    for metric, (name, unit, size) in _SWEEP_METRICS.items():
        values = np.array([row[metric] for row in rows])
        label = f"{name}, 1 is {values[0] / size:.4g} {unit}"
        axes.plot(x[order], (values / values[0])[order], marker="o", label=label)
    axes.axhline(1, color="black", linewidth=0.8)
    row = explanation.table.iloc[0]
    parent = str(row["accelerator"]).partition(HYPOTHETICAL)[0]
    axes.set_title(f"{row['model']} on {row['n_accelerator']:g} x {parent}", fontsize=10)
    axes.set_ylabel("relative to the first step")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    return figure


def _step_positions(axes: Axes, kind: str, labels: Sequence[str]) -> FloatArray:
    if kind in NAMED_STEPS:
        axes.set_xlabel(kind)
        axes.set_xticks(range(len(labels)), list(labels), fontsize=8)
        return np.arange(len(labels), dtype=float)
    factors = np.array([float(label) for label in labels])
    axes.set_xlabel(f"factor on {kind}")
    if factors.max() > LOG_SPAN * factors.min():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    return factors
