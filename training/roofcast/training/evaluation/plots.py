"""Diagnostic plots of a training; each function returns a figure and writes nothing."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from roofcast.features.engine.coefficients import PRIORS, Coefficients
from roofcast.features.queries import FloatArray
from roofcast.training.learner.errors.grouped_conformal import GroupedConformal

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
