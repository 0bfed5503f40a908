from __future__ import annotations

import tarfile
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build import main, save
from builders.campaigns.build_result import BuildResult
from builders.campaigns.llm_pilot import PUBLISHED as PUBLISHED_NAME
from builders.campaigns.llm_pilot import (
    RAW,
    build_llm_pilot,
    check_medians,
    load_medians,
    rows_of_llm_pilot,
)
from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.importers import read_measurements
from roofcast.data.importers.llm_pilot.pilot_runs import ACCELERATORS, MODELS
from roofcast.data.measurements.validation import row_ids
from tests.data.row_builders import LLM_PILOT_SAMPLES

BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
PUBLISHED = BESIDE / PUBLISHED_NAME
needs_raw = pytest.mark.skipif(
    not PUBLISHED.is_file(), reason="LLM-Pilot's files are missing next to the checkout (shared/data/llm_pilot)"
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


def test_equal_medians_pass(published: Path) -> None:
    assert len(rows_of_llm_pilot(LLM_PILOT_SAMPLES, published)) == 15


def test_point_without_raw_file_has_published_medians_only(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    sample = next(LLM_PILOT_SAMPLES.glob("*llama*")).read_text()
    (raw / "run.csv").write_text(sample.replace(",llama-7b,8,", ",llama-7b,64,"))
    file = medians_of(raw, tmp_path / "expected.csv")
    with file.open("a") as stream:
        stream.write("9,llama-7b,4 x T4,128,12.5,150\n")
    rows = rows_of_llm_pilot(raw, file)
    assert len(rows) == 6
    row = rows.iloc[-1]
    assert (row["concurrency"], row["statistic"]) == (128, "p50")
    assert (row["nttft_s_per_token"], row["itl_s"]) == (0.0125, 0.15)
    assert pd.isna(row["ttft_s"])
    assert row["n_input_token"] == rows["n_input_token"].iloc[0]
    assert row["note"].startswith("published medians alone")


def test_different_median_stops_the_build(published: Path) -> None:
    table = pd.read_csv(published)
    table["median_itl"] = table["median_itl"].where(table.index != 1, table["median_itl"] * 1.001)
    table.to_csv(published)
    with pytest.raises(InputError, match=r"itl_s: .* is measured but .* published for"):
        rows_of_llm_pilot(LLM_PILOT_SAMPLES, published)


def test_unpublished_point_stops_the_build(published: Path) -> None:
    pd.read_csv(published).iloc[1:].to_csv(published)
    with pytest.raises(InputError, match="is measured but nan published"):
        rows_of_llm_pilot(LLM_PILOT_SAMPLES, published)


def test_file_without_medians_raises_schema_error(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("model,gpu\nx,1 x T4\n")
    with pytest.raises(SchemaError, match="num_users: no such column"):
        load_medians(file)


def a_root(folder: Path) -> Path:
    (folder / PUBLISHED_NAME).parent.mkdir(parents=True)
    medians_of(LLM_PILOT_SAMPLES, folder / PUBLISHED_NAME)
    with tarfile.open(folder / RAW, "w:xz") as archive:
        for file in sorted(LLM_PILOT_SAMPLES.glob("*.csv")):
            archive.add(file, file.name)
    return folder


def a_package(folder: Path) -> Path:
    (folder / "llm_pilot").mkdir(parents=True)
    (folder / "llm_pilot" / "campaign.toml").write_text("n_read = 1\nn_row = 1\n")
    return folder


def test_build_is_deterministic(tmp_path: Path) -> None:
    root, out = a_root(tmp_path / "raw"), a_package(tmp_path / "out")
    arguments = ["llm_pilot", "--raw", str(root), "--out", str(out), "--rejected", str(tmp_path)]
    main(arguments)
    first = (out / "llm_pilot" / "rows.csv").read_bytes()
    main(arguments)
    assert (out / "llm_pilot" / "rows.csv").read_bytes() == first
    assert first.count(b"\n") == 16
    counts = (out / "llm_pilot" / "campaign.toml").read_text()
    assert counts == "n_read = 3\nn_row = 15\n"


def test_unknown_campaign_exits_with_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["llm_pilo", "--raw", str(tmp_path)])
    assert "unknown campaign llm_pilo" in capsys.readouterr().err


def test_missing_published_files_exit_with_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["llm_pilot", "--raw", str(tmp_path)])
    assert "error: llm_pilot: " in capsys.readouterr().err


def test_saved_rows_round_trip(tmp_path: Path) -> None:
    rows = load_campaigns(["llm_pilot"])
    out = a_package(tmp_path)
    save(BuildResult(rows.sample(frac=1, random_state=0), n_read=528), out / "llm_pilot", tmp_path / "rejected.csv")
    again = read_measurements("roofcast_csv", [out / "llm_pilot" / "rows.csv"], "llm_pilot")
    assert row_ids(again) == row_ids(rows)


def test_rejected_rows_are_written_with_their_rules(tmp_path: Path) -> None:
    rows = load_campaigns(["llm_pilot"]).head(3)
    rejected = pd.DataFrame({"reference": ["run 7"], "reason": ["placeholder"], "detail": ["ttft is 0"]})
    folder = a_package(tmp_path) / "llm_pilot"
    file = tmp_path / "rejected" / "llm_pilot.csv"
    save(BuildResult(rows, n_read=4, rejected=rejected), folder, file)
    assert pd.read_csv(file).equals(rejected)
    assert (folder / "campaign.toml").read_text() == "n_read = 4\nn_row = 3\n\n[rejected]\nplaceholder = 1\n"
    save(BuildResult(rows, n_read=3), folder, file)
    assert not file.exists()
    assert (folder / "campaign.toml").read_text() == "n_read = 3\nn_row = 3\n"


@needs_raw
def test_shipped_medians_match_published_medians() -> None:
    missing = check_medians(load_campaigns(["llm_pilot"]), load_medians(PUBLISHED))
    assert len(load_medians(PUBLISHED)) == 528
    assert len(missing) == 0


@pytest.mark.slow
@needs_raw
def test_shipped_rows_match_published_files() -> None:
    rows = build_llm_pilot(BESIDE).rows
    assert rows["note"].eq("").sum() == 526 * 5
    assert sorted(row_ids(rows)) == sorted(row_ids(load_campaigns(["llm_pilot"])))
