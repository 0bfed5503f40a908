"""Loader of the shipped campaigns: one folder a campaign, with `rows.csv`, `campaign.toml` and its licence."""

# ruff: noqa: PLC0415  (what only lists the campaigns does without pandas)

from __future__ import annotations

import datetime as dt
import io
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from roofcast.data.errors import UnknownNameError
from roofcast.data.specs import Count, CountOrNone, Name, Spec

if TYPE_CHECKING:
    import pandas as pd


class CampaignInfo(Spec):
    """Source, licence and notes of a campaign.

    Of `n_read` published rows, builders rejected `n_rejected`; the others gave `n_row` measurements.
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
    n_rejected: CountOrNone = 0
    n_row: Count
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShippedCampaigns:
    """Campaigns of one measurement table; every method raises `UnknownNameError` for an unknown name.

    `package`: import name of the package that holds the campaigns' folders. `validate`: validates a table; called
    with the rows and a name of the table for messages.
    """

    package: str
    names: tuple[str, ...]
    validate: Callable[[pd.DataFrame, str], pd.DataFrame]

    def rows(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the validated rows of the named campaigns (all by default), in the order of the names.

        Examples
        --------
        >>> from roofcast.data.campaigns import load_campaigns
        >>> load_campaigns(["llm_pilot"])["accelerator"].nunique()
        5
        >>> from roofcast.data.job_campaigns import load_job_campaigns
        >>> load_job_campaigns(["bigscience"])["framework"].unique().tolist()
        ['megatron-deepspeed']
        """
        import pandas as pd

        tables = [_read_csv(self._folder(name) / "rows.csv") for name in (self.names if names is None else names)]
        rows = pd.concat(tables, ignore_index=True).fillna("") if tables else pd.DataFrame({"model": []})
        return self.validate(rows, self.package.rpartition(".")[2].replace("_", " "))

    def info(self, name: str) -> CampaignInfo:
        """Return source, licence and notes of a campaign.

        Examples
        --------
        >>> from roofcast.data.job_campaigns import load_job_campaign_info
        >>> load_job_campaign_info("dgxc_benchmarking").licence
        'MIT'
        """
        fields = self._fields(name)
        n_rejected = sum(fields.pop("rejected", {}).values())
        return CampaignInfo.parse({**fields, "n_rejected": n_rejected}, name)

    def rejected_counts(self, name: str) -> dict[str, int]:
        """Return the number of published rows that each rule rejected, the largest first.

        The rows themselves are in ``data/builders``, which is not part of the package.

        Examples
        --------
        >>> from roofcast.data.job_campaigns import load_job_rejected_counts
        >>> load_job_rejected_counts("torchtune")
        {'duplicate': 12, 'not_training': 1}
        """
        counts: dict[str, int] = self._fields(name).get("rejected", {})
        return counts

    def licence(self, name: str) -> str:
        """Return the licence text that must accompany a campaign's rows; empty if there is none.

        Examples
        --------
        >>> from roofcast.data.job_campaigns import load_job_licence
        >>> load_job_licence("torchtune").splitlines()[0]
        'BSD 3-Clause License'
        """
        file = self.info(name).licence_file
        return (self._folder(name) / file).read_text(encoding="utf-8") if file else ""

    def _fields(self, name: str) -> dict[str, Any]:
        return tomllib.loads((self._folder(name) / "campaign.toml").read_text(encoding="utf-8"))

    def _folder(self, name: str) -> Traversable:
        if name not in self.names:
            raise UnknownNameError("campaign", name, self.names)
        return resources.files(self.package) / name


def _read_csv(file: Traversable) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(io.StringIO(file.read_text(encoding="utf-8")), dtype=str, keep_default_na=False)
