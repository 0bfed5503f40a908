"""Plots that a person checks a training by; each returns a figure and touches no disk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from roofcast.features.coefficients import PRIORS, Coefficients
from roofcast.training.intervals import GroupedConformal

FloatArray = npt.NDArray[np.float64]


def plot_predicted(measured: FloatArray, predicted: FloatArray, groups: pd.Series, metric: str) -> Figure:
    """Return predicted against measured on logarithmic axes, coloured by group, with the 25 % band."""
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    for name in groups.unique():
        rows = (groups == name).to_numpy()
        axes.scatter(measured[rows], predicted[rows], s=8, alpha=0.6, label=str(name))
    known = np.concatenate([measured[measured > 0], predicted[predicted > 0]])
    span = np.array([known.min(), known.max()])
    axes.plot(span, span, color="black", linewidth=1)
    axes.fill_between(span, span * 0.75, span * 1.25, color="grey", alpha=0.2, label="within 25 %")
    axes.set(xscale="log", yscale="log", xlabel=f"measured {metric}", ylabel=f"predicted {metric}, lineage held out")
    axes.legend(fontsize=7)
    return figure


def plot_coverage(errors: Mapping[str, FloatArray], groups: pd.Series) -> Figure:
    """Return, per metric, the share of rows inside an interval against the level it promised.

    Each group's rows are judged by intervals made from the other groups alone.
    """
    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.subplots()
    for metric, error in errors.items():
        levels = np.linspace(0.1, 1 - 1 / max(groups.nunique(), 2) - 0.01, 15)
        axes.plot(levels, coverage(error, groups, levels), marker=".", label=metric)
    axes.plot([0, 1], [0, 1], color="black", linewidth=1)
    axes.set(xlabel="promised level", ylabel="share of held-out rows inside", xlim=(0, 1), ylim=(0, 1))
    axes.legend(fontsize=8)
    return figure


def coverage(errors: FloatArray, groups: pd.Series, levels: FloatArray) -> FloatArray:
    """Return the coverage at each level, averaged over groups, each judged by the others: shape (n_level,).

    NaN where no group has others to be judged by.
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
    """Return how far each typical coefficient moved from its prior, in prior standard deviations."""
    figure = Figure(figsize=(7, 8), layout="constrained")
    axes = figure.subplots()
    values = {name: coefficients.value(name) for name in PRIORS}
    moved = [np.log(values[name] / prior.median) / prior.log_sd for name, prior in PRIORS.items()]
    labels = [f"{name} = {values[name]:.3g} {prior.unit}" for name, prior in PRIORS.items()]
    axes.barh(labels, moved)
    axes.axvline(0, color="black", linewidth=1)
    axes.set(xlabel="moved from the prior, in its standard deviations")
    axes.invert_yaxis()
    return figure


def plot_errors(errors: pd.DataFrame, label: str) -> Figure:
    """Return bars of each column's error, side by side for each line of the table."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(errors.columns)
    place = np.arange(len(errors))
    for i, name in enumerate(errors.columns):
        axes.bar(place + (i + 0.5) * width - 0.4, errors[name], width, label=str(name))
    axes.set_xticks(place, [str(name) for name in errors.index], fontsize=7)
    axes.set(ylabel=label, ylim=(0, min(1.0, 1.1 * float(np.nanmax(errors.to_numpy())))))
    axes.legend(fontsize=7)
    return figure
