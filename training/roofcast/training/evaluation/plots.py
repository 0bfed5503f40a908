"""Diagnostic plots of a training; each function returns a figure and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from roofcast.features.engine.coefficients import PRIORS, Coefficients
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal

FloatArray = npt.NDArray[np.float64]

N_NAMED = 10
"""Largest groups shown in a colour of their own."""


def plot_predicted(measured: FloatArray, predicted: FloatArray, groups: pd.Series, metric: str) -> Figure:
    """Return a log-log scatter of predicted against measured values, coloured by group, with the 25 % band."""
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    named = groups.value_counts().index[:N_NAMED]
    is_other = ~groups.isin(named).to_numpy()
    if is_other.any():
        axes.scatter(measured[is_other], predicted[is_other], s=8, alpha=0.6, color="lightgrey", label="others")
    for name in named:
        rows = (groups == name).to_numpy()
        axes.scatter(measured[rows], predicted[rows], s=8, alpha=0.6, label=str(name))
    positive = np.concatenate([measured[measured > 0], predicted[predicted > 0]])
    span = np.array([positive.min(), positive.max()])
    axes.plot(span, span, color="black", linewidth=1)
    axes.fill_between(span, span * 0.75, span * 1.25, color="grey", alpha=0.2, label="within 25 %")
    axes.set(xscale="log", yscale="log", xlabel=f"measured {metric}", ylabel=f"predicted {metric}, lineage held out")
    axes.legend(fontsize=7, loc="upper left")
    return figure


def plot_coverage(errors: Mapping[str, FloatArray], groups: pd.Series) -> Figure:
    """Return empirical coverage against nominal level by metric.

    Each group's rows are compared to intervals calibrated on the other groups.
    """
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    for metric, error in errors.items():
        levels = np.linspace(0.1, 1 - 1 / max(groups.nunique(), 2) - 0.01, 15)
        axes.plot(levels, coverage(error, groups, levels), marker=".", label=metric)
    axes.plot([0, 1], [0, 1], color="black", linewidth=1)
    axes.set(xlabel="nominal level", ylabel="share of held-out rows inside", xlim=(0, 1), ylim=(0, 1))
    axes.legend(fontsize=8, loc="upper left")
    return figure


def coverage(errors: FloatArray, groups: pd.Series, levels: FloatArray) -> FloatArray:
    """Return the mean coverage over groups at each level, with intervals calibrated on the others: shape (n_level,).

    NaN without other groups.
    """
    covered = []
    for name in groups.unique():
        inside = (groups == name).to_numpy() & ~np.isnan(errors)
        others = GroupedConformal(np.where(inside, np.nan, errors), groups)
        if inside.any() and others.n_group:
            reach = np.array([others.quantile(min(level, others.highest_level)) for level in levels])
            covered.append((errors[inside][:, None] <= reach).mean(axis=0))
    return np.asarray(np.mean(covered, axis=0) if covered else np.full(len(levels), np.nan), dtype=np.float64)


def plot_coefficients(coefficients: Coefficients) -> Figure:
    """Return the shift of each typical coefficient from its prior, in prior standard deviations."""
    figure = Figure(figsize=(7, 8), layout="constrained")
    axes = figure.subplots()
    values = {name: coefficients.value(name) for name in PRIORS}
    shifts = [np.log(values[name] / prior.median) / prior.log_sd for name, prior in PRIORS.items()]
    labels = [f"{name} = {values[name]:.3g} {prior.unit}" for name, prior in PRIORS.items()]
    axes.barh(labels, shifts)
    axes.axvline(0, color="black", linewidth=1)
    axes.set(xlabel="shift from the prior, in prior standard deviations")
    axes.invert_yaxis()
    return figure


def plot_errors(errors: pd.DataFrame, label: str) -> Figure:
    """Return grouped bars of each column's error, one group per row of the table."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(errors.columns)
    position = np.arange(len(errors))
    for i, name in enumerate(errors.columns):
        axes.bar(position + (i + 0.5) * width - 0.4, errors[name], width, label=str(name))
    axes.set_xticks(position, [str(name) for name in errors.index], fontsize=7)
    axes.set(ylabel=label, ylim=(0, min(1.0, 1.1 * float(np.nanmax(errors.to_numpy())))))
    axes.legend(fontsize=7, loc="upper left")
    return figure


def plot_groups(table: pd.DataFrame, label: str, target: float | None = None) -> Figure:
    """Return a dot plot of the table, rows sorted by their mean, least at the top.

    Parameters
    ----------
    table : shape (n_part, n_metric)
    target
        Position of a reference line.
    """
    ordered = table.loc[table.mean(axis=1).sort_values(ascending=False).index]
    figure = Figure(figsize=(7, 1.2 + 0.22 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    positions = np.arange(len(ordered))
    for name, marker in zip(ordered.columns, "os^Dv", strict=False):
        axes.plot(ordered[name], positions, marker, markersize=5, alpha=0.8, label=str(name))
    if target is not None:
        axes.axvline(target, color="black", linewidth=1)
    axes.set_yticks(positions, [str(name) for name in ordered.index], fontsize=7)
    axes.set(xlabel=label, xlim=(0, 1.05 * float(np.nanmax(ordered.to_numpy()))))
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=7)
    return figure


def plot_nominal_coverage(shares: pd.DataFrame) -> Figure:
    """Return the empirical coverage of intervals against their nominal level.

    Parameters
    ----------
    shares : shape (n_metric, n_level)
        Columns are the levels.
    """
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    for metric, share in shares.iterrows():
        axes.plot(shares.columns.to_numpy(dtype=float), share, marker="o", label=str(metric))
    axes.plot([0, 1], [0, 1], color="black", linewidth=1)
    axes.set(xlabel="nominal level", ylabel="share of measurements inside", xlim=(0, 1), ylim=(0, 1))
    axes.legend(fontsize=8, loc="upper left")
    return figure


def plot_references(errors: pd.DataFrame) -> Figure:
    """Return median error against the number of reference points (the index), one line per column."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name in errors:
        style = "--" if str(name).startswith("P3") else "-"
        axes.plot(errors.index.to_numpy(), errors[name], style, marker="o", label=str(name))
    axes.set(xlabel="reference runs of each engine and accelerator", ylabel="median error of the other runs")
    axes.set_xticks(errors.index.to_numpy())
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside right upper", fontsize=7)
    return figure
