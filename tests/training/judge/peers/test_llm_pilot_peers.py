from decimal import Decimal
from pathlib import Path

import pytest

from builders.campaigns.llm_pilot_predictions import build_peers
from judge.peers.llm_pilot_peers import (
    LATENCY_COLUMNS,
    MEASURED_COLUMNS,
    PEERS,
    load_measured_points,
    load_peer_predictions,
    load_profile_prices,
)
from roofcast.data.errors import SchemaError

HEADER = "model,gpu,num_users,median_nttft,median_itl,prediction_median_nttft,prediction_median_itl\n"


def a_publication(folder: Path, itl_of_last: str = "50.0") -> Path:
    predictions = folder / "published_predictions"
    predictions.mkdir()
    for method in PEERS:
        itl = itl_of_last if method == PEERS[-1] else "50.0"
        row = f"llama-7b,1 x T4,1,0.5294117647058824,{itl},-4.400836,30.469856\n"
        (predictions / f"expected_predictions_{method}.csv").write_text(HEADER + row, encoding="utf-8")
    (folder / "prices.csv").write_text("GPU,price\n1 x T4,2.176\n", encoding="utf-8")
    return folder


def test_every_method_covers_every_point() -> None:
    predictions = load_peer_predictions()
    assert predictions["method"].value_counts().to_dict() == dict.fromkeys(PEERS, 528)
    assert predictions[[*LATENCY_COLUMNS, *MEASURED_COLUMNS]].notna().all(axis=None)


def test_points_are_measured_at_eight_loads_each() -> None:
    points = load_measured_points()
    assert set(points["users"]) == {1, 2, 4, 8, 16, 32, 64, 128}
    assert points.groupby(["model", "profile"]).size().unique().tolist() == [8]
    assert {"huggyllama/llama-7b", "huggyllama/llama-13b"} < set(points["model"])


def test_every_profile_has_a_price() -> None:
    prices = load_profile_prices()
    assert set(prices) == set(load_measured_points()["profile"])
    assert prices["2 x T4"] == Decimal("2.754666667")


def test_building_converts_without_losing_a_digit(tmp_path: Path) -> None:
    build_peers(a_publication(tmp_path), tmp_path)
    lines = (tmp_path / "peers.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "measured,huggyllama/llama-7b,1 x T4,1,0.0005294117647058824,0.05"
    assert lines[2] == "LLM-Pilot,huggyllama/llama-7b,1 x T4,1,-0.004400836,0.030469856"
    assert len(lines) == 2 + len(PEERS)
    assert (tmp_path / "prices.csv").read_text(encoding="utf-8") == "profile,price_usd_per_h\n1 x T4,2.176\n"


def test_files_that_disagree_on_the_truth_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="file of Morphling: median_nttft: must be as in the file of LLM-Pilot"):
        build_peers(a_publication(tmp_path, itl_of_last="51.0"), tmp_path)
