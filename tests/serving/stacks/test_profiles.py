from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge.protocols.fold_lines import SCORED_METRICS
from roofcast.data.errors import InputError, SchemaError
from roofcast.data.measurements.validation import validate_measurements
from roofcast.data.store.stack_profiles import MAX_ROW, SHARED
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.serving.app_state.catalog.live_catalog import LiveCatalog
from roofcast.serving.app_state.catalog.user_files import UserFiles
from roofcast.serving.composition import Service
from roofcast.serving.predict.question_rows import columns_from_rows
from roofcast.serving.predict.row_answers import PredictOptions, answer_columns
from roofcast.serving.stacks.profiles import (
    Profile,
    ProfileAdded,
    add_rows,
    build_profile,
    check_file_rows,
    rows_of_measurements,
)
from roofcast.serving.stacks.stack_report import (
    StackMetric,
    next_measurements,
    profile_errors,
    run_numbers,
    same_runs,
)
from roofcast.training.dataset.targets import outcomes
from roofcast.training.learner.predictor import CalibrationPoints
from tests.serving.http_client import ACCELERATOR, CONFIG, MODEL, Client, a_question


def a_run(concurrency: float = 16, slower: float = 1.0, **changes: Any) -> dict[str, Any]:
    """Return a row of a profile."""
    run = {"n_accelerator": 1, "engine": "vllm", "concurrency": concurrency, "statistic": "mean"}
    return a_question(**run) | {"ttft_s": 0.06 * slower, "tpot_s": 0.02 * slower} | changes


def build(service: Service, *rows: dict[str, Any]) -> Profile:
    return build_profile("mine", rows, service.catalog, service.active_model.bundle.predictor)


def errors_of(profile: Profile, service: Service) -> list[StackMetric]:
    return profile_errors(profile, service.active_model.bundle, 0.8)


@pytest.fixture(scope="module")
def service(shared: Client) -> Service:
    return shared.service


def test_a_profile_is_the_points_of_the_protocol_that_judges_own_runs(service: Service) -> None:
    table = pd.DataFrame([a_run(c, campaign="mine", load="closed_loop") for c in (4, 16, 64)])
    measured = validate_measurements(table)
    rows, n_left_out = rows_of_measurements(measured)
    assert n_left_out == 0
    catalog, predictor = service.catalog, service.active_model.bundle.predictor
    named = measured.assign(model=catalog.model(MODEL).id, accelerator=catalog.accelerator(ACCELERATOR).id)
    judged = CalibrationPoints(describe(named, catalog.models, catalog.accelerators), outcomes(named))
    profile = build_profile("mine", rows, catalog, predictor)
    X = judged.X.iloc[:1]
    scored = [metric for metric in SCORED_METRICS.values() if metric in predictor.metrics_]
    by_protocol, by_profile = (predictor.predict_distribution(X, points) for points in (judged, profile.central))
    pd.testing.assert_frame_equal(by_protocol.median[scored], by_profile.median[scored])
    pd.testing.assert_frame_equal(by_protocol.log_sd[scored], by_profile.log_sd[scored])


def test_failed_runs_and_rows_without_a_metric_are_left_out() -> None:
    rows = [
        a_run(campaign="mine", load="closed_loop"),
        a_run(campaign="mine", load="closed_loop", status="failed", concurrency=32),
        a_run(campaign="mine", load="closed_loop", ttft_s=None, tpot_s=None, power_w=300.0, concurrency=64),
    ]
    kept, n_left_out = rows_of_measurements(validate_measurements(pd.DataFrame(rows)))
    assert n_left_out == 2
    assert [row["concurrency"] for row in kept] == [16]
    assert "engine_version" not in kept[0]


def test_more_rows_than_a_profile_may_have_are_refused_before_any_is_predicted() -> None:
    rows = [a_run(1 + n, campaign="mine", load="closed_loop") for n in range(MAX_ROW + 1)]
    kept, _ = rows_of_measurements(validate_measurements(pd.DataFrame([*rows[:MAX_ROW], *rows[:MAX_ROW]])))
    assert len(kept) == 2 * MAX_ROW
    with pytest.raises(InputError, match=f"rows: a stack has at most {MAX_ROW}, this would make {MAX_ROW + 1}; give"):
        rows_of_measurements(validate_measurements(pd.DataFrame(rows)))


