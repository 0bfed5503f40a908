"""Campaigns that come with the package: a folder each, with rows, quarantine, source and licence."""

from __future__ import annotations

import datetime as dt
import io
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

import pandas as pd

from roofcast.data.errors import UnknownNameError
from roofcast.data.specs import Count, CountOrNone, Name, Spec

QUARANTINE_COLUMNS = ("reference", "reason", "detail")


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


def no_quarantine() -> pd.DataFrame:
    """Return an empty table of rows set aside."""
    return pd.DataFrame({name: pd.Series(dtype=str) for name in QUARANTINE_COLUMNS})


@dataclass(frozen=True)
class ShippedCampaigns:
    """The campaigns of one table; every method raises `UnknownNameError` if there is no campaign of the name.

    Parameters
    ----------
    package
        Import name of the package that holds their folders.
    names
        Their names, in order.
    validate
        Check of the table, from rows and what to call them in messages.
    """

    package: str
    names: tuple[str, ...]
    validate: Callable[[pd.DataFrame, str], pd.DataFrame]

    def rows(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the validated rows of the named campaigns, or of all of them, in the order of the names.

        Examples
        --------
        >>> from roofcast.data.campaigns import load_campaigns
        >>> load_campaigns(["llm_pilot"])["accelerator"].nunique()
        5
        >>> from roofcast.data.training_campaigns import load_training_campaigns
        >>> load_training_campaigns(["bigscience"])["framework"].unique().tolist()
        ['megatron-deepspeed']
        """
        tables = [_table(self._folder(name) / "rows.csv") for name in (self.names if names is None else names)]
        rows = pd.concat(tables, ignore_index=True).fillna("") if tables else pd.DataFrame({"model": []})
        return self.validate(rows, self.package.rpartition(".")[2].replace("_", " "))

    def info(self, name: str) -> CampaignInfo:
        """Return what is known about a campaign.

        Examples
        --------
        >>> from roofcast.data.training_campaigns import load_training_campaign_info
        >>> load_training_campaign_info("dgxc_benchmarking").licence
        'MIT'
        """
        text = (self._folder(name) / "campaign.toml").read_text(encoding="utf-8")
        return CampaignInfo.parse(tomllib.loads(text), name)

    def licence(self, name: str) -> str:
        """Return the text of the licence that comes with a campaign's rows; empty if none has to.

        Examples
        --------
        >>> from roofcast.data.training_campaigns import load_training_licence
        >>> load_training_licence("torchtune").splitlines()[0]
        'BSD 3-Clause License'
        """
        file = self.info(name).licence_file
        return (self._folder(name) / file).read_text(encoding="utf-8") if file else ""

    def quarantine(self, name: str) -> pd.DataFrame:
        """Return the published rows that were set aside, with columns `QUARANTINE_COLUMNS`.

        Examples
        --------
        >>> from roofcast.data.training_campaigns import load_training_quarantine
        >>> sorted(set(load_training_quarantine("torchtune")["reason"]))
        ['duplicate', 'not_training']
        """
        file = self._folder(name) / "quarantine.csv"
        return _table(file) if file.is_file() else no_quarantine()

    def _folder(self, name: str) -> Traversable:
        if name not in self.names:
            raise UnknownNameError("campaign", name, self.names)
        return resources.files(self.package) / name


def _table(file: Traversable) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(file.read_text(encoding="utf-8")), dtype=str, keep_default_na=False)
