"""Reports on the rows of a store."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from roofcast.data.errors import NotReadyError, UnknownNameError
from roofcast.data.store.measurement_store import Added
from roofcast.data.store.provenance import Origin
from roofcast.serving.abandonment import AbandonedError
from roofcast.serving.app_state.champion_loader import LoadedModel
from roofcast.serving.composition import Service
from roofcast.serving.drift import import_drift
from roofcast.serving.drift.import_drift import (
    ComparedModels,
    DriftGauges,
    compare_import,
    report_days,
    report_import,
)
from roofcast.training.drift import prediction_scores
from tests.training.builders import measurements

RUNS: list[dict[str, Any]] = [
    {"concurrency": n, "statistic": "mean", "engine": "vllm", "engine_version": "99.1", "ttft_s": 0.2 + n / 100}
    for n in (1, 4, 16)
]


def add(service: Service, *rows: dict[str, Any], uploader: str = "") -> Added:
    return service.store.add(measurements(*rows), origin=Origin(uploader, is_operator=not uploader))


def raising(error: type[Exception]) -> Callable[[], ComparedModels]:
    def fail() -> ComparedModels:
        raise error

    return fail


def test_rows_that_the_champion_has_learnt_do_not_judge_it(service: Service) -> None:
    added = add(service, *RUNS, {"status": "failed", "ttft_s": None, "concurrency": 64})
    first = report_import(service.store, service.compared_models, added.import_id)
    assert (first.n_row, first.n_compared, first.n_learnt, first.n_left_out) == (4, 3, 0, 1)
    assert {one.metric for one in first.errors} == {"ttft_s"}
    (warning,) = first.warnings
    assert warning.startswith("engine_version: 3 rows of vllm 99.1, newer than any")
    active = service.active_model
    ids = service.store.imported.load_latest(10)["id"]
    knows = replace(active.bundle, row_ids=(*active.bundle.row_ids, *ids[:2]))
    learned = LoadedModel(replace(active.champion, sha256="another"), knows)
    second = report_days(service.store, replace(service.compared_models, champion=learned), days=1)
    assert (second.n_row, second.n_learnt, second.n_compared + second.n_left_out) == (4, 2, 2)


def test_many_rows_are_sampled_by_their_ids(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    added = add(service, *RUNS)
    report = report_import(service.store, service.compared_models, added.import_id, n_new=2, n_earlier=10)
    assert (report.n_row, report.n_compared, report.n_sampled_out, report.n_left_out) == (3, 2, 1, 0)
    monkeypatch.setattr(import_drift, "MAX_COMPARED", 2)
    report = report_days(service.store, service.compared_models, days=1)
    assert (report.n_row, report.n_compared, report.n_sampled_out, report.n_left_out) == (3, 2, 1, 0)


def test_the_answer_to_an_import_compares_few_rows_and_asks_for_the_learnt_names_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(service, *({**run, "date": "2026-11-01"} for run in RUNS), uploader="ci")
    added = add(service, *({**run, "date": "2026-11-02"} for run in RUNS), uploader="ci")
    assert report_import(service.store, service.compared_models, added.import_id).n_compared == 3
    monkeypatch.setattr(import_drift, "AT_IMPORT", (2, 3))
    monkeypatch.setattr(service.store.imported, "load_names", None)
    report = compare_import(service.store, lambda: service.compared_models, added)
    assert report is not None
    assert (report.n_row, report.n_compared, report.n_sampled_out, report.n_repeat) == (3, 2, 1, 2)


def test_an_import_reports_its_own_rows_where_anothers_claim_prevails(service: Service) -> None:
    """Both keys measured the same twice; the rows of the second are the claims that do not prevail."""
    nights = [[{**run, "date": f"2026-11-0{day}", "ttft_s": day * run["ttft_s"]} for run in RUNS] for day in (1, 2)]
    for night in nights:
        add(service, *night, uploader="first")
    first, second = (add(service, *night, uploader="second") for night in nights)
    assert (second.n_new, second.n_claimed) == (0, 3)
    report = compare_import(service.store, lambda: service.compared_models, second)
    assert report is not None
    assert (report.n_row, report.n_compared, report.n_repeat, report.n_changed) == (3, 3, 3, 3)
    service.store.provenance.change("withdrawal", "key:second", {"import_id": first.import_id}, only_of="second")
    assert report_import(service.store, service.compared_models, first.import_id).n_row == 3
    assert report_import(service.store, service.compared_models, second.import_id).n_repeat == 0


def test_an_import_is_compared_with_earlier_rows_of_its_key_alone(service: Service) -> None:
    add(service, *({**run, "date": "2026-11-01"} for run in RUNS), uploader="ci")
    slow = [{**run, "ttft_s": 3 * run["ttft_s"], "date": "2026-11-02"} for run in RUNS]
    others = report_import(service.store, service.compared_models, add(service, *slow, uploader="other").import_id)
    assert (others.n_repeat, others.n_changed) == (0, 0)
    own = report_import(
        service.store,
        service.compared_models,
        add(service, *({**run, "note": "b"} for run in slow), uploader="ci").import_id,
    )
    assert (own.n_repeat, own.n_changed, own.is_drift) == (3, 3, True)


def test_an_import_without_a_comparison_raises_nothing(service: Service) -> None:
    added = add(service, *RUNS)
    assert compare_import(service.store, lambda: service.compared_models, replace(added, n_new=0)) is None
    with pytest.raises(UnknownNameError, match="import_id"):
        report_import(service.store, service.compared_models, "none")
    for error in (NotReadyError, ValueError):
        assert compare_import(service.store, raising(error), added) is None
    with pytest.raises(AbandonedError):
        compare_import(service.store, raising(AbandonedError), added)


def test_rows_in_quarantine_count_in_the_report_of_their_import_alone(service: Service) -> None:
    held = pd.Series(["far off"] * len(RUNS))
    added = service.store.add(measurements(*RUNS), origin=Origin("ci", is_operator=False), quarantine=held)
    gauges = DriftGauges()
    gauges.refresh(service.stores, service.compared_models, 30)
    assert not gauges.errors
    assert (
        report_import(service.store, service.compared_models, added.import_id).n_compared,
        report_days(service.store, service.compared_models, days=1).n_row,
    ) == (3, 0)
    service.store.provenance.change("confirmation", "key:boss", {"key": "ci"})
    gauges._due_s = 0.0
    gauges.refresh(service.stores, service.compared_models, 30)
    assert [one.n_row for one in gauges.errors] == [3]
    assert report_days(service.store, service.compared_models, days=1).n_compared == 3


def test_values_next_to_zero_are_not_compared(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    added = add(service, *RUNS)
    monkeypatch.setattr(prediction_scores, "LEAST_VALUE", 1e6)
    assert report_import(service.store, service.compared_models, added.import_id).n_compared == 0


def test_gauges_are_refreshed_once_in_a_while_and_only_if_something_changed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    gauges = DriftGauges()
    gauges.refresh(service.stores, service.compared_models, 30)
    assert not gauges.errors
    add(service, *RUNS)
    gauges.refresh(service.stores, service.compared_models, 30)
    assert not gauges.errors
    gauges._due_s = 0.0
    gauges.refresh(service.stores, service.compared_models, 30)
    assert [(one.metric, one.n_row) for one in gauges.errors] == [("ttft_s", 3)]
    before = gauges.errors
    gauges._due_s = 0.0
    gauges.refresh(service.stores, service.compared_models, 30)
    assert gauges.errors is before
