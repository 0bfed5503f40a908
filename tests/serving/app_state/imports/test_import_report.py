"""The report of imports reviews own rows beside the shipped rows that rules compare them with."""

import pandas as pd
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.serving.app_state.imports import import_report
from roofcast.serving.app_state.imports.import_report import (
    COMES_WITH_PACKAGE,
    count_failed_runs,
    import_warnings,
    own_campaign_report,
)

CAMPAIGN = "gpustack_lab"


def test_rules_of_own_rows_are_those_of_a_review_beside_all_shipped_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_report, "TRAINED_ON", (CAMPAIGN,))
    shipped, catalog = load_campaigns((CAMPAIGN,)), load_catalog()
    same = shipped.head(40)
    copies = shipped.iloc[40:80].assign(campaign="copies", engine_version="99", note="")
    other = shipped.iloc[80:120].assign(campaign="other")
    other["tpot_s"] *= [1 + i / 9 for i in range(len(other))]
    held = other.assign(campaign="held", state=["quarantined", "withdrawn"] * 20)
    stored = pd.concat([same, copies, other, held], ignore_index=True).fillna({"state": "accepted"})

    report = own_campaign_report(stored, catalog)
    monkeypatch.setattr(import_report, "_setups", lambda rows: pd.Series("", index=rows.index))
    assert report == own_campaign_report(stored, catalog)
    by_name = {row["campaign"]: row for row in report}
    assert by_name[CAMPAIGN]["not_learnt"] == f"{COMES_WITH_PACKAGE} 40"
    assert "near_duplicate" in by_name["copies"]["not_learnt"]
    assert by_name["other"]["n_learnable"] > 0
    assert by_name["held"] | {"n_kept": 20, "n_learnable": 0, "not_learnt": "quarantined 20"} == by_name["held"]


def test_each_doubt_is_a_warning() -> None:
    table = pd.DataFrame(
        {
            "engine": ["", "vlm", "vllm"],
            "campaign": ["llm_pilot", "mine", "mine"],
            "status": ["ok", "failed", "ok"],
            "n_failed": [1.0, 5.0, float("nan")],
            "n_request": [8.0, 5.0, 8.0],
        }
    )

    blank, unknown, shipped, failed, part = import_warnings(table)

    assert count_failed_runs(table) == 1
    assert blank.startswith("engine: is blank in 1 of 3 rows")
    assert "'vlm' is not an engine" in unknown
    assert "did you mean vllm?" in unknown
    assert "'llm_pilot' is also the name of a shipped campaign" in shipped
    assert failed.startswith("status: 1 failed run (1 failed)")
    assert part == "n_failed: 1 row of runs with failed requests, of a run up to 12.5%"
