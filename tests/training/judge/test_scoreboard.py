import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judge.peers.llm_pilot_peers import LATENCY_COLUMNS, MEASURED_COLUMNS, PEERS, load_measured_points
from judge.protocols.llm_pilot.p1_p2_llm_pilot import (
    P2_DEMANDS,
    decide,
    score_decisions,
)
from judge.scoreboard import POINTS, Scoreboard, run_scoreboard
from roofcast.data.errors import UnknownNameError


def perfect(seed: int) -> pd.DataFrame:
    return load_measured_points().rename(columns=dict(zip(MEASURED_COLUMNS, LATENCY_COLUMNS, strict=True)))


def noisy(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = perfect(seed)
    return table.assign(**{c: table[c] * np.exp(rng.normal(0, 0.2, len(table))) for c in LATENCY_COLUMNS})


@pytest.fixture(scope="module")
def board() -> Scoreboard:
    return run_scoreboard(["P1", "P2"], noisy, n_seed=3)


def test_every_peer_stands_beside_us(board: Scoreboard) -> None:
    figures = json.loads(board.to_json())
    assert list(figures) == ["P1", "P2"]
    for methods in figures.values():
        assert set(methods) == {*PEERS, "roofcast"}
    assert figures["P1"]["LLM-Pilot"]["so"] == pytest.approx(0.800699614549604, abs=1e-9)


def test_our_figures_are_medians_over_seeds(board: Scoreboard) -> None:
    ours = json.loads(board.to_json())["P2"]["roofcast"]
    scores = [score_decisions(decide(noisy(seed), P2_DEMANDS)).figures() for seed in range(3)]
    for figure, value in ours.items():
        assert value == np.median([of_seed[figure] for of_seed in scores])


@pytest.mark.parametrize(("protocols", "methods"), [([], {}), (["P1"], {"P1": set(PEERS)})])
def test_without_predictions_the_peers_stand_alone(protocols: list[str], methods: dict[str, set[str]]) -> None:
    assert {name: set(of) for name, of in json.loads(run_scoreboard(protocols).to_json()).items()} == methods


def test_the_dump_gives_every_figure_back(board: Scoreboard, tmp_path: Path) -> None:
    paths = board.dump(tmp_path / "new")
    assert {path.name for path in paths} == {"P1.csv", "P2.csv", f"{POINTS}.csv"}
    figures = json.loads(board.to_json())
    for name in ("P1", "P2"):
        rows = pd.read_csv(tmp_path / "new" / f"{name}.csv")
        seeds = pd.DataFrame(
            {"method": method, **score_decisions(table).figures()}
            for (method, _), table in rows.groupby(["method", "seed"])
        )
        again = seeds.groupby("method").median().to_dict("index")
        assert again.keys() == figures[name].keys()
        for method, expected in figures[name].items():
            assert again[method] == pytest.approx(expected, abs=1e-12)


def test_the_dump_gives_every_decision_back(board: Scoreboard, tmp_path: Path) -> None:
    board.dump(tmp_path)
    points = pd.read_csv(tmp_path / f"{POINTS}.csv", converters=dict.fromkeys(LATENCY_COLUMNS, float)).rename(
        columns={"fold": "model"}
    )
    rows = pd.read_csv(tmp_path / "P2.csv", keep_default_na=False)
    of_rf = points[points["method"] == "RF"].drop(columns=["method", "seed"])
    again = decide(of_rf, P2_DEMANDS)
    assert again["profile"].tolist() == rows.loc[rows["method"] == "RF", "profile"].tolist()


def test_a_figure_that_does_not_exist_is_null() -> None:
    def hopeless(seed: int) -> pd.DataFrame:
        return perfect(seed).assign(itl_s=1e3)

    ours = json.loads(run_scoreboard(["P1"], hopeless, n_seed=2).to_json())["P1"]["roofcast"]
    assert ours == {"success": 0.0, "overspend": None, "so": 0.0}


def test_progress_is_told_after_each_seed() -> None:
    told: list[tuple[int, int]] = []
    run_scoreboard(["P1"], perfect, n_seed=2, progress=lambda _, done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_an_unknown_protocol_is_refused_with_those_known() -> None:
    with pytest.raises(UnknownNameError, match="protocol: no 'P0' is known; did you mean 'P"):
        run_scoreboard(["P1", "P0"])
