import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judge.peers.silicon_peers import load_silicon_index
from judge.protocols.campaign_rows import build_campaign_rows
from judge.protocols.fold_lines import fit_predictor
from judge.protocols.p3_methods import METHODS, nearest_measured
from judge.protocols.p3_silicon import (
    SPLITS,
    Fold,
    SiliconCampaign,
    figures_by_part,
    load_silicon_campaign,
    predict_silicon,
    silicon_folds,
)
from judge.scoreboard import Scoreboard, figure_rows, run_scoreboard
from roofcast.data.campaigns import load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.features.descriptors.config_hash import config_hashes
from tests.training.builders import QUICK
from tests.training.judge.protocols.campaign_builders import all_campaign_rows
from tests.training.judge.protocols.silicon_builders import N_OWN, a_silicon_campaign, exact, half_off


@pytest.fixture(scope="module")
def campaign() -> SiliconCampaign:
    return a_silicon_campaign()


@pytest.fixture(scope="module")
def shipped() -> SiliconCampaign:
    return load_silicon_campaign(all_campaign_rows())


@pytest.fixture(scope="module")
def board(campaign: SiliconCampaign) -> Scoreboard:
    methods = {"half_off": half_off, "exact": exact}
    return run_scoreboard(["P3"], methods_silicon=methods, silicon=campaign)


def test_the_held_out_and_the_faulty_are_never_trained_on(campaign: SiliconCampaign) -> None:
    seen: list[Fold] = []

    def spy(fold: Fold) -> pd.DataFrame:
        seen.append(fold)
        return exact(fold)

    predict_silicon(campaign, {"spy": spy})
    assert len(seen) == 3 + 2
    for held_out, folds in (("lineage", seen[:3]), ("accelerator", seen[3:])):
        for fold in folds:
            assert not set(fold.train.measurements[held_out]) & set(fold.test.measurements[held_out])
            assert (fold.train.measurements["fault"] == "").all()
        assert sum(len(fold.test.X) for fold in folds) == len(campaign.rows.X)


@pytest.mark.slow  # reviews every shipped campaign
def test_the_held_out_stands_in_no_campaign_that_is_learnt_from(shipped: SiliconCampaign) -> None:
    hardware = config_hashes(shipped.everything.X)["accelerator"]
    of_row = pd.Series(hardware, index=shipped.everything.X.index)
    n_learnt = []
    for fold in silicon_folds(shipped):
        learnt, asked = fold.everything.measurements, fold.test.measurements
        n_learnt.append(len(learnt))
        assert (learnt["rule"] == "").all()
        assert set(learnt["campaign"]) - {"silicon"}
        if fold.split == "leave_one_lineage_out":
            assert not set(learnt["lineage"]) & set(asked["lineage"])
            assert not set(fold.everything.groups) & set(asked["group"])
        else:
            assert not set(learnt["accelerator"]) & set(asked["accelerator"])
            assert not set(of_row[learnt.index]) & set(config_hashes(fold.test.X)["accelerator"])
    assert len(n_learnt) == 9 + 5
    assert 10_000 < min(n_learnt) < max(n_learnt) < shipped.everything.is_sound.sum()


@pytest.mark.slow  # reviews every shipped campaign
def test_the_fold_group_is_held_out_with_the_lineage(shipped: SiliconCampaign) -> None:
    fold = next(fold for fold in silicon_folds(shipped) if set(fold.test.groups) == {"llama-3-8b"})
    in_group = shipped.everything.groups.isin(fold.test.measurements["group"])
    assert len(set(shipped.everything.measurements.loc[in_group, "lineage"])) > 1
    assert not in_group[fold.everything.X.index].any()


def test_what_was_derived_is_not_an_outcome(campaign: SiliconCampaign) -> None:
    assert campaign.rows.y["output_throughput_token_per_s"].isna().all()
    assert campaign.rows.y["tpot_s"].notna().all()


def test_the_json_has_the_promised_keys(board: Scoreboard) -> None:
    figures = json.loads(board.to_json())
    assert list(figures) == ["P3", "P3_clean"]
    for protocol in figures.values():
        assert list(protocol) == list(SPLITS)
        for methods in protocol.values():
            assert set(methods) == {"half_off", "exact"}
            assert set(methods["exact"]) == {"tpot", "ttft"}
            assert methods["exact"]["ttft"] == {"mape": 0.0, "median_ape": 0.0, "within_25": 1.0, "answered": 1.0}