@pytest.mark.parametrize(
    ("change", "field"),
    [({"tpot_s": 20.0}, "tpot_s"), ({"acelerator": "x"}, "acelerator")],
)
def test_a_row_that_cannot_be_used_is_named(service: Service, change: dict[str, Any], field: str) -> None:
    with pytest.raises(SchemaError) as error:
        build_profile("mine", [a_run() | change], service.catalog, service.active_model.bundle.predictor)
    assert error.value.field == field


def test_a_malformed_name_is_refused(service: Service) -> None:
    with pytest.raises(InputError, match="stack: must be up to 100 letters"):
        add(service, "my rack", a_run())


def add(service: Service, name: str, *rows: dict[str, Any], **options: Any) -> ProfileAdded:
    predictor = service.active_model.bundle.predictor
    return add_rows(service.store.stacks, service.catalogs, predictor, rows, name=name, owner="ann", **options)


def load(service: Service, name: str) -> Profile:
    return service.stacks.load_profile(service.catalog, service.active_model, "ann", name)


def test_points_are_built_once_until_the_rows_change(service: Service) -> None:
    add(service, "cached", a_run())
    first = load(service, "cached")
    assert load(service, "cached") is first
    add(service, "cached", a_run(32))
    assert len(load(service, "cached").points.X) == 2


def test_cells_are_stored_as_they_were_parsed(service: Service) -> None:
    given = a_run() | {"tp": " ", "ttft_s": " ", "tpot_s": " 0.02", "concurrency": "16", "flash_attention": "False"}
    add(service, "parsed", given)
    (row,) = service.store.stacks.load("ann", "parsed").rows
    assert row.keys().isdisjoint({"tp", "ttft_s"})
    assert (row["tpot_s"], row["concurrency"], row["flash_attention"]) == (0.02, 16, False)
    assert row["model"] == service.catalog.model(MODEL).id
    assert add(service, "parsed", row).n_known == 1
    predictor = service.active_model.bundle.predictor
    for rows in ([given], [row]):
        profile = build_profile("parsed", rows, service.catalog, predictor)
        assert {one.metric for one in errors_of(profile, service)} == {"tpot_s"}


def test_models_of_a_profile_count_towards_the_limit(service: Service) -> None:
    service = replace(
        service, catalogs=LiveCatalog(UserFiles(service.settings.home), service.stores, share=False, max_model=0)
    )
    with pytest.raises(InputError, match="models: at most"):
        add(service, "mine", a_run(model="my/new"), configs=[("my/new", CONFIG)])


def test_other_runs_of_a_profile_lower_the_error_of_each(service: Service) -> None:
    predictor = service.active_model.bundle.predictor
    rows = [a_run(c) for c in (1, 4, 16, 64)]
    X = build_profile("slow", rows, service.catalog, predictor).points.X
    tpot_s = 1.5 * predictor.predict_distribution(X).median["tpot_s"]
    slow = [row | {"tpot_s": value, "ttft_s": None} for row, value in zip(rows, tpot_s, strict=True)]
    profile = build_profile("slow", slow, service.catalog, predictor)
    (errors,) = (one for one in errors_of(profile, service) if one.metric == "tpot_s")
    assert errors.n_row == 4
    assert errors.before.bias == pytest.approx(0.405, abs=0.01)
    assert errors.after is not None
    assert errors.after.median_ape < 0.6 * errors.before.median_ape
    one = build_profile("slow", slow[:1], service.catalog, predictor)
    assert errors_of(one, service)[0].after is None


def test_rows_of_one_run_differ_in_their_statistic(service: Service) -> None:
    rows = [a_run(), a_run(statistic="p50", tp=1), a_run(32)]
    first, second, other = run_numbers(build(service, *rows).points.X).tolist()
    assert first == second != other


