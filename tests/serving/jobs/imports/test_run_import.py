"""Import of measured training jobs."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roofcast.data import job_campaigns
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.job_campaigns import job_catalog
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.store.measurement_store import Added
from roofcast.data.store.provenance import Origin
from roofcast.serving.app_state.retraining_run import learning_rows
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service, build_service
from roofcast.serving.csv_table import CsvTable, parse_table
from roofcast.serving.jobs.imports.run_import import compare_runs, import_runs, read_run_file
from roofcast.training.lifecycle.learned_targets import JOB_TARGET
from roofcast.training.lifecycle.shipped import shipped_rows
from tests.data.row_builders import a_training_row
from tests.serving.http_client import CONFIG
from tests.serving.jobs.builders import an_estimate_model

CI = Origin("ci", is_operator=False)
SHIPPED = sorted(Path(job_campaigns.__file__).parent.glob("*/rows.csv"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "job_model", an_estimate_model())
        service = build_service(Settings(home=tmp_path_factory.mktemp("home")))
        yield service
        service.close()


def import_file(service: Service, table: CsvTable, name: str) -> Added:
    """Count what an import of a table would do."""
    rows, options = table.records(), {"source": name, "lines": table.lines}
    return import_runs(service.stores, service.catalogs, rows, **options, origin=CI, dry_run=True)  # type: ignore[arg-type]


def test_rows_are_stored_once_under_ids_of_the_catalogue(service: Service) -> None:
    row = a_training_row(model="llama-3.1-8b", accelerator="h100-sxm-80gb", campaign="once")
    assert import_runs(service.stores, service.catalogs, [row], origin=CI) == Added(n_new=1, n_known=0)
    assert import_runs(service.stores, service.catalogs, [row], origin=CI) == Added(n_new=0, n_known=1)
    stored = service.store.training.load("once")
    assert stored[["model", "accelerator"]].iloc[0].tolist() == ["meta-llama/Llama-3.1-8B", "nvidia-h100-sxm-80gb"]


def test_a_throughput_follows_from_the_step_time(service: Service) -> None:
    import_runs(
        service.stores,
        service.catalogs,
        [a_training_row(campaign="steps", throughput_token_per_s="", step_time_s=8.0)],
    )
    (run,) = service.store.training.load("steps").to_dict("records")
    assert run["throughput_token_per_s"] == 128 * 4096 / 8.0
    assert run["derived"] == "throughput_token_per_s"


def test_a_run_far_from_the_estimate_waits_for_a_confirmation(service: Service) -> None:
    rows = [a_training_row(campaign="slow", throughput_token_per_s=rate) for rate in (60_000, 600)]
    added = import_runs(service.stores, service.catalogs, rows, origin=CI)
    assert (added.n_new, added.n_quarantined) == (2, 1)
    stored = service.store.training.load("slow", provenance=True).set_index("throughput_token_per_s")
    assert stored["state"].to_dict() == {60_000: "accepted", 600: "quarantined"}
    assert "times the estimate" in str(stored.loc[600, "reason"])


@pytest.mark.parametrize("name", [pytest.param("qwen/qwen-72b", marks=pytest.mark.slow), "Qwen/Qwen-72B"])
def test_a_registered_model_of_a_training_campaign_s_name_leaves_what_is_learnt(tmp_path: Path, name: str) -> None:
    service = build_service(Settings(home=tmp_path))
    service.store.models.add(model_from_config(CONFIG, name), CONFIG)
    spec = job_catalog().model("Qwen/Qwen-72B")
    added = import_runs(
        service.stores, service.catalogs, [a_training_row(model="Qwen/Qwen-72B", throughput_token_per_s=8_000)]
    )
    assert (added.n_new, added.n_quarantined) == (1, 0)
    assert service.job_catalog.model(name) == spec
    assert service.catalog.model(name).n_layer == model_from_config(CONFIG, name).n_layer
    runs = learning_rows(JOB_TARGET, service.store, service.job_catalog)
    service.close()
    assert len(runs.ids) == len(shipped_rows(JOB_TARGET).ids) + 1
    assert "Qwen/Qwen-72B" in set(runs.rows.measurements["model"])


def test_a_config_of_a_training_campaign_s_model_names_the_cure(service: Service) -> None:
    with pytest.raises(InputError, match="leave the config out"):
        import_runs(service.stores, service.catalogs, [a_training_row()], [("Qwen/Qwen-72B", CONFIG)])


def test_a_dry_run_stores_nothing(tmp_path: Path) -> None:
    service = build_service(Settings(home=tmp_path / "none"))
    assert import_runs(service.stores, service.catalogs, [a_training_row()], dry_run=True) == Added(
        n_new=1, n_known=0
    )
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ([{"tp": 3}, {"accelerator": "h10"}], ["line 1: tp: ", "line 2: accelerator: no 'h10' is known"]),
        ([{"n_accelerator": -1}, {"ep": 4}], ["line 1: n_accelerator: must be", "line 2: ep: must be 1"]),
        ([{}, {"tp": 3, "ep": 4}], ["line 2: tp: tp x pp x cp must divide", "line 2: ep: must be 1"]),
        ([{"model": "x", "accelerator": "h10"}, {"tp": "x"}], ["line 1: model: ", "line 1: accelerator: "]),
        ([{}, {"throughput_token_per_s": 1e9}], ["line 2: throughput_token_per_s: of all accelerators together"]),
        ([{"tokens": 1}], ["tokens: is not a column of the training table"]),
        ([{"throughput_token_per_s": None}], ["line 1: step_time_s: give at least one outcome"]),
    ],
)
def test_all_problems_are_named_with_their_rows(
    service: Service, changes: list[dict[str, Any]], problems: list[str]
) -> None:
    with pytest.raises(SchemaError) as error:
        import_runs(
            service.stores, service.catalogs, [a_training_row(campaign="bad", **change) for change in changes]
        )
    for problem in problems:
        assert str(error.value).count(problem) == 1
    assert service.store.training.load("bad").empty


@pytest.mark.parametrize("changes", [{"tp": "x"}, {"model": "no-such"}, {"throughput_token_per_s": 1e9}])
def test_a_row_of_a_file_is_named_by_its_line_after_blank_lines(service: Service, changes: dict[str, Any]) -> None:
    rows = [a_training_row(note="one line"), a_training_row(**changes)]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0] | rows[1]), restval="", lineterminator="\n\n")
    writer.writeheader()
    writer.writerows(rows)
    (field,) = changes
    with pytest.raises(SchemaError) as caught:
        import_file(service, parse_table(text.getvalue().encode(), "runs.csv"), "runs.csv")
    assert f"runs.csv, line 5: {field}: " in str(caught.value)


def test_an_import_is_compared_with_the_predictor(service: Service) -> None:
    rows = [a_training_row(campaign="compared", throughput_token_per_s=rate) for rate in (50_000, 55_000)]
    errors = compare_runs(
        service.store,
        service.job_catalog,
        lambda: service.job_model,
        import_runs(service.stores, service.catalogs, rows),
    )
    assert errors is not None
    assert (errors.predictor_version, errors.n_row, errors.n_learnt) == ("estimate", 2, 0)
    groups = {group.kind: group for group in errors.groups if group.metric == "throughput_token_per_s"}
    names = {kind: groups[kind].name for kind in ("engine_version", "accelerator")}
    assert names == {"engine_version": "torchtitan", "accelerator": "nvidia-h100-sxm-80gb"}
    assert groups["all"].n_row == 2
    assert 0.2 < groups["all"].bias < 2
    assert compare_runs(service.store, service.job_catalog, lambda: service.job_model, Added(0, 2)) is None


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.parent.name)
def test_every_shipped_row_passes_the_import(service: Service, file: Path) -> None:
    table = read_run_file(file.read_bytes(), file.name, {}, job_catalog())
    added = import_file(service, table, file.name)
    assert added.n_new == len(table.rows) > 0