def test_a_row_without_an_answer_counts_as_a_miss_and_not_as_answered(board: Scoreboard) -> None:
    ttft = json.loads(board.to_json())["P3_clean"]["leave_one_lineage_out"]["half_off"]["ttft"]
    assert ttft == {"mape": pytest.approx(0.5), "median_ape": pytest.approx(0.5), "within_25": 0.0, "answered": 0.5}


def test_the_dump_gives_every_figure_back(board: Scoreboard, tmp_path: Path) -> None:
    board.dump(tmp_path)
    dump = pd.read_csv(tmp_path / "P3.csv", keep_default_na=False, na_values={"predicted_ttft_s": [""]})
    for protocol, rows in (("P3", dump), ("P3_clean", dump[dump["is_clean"]])):
        for line in figure_rows(protocol, board.results[protocol].figures):
            mine = rows[(rows["split"] == line["split"]) & (rows["method"] == line["method"])]
            truth, said = (mine[f"{prefix}{line['metric']}_s"].to_numpy() for prefix in ("", "predicted_"))
            error = np.abs(said / truth - 1)
            again = [np.nanmean(error), np.nanmedian(error), (error <= 0.25).mean(), np.isfinite(said).mean()]
            assert [line[name] for name in ("mape", "median_ape", "within_25", "answered")] == pytest.approx(again)
    assert len(dump) == 2 * 2 * (N_OWN + 3)
    assert dump.loc[dump["split"] == "leave_one_lineage_out", "fold"].nunique() == 3


def test_clean_rows_are_sound_and_stand_once(board: Scoreboard) -> None:
    dump = board.results["P3"].tables["P3"]
    clean = dump[dump["is_clean"] & (dump["method"] == "exact") & (dump["split"] == "leave_one_lineage_out")]
    assert len(clean) == N_OWN
    assert not clean["row"].duplicated().any()


def test_all_are_judged_on_the_rows_that_one_answers(board: Scoreboard) -> None:
    parts = figures_by_part(board.results["P3"].tables["P3"])
    answered = parts[(parts["by"] == "answered_by") & (parts["protocol"] == "P3_clean")]
    assert set(answered["part"]) == {"half_off"}
    assert set(answered["method"]) == {"half_off", "exact"}
    assert set(answered["n_row"]) == {N_OWN // 2}
    assert set(parts["by"]) == {"lineage", "engine", "accelerator", "weight_precision", "subset", "answered_by"}


def test_a_total_without_a_split_is_taken_by_halves(campaign: SiliconCampaign) -> None:
    last = campaign.rows.measurements.iloc[-1]
    assert (last["n_prefill_accelerator"], last["n_decode_accelerator"]) == (4, 4)
    assert last["fault"] == "disaggregated_total"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_answers_for_every_row_it_is_asked(campaign: SiliconCampaign, name: str) -> None:
    fold = next(silicon_folds(campaign, partial(fit_predictor, config=QUICK)))
    predicted = METHODS[name](fold)
    assert predicted.index.equals(fold.test.X.index)
    assert {"ttft_s", "tpot_s"} <= set(predicted)
    assert name == "aiconfigurator" or (predicted > 0).all(axis=None)


def test_the_nearest_measurement_of_a_known_question_is_its_own(campaign: SiliconCampaign) -> None:
    rows = campaign.rows.take(np.arange(N_OWN))
    fold = Fold("leave_one_lineage_out", rows, campaign.everything, rows)
    assert nearest_measured(fold)["tpot_s"].tolist() == rows.y["tpot_s"].tolist()


def test_the_shipped_campaign_is_the_published_one() -> None:
    of_silicon = build_campaign_rows(load_campaigns(["silicon"]), load_catalog())
    campaign, index = load_silicon_campaign(of_silicon), load_silicon_index()
    assert len(campaign.published) == 3619
    of_id = campaign.published.merge(index, on="id", suffixes=("", "_index"), validate="1:1")
    fault = of_id["row"].map(campaign.rows.measurements["fault"])
    assert (fault == of_id["fault"]).all()
    assert (fault != "").mean() <= 0.03
    assert campaign.rows.groups.nunique() == 10
