import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.serving import composition
from roofcast.serving.composition import Service
from roofcast.serving.predict.next_measurements import NextMeasurementsRequest, candidate_table, measure_next
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.bundles.bundle_io import sha256
from roofcast.training.lifecycle.registry.registry import Champion, Registry, ShippedPredictor
from roofcast.training.lifecycle.retraining import RetrainingReport
from tests.builders import a_model
from tests.serving.http_client import ACCELERATOR, MODEL, Run

PAGE = (Path(__file__).parents[4] / "docs" / "how-to" / "retrain-nightly.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_the_embedding_example_of_the_page_imports_neither_mlflow_nor_serving(run: Run, tmp_path: Path) -> None:
    assert run.json("export", tmp_path / "predictor.roofcast")["sha256"] == sha256(tmp_path / "predictor.roofcast")
    example = next(b for b in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S) if "load_bundle" in b)
    code = f"{example}\nimport sys\nassert not {{'mlflow', 'fastapi', 'roofcast.serving'}} & set(sys.modules)\n"
    run_result = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert run_result.returncode == 0, run_result.stderr
    assert "tpot_s" in run_result.stdout


def test_the_shipped_predictor_answers_if_the_champion_cannot_be_read(
    home: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bundle,) = (home / "bundles").iterdir()
    shipped = ShippedPredictor(Champion("shipped-0", "", bundle.stem), bundle)
    load = Registry.load

    def load_shipped(registry: Registry, champion: Champion) -> ModelBundle:
        if champion.version == "1":
            raise InputError("bundle", "version 1 is of another layout; retrain")
        return load(registry, champion)

    monkeypatch.setattr(Registry, "load", load_shipped)
    arguments = ("export", tmp_path / "predictor.roofcast")
    assert run(*arguments)[0] == 2
    monkeypatch.setattr(composition, "shipped_predictor", lambda *_: shipped)
    status, _, err = run(*arguments)
    assert status == 0
    assert "warning: the champion cannot be used: " in err
    assert "version 1 is of another layout; retrain; version shipped-0 answers" in err.replace("\n", " ")


@pytest.mark.usefixtures("home")
def test_a_file_that_cannot_be_written_is_an_error(run: Run, tmp_path: Path) -> None:
    err = run.error("export", tmp_path / "no" / "such" / "folder.roofcast")
    assert "file: " in err
    assert "cannot be written" in err


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_measure_next_ranks_distinct_measurements(run: Run) -> None:
    status, out, err = run("measure-next", "--model", MODEL, "--accelerator", ACCELERATOR, "--n", "3", "--json")
    rows = json.loads(out)
    assert (status, err) == (0, "")
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert {row["accelerator"] for row in rows} == {ACCELERATOR}
    assert len({(row["n_accelerator"], row["engine"]) for row in rows}) == 3
    assert all(0 < row["tpot_s_narrower"] < 1 for row in rows)
    assert "ttft_s_narrower" in run.ok("measure-next", "--model", MODEL, "--accelerator", ACCELERATOR)


def test_the_report_of_a_retraining_has_the_rows_set_aside_by_rule(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    report = RetrainingReport(
        version="2", promoted=True, reason="not worse", candidate_error=0.25, champion_error=0.26, n_row=90,
        n_group=9, set_aside={"not_ok": 6, "near_duplicate": 4}, scores={"ttft_s": {"mape": 0.31}},
    )  # fmt: skip
    monkeypatch.setattr(Service, "retrain", lambda *_, **__: report)
    status, out, _ = run("retrain")
    lines = [line.split() for line in out.splitlines()]
    assert (status, ["not_ok", "6"] in lines, ["near_duplicate", "4"] in lines) == (0, True, True)
    assert ["ttft_s", "0.31"] in lines


def test_candidates_are_engines_that_run_on_the_accelerator() -> None:
    catalog = load_catalog()
    table = candidate_table([a_model()], catalog, catalog.offers, NextMeasurementsRequest().workload)
    engines = table.groupby("accelerator")["engine"].agg(set)
    assert engines["nvidia-h100-sxm-80gb"] == {"vllm", "sglang", "trtllm"}
    assert engines["amd-mi300x-192gb"] == {"vllm", "sglang"}
    assert not any(name.startswith("aws-inferentia1") for name in engines.index)


def test_a_model_that_fits_no_offer_is_an_error(service: Service) -> None:
    huge = a_model(id="huge", n_layer=4000, n_param=10**13, n_param_active=10**13)
    request = NextMeasurementsRequest(models=["huge"])
    with pytest.raises(InputError, match="nothing on offer can run the models"):
        measure_next(request, load_catalog().with_models([huge]), service.active_model)
