from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from roofcast.data.campaigns import load_campaigns
from roofcast.data.campaigns.build import main, save_rows
from roofcast.data.campaigns.build_llm_pilot import build_llm_pilot, check_medians, load_medians
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.formats import read_measurements
from roofcast.data.formats.llm_pilot import ACCELERATORS, MODELS
from roofcast.data.measurements import row_ids
from tests.data.builders import LLM_PILOT_SAMPLES

BESIDE = Path(__file__).parents[3].parent / "shared" / "data" / "llm_pilot"
PUBLISHED = BESIDE / "published_predictions" / "expected_predictions_LLM-Pilot.csv"
needs_raw = pytest.mark.skipif(
    not PUBLISHED.is_file(), reason="LLM-Pilot's own files are not beside the checkout (shared/data/llm_pilot)"
)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Medians of the samples, in the layout of LLM-Pilot's predictions."""
    return medians_of(LLM_PILOT_SAMPLES, tmp_path / "expected.csv")


def medians_of(raw: Path, file: Path) -> Path:
    rows = read_measurements("llm_pilot", [raw])
    rows = rows[rows["statistic"] == "p50"]
    gpus = {id_: gpu for gpu, id_ in ACCELERATORS.items()}
    names = {id_: name for name, id_ in MODELS.items()}
    table = pd.DataFrame(
        {
            "model": rows["model"].replace(names),
            "gpu": [f"{n:.0f} x {gpus[a]}" for n, a in zip(rows["n_accelerator"], rows["accelerator"], strict=True)],
            "num_users": rows["concurrency"].astype(int),
            "median_nttft": rows["nttft_s_per_token"] * 1000,
            "median_itl": rows["itl_s"] * 1000,
        }
    )
    table.to_csv(file)
    return file


def test_medians_that_agree_are_built(published: Path) -> None:
    assert len(build_llm_pilot(LLM_PILOT_SAMPLES, published)) == 15


def test_a_point_without_raw_file_takes_the_published_medians_alone(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    sample = next(LLM_PILOT_SAMPLES.glob("*llama*")).read_text()
    (raw / "run.csv").write_text(sample.replace(",llama-7b,8,", ",llama-7b,64,"))
    file = medians_of(raw, tmp_path / "expected.csv")
    with file.open("a") as stream:
        stream.write("9,llama-7b,4 x T4,128,12.5,150\n")
    built = build_llm_pilot(raw, file)
    assert len(built) == 6
    row = built.iloc[-1]
    assert (row["concurrency"], row["statistic"]) == (128, "p50")
    assert (row["nttft_s_per_token"], row["itl_s"]) == (0.0125, 0.15)
    assert pd.isna(row["ttft_s"])
    assert row["n_input_token"] == built["n_input_token"].iloc[0]
    assert row["note"].startswith("published medians alone")


def test_a_median_that_disagrees_stops_the_build(published: Path) -> None:
    table = pd.read_csv(published)
    table["median_itl"] = table["median_itl"].where(table.index != 1, table["median_itl"] * 1.001)
    table.to_csv(published)
    with pytest.raises(InputError, match=r"itl_s: .* is measured but .* published for"):
        build_llm_pilot(LLM_PILOT_SAMPLES, published)


def test_a_point_that_was_not_published_stops_the_build(published: Path) -> None:
    pd.read_csv(published).iloc[1:].to_csv(published)
    with pytest.raises(InputError, match="is measured but nan published"):
        build_llm_pilot(LLM_PILOT_SAMPLES, published)


def test_a_file_without_medians_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("model,gpu\nx,1 x T4\n")
    with pytest.raises(SchemaError, match="num_users: no such column"):
        load_medians(file)


def test_building_twice_writes_the_same_bytes(tmp_path: Path, published: Path) -> None:
    arguments = ["llm_pilot", "--raw", str(LLM_PILOT_SAMPLES), "--published", str(published), "--out", str(tmp_path)]
    main(arguments)
    first = (tmp_path / "rows.csv").read_bytes()
    main(arguments)
    assert (tmp_path / "rows.csv").read_bytes() == first
    assert first.count(b"\n") == 16


def test_saved_rows_read_back_the_same(tmp_path: Path) -> None:
    rows = load_campaigns(["llm_pilot"])
    save_rows(rows.sample(frac=1, random_state=0), tmp_path / "rows.csv")
    again = read_measurements("roofcast_csv", [tmp_path / "rows.csv"], "llm_pilot")
    assert row_ids(again) == row_ids(rows)


@needs_raw
def test_shipped_medians_are_the_published_ones() -> None:
    missing = check_medians(load_campaigns(["llm_pilot"]), load_medians(PUBLISHED))
    assert len(load_medians(PUBLISHED)) == 528
    assert len(missing) == 0


@needs_raw
def test_shipped_rows_are_those_of_the_published_files() -> None:
    built = build_llm_pilot(BESIDE / "performance_characterization_data_raw.tar.xz", PUBLISHED)
    assert built["note"].eq("").sum() == 526 * 5
    assert sorted(row_ids(built)) == sorted(row_ids(load_campaigns(["llm_pilot"])))
