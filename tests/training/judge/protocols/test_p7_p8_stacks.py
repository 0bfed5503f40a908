from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge.protocols import fold_lines, p7_p8_stacks
from judge.protocols.campaign_rows import CampaignRows
from judge.protocols.fold_lines import class_scores, fit_predictor, interval_scores, scored_lines
from judge.protocols.p7_p8_stacks import (
    OWN_RUN_COUNTS,
    OWN_RUNS,
    own_run_figures,
    predict_stacks,
    stack_figures,
)
from judge.scoreboard import Scoreboard
from roofcast.training.config import TrainingConfig
from roofcast.training.dataset.stacks import stack_owners
from tests.training.judge.protocols.campaign_builders import (
    error_figures,
)


def test_an_owner_is_not_learnt_from_where_it_is_judged(rows: CampaignRows, fitted: list[pd.DataFrame]) -> None:
    dump = predict_stacks(rows, n_fold=3)
    assert len(fitted) == 3
    for fold, learnt in enumerate(fitted, start=1):
        judged = dump.loc[dump["fold"] == fold, "row"].unique()
        assert not set(rows.owners[learnt.index]) & set(rows.owners.iloc[judged])
        assert (rows.measurements["rule"][learnt.index] == "").all()


def test_a_run_published_again_is_not_learnt_from(rows: CampaignRows, fitted: list[pd.DataFrame]) -> None:
    one, other = (np.flatnonzero((rows.owners == owner) & rows.is_sound)[0] for owner in ("inferencex", "argonne"))
    run = rows.measurements["run"].to_numpy().copy()
    run[run == run[other]] = run[one]
    measurements = rows.measurements.assign(run=run)
    dump = predict_stacks(CampaignRows(measurements, rows.X, rows.y, rows.groups), n_fold=3)
    for fold, learnt in enumerate(fitted, start=1):
        judged = dump.loc[dump["fold"] == fold, "row"].unique()
        assert not set(measurements["run"][learnt.index]) & set(measurements["run"].iloc[judged])


def test_both_halves_of_inferencex_leave_together(rows: CampaignRows) -> None:
    assert set(rows.owners[rows.measurements["campaign"] == "silicon"]) == {"inferencex"}


def test_own_runs_are_of_the_stack_engine_and_accelerator_and_are_not_scored(
    rows: CampaignRows,
) -> None:
    test = np.arange(len(rows.X))
    for kind, n_other in OWN_RUNS.items():
        settings = list(p7_p8_stacks._settings(rows, test, n_other, 3))
        assert settings, kind
        for queries, references in settings:
            both = rows.measurements.iloc[np.concatenate([queries, references])]
            assert len(both[["stack", "engine", "accelerator"]].drop_duplicates()) == 1
            assert not set(queries) & set(references)
            assert rows.measurements["run"].iloc[references].nunique() == 3
            groups = set(rows.groups.iloc[references])
            assert (groups == set(rows.groups.iloc[queries])) == (n_other == 0)
            assert len(groups) == max(n_other, 1)


def test_figures_are_those_of_the_dump(board: Scoreboard) -> None:
    result = board.results["P7"]
    lines = scored_lines(result.tables["P7"])
    for metric, part in lines.groupby("metric"):
        figures = result.figures["roofcast"][metric]  # type: ignore[index]
        expected = error_figures(part["measured"], part["predicted"])
        assert [figures["pooled"][name] for name in ("mape", "median_ape", "within_25", "answered")] == pytest.approx(
            expected, nan_ok=True
        )
        by_owner = [
            error_figures(of["measured"], of["predicted"])[0] for _, of in part.groupby(stack_owners(part["stack"]))
        ]
        assert figures["mean_of_stacks"]["mape"] == pytest.approx(np.nanmean(by_owner))


