"""The thread of the challenger: samples, drops, and stores counts; it never fails or delays the champion."""

import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import NotReadyError
from roofcast.features.descriptors.prediction_input import ColumnArray
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import Service
from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.predict.row_answers import PredictOptions, answer_columns
from roofcast.serving.shadow import shadow as shadow_module
from roofcast.serving.shadow.shadow import MAX_ROW, MAX_WAITING, OTHER, Shadow, tally
from roofcast.serving.shadow.version_comparison import compare_version, shared_answers
from roofcast.training.drift.answer_ratios import ANSWERED
from roofcast.training.drift.prediction_scores import METRICS
from roofcast.training.lifecycle.bundles.bundle import ModelBundle
from roofcast.training.lifecycle.registry.registry import Champion
from tests.conditions import wait_until
from tests.conftest import QUICK
from tests.serving.http.test_app import register_copy
from tests.serving.http_client import ACCELERATOR, a_question


class Counts:
    """What became of offered rows."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()

    def __call__(self, outcome: str, n_row: int) -> None:
        self.rows[outcome] += n_row


@pytest.fixture
def settings(home: object, settings: Settings) -> Settings:
    return settings.model_copy(update={"shadow_ratio": 1.0, "training": QUICK})


@pytest.fixture
def challenged(service: Service) -> Service:
    """Return the state with a copy of the champion as its challenger."""
    service.challenger.shadow(register_copy(service), "a test")
    return service


@pytest.fixture
def counts() -> Counts:
    return Counts()


def a_shadow(service: Service, counts: Counts, **options: Any) -> Shadow:
    return Shadow(service.challenger, service.stores, service.catalogs, sample_ratio=1.0, count=counts, **options)


@pytest.fixture
def shadow(challenged: Service, counts: Counts, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shadow]:
    monkeypatch.setattr(shadow_module, "DUTY_RATIO", 1.0)
    shadow = a_shadow(challenged, counts)
    yield shadow
    shadow.close()


def offer(shadow: Shadow, service: Service, n_row: int = 1) -> None:
    columns = columns_from_rows([a_question(concurrency=1 + i) for i in range(n_row)])
    options = PredictOptions(service.active_model.bundle, service.catalog)
    shadow.offer(columns, answer_columns(columns, options), options.catalog, service.active_model)


def test_answers_of_both_are_stored_when_the_service_stops(
    shadow: Shadow, challenged: Service, counts: Counts
) -> None:
    offer(shadow, challenged, 3)
    wait_until(lambda: counts.rows["compared"] == 3)
    shadow.close()
    model = challenged.challenger.model
    assert model is not None
    shared = shared_answers(challenged.store.shadow_counts, challenged.active_model.champion, model.champion)
    assert (shared.n_row, shared.n_champion_only, shared.n_challenger_only) == (3, 0, 0)
    assert {one.median_ratio for one in shared.ratios} == {1.0}
    assert {one.kind for one in shared.ratios} == {"all", "accelerator", "engine", "lineage"}
    compared = challenged.versions.load(model.champion.version, challenged.compared_models)
    comparison = compare_version(challenged.store, challenged.compared_models, compared, days=1)
    assert (comparison.is_challenger, comparison.answers) == (True, shared)


def test_a_version_that_is_compared_again_is_not_loaded_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, load, loaded = register_copy(service), service.registry.load, list[str]()

    def count_and_load(one: Champion) -> object:
        loaded.append(one.version)
        return load(one)

    monkeypatch.setattr(service.registry, "load", count_and_load)
    for one in (version, version, register_copy(service), version):
        compared = service.versions.load(one, service.compared_models)
        assert compare_version(service.store, service.compared_models, compared, days=1).version == one
    assert loaded == [version, str(int(version) + 1), version]


def test_many_rows_are_sampled_and_a_share_of_zero_draws_none(
    shadow: Shadow, challenged: Service, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(shadow, challenged, MAX_ROW + 5)
    wait_until(lambda: counts.rows["compared"] == MAX_ROW)
    monkeypatch.setattr(shadow._random, "random", lambda: 1.0)
    offer(shadow, challenged)
    assert shadow._waiting.empty()
    assert counts.rows.total() == MAX_ROW


def test_rows_are_dropped_under_load_and_when_too_many_wait(
    challenged: Service, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_busy = threading.Event()
    shadow = a_shadow(challenged, counts, is_busy=is_busy.is_set)
    monkeypatch.setattr(shadow, "_run", lambda: None)
    for _ in range(MAX_WAITING + 2):
        offer(shadow, challenged)
    assert counts.rows == {"dropped": 2}
    is_busy.set()
    offer(shadow, challenged)
    assert counts.rows == {"dropped": 3}
    shadow._answer(shadow._waiting.get())
    assert counts.rows == {"dropped": 4}


def test_a_challenger_that_fails_is_logged_once_and_counted(
    shadow: Shadow, challenged: Service, counts: Counts,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    model = challenged.challenger.model
    assert model is not None
    monkeypatch.setattr(challenged.challenger, "model", LoadedModel(model.champion, cast("ModelBundle", None)))
    for _ in range(2):
        offer(shadow, challenged)
    wait_until(lambda: counts.rows["failed"] == 2)
    assert caplog.text.count("challenger failed") == 1


def test_counts_wait_for_a_store_that_does_not_answer(
    shadow: Shadow, challenged: Service, counts: Counts,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    add = challenged.store.shadow_counts.add

    def fail(*_: object) -> None:
        raise NotReadyError("the database is away")

    monkeypatch.setattr(challenged.store.shadow_counts, "add", fail)
    monkeypatch.setattr(shadow_module, "FLUSH_S", 0.0)
    shadow._flush_at = 0.0
    offer(shadow, challenged)
    wait_until(lambda: "the database is away" in caplog.text)
    monkeypatch.setattr(challenged.store.shadow_counts, "add", add)
    shadow.close()
    assert counts.rows == {"compared": 1}
    model = challenged.challenger.model
    assert model is not None
    pair = challenged.active_model.champion.sha256, model.champion.sha256
    assert challenged.store.shadow_counts.load(*pair)[0]["all", "", ANSWERED, 0] == 1


def test_requests_at_once_start_one_thread(
    challenged: Service, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow, made, may_go_on = a_shadow(challenged, counts), Counts(), threading.Event()

    class SlowThread(threading.Thread):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            made("thread", 1)
            may_go_on.wait()

    requests = [threading.Thread(target=offer, args=(shadow, challenged)) for _ in range(2)]
    monkeypatch.setattr(shadow_module, "threading", SimpleNamespace(Thread=SlowThread))
    monkeypatch.setattr(shadow, "_run", lambda: None)
    requests[0].start()
    wait_until(lambda: made.rows["thread"] == 1)
    requests[1].start()
    wait_until(lambda: shadow._waiting.qsize() == len(requests))
    may_go_on.set()
    for request in requests:
        request.join()
    assert made.rows == {"thread": 1}


def test_counts_that_change_while_they_are_stored_are_neither_lost_nor_doubled(
    challenged: Service, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow, key, stored = a_shadow(challenged, counts), ("all", "", ANSWERED, 0), Counter[object]()

    def add(champion: str, challenger: str, added: Counter[object]) -> None:
        assert (champion, challenger) == ("a", "b")
        if not stored:
            shadow._counts["a", "b"][key] += 1
        stored.update(added)

    monkeypatch.setattr(challenged.store.shadow_counts, "add", add)
    shadow._counts["a", "b"][key] += 2
    shadow._flush()
    assert stored == {key: 2}
    shadow._flush()
    shadow._flush()
    assert stored == {key: 3}


def test_the_challenger_rests_nine_times_as_long_as_it_computes(
    challenged: Service, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow, now, pauses = a_shadow(challenged, counts), [1e9], Counter[float]()

    def answer(_: object) -> None:
        now[0] += 10.0

    def rest(pause_s: float) -> None:
        pauses[round(pause_s, 6)] += 1

    monkeypatch.setattr(shadow_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(shadow, "_answer", answer)
    monkeypatch.setattr(shadow._stop, "wait", rest)
    offer(shadow, challenged)
    wait_until(lambda: pauses.total() > 0)
    shadow.close()
    assert set(pauses) - {0.0} == {90.0}


def test_without_a_challenger_nothing_is_queued(service: Service, counts: Counts) -> None:
    shadow = a_shadow(service, counts)
    offer(shadow, service)
    shadow.close()
    assert counts.rows == {}
    assert shadow._waiting.empty()


def answers(*values: float, status: str = "ok") -> dict[str, ColumnArray]:
    columns: dict[str, ColumnArray] = {metric: np.array(values) for metric in METRICS}
    return {**columns, "status": np.array([status] * len(values), dtype=object)}


def test_each_row_counts_in_its_groups() -> None:
    rows = [a_question(engine=" vLLM "), a_question(model="brought-along", engine="of-a-caller")]
    counts = tally(columns_from_rows(rows), answers(1.0, 1.0), answers(1.0, 2.0), load_catalog())
    assert counts["all", "", "ttft_s", 0] == counts["all", "", "ttft_s", 35] == 1
    assert counts["accelerator", ACCELERATOR, ANSWERED, 0] == 2
    assert counts["engine", "vllm", "tpot_s", 0] == counts["engine", OTHER, "tpot_s", 35] == 1
    assert counts["lineage", OTHER, "tpot_s", 35] == 1
    names = {name for _, name, _, _ in counts}
    assert not names & {"brought-along", "of-a-caller"}


def test_answers_of_one_alone_are_counted_and_not_compared() -> None:
    columns = columns_from_rows([a_question()])
    for champion, challenger, bin_ in (("ok", "invalid", -1), ("invalid", "ok", 1)):
        counts = tally(columns, answers(1.0, status=champion), answers(1.0, status=challenger), load_catalog())
        assert {(key[2], key[3]) for key in counts} == {(ANSWERED, bin_)}
    assert not tally(columns, answers(1.0, status="invalid"), answers(1.0, status="invalid"), load_catalog())


def test_a_champion_with_references_is_compared_without_them() -> None:
    champion = answers(5.0) | {"ttft_s_uncalibrated": np.array([1.0])}
    counts = tally(columns_from_rows([a_question()]), champion, answers(1.0), load_catalog())
    assert counts["all", "", "ttft_s", 0] == 1
    assert counts["all", "", "tpot_s", -50] == 1


def test_values_that_have_no_ratio_are_left_out() -> None:
    counts = tally(columns_from_rows([a_question()]), answers(0.0), answers(np.nan), load_catalog())
    assert {key[2] for key in counts} == {ANSWERED}
