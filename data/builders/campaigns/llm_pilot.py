"""LLM-Pilot's campaign: raw files, checked against the published medians."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from builders.published import Cells, Record
from builders.recipe import Row
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.llm_pilot.pilot_runs import ACCELERATORS, MODELS
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.units import s_from_ms

POINT_COLUMNS: Final = ("model", "accelerator", "n_accelerator", "concurrency")
MEDIAN_COLUMNS: Final = {"median_nttft": "nttft_s_per_token", "median_itl": "itl_s"}
RTOL: Final = 1e-5
RAW: Final = "performance_characterization_data_raw.tar.xz"
PUBLISHED: Final = "published_predictions/expected_predictions_LLM-Pilot.csv"
NOTE: Final = "published medians alone, raw file missing; request lengths of the run with 64 users"

_LENGTHS_FROM_N_USER: Final = 64


def records(_published: Iterator[Record], folder: Path) -> Iterator[Record]:
    """Yield a record for each point, with its rows."""
    table = rows_of_llm_pilot(folder / RAW, folder / PUBLISHED)
    for key, rows_of_point in table.groupby(list(POINT_COLUMNS), sort=False):
        yield Record(" ".join(map(str, key)), {"rows": rows_of_point.to_dict("records")})


def rows(cells: Cells, common: Row) -> list[Row]:
    """Return the rows of a point."""
    return [row | common for row in cells["rows"]]


def rows_of_llm_pilot(raw: Path, published: Path) -> pd.DataFrame:
    """Return the campaign's rows: five per raw file, one per point with published medians only.

    Parameters
    ----------
    raw
        Folder or archive of LLM-Pilot's raw files.
    published
        One of LLM-Pilot's ``expected_predictions_*.csv``.

    Raises
    ------
    InputError
        If a median of the raw files differs from the published one, or is not published.
    SchemaError
        If a file is damaged or has another format.
    """
    measured = read_measurements("llm_pilot", [raw], "llm_pilot")
    medians = load_medians(published)
    missing = check_medians(measured, medians)
    return pd.concat([measured, _rows_of_medians(missing, measured)], ignore_index=True)


def load_medians(file: Path) -> pd.DataFrame:
    """Read the published median nTTFT and ITL, in seconds, with the key of each point.

    Raises
    ------
    SchemaError
        If a column is missing.
    """
    table = pd.read_csv(file)
    for name in ("model", "gpu", "num_users", *MEDIAN_COLUMNS):
        if name not in table.columns:
            raise SchemaError(name, "no such column: the file does not hold published medians", file.name, 1)
    profile = table["gpu"].str.extract(r"^(?P<n>\d+) x (?P<gpu>\w+)$")
    medians = pd.DataFrame(
        {
            "model": table["model"].replace(MODELS),
            "accelerator": profile["gpu"].map(ACCELERATORS),
            "n_accelerator": profile["n"].astype(float),
            "concurrency": table["num_users"].astype(float),
        }
    )
    for theirs, ours in MEDIAN_COLUMNS.items():
        medians[ours] = table[theirs] * s_from_ms(1.0)
    return medians


def check_medians(measured: pd.DataFrame, medians: pd.DataFrame) -> pd.DataFrame:
    """Check measured medians against published ones; return the published points without a raw file.

    Raises
    ------
    InputError
        If a median differs by more than `RTOL`, or a measured point is not published.
    """
    middle = measured[measured["statistic"] == "p50"]
    both = middle.merge(medians, on=list(POINT_COLUMNS), how="outer", suffixes=("", "_published"), indicator=True)
    for name in MEDIAN_COLUMNS.values():
        points = both[both["_merge"] != "right_only"]
        differs = ~np.isclose(points[name], points[f"{name}_published"], rtol=RTOL, atol=0.0)
        if differs.any():
            first = points[differs].iloc[0]
            point = ", ".join(f"{first[column]}" for column in POINT_COLUMNS)
            problem = f"{first[name]:g} is measured but {first[name + '_published']:g} published for {point}"
            raise InputError(name, problem)
    is_missing = both["_merge"] == "right_only"
    missing = both.loc[is_missing, list(POINT_COLUMNS)]
    for name in MEDIAN_COLUMNS.values():
        missing[name] = both.loc[is_missing, f"{name}_published"]
    return missing


def _rows_of_medians(missing: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    nearby = measured[(measured["statistic"] == "p50") & (measured["concurrency"] == _LENGTHS_FROM_N_USER)]
    on = ["model", "accelerator", "n_accelerator"]
    settings = ["engine", "weight_precision", "kv_precision", "tp", "pp", "dp", "flash_attention", "load"]
    lengths = ["n_input_token", "n_output_token", "length_variation"]
    rows = missing.merge(nearby[[*on, *settings, *lengths]], on=on, how="left")
    for name in MEDIAN_COLUMNS.values():
        rows[name] = rows[name].map(lambda value: float(f"{value:.6g}"))
    rows = rows.assign(statistic="p50", campaign="llm_pilot", note=NOTE)
    return validate_measurements(rows, "published medians")