def test_intervals_of_competent_operators_are_judged_by_their_rows_and_those_of_any_by_all() -> None:
    line = {"metric": "tpot", "rule": "", "measured": 1.0, "predicted": 1.5}
    line |= {"low_90": 0.5, "high_90": 2.0, "low_90_any": 0.25, "high_90_any": 2.5}
    outside = {"stack": "b/x", "measured": 3.0}
    lines = pd.DataFrame([line | {"stack": "a"}] * 3 + [line | outside]).assign(is_competent=[True] * 3 + [False])
    lines = lines.assign(**{f"by_{name}": 1.0 for name in fold_lines.BASELINES})
    figures = stack_figures(lines)
    scores: Any = figures["roofcast"]["tpot"]
    assert (scores["competent"]["coverage_90"], scores["competent"]["width_90"]) == (1.0, pytest.approx(4.0))
    assert scores["competent"]["interval_score"] == pytest.approx(np.log(4.0))
    assert (scores["any"]["coverage_90"], scores["any"]["coverage_90_of_stacks"]) == (0.75, 0.5)
    assert scores["any"]["interval_score"] == pytest.approx(np.log(10.0) + 20 * np.log(3.0 / 2.5) / 4)
    assert figures["roofcast"]["tpot"]["pooled"]["mape"] == 0.5  # type: ignore[index]
    assert "any" not in figures["analytic_priors"]["tpot"]


def test_baselines_are_compared_on_the_rows_that_roofcast_answers() -> None:
    lines = pd.DataFrame({"metric": "tpot", "rule": "", "measured": 1.0, "predicted": [1.0, np.nan], "stack": "a"})
    lines["is_competent"] = True
    lines = lines.assign(**{f"by_{name}": [1.5, 9.0] for name in fold_lines.BASELINES})
    lines = lines.assign(**{f"{side}_{level}": 1.0 for level in ("90", "90_any") for side in ("low", "high")})
    pooled = stack_figures(lines)["xgboost_raw"]["tpot"]["pooled"]
    assert (pooled["median_ape"], pooled["answered"]) == (0.5, 1.0)  # type: ignore[index]


def test_every_number_of_own_runs_is_scored_on_the_same_rows(board: Scoreboard) -> None:
    dump = board.results["P8"].tables["P8"]
    figures = own_run_figures(dump)
    assert set(figures) == set(OWN_RUNS)
    for kind, by_number in figures.items():
        assert set(by_number) == {"0", *map(str, OWN_RUN_COUNTS[kind])}
        assert len({tuple(metrics) for metrics in by_number.values()}) == 1, kind


@pytest.mark.slow
def test_the_real_predictor_answers(rows: CampaignRows) -> None:
    config = TrainingConfig(n_estimators=5, n_fold=2, calibrate=False)
    lines = predict_stacks(
        rows.of(("dgx_spark", "silicon", "llm_pilot")), partial(fit_predictor, config=config), n_fold=2
    )
    lines = scored_lines(lines)
    answered = lines[lines["predicted"].notna()]
    assert len(answered) > len(lines) / 2
    assert answered["predicted"].between(answered["low_50"], answered["high_50"]).all()
    assert 0 < lines["predicted_asked_llm_3"].notna().mean() < 1


def test_an_interval_is_scored_by_its_width_and_by_what_it_misses() -> None:
    lines = pd.DataFrame({"measured": [1.0, 2.0 * np.e], "low_90": 0.5, "high_90": 2.0})
    scores = interval_scores(lines, "90")
    assert [scores["coverage_90"], scores["width_90"]] == pytest.approx([0.5, 4.0])
    assert scores["interval_score"] == pytest.approx(np.log(4.0) + 0.5 * 20.0)


def test_classes_of_many_rows_have_scores_of_their_own() -> None:
    line = {
        "measured": 1.0,
        "predicted": 1.0,
        "low_90": 0.5,
        "high_90": 2.0,
        "statistic": "mean",
        "load": "closed_loop",
    }
    lines = pd.DataFrame([line | {"engine": "vllm", "concurrency": 4.0, "accelerator": "nvidia-gb200"}] * 200)
    few = lines.head(10).assign(engine="sglang", concurrency=2.0)
    classes = class_scores(pd.concat([lines, few, lines.assign(predicted=np.nan)]))
    assert {name: of["n"] for name, of in classes.items()} == {
        "engine vllm": 200, "statistic mean": 210, "in flight (1.0, 8.0]": 210, "architecture Blackwell": 210
    }  # fmt: skip
