import datetime as dt
import logging
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import NotReadyError, UnknownNameError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.specs import ModelSpec, Offer
from roofcast.data.store.registered_models import RegisteredModels
from roofcast.serving.app_state.catalog.user_files import UserFiles, old_price_warnings, staleness_warnings
from roofcast.serving.app_state.imports.measurement_import import import_rows
from roofcast.serving.app_state.retraining_run import learning_rows
from roofcast.serving.composition import Service
from roofcast.serving.http.guarded_routes import today
from roofcast.serving.predict.question_rows import table_from_rows
from tests.conditions import wait_until
from tests.serving.http_client import ACCELERATOR, CONFIG, Client, a_demand, a_measurement, a_question
from tests.serving.user_files import ID, an_accelerator_file, an_offer_file, write_file
from tests.training.builders import QUIET, learning_from


class Warnings(list[str]):
    """Warnings, in order."""

    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def warnings() -> Warnings:
    return Warnings()


@pytest.fixture
def files(tmp_path: Path, warnings: Warnings) -> UserFiles:
    return UserFiles(tmp_path, warnings)


def offer(files: UserFiles, offer_id: str) -> Offer:
    return next(o for o in files.catalog.offers if o.id == offer_id)


def test_without_files_the_catalogue_is_the_shipped_one(files: UserFiles, warnings: Warnings) -> None:
    shipped = load_catalog()
    assert files.catalog.accelerators == shipped.accelerators
    assert {o.id: o for o in files.catalog.offers} == {o.id: o for o in shipped.offers}
    assert files.catalog is files.catalog
    assert not warnings


def test_changed_files_are_reloaded(files: UserFiles, tmp_path: Path, warnings: Warnings) -> None:
    write_file(tmp_path, "offers/attic.csv", an_offer_file())
    assert "acme-x1-96gb" in only_warning(files, warnings)
    file = write_file(tmp_path, "accelerators/mine.toml", an_accelerator_file())
    assert files.catalog.accelerator("ACME-X1-96GB").memory_byte == 96 * 2**30
    assert offer(files, "attic/unknown/box/on_demand").price_usd_per_h == Decimal("1.5")
    assert files.catalog is files.catalog
    write_file(tmp_path, "accelerators/mine.toml", an_accelerator_file(memory_gib=48))
    assert files.catalog.accelerator(ID).memory_byte == 48 * 2**30
    assert not warnings
    file.unlink()
    with pytest.raises(UnknownNameError):
        files.catalog.accelerator(ID)


def only_warning(files: UserFiles, warnings: Warnings) -> str:
    """Return the only warning of reading the files, and remove it."""
    _ = files.catalog, files.catalog
    assert len(warnings) == 1, warnings
    return warnings.pop()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("accelerators/bad.toml", an_accelerator_file(memory_gib=-1), "bad.toml, line 9: memory_gib: "),
        ("accelerators/bad.toml", an_accelerator_file(id=ACCELERATOR), f"id: '{ACCELERATOR}' already names"),
        (
            "accelerators/bad.toml",
            an_accelerator_file(id="my-H100-SXM-80GB"),
            "id: 'H100-SXM-80GB'",
        ),
        ("accelerators/bad.toml", an_accelerator_file(name="A100-PCIe-80GB"), "name: 'A100-PCIe-80GB' already names"),
        ("offers/bad.csv", an_offer_file("a,b,h10,1,2026-01-01"), "offers/bad.csv, line 2: accelerator: no 'h10'"),
        ("offers/bad.csv", "", "offers/bad.csv: is empty"),
    ],
)
def test_a_broken_file_gives_one_warning_and_the_others_are_read(
    tmp_path: Path, warnings: Warnings, name: str, text: str, message: str
) -> None:
    files = UserFiles(tmp_path, warnings)
    write_file(tmp_path, "accelerators/good.toml", an_accelerator_file(id="acme-x2", name="X2"))
    write_file(tmp_path, "offers/good.csv", an_offer_file("attic,box,acme-x2,1,2026-11-01"))
    write_file(tmp_path, name, text)
    problem = only_warning(files, warnings)
    assert message in problem
    assert problem.endswith("; the file is left out")
    assert str(tmp_path) not in problem
    assert files.catalog.accelerator("x2").id == "acme-x2"
    assert offer(files, "attic/unknown/box/on_demand").accelerator == "acme-x2"


def test_a_file_in_place_of_a_folder_gives_a_warning(files: UserFiles, tmp_path: Path, warnings: Warnings) -> None:
    write_file(tmp_path, "offers", "")
    assert only_warning(files, warnings) == "offers: cannot be read: not a directory"


def test_other_files_are_ignored(files: UserFiles, tmp_path: Path, warnings: Warnings) -> None:
    for name in (".mine.toml.77", ".mine.toml", "mine.toml~", "README", "notes.csv"):
        write_file(tmp_path, f"accelerators/{name}", "no TOML")
    (tmp_path / "offers" / "folder.csv").mkdir(parents=True)
    (tmp_path / "offers" / "gone.csv").symlink_to(tmp_path / "nowhere")
    assert files.catalog.accelerators == load_catalog().accelerators
    assert not warnings


