import threading
from pathlib import Path
from typing import cast

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError, NotReadyError
from roofcast.data.measurements.target import INFERENCE
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.model_config.huggingface import model_from_config
from roofcast.data.specs import ModelSpec
from roofcast.serving.app_state.catalog import live_catalog
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog, with_configs
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.app_state.imports.measurement_import import import_rows
from roofcast.serving.app_state.store_access import StoreAccess
from roofcast.serving.composition import Service
from roofcast.serving.predict.question_rows import columns_from_rows, table_from_rows
from roofcast.serving.predict.row_answers import PredictOptions, answer_columns
from tests.conditions import PATIENCE_S
from tests.serving.http_client import CONFIG, MODEL, a_measurement


class FakeStore:
    """Has the models of some names; an answer waits for its event, and fails if there is a problem."""

    def __init__(self, *names: str) -> None:
        self.names, self.problem, self.n_asked = [*names], "", 0
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    @property
    def is_paused(self) -> bool:
        return False

    def pause(self, problem: str) -> None:
        assert problem == self.problem

    def load_models(self) -> tuple[list[ModelSpec], dict[str, str], list[tuple[str, ...]]]:
        self.n_asked += 1
        self.is_asked.set()
        assert self.may_answer.wait(PATIENCE_S)
        if self.problem:
            raise NotReadyError(self.problem)
        return [model_from_config(CONFIG, name) for name in self.names], {}, []


def a_catalog(store: FakeStore, home: Path) -> LiveCatalog:
    return LiveCatalog(UserFiles(home), cast("StoreAccess", store), share=True, max_model=9)


def knows(catalog: LiveCatalog, name: str) -> bool:
    return catalog.catalog_of(INFERENCE).knows_model(name)


def test_shipped_models_precede_registered_ones(tmp_path: Path) -> None:
    """A later release may add a model whose name a user has registered; the shipped one has precedence."""
    catalog = a_catalog(FakeStore(MODEL), tmp_path).catalog_of(INFERENCE)
    assert catalog.model(MODEL) == load_catalog().model(MODEL)


def test_colliding_registered_names_leave_the_other_models_usable(tmp_path: Path) -> None:
    catalog = a_catalog(FakeStore("mine/one", "Mine/One", "mine/two"), tmp_path).catalog_of(INFERENCE)
    assert catalog.model("mine/two").id == "mine/two"
    assert catalog.model("mine/one").id in {"mine/one", "Mine/One"}


def test_the_store_is_asked_by_refreshes_alone_and_an_unchanged_catalogue_stays(tmp_path: Path) -> None:
    store = FakeStore("mine/one")
    catalog = a_catalog(store, tmp_path)
    first = catalog.catalog_of(INFERENCE)
    store.names.append("mine/two")
    assert catalog.catalog_of(INFERENCE) is first
    assert store.n_asked == 1
    catalog.refresh()
    assert knows(catalog, "mine/two")
    second = catalog.catalog_of(INFERENCE)
    catalog.refresh()
    assert catalog.catalog_of(INFERENCE) is second


def test_the_last_models_stay_while_the_store_hangs_and_when_it_fails(tmp_path: Path) -> None:
    store = FakeStore("mine/one")
    catalog = a_catalog(store, tmp_path)
    assert knows(catalog, "mine/one")
    store.is_asked.clear()
    store.may_answer.clear()
    store.problem = "no answer"
    poll = threading.Thread(target=catalog.refresh)
    poll.start()
    assert store.is_asked.wait(PATIENCE_S)
    assert knows(catalog, "mine/one"), "the reader waited for the poll"
    store.may_answer.set()
    poll.join(PATIENCE_S)
    assert knows(catalog, "mine/one")


def test_readers_wait_a_bounded_time_for_the_first_answer_of_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_catalog, "FIRST_WAIT_S", 0.05)
    store = FakeStore("mine/one")
    store.may_answer.clear()
    catalog = a_catalog(store, tmp_path)
    poll = threading.Thread(target=catalog.refresh)
    poll.start()
    assert store.is_asked.wait(PATIENCE_S)
    assert knows(catalog, MODEL)
    assert not knows(catalog, "mine/one")
    store.may_answer.set()
    poll.join(PATIENCE_S)
    assert knows(catalog, "mine/one")


def test_an_imported_model_is_known_at_once(service: Service) -> None:
    assert not service.catalog.knows_model("mine/new")
    rows = validate_measurements(table_from_rows([a_measurement(model="mine/new")]))
    import_rows(service.stores, service.catalogs, rows, [("mine/new", CONFIG)])
    assert service.catalog.knows_model("mine/new")


def test_a_run_of_the_store_overrides_the_support_table(service: Service) -> None:
    stack = {
        "model": "openai/gpt-oss-20b",
        "accelerator": "nvidia-t4-16gb",
        "engine": "vllm",
        "weight_precision": "fp4",
    }
    question = {**stack, "n_accelerator": 2, "n_input_token": 100, "n_output_token": 50}

    def status() -> object:
        bundle = service.active_model.bundle
        return answer_columns(columns_from_rows([question]), PredictOptions(bundle, service.catalog))["status"][0]

    assert status() == "does_not_run"
    rows = validate_measurements(table_from_rows([a_measurement(**stack, n_accelerator=2, engine_version="0.34.0")]))
    import_rows(service.stores, service.catalogs, rows, [])
    service.catalogs.refresh()
    assert status() == "ok"


def test_a_name_that_differs_only_in_case_is_refused(service: Service) -> None:
    service.store.models.add(model_from_config(CONFIG, "mine/one"), CONFIG)
    with pytest.raises(InputError, match="the name 'MINE/One' is taken"):
        with_configs(service.catalog, [("MINE/One", CONFIG | {"vocab_size": 7})])


def test_two_new_models_of_one_shape_share_a_lineage(service: Service) -> None:
    shape = CONFIG | {"num_hidden_layers": 39}
    _, new = with_configs(service.catalog, [("a", shape), ("b", shape | {"vocab_size": 1000})])
    assert [spec.lineage for spec, _ in new] == ["a", "a"]


@pytest.mark.parametrize(
    "name",
    [
        "ll\u0430ma-3.1-8b",
        "\u041e\u0420\u0422-125\u041c",
        "\u03bfpt-125m",
        "\uff4clama-3.1-8b",
        "llama\u200b-3.1-8b",
        "llam\u00e1-3.1-8b",
        "lla\u0301ma",
        "\ua4e1lama-3.1-8b",
    ],
)
def test_a_name_that_looks_like_another_is_not_admitted(name: str) -> None:
    """Cyrillic, all of it too, Greek, full width, invisible, accented, combined and Lisu characters."""
    with pytest.raises(InputError, match="; use an ASCII letter"):
        with_configs(load_catalog(), [(name, CONFIG)])


def test_names_in_scripts_without_look_alikes_are_admitted() -> None:
    catalog, new = with_configs(load_catalog(), [("\u5343\u95ee-8b", CONFIG)])
    assert new[0][0] is catalog.models["\u5343\u95ee-8b"]
