import threading
from typing import Any

import pytest
from filelock import FileLock

from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import InputError
from roofcast.data.measurements.target import TRAINING
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.store.measurement_store import Added
from roofcast.data.store.provenance import Origin
from roofcast.serving.app_state.imports.measurement_import import import_rows
from roofcast.serving.app_state.retraining_run import learning_rows, training_lock
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service, build_service
from roofcast.serving.predict.question_rows import table_from_rows
from tests.conditions import PATIENCE_S, wait_until
from tests.serving.http_client import a_measurement
from tests.training.builders import QUIET, learning_from

FEW = ("llm_pilot",)


def learnt(service: Service) -> Any:
    return learning_rows(learning_from(QUIET, FEW), service.store, service.catalog)


def add(service: Service, *rows: dict[str, object], origin: Origin | None = None) -> Added:
    table = validate_measurements(table_from_rows(rows))
    return import_rows(service.stores, service.catalogs, table, origin=origin)


@pytest.mark.slow
def test_an_imported_copy_of_a_shipped_campaign_adds_no_training_rows(service: Service) -> None:
    n_row, copy = len(learnt(service).X), load_campaigns(FEW)
    assert import_rows(service.stores, service.catalogs, copy) == Added(len(copy), 0)
    assert len(learnt(service).X) == n_row
    add(service, a_measurement())
    assert len(learnt(service).X) == n_row + 1


def test_training_forgets_what_was_withdrawn_and_waits_for_a_confirmation(service: Service) -> None:
    before = learnt(service).digest
    added = add(service, a_measurement(), a_measurement(ttft_s=8.0), origin=Origin("ci", is_operator=False))
    assert (added.n_new, added.n_quarantined) == (2, 1)
    assert learnt(service).stacks.str.startswith("key:~unproven/").sum() == 1
    selection = {"import_id": added.import_id}
    service.store.provenance.change("confirmation", "the owner", selection)
    assert learnt(service).stacks.str.startswith("key:~unproven/").sum() == 2
    service.store.provenance.change("withdrawal", "the owner", selection)
    assert learnt(service).digest == before


def test_a_cluster_is_refused_for_training_jobs(settings: Settings) -> None:
    with pytest.raises(InputError, match="leave it out") as error:
        build_service(settings).retrain(TRAINING, dask="tcp://scheduler:8786")
    assert error.value.field == "dask"


def test_a_second_retraining_warns_and_waits(settings: Settings) -> None:
    warnings: list[str] = []
    has_lock = threading.Event()

    def retrain() -> None:
        with training_lock(settings.home, warnings.append):
            has_lock.set()

    second = threading.Thread(target=retrain)
    with FileLock(settings.home / "training.lock"):
        second.start()
        wait_until(lambda: bool(warnings))
        assert not has_lock.is_set()
        assert "another retraining runs" in warnings[0]
    assert has_lock.wait(PATIENCE_S)
    second.join(PATIENCE_S)
    retrain()
    assert len(warnings) == 1
