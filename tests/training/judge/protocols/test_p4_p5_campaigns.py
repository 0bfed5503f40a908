import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge.protocols import p4_p5_campaigns
from judge.protocols.campaign_rows import UNANSWERED, CampaignRows, merge_equal_runs
from judge.protocols.fold_lines import BASELINES, DERIVED, fit_predictor, scored_lines
from judge.protocols.p4_p5_campaigns import FAULTY, campaign_parts, predict_campaigns
from judge.scoreboard import Scoreboard, figure_rows
from roofcast.training.config import TrainingConfig
from tests.training.judge.protocols.campaign_builders import (
    all_campaign_rows,
    error_figures,
)

ERRORS = ("mape", "median_ape", "within_25", "answered")
METRICS = {"tpot", "ttft", "output_throughput"}


@pytest.fixture(scope="module")
def dump(board: Scoreboard, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("dump")
    paths: list[Path] = board.dump(folder)
    return {path.stem: pd.read_csv(path).fillna({"rule": ""}) for path in paths}


@pytest.mark.slow  # reviews every shipped campaign
def test_all_of_p3_is_among_the_rows_and_only_sound_ones_are_learnt_from() -> None:
    rows = all_campaign_rows()
    told = rows.measurements
    assert told["n_published"].sum() == 3619
    assert set(told.loc[rows.is_sound, "rule"]) == {""}
    assert set(told.loc[told["n_published"] == 0, "rule"]) == {"", UNANSWERED}


def test_a_lineage_is_not_learnt_from_where_it_is_judged(rows: CampaignRows, fitted: list[pd.DataFrame]) -> None:
    told = predict_campaigns(rows, n_fold=2)
    assert len(fitted) == 2
    for fold, learnt in enumerate(fitted, start=1):
        asked = told.loc[told["fold"] == fold, "row"].unique()
        assert not set(rows.groups[learnt.index]) & set(rows.groups.iloc[asked])
        assert not set(rows.measurements["lineage"][learnt.index]) & set(rows.measurements["lineage"].iloc[asked])
        assert (rows.measurements["rule"][learnt.index] == "").all()


def test_the_json_has_the_promised_keys(board: Scoreboard) -> None:
    figures = json.loads(board.to_json())
    assert list(figures) == ["P4", "P4_methods", "decisions", "P5", "P7", "P7_all", "P8", "P10"]
    assert set(figures["P4"]) == METRICS
    of_intervals = {"coverage_90", "width_90", "interval_score"}
    assert set(figures["P4"]["tpot"]) == {*ERRORS, "coverage_50", "coverage_80", *of_intervals, "classes"}
    assert set(figures["P4_methods"]) == {"roofcast", *BASELINES}
    assert list(figures["P5"]) == ["1", "3", "5"]
    assert set(figures["P5"]["3"]) == {"tpot", "ttft", "P4"}
    assert set(figures["P5"]["3"]["P4"]) == METRICS
    assert set(figures["P5"]["3"]["tpot"]) == {*ERRORS, *of_intervals}


def test_the_dump_gives_every_figure_of_p4_back(board: Scoreboard, dump: dict[str, pd.DataFrame]) -> None:
    lines = dump["P4"][dump["P4"]["rule"].isin(["", UNANSWERED])]
    for line in figure_rows("P4_methods", board.results["P4_methods"].figures):
        of = lines[lines["metric"] == line["metric"]]
        column = "predicted" if line["method"] == "roofcast" else f"by_{line['method']}"
        compared = error_figures(of["measured"], of[column].where(of["predicted"].notna()))[:-1]
        answered = float(of[column].notna().mean())
        assert [line[name] for name in ERRORS] == pytest.approx([*compared, answered])
    for line in figure_rows("P4", board.results["P4"].figures):
        of = lines[(lines["metric"] == line["metric"]) & lines["predicted"].notna()]
        for level in (50, 80, 90):
            is_inside = (of["measured"] >= of[f"low_{level}"]) & (of["measured"] <= of[f"high_{level}"])
            assert line[f"coverage_{level}"] == pytest.approx(is_inside.mean())
        assert line["width_90"] == pytest.approx((of["high_90"] / of["low_90"]).median())


def test_the_dump_gives_every_figure_of_p5_back(board: Scoreboard, dump: dict[str, pd.DataFrame]) -> None:
    lines = dump["P5"]
    sets = {"P3": lines.loc[lines.index.repeat(lines["n_published"])], "P4": lines[lines["rule"] != FAULTY]}
    for line in figure_rows("P5", board.results["P5"].figures):
        asked = sets[str(line["questions"])]
        of = asked[(asked["metric"] == line["metric"]) & asked["rule"].isin(["", UNANSWERED, FAULTY])]
        columns = [f"predicted_{line['n_reference']}_draw_{i}" for i in range(3)]
        kept = [of[of[column].notna() | of["predicted"].isna()] for column in columns]
        draws = [error_figures(some["measured"], some[name]) for some, name in zip(kept, columns, strict=True)]
        assert [line[name] for name in ERRORS] == pytest.approx(np.mean(draws, axis=0), nan_ok=True)
        shares = []
        for some, name in zip(kept, columns, strict=True):
            low, high = (some[name.replace("predicted", side)] for side in ("low_90", "high_90"))
            shares.append(((some["measured"] >= low) & (some["measured"] <= high))[some[name].notna()].mean())
        assert line["coverage_90"] == pytest.approx(np.mean(shares), nan_ok=True)


def test_what_is_beyond_the_estimate_is_asked_and_not_answered(board: Scoreboard) -> None:
    lines = board.results["P4"].tables["P4"]
    beyond = lines[lines["rule"] == UNANSWERED]
    assert len(beyond)
    assert beyond[["predicted", "by_analytic_calibrated", "low_90"]].isna().all(axis=None)
    assert beyond[["by_nearest_measured", "by_xgboost_raw"]].notna().all(axis=None)
    assert json.loads(board.to_json())["P4"]["ttft"]["answered"] < 1


def test_faulty_and_derived_figures_are_told_and_not_judged(board: Scoreboard) -> None:
    lines = board.results["P4"].tables["P4"]
    assert FAULTY in set(lines["rule"])
    assert DERIVED in set(lines["metric"])
    assert FAULTY not in set(scored_lines(lines)["rule"])
    assert set(scored_lines(lines)["metric"]) == METRICS
    assert DERIVED not in set(board.results["P5"].tables["P5"]["metric"])


def test_a_run_that_was_given_is_not_judged_and_the_others_know_of_it(rows: CampaignRows, board: Scoreboard) -> None:
    lines = board.results["P5"].tables["P5"]
    runs = rows.measurements["run"].reset_index(drop=True)
    sound = lines[lines["predicted"].notna()]
    given = sound["predicted_1_draw_0"].isna()
    assert 0 < given.mean() < 1
    known, judged = (runs[sound.loc[rows, "row"]] for rows in (given, ~given))
    assert not set(known) & set(judged)
    others = sound[~given]
    assert (others["predicted_1_draw_0"] / others["predicted"]).tolist() == pytest.approx([2.0] * len(others))
    place = rows.measurements.iloc[sound.loc[given, "row"]]
    assert place.groupby(["model", "engine", "accelerator"])["run"].nunique().max() == 1


def test_one_run_that_two_campaigns_publish_is_one() -> None:
    same = {"lineage": "a", "accelerator": "h100", "weight_precision": "fp8", "statistic": "mean", "campaign": "one"}
    lines: list[dict[str, Any]] = [
        {"ttft_s": 1.0, "tpot_s": 0.01},
        {"ttft_s": 1.004, "tpot_s": 0.01004, "campaign": "two"},
        {"ttft_s": 1.008, "tpot_s": 0.01008, "campaign": "three"},
        {"ttft_s": 1.02, "tpot_s": 0.01, "campaign": "two"},
        {"ttft_s": 1.0, "tpot_s": 0.01},
        {"ttft_s": 1.0, "tpot_s": 0.01, "campaign": "two", "lineage": "b"},
        {"ttft_s": 1.0, "tpot_s": 0.01, "campaign": "two", "accelerator": "h200"},
        {"ttft_s": 1.0, "tpot_s": 0.01, "campaign": "two", "weight_precision": "fp4"},
        {"ttft_s": 1.0, "tpot_s": 0.01, "campaign": "two", "statistic": "p99"},
        {"ttft_s": 1.0, "tpot_s": float("nan"), "campaign": "two"},
    ]
    run = merge_equal_runs(pd.DataFrame([same | line for line in lines]), pd.Series(range(len(lines))))
    assert run[0] == run[1] == run[2] == run[4]
    assert run[3:].drop(4).is_unique
    assert run[0] not in set(run[3:].drop(4))


def test_parts_are_of_every_kind_and_add_up(board: Scoreboard) -> None:
    tables = board.results["P4"].tables
    parts = campaign_parts(tables["P4"])
    assert set(parts["by"]) == {"campaign", "accelerator", "lineage", "engine", "load", "statistic"}
    for metric, of in parts.groupby("metric"):
        n_row = (scored_lines(tables["P4"])["metric"] == metric).sum()
        assert set(of.groupby("by")["n_row"].sum()) == {n_row}


def test_the_real_predictor_answers(rows: CampaignRows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(p4_p5_campaigns, "N_REFERENCE", (1,))
    monkeypatch.setattr(p4_p5_campaigns, "N_DRAW", 1)
    config = TrainingConfig(n_estimators=5, n_fold=2, calibrate=False)
    lines = predict_campaigns(rows.of(("dgx_spark", "silicon")), partial(fit_predictor, config=config), n_fold=2)
    lines = lines[(lines["rule"] == "") & (lines["metric"] != DERIVED)]
    assert set(lines["metric"]) == {"ttft", "tpot"}
    assert (lines["low_90"] <= lines["low_50"]).all()
    assert lines["predicted"].between(lines["low_50"], lines["high_50"]).all()
    assert 0 < lines["predicted_1_draw_0"].notna().mean() < 1
