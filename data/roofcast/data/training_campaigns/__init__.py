"""Campaigns of training and fine-tuning runs that come with the package: rows, source and licence of each."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

import pandas as pd

from roofcast.data.campaigns import CampaignInfo
from roofcast.data.errors import UnknownNameError
from roofcast.data.training_campaigns.shapes import load_training_models, training_catalog
from roofcast.data.training_measurements import validate_training_measurements
from roofcast.data.training_schema import TRAINING_COLUMNS

__all__ = [
    "TRAINING_CAMPAIGNS",
    "load_training_campaign_info",
    "load_training_campaigns",
    "load_training_licence",
    "load_training_models",
    "load_training_quarantine",
    "training_catalog",
]

TRAINING_CAMPAIGNS: Final[tuple[str, ...]] = (
    "mosaic_llm_foundry", "nemo_megatron_bridge", "nemo", "nemo_framework_launcher", "nemo_automodel",
    "dgxc_benchmarking", "mlperf_training", "bigscience", "torchtitan", "torchtune", "fms_fsdp", "vectorlm", "litgpt",
    "hf_peft_method_comparison", "maxtext", "tpu_recipes", "jax_toolbox", "xtuner", "colossalai",
    "aws_neuron_training", "optimum_habana_training",
)  # fmt: skip


def load_training_campaigns(names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the validated runs of the named campaigns, in the order of the names.

    Every model and accelerator in them is known to `training_catalog`.

    Parameters
    ----------
    names
        Some of `TRAINING_CAMPAIGNS`; all of them if None.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.

    Examples
    --------
    >>> load_training_campaigns(["bigscience"])["framework"].unique().tolist()
    ['megatron-deepspeed']
    """
    tables = [_read(name, "rows.csv") for name in (TRAINING_CAMPAIGNS if names is None else names)]
    if not tables:
        return validate_training_measurements(pd.DataFrame({"model": []}))
    together = pd.concat(tables, ignore_index=True).fillna("")
    return validate_training_measurements(together, "training campaigns")


def load_training_campaign_info(name: str) -> CampaignInfo:
    """Return what is known about a training campaign.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.

    Examples
    --------
    >>> load_training_campaign_info("dgxc_benchmarking").licence
    'MIT'
    """
    text = (_folder(name) / "campaign.toml").read_text(encoding="utf-8")
    return CampaignInfo.parse(tomllib.loads(text), name)


def load_training_licence(name: str) -> str:
    """Return the text of the licence that comes with a training campaign's rows; empty if none has to.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.

    Examples
    --------
    >>> load_training_licence("torchtune").splitlines()[0]
    'BSD 3-Clause License'
    """
    file = load_training_campaign_info(name).licence_file
    return (_folder(name) / file).read_text(encoding="utf-8") if file else ""


def load_training_quarantine(name: str) -> pd.DataFrame:
    """Return the published rows that the build set aside: reference, reason and detail.

    Raises
    ------
    UnknownNameError
        If there is no such campaign.

    Examples
    --------
    >>> sorted(set(load_training_quarantine("torchtune")["reason"]))
    ['duplicate', 'not_training']
    """
    return _read(name, "quarantine.csv")


def _folder(name: str) -> Traversable:
    if name not in TRAINING_CAMPAIGNS:
        raise UnknownNameError("campaign", name, TRAINING_CAMPAIGNS)
    return resources.files(__name__) / name


def _read(name: str, file: str) -> pd.DataFrame:
    path = _folder(name) / file
    columns = None if file == "rows.csv" else ["reference", "reason", "detail"]
    if not path.is_file():
        return pd.DataFrame(columns=columns or list(TRAINING_COLUMNS), dtype=str)
    return pd.read_csv(io.StringIO(path.read_text(encoding="utf-8")), dtype=str, keep_default_na=False)
