import runpy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "memory_fit.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.slow  # loads all shipped campaigns; the tests of LLM-Pilot's batches are the quick ones
def test_what_ran_is_said_to_fit(script: dict[str, Any]) -> None:
    figures, failing = script["campaign_figures"](load_catalog())
    assert isinstance(failing, pd.DataFrame)
    described = figures["rows"] - figures["undescribed"]
    assert (figures["fits"] * described).sum() / described.sum() >= 0.98
    assert (figures["fits"] >= 0.93).all()


def test_most_profiles_that_llm_pilot_lacks_are_said_not_to_fit(script: dict[str, Any]) -> None:
    profiles = script["missing_profiles"](load_catalog())
    assert profiles[profiles["measured"]]["fits"].all()
    missing = profiles[~profiles["measured"] & ~profiles["not_for_memory"]]
    assert len(profiles) == 140
    assert (~missing["fits"]).mean() >= 0.75


def test_batches_that_ran_fit_and_most_that_did_not_do_not(script: dict[str, Any]) -> None:
    batches = script["out_of_memory"](load_catalog())
    ran = batches["status"] == "ok"
    assert batches[ran]["fits"].mean() >= 0.98
    assert (~batches[~ran]["fits"]).mean() >= 0.5
