"""Recorded predictions of aiconfigurator for the rows of protocol P3, written by ``benchmarks/peers``."""

from __future__ import annotations

import functools
import io
import tomllib
from importlib import resources
from typing import Any

import pandas as pd


def load_aiconfigurator_answers() -> pd.DataFrame:
    """Return the recorded predictions.

    Returns
    -------
    One row a call, with the index `row` of `rows_index.csv`: the arguments, `ttft_s` and `tpot_s` (NaN without an
    answer), `call_s` (wall time of the call), `status` and `reason`

    Examples
    --------
    >>> answers = load_aiconfigurator_answers()
    >>> set(answers.loc[answers["status"] != "ok", "ttft_s"].isna())
    {True}
    """
    return _answers().copy()


@functools.cache
def load_aiconfigurator_run() -> dict[str, Any]:
    """Return the metadata of the recorded run: version, date, licence and settings.

    Examples
    --------
    >>> load_aiconfigurator_run()["version"]
    '0.12.0'
    """
    return tomllib.loads(_read("peer_aiconfigurator.toml"))


@functools.cache
def _answers() -> pd.DataFrame:
    return pd.read_csv(io.StringIO(_read("peer_aiconfigurator.csv")), index_col="row")


def _read(name: str) -> str:
    return (resources.files(__package__) / "silicon" / name).read_text(encoding="utf-8")
