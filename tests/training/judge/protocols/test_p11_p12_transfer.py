import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judge.protocols.baselines import capability_forest, copy_nearest
from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import store_fits
from judge.protocols.p11_p12_transfer import (
    CONFIGURATION,
    CONFIGURATIONS,
    LATER_DATES,
    PART_FOLDS,
    REPEATED,
    VARIANTS,
    draw_configurations,
    on_stack_figures,
    part_figures,
    part_numbers,
    predict_on_stacks,
    predict_parts,
    split_dates,
)
from judge.scoreboard import ProtocolResult, Scoreboard, figure_rows
from roofcast.data.catalog import load_catalog
from tests.builders import a_question, describe_questions
from tests.training.judge.protocols.campaign_builders import error_figures

JUDGED = {"B200", "B300", "GB200", "GB300", "MI300X", "MI325X", "MI355X", "H100", "H200", "A100"}
NAN = float("nan")


def with_dates(rows: CampaignRows, stack: str, dates: list[str]) -> CampaignRows:
    """Return the rows, those of a stack with these dates in turn."""
    measurements, is_own = rows.measurements.copy(), (rows.stacks == stack).to_numpy()
    measurements.loc[is_own, "date"] = np.resize(dates, is_own.sum())
    return CampaignRows(measurements, rows.X, rows.y, rows.groups)


def test_ten_parts_are_judged_and_have_accelerators() -> None:
    judged = [part for fold in PART_FOLDS for part in fold]
    assert set(judged) == JUDGED
    assert len(judged) == len(JUDGED)
    known = set(part_numbers(pd.Series(list(load_catalog().accelerators))))
    assert known >= {*judged, *(variant for variants in VARIANTS.values() for variant in variants)}
    assert not {variant for variants in VARIANTS.values() for variant in variants} & JUDGED


def test_a_part_is_left_out_with_its_boards_and_variants(rows: CampaignRows, fitted: list[pd.DataFrame]) -> None:
    dump = predict_parts(rows)
    part = part_numbers(rows.measurements["accelerator"])
    assert set(dump["part"]) <= JUDGED
    for fold, learnt in enumerate(fitted, start=1):
        judged = set(dump.loc[dump["fold"] == fold, "part"])
        out = judged | {variant for name in judged for variant in VARIANTS.get(name, ())}
        assert not out & set(part[learnt.index])
    figures = part_figures(dump)
    assert set(figures) == {"roofcast", "analytic_calibrated", "nearest_part", "capability_forest"}
    lines = dump[(dump["part"] == "H100") & (dump["metric"] == "tpot")]
    scores = figures["roofcast"]["H100"]["tpot"]
    expected = error_figures(lines["measured"], lines["predicted"])
    assert [scores[name] for name in ("mape", "median_ape", "within_25", "answered")] == pytest.approx(expected)
    assert "throughput_per_accelerator" in figures["roofcast"]["H100"]


def test_rows_of_the_scoreboard_have_part_and_split(rows: CampaignRows, fitted: list[pd.DataFrame]) -> None:
    figures = {
        "P11": part_figures(predict_parts(rows)),
        "P12": on_stack_figures(predict_on_stacks(rows, least_row=6)),
    }
    board = Scoreboard({name: ProtocolResult(of, {}) for name, of in figures.items()})
    whole = json.loads(board.to_json())
    assert {"method", "part", "metric", "median_ape", "median_ln"} <= set(figure_rows("P11", whole["P11"])[0])
    assert {"split", "method", "metric", "median_ape"} <= set(figure_rows("P12", whole["P12"])[0])
    assert set(whole["P12"]) == {LATER_DATES, CONFIGURATIONS, REPEATED}
    copied = whole["P12"][REPEATED]["nearest_of_stack"]
    assert all(scores["answered"] == 1.0 for scores in copied.values())


def test_a_stack_is_split_by_month_and_its_undated_rows_teach_nothing(rows: CampaignRows) -> None:
    stack = "llm_pilot"
    dated = with_dates(rows, stack, ["2024-01-30", "2024-02-01", "2024", "", "2024-01"])
    is_later, is_earlier = split_dates(dated, least_row=6)
    is_own, date = (rows.stacks == stack).to_numpy(), dated.measurements["date"].to_numpy()
    assert set(date[is_own & is_later]) == {"2024-02-01"}
    assert set(date[is_own & is_earlier]) == {"2024-01-30", "2024-01"}
    assert is_earlier[~is_own].any()
    assert not (is_later & is_earlier).any()


@pytest.mark.parametrize("dates", [["2024-01-30"], ["2024-01-30", "2024-01-31"], [""]])
def test_a_stack_of_one_month_or_few_rows_is_not_split(rows: CampaignRows, dates: list[str]) -> None:
    is_own = (rows.stacks == "llm_pilot").to_numpy()
    is_later, is_earlier = split_dates(with_dates(rows, "llm_pilot", dates), least_row=6)
    assert not is_later[is_own].any()
    assert is_earlier[is_own].all()
    assert not split_dates(rows, least_row=10_000)[0].any()


def test_a_configuration_is_left_out_with_all_its_runs(rows: CampaignRows) -> None:
    is_out = draw_configurations(rows, least_row=6)
    table = rows.measurements.assign(stack=rows.stacks, is_out=is_out)
    whole = table.groupby(["stack", *CONFIGURATION], dropna=False)["is_out"].agg(["all", "any"])
    assert (whole["all"] == whole["any"]).all()
    assert 0.05 < is_out.mean() < 0.3
    assert not draw_configurations(rows, least_row=10_000).any()


def test_a_fit_is_shared_by_protocols_that_leave_out_the_same_rows(
    rows: CampaignRows, fitted: list[pd.DataFrame], tmp_path: Path
) -> None:
    fit = store_fits(tmp_path)
    for part in (rows, rows.take(np.arange(50)), rows):
        assert fit(part).predict(part.X).shape == (len(part.X), 3)
    assert [len(learnt) for learnt in fitted] == [len(rows.X), 50]


def test_the_nearest_load_of_the_same_key_is_copied() -> None:
    known = describe_questions(*(a_question(concurrency=n) for n in (1, 8, 64, 60)))
    measured = pd.DataFrame({"tpot_s": [0.1, 0.2, NAN, 0.4]})
    keys = (pd.Series(["a", "a", "a", "b"]), pd.Series(["a", "b", "c"]))
    asked = describe_questions(*(a_question(concurrency=n) for n in (60, 1, 1)))
    assert copy_nearest(known, measured, asked, ["tpot_s"], keys)["tpot_s"].tolist() == pytest.approx(
        [0.2, 0.4, NAN], nan_ok=True
    )


def test_a_forest_learns_from_capabilities() -> None:
    known = describe_questions(*(a_question(concurrency=n) for n in (1, 1, 1, 64, 64, 64)))
    measured = pd.DataFrame({"tpot_s": [0.1] * 3 + [0.4] * 3})
    answer = capability_forest(known, measured, known.iloc[[0, 5]], ["tpot_s"])
    assert answer["tpot_s"].tolist() == pytest.approx([0.1, 0.4])