def test_own_prices_replace_shipped_ones_and_the_newer_file_counts(files: UserFiles, tmp_path: Path) -> None:
    shipped = load_catalog().offers[0]
    header = "provider,region,instance_type,accelerator,n_accelerator,pricing,price_per_h,as_of\n"
    about = f"{shipped.provider},{shipped.region},{shipped.instance_type},{shipped.accelerator},8,{shipped.pricing}"
    write_file(tmp_path, "offers/a.csv", f"{header}{about},0.5,2020-02-01\n")
    write_file(tmp_path, "offers/b.csv", f"{header}{about},0.7,2020-01-01\n")
    assert offer(files, shipped.id).price_usd_per_h == Decimal("0.5")
    assert len(files.catalog.offers) == len(load_catalog().offers)


def test_old_prices_have_a_warning_but_owned_hardware_has_none() -> None:
    offer = load_catalog().offers[0].model_copy(update={"as_of": dt.date(2026, 1, 1)})
    owned = offer.model_copy(update={"provider": "owned"})
    day = dt.date(2026, 1, 1) + dt.timedelta(days=121)
    assert staleness_warnings([offer, owned], day - dt.timedelta(days=1)) == []
    assert staleness_warnings([owned], day) == []
    assert staleness_warnings([], day) == []
    (warning,) = staleness_warnings([offer, owned], day)
    assert "1 of 2 prices are more than 120 days old" in warning


def test_the_catalogue_follows_files_while_the_store_fails(
    service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = validate_measurements(table_from_rows([a_measurement(model="my-14b")]))
    import_rows(service.stores, service.catalogs, rows, [("my-14b", CONFIG)])

    def fail(_: RegisteredModels) -> list[ModelSpec]:
        raise NotReadyError("the store does not answer")

    assert service.catalog.model("my-14b")
    monkeypatch.setattr(RegisteredModels, "load", fail)
    write_file(home, "accelerators/mine.toml", an_accelerator_file())
    service.catalogs.refresh()
    assert service.catalog.accelerator(ID)
    assert service.catalog.model("my-14b")


def test_a_running_service_reads_new_user_files(client: Client, home: Path) -> None:
    assert ID not in {spec["id"] for spec in client.get("/v1/accelerators").json()}
    write_file(home, "accelerators/mine.toml", an_accelerator_file())
    write_file(home, "offers/attic.csv", an_offer_file())
    wait_until(lambda: "attic" in {offer["provider"] for offer in client.get("/v1/offers").json()})
    assert ID in {spec["id"] for spec in client.get("/v1/accelerators").json()}
    offers = client.get("/v1/offers").json()
    assert {type(o["price_usd_per_h"]) for o in offers} <= {float, int}
    answer = client.post("/v1/recommendations", a_demand(constraints={"providers": ["attic"]})).json()
    assert {entry["accelerator"] for entry in answer["entries"]} == {ID}
    (row,) = client.post("/v1/predictions", {"rows": [a_question(accelerator="x1-96gb")]}).json()["rows"]
    assert row["status"] == "ok"
    assert client.post("/v1/measurements", {"rows": [a_measurement(accelerator=ID)]}).json()["n_new"] == 1
    shutil.rmtree(home / "accelerators")
    assert client.post("/v1/recommendations", a_demand()).status_code == 200
    assert (
        learning_rows(learning_from(QUIET, ["llm_pilot"]), client.service.store, client.service.catalog)
        .X.notna()
        .any()
        .any()
    )


def test_a_broken_file_is_logged_and_no_request_fails(
    client: Client, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_file(home, "accelerators/mine.toml", "memory_gb = 80\n")
    write_file(home, "offers/attic.csv", an_offer_file())
    expected = (
        "accelerators/mine.toml, line 1: memory_gb: is no field; did you mean memory_gib?",
        f"offers/attic.csv, line 2: accelerator: no '{ID}' is known",
    )
    with caplog.at_level(logging.WARNING):
        wait_until(
            lambda: all(text in "\n".join(warnings_of(caplog)) for text in expected)
        )  # a timer reads the files
        caplog.clear()
        for path in ("/v1/accelerators", "/v1/offers", "/v1/models"):
            assert client.get(path).status_code == 200
        assert client.post("/v1/recommendations", a_demand()).status_code == 200
    assert not warnings_of(caplog)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("roofcast.serving")]


def test_only_choices_have_a_warning_of_old_prices() -> None:
    offer = load_catalog().offers[0].model_copy(update={"as_of": dt.date(2026, 1, 1)})
    owned = offer.model_copy(update={"provider": "owned"})
    day = dt.date(2026, 1, 1) + dt.timedelta(days=121)
    assert old_price_warnings({"first entry": [offer]}, day - dt.timedelta(days=1)) == []
    assert old_price_warnings({"first entry": [owned], "mixed fleet": []}, day) == []
    (warning,) = old_price_warnings({"first entry": [owned], "mixed fleet": [offer, owned]}, day)
    assert warning.startswith("the price of the mixed fleet is 121 days old (2026-01-01): check it")


def test_an_answer_with_old_prices_has_a_warning(client: Client) -> None:
    client.app.dependency_overrides[today] = lambda: dt.date(2030, 1, 1)
    demand = a_demand()
    demand["workload"] |= {"think_time_s": 10}
    (warning,) = client.post("/v1/recommendations", demand).json()["warnings"]
    assert warning.startswith("the price of the first entry is ")
    newest = max(o.as_of for o in load_catalog().offers)
    client.app.dependency_overrides[today] = lambda: newest
    answer = client.post("/v1/recommendations", demand).json()
    is_old = (newest - dt.date.fromisoformat(answer["entries"][0]["price_as_of"])).days > 120
    assert bool(answer["warnings"]) == is_old
