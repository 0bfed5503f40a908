"""Ratios of measurements of inference to the analytic estimate before calibration."""

import pandas as pd

from roofcast.data.campaigns import CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.coefficients import DEFAULT_COEFFICIENTS
from roofcast.features.engine.estimate import estimate
from roofcast.features.pipeline import estimate_statistics
from roofcast.features.queries import descriptor_arrays
from roofcast.training.dataset.targets import log_ratio, outcomes


def estimate_ratios(rows: pd.DataFrame, descriptors: pd.DataFrame) -> pd.DataFrame:
    """Return log(measurement / estimate before calibration) by metric; NaN where not measured: index of `rows`."""
    measured, d = outcomes(rows), descriptor_arrays(descriptors)
    estimates = estimate_statistics(d, DEFAULT_COEFFICIENTS, estimate(d, DEFAULT_COEFFICIENTS))
    ratios = {m: log_ratio(measured[m].to_numpy(dtype=float), estimates[m]) for m in map(str, measured)}
    return pd.DataFrame(ratios, index=rows.index)


def load_shipped_ratios() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the sound rows of the shipped campaigns, and their `estimate_ratios`, computed in some seconds."""
    catalog, rows = load_catalog(), load_campaigns(CAMPAIGNS)
    is_sound = (rows["status"] == "ok") & ~rows["note"].str.contains("faulty: ", regex=False)
    is_known = rows["model"].isin(list(catalog.models)) & rows["accelerator"].isin(list(catalog.accelerators))
    rows = rows[is_sound & is_known].reset_index(drop=True)
    return rows, estimate_ratios(rows, describe(rows, catalog.models, catalog.accelerators))
