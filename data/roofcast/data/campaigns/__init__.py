"""Measurement campaigns that come with the package: rows, source and licence of each."""

from __future__ import annotations

import datetime as dt
import io
import tomllib
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

import pandas as pd

from roofcast.data.campaigns.built import no_quarantine
from roofcast.data.errors import UnknownNameError
from roofcast.data.measurements import validate_measurements
from roofcast.data.schema import NUMBER_COLUMNS
from roofcast.data.specs import Count, CountOrNone, Name, Spec

CAMPAIGNS: Final[tuple[str, ...]] = (
    "llm_pilot",
    "silicon",
    "inferencemax",
    "trtllm_overview",
    "argonne",
    "mlperf_inference",
    "dgx_spark",
    "rocm_vllm",
    "lmdeploy",
    "dstack",
    "fastertransformer",
    "optimum_habana",
    "aws_neuron",
    "mlc",
)


class CampaignInfo(Spec):
    """Where a campaign's rows come from, under which licence, and what to know before using them.

    `n_read` published rows gave `n_row` measurements; `n_quarantined` of them stand in `quarantine.csv` with reasons.
    `format` is the importer that read the published `files`; empty where they were no benchmark files.
    """

    name: Name
    title: Name
    source: Name
    files: tuple[str, ...]
    licence: Name
    licence_file: str = ""
    attribution: str
    measured_from: dt.date | None = None
    measured_to: dt.date | None = None
    retrieved: dt.date | None = None
    format: str = ""
    n_read: Count
    n_quarantined: CountOrNone = 0
    n_row: Count
    notes: tuple[str, ...] = ()


def load_campaigns(names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the validated measurements of the named campaigns, in the order of the names.

    Parameters
    ----------
    names
        Some of `CAMPAIGNS`; all of them if None.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.

    Examples
    --------
    >>> load_campaigns(["llm_pilot"])["accelerator"].nunique()
    5
    """
    folders = [_folder(name) for name in (CAMPAIGNS if names is None else names)]
    tables = [_load_rows(folder / "rows.csv") for folder in folders]
    rows = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"model": []})
    return validate_measurements(rows, "campaigns")


def load_campaign_info(name: str) -> CampaignInfo:
    """Return what is known about a campaign.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.

    Examples
    --------
    >>> load_campaign_info("llm_pilot").licence
    'CDLA-Permissive-2.0'
    """
    text = (_folder(name) / "campaign.toml").read_text(encoding="utf-8")
    return CampaignInfo.parse(tomllib.loads(text), name)


def load_quarantine(name: str) -> pd.DataFrame:
    """Return the published rows that were set aside, with columns `QUARANTINE_COLUMNS`.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.
    """
    file = _folder(name) / "quarantine.csv"
    if not file.is_file():
        return no_quarantine()
    return pd.read_csv(io.StringIO(file.read_text(encoding="utf-8")), dtype=str, keep_default_na=False)


def load_licence(name: str) -> str:
    """Return the text of the licence that comes with a campaign's rows; empty if none has to.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.
    """
    file = load_campaign_info(name).licence_file
    return (_folder(name) / file).read_text(encoding="utf-8") if file else ""


def _folder(name: str) -> Traversable:
    if name not in CAMPAIGNS:
        raise UnknownNameError("campaign", name, CAMPAIGNS)
    return resources.files(__name__) / name


def _load_rows(file: Traversable) -> pd.DataFrame:
    text = file.read_text(encoding="utf-8")
    header = text.partition("\n")[0].split(",")
    numbers = [name for name in header if name in NUMBER_COLUMNS]
    return pd.read_csv(
        io.StringIO(text),
        dtype={name: float if name in numbers else str for name in header},
        na_values={name: [""] for name in numbers},
        keep_default_na=False,
    )