def test_errors_without_a_profile_are_those_of_a_prediction_of_the_same_runs(service: Service) -> None:
    rows = [a_run(n_request=200), a_run(64, n_request=640)]
    options = PredictOptions(service.active_model.bundle, service.catalog, 0.8)
    questions = [{n: v for n, v in row.items() if n not in ("ttft_s", "tpot_s")} for row in rows]
    answers = answer_columns(columns_from_rows(questions), options)
    n_inside = int(((answers["tpot_s_lo"] <= 0.02) & (answers["tpot_s_hi"] >= 0.02)).sum())
    (errors,) = (one for one in errors_of(build(service, *rows), service) if one.metric == "tpot_s")
    assert errors.before.coverage == n_inside / 2
    assert errors.before.width == pytest.approx(np.median(answers["tpot_s_hi"] / answers["tpot_s_lo"]))


def test_rows_of_a_new_file_may_be_percentiles_if_the_profile_has_a_mean(service: Service) -> None:
    with pytest.raises(SchemaError, match="statistic: is neither mean nor p50"):
        add(service, "tails", a_run(statistic="p99"))
    add(service, "tails", a_run())
    assert add(service, "tails", a_run(statistic="p99")).n_row == 2


def test_a_stored_row_that_cannot_be_used_is_left_out_and_named(service: Service) -> None:
    service.store.stacks.add("ann", "worn", [a_run(), a_run(32, accelerator="gone"), a_run(64, tpot_s=90.0)])
    profile = load(service, "worn")
    assert [row["concurrency"] for row in profile.rows] == [16]
    (text,) = profile.notes
    assert text.startswith("2 of 3 rows of the profile worn are left out, such as model=")
    assert "line" not in text
    service.store.stacks.add("ann", "dead", [a_run(64, tpot_s=90.0)])
    with pytest.raises(InputError, match=r"no row of the profile dead can be used, such as model=.*concurrency=64"):
        load(service, "dead")


def test_a_profile_that_hides_a_shared_one_says_so(service: Service) -> None:
    for owner in ("ann", SHARED):
        service.store.stacks.add(owner, "twice", [a_run()])
    assert "hides the shared profile" in load(service, "twice").notes[0]
    shared = service.stacks.load_profile(service.catalog, service.active_model, "bob", "twice")
    assert (shared.is_shared, shared.notes) == (True, ())


def test_a_run_that_the_profile_has_is_not_measured_next(service: Service) -> None:
    predictor = service.active_model.bundle.predictor
    profile = build_profile("mine", [a_run(16), a_run(64)], service.catalog, predictor)
    ranked = next_measurements(profile, predictor, service.catalog, 100)
    own = {one["concurrency"] for one in ranked if one["model"] == profile.rows[0]["model"]}
    assert own == {4.0, 256.0}
    known = pd.DataFrame(list(profile.rows), dtype=object)
    assert same_runs(known.assign(concurrency=[16.4, 70]), profile.rows).tolist() == [True, False]


def test_the_next_measurement_is_on_a_setup_of_the_profile(service: Service) -> None:
    predictor = service.active_model.bundle.predictor
    profile = build_profile("mine", [a_run(), a_run(64)], service.catalog, predictor)
    ranked = next_measurements(profile, predictor, service.catalog, 2)
    assert [one["rank"] for one in ranked] == [1, 2]
    for one in ranked:
        assert one["accelerator"] == service.catalog.accelerator(ACCELERATOR).id
        assert one["concurrency"] in (4, 16, 64, 256)
        assert one["model"] == service.catalog.model(MODEL).id
        assert one.keys() >= {"tp", "pp", "dp", "ep"}
        assert one["narrower"]["tpot_s"] > 0


def test_a_file_of_far_too_many_lines_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("model\n" + "\n".join(map(str, range(20 * MAX_ROW))) + "\n")
    check_file_rows(file)
    with file.open("a") as more:
        more.write("one more\n")
    with pytest.raises(InputError, match=f"this would make {20 * MAX_ROW + 1:,}"):
        check_file_rows(file)
    file.write_text("model\n" + "the same\n" * (30 * MAX_ROW))
    check_file_rows(file)
