"""The views of the predictor and of measurements in Chromium, and accessibility of all views."""

from __future__ import annotations

import json
import math
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from roofcast.serving.app_state.settings import Settings
from roofcast.serving.composition import build_service
from roofcast.training.lifecycle.learned_targets import INFERENCE_TARGET
from roofcast.training.lifecycle.registry.tracking import log_bundle
from roofcast.training.lifecycle.shipped import load_shipped
from tests.serving.http_client import CONFIG, a_measurement
from tests.slow.page.tabs import PHONE, WIDE, Service, Tab
from tests.training.builders import a_subset

if TYPE_CHECKING:
    from playwright.sync_api import Route, ViewportSize

pytestmark = pytest.mark.slow

VIEWS = ("recommend", "predictor", "measurements", "training")


def enter_key(tab: Tab, secret: str) -> None:
    tab.page.locator("#access").click()
    tab.page.locator("#key").fill(secret)
    tab.page.get_by_role("button", name="Use it").click()


def write_rows(file: Path, *rows: dict[str, Any]) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    file.write_text("\n".join(lines) + "\n")


def test_the_predictor_has_figures_and_versions(service: Service, tab: Tab) -> None:
    tab.open(service, "predictor")
    text = tab.page.locator("#predictor").inner_text()
    assert "shipped-" in text
    assert "in service" in text
    assert "Median error" in text
    assert "every measurement learnt from; P4" in text
    tab.page.locator("#predictor select").nth(1).select_option("ttft_s")
    tab.page.locator("#predictor .canvas[aria-label*='TTFT']").wait_for()


def test_the_scoreboard_names_every_protocol_and_its_figures(service: Service, tab: Tab) -> None:
    with urllib.request.urlopen(f"{service.url}/v1/scoreboard") as response:  # noqa: S310
        protocols = json.load(response)["protocols"]
    tab.open(service, "predictor")
    board = tab.page.locator("#predictor section", has=tab.page.get_by_role("heading", name="Scoreboard"))
    titles = board.locator("summary").all_inner_texts()
    assert len(titles) == len(protocols)
    assert not set(titles) & {name for name in protocols if name != "decisions"}
    figure = protocols["P4_methods"]["figures"]["roofcast"]["tpot"]["median_ape"]
    table = board.locator("details[open] table", has=tab.page.locator("caption", has_text="TPOT"))
    row = table.locator("tr", has_text="roofcast").inner_text()
    assert f"{math.ceil(figure * 1000 - 1e-9) / 10:.1f}%" in row.split()


def test_the_scoreboard_is_read_on_a_phone_without_scrolling_sideways(service: Service, phone: Tab) -> None:
    phone.open(service, "predictor")
    board = phone.page.locator("#predictor details", has=phone.page.locator("summary", has_text="P3: "))
    board.locator("summary").click()
    captions = board.locator("caption").all_inner_texts()
    assert len(captions) == len(set(captions)) == 4
    assert board.locator(".scroll").evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")


def test_a_panel_waits_for_a_free_slot_of_the_service(service: Service, tab: Tab) -> None:
    problem = {"detail": "the service is busy: no slot was free", "status": 503}
    answers = [{"status": 503, "headers": {"retry-after": "1"}, "json": problem}] * 2
    tab.page.route(
        "**/v1/retrainings?*", lambda route: route.fulfill(**answers.pop()) if answers else route.continue_()
    )
    tab.open(service, "predictor")
    tab.page.locator("#predictor", has_text="None yet.").wait_for()
    assert answers == []


def test_a_change_without_the_right_key_is_refused(service: Service, tab: Tab) -> None:
    tab.open(service, "predictor")
    tab.page.get_by_role("button", name="Retrain").click()
    tab.page.locator("#predictor .problem", has_text="scope write").wait_for()
    enter_key(tab, service.key("read"))
    tab.page.get_by_role("button", name="Retrain").click()
    tab.page.locator("#predictor .problem", has_text="has the scope read").wait_for()


def test_a_version_is_shadowed_and_withdrawn(service: Service, tab: Tab) -> None:
    state = build_service(Settings(home=service.home))
    with state.registry.run("shipped") as run_id:
        checksum, uri = log_bundle(load_shipped(INFERENCE_TARGET), a_subset().X, run_id)
    version = state.registry.register(uri, run_id, checksum)
    tab.open(service, "predictor")
    enter_key(tab, service.key("admin"))
    view, challenger = tab.page.locator("#predictor"), f"Version {version} answers a sample of the requests"
    view.get_by_text("No version answers beside the one in service.").wait_for()
    view.get_by_role("button", name="Shadow").click()
    view.get_by_text(f"Version {version} answers beside the one in service.").wait_for()
    view.get_by_text(challenger).wait_for()
    view.get_by_role("button", name="Withdraw").click()
    view.get_by_text(f"Version {version} no longer answers.").wait_for()
    view.get_by_text("No version answers beside the one in service.").wait_for()
    assert view.get_by_text(challenger).count() == 0


def test_files_are_checked_then_stored_and_reported(service: Service, tab: Tab, tmp_path: Path) -> None:
    tab.open(service, "measurements")
    enter_key(tab, service.key("write"))
    rows = [a_measurement(campaign="lab", concurrency=n, ttft_s=0.05 + n / 1000) for n in (1, 2, 4, 8, 16, 32)]
    good, bad = tmp_path / "lab.csv", tmp_path / "broken.json"
    write_rows(good, *rows)
    bad.write_text("{")
    misspelt = tmp_path / "misspelt.csv"
    misspelt.write_text(good.read_text().replace("concurrency", "concurency").replace("ttft_s", "ttft_ms"))
    tab.page.get_by_label("Campaign", exact=True).fill("lab")
    tab.page.get_by_label("Benchmark files").set_input_files([good, bad, misspelt])
    tab.page.get_by_role("button", name="Store 6 new rows").wait_for()
    assert tab.page.locator("#measurements .problem.box").count() == 2
    assert tab.page.locator("#measurements .problem.box li").count() == 2
    tab.page.get_by_role("button", name="Store 6 new rows").click()
    tab.page.locator("#measurements caption", has_text="Stored").wait_for()
    tab.page.locator("#measurements caption", has_text="Predicted against actual").wait_for()
    tab.page.locator("#measurements caption", has_text="Imported campaigns").wait_for()
    assert tab.page.get_by_role("heading", name="Kept, and learnt from").count() == 1
    assert tab.page.get_by_label("Campaign", exact=True).input_value() == "lab"
    tab.page.locator("#measurements caption", has_text="not among the references").wait_for()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_fault(
    service: Service, tab: Tab, view: str, scheme: Literal["light", "dark"], size: ViewportSize
) -> None:
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.set_viewport_size(size)
    tab.open(service, view)
    tab.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    check_axe(tab)


def test_axe_finds_no_serious_fault_in_dialogs(service: Service, tab: Tab) -> None:
    tab.open(service, "recommend")
    for name, content in (("Why this?", "#dialog .canvas[data-drawn]"), ("Deploy", "#dialog pre")):
        tab.page.locator("#recommend .card.first").get_by_role("button", name=name).click()
        tab.page.locator(content).first.wait_for()
        check_axe(tab)
        tab.page.keyboard.press("Escape")


def check_axe(tab: Tab) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    violations = axe.Axe().run(tab.page).response["violations"]
    tab.errors.clear()  # axe itself sets inline styles, which the policy blocks
    serious = [one for one in violations if one["impact"] in {"serious", "critical"}]
    assert not serious, json.dumps(serious)[:2000]


def test_views_are_reached_with_the_keyboard(service: Service, tab: Tab) -> None:
    tab.open(service, "recommend")
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.className") == "skip"
    for _ in range(3):
        tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Predictor"
    tab.page.keyboard.press("Enter")
    tab.page.locator("#predictor-title").wait_for()
    assert tab.page.title() == "Predictor · roofcast"


def test_a_retraining_is_cancelled_with_the_key_of_an_operator(service: Service, tab: Tab) -> None:
    state = build_service(Settings(home=service.home))
    record = state.store.retrainings.add(owner="another state folder")  # whose worker does not run here
    tab.open(service, "predictor")
    cancel = tab.page.locator("#predictor").get_by_role("button", name="Cancel")
    cancel.click()
    tab.page.locator("#predictor .problem", has_text="key").wait_for()
    enter_key(tab, service.key("admin"))
    cancel.click()
    tab.page.locator("#predictor .success", has_text=f"Retraining {record.id} is cancelled").wait_for()
    assert state.store.retrainings.find(record.id).state == "cancelled"
    state.close()


def test_a_retraining_is_followed_while_it_is_open(service: Service, tab: Tab) -> None:
    state = build_service(Settings(home=service.home))
    record = state.store.retrainings.add(owner="another state folder")
    tab.open(service, "predictor")
    view = tab.page.locator("#predictor")
    view.get_by_text("The service does not retrain by itself; ROOFCAST_RETRAIN_AT schedules it.").wait_for()
    view.get_by_role("cell", name="queued").wait_for()
    state.store.retrainings.cancel(record.id, "another", "registration")
    view.get_by_role("cell", name="queued").wait_for(state="detached")
    state.store.close()


def a_retraining(number: int, state: str, **changes: object) -> dict[str, object]:
    empty = dict.fromkeys(("stage", "n_step", "n_step_done", "error", "report"))
    return {"id": f"r{number}", "state": state, "requested_at": "2026-11-01T00:00:00Z", **empty, **changes}


def follow_lists(tab: Tab, *lists: list[dict[str, object]]) -> None:
    """Answer each request for the retrainings with the next list, at last with the last one."""
    left = list(lists)
    tab.page.route("**/v1/retrainings?*", lambda route: route.fulfill(json=left.pop(0) if len(left) > 1 else left[0]))


def test_a_refreshed_list_keeps_the_focus_and_rows_that_did_not_change(service: Service, tab: Tab) -> None:
    waiting = a_retraining(2, "queued")
    first = [waiting, a_retraining(1, "running", stage="folds", n_step=9, n_step_done=1)]
    follow_lists(tab, first, [waiting, a_retraining(1, "running", stage="folds", n_step=9, n_step_done=2)])
    tab.open(service, "predictor")
    cancel = tab.page.locator("#predictor").get_by_role("button", name="Cancel").first
    cancel.focus()
    tab.page.get_by_role("cell", name="folds: 2 of 9").wait_for()
    assert tab.page.evaluate("document.activeElement.textContent") == "Cancel"


def test_a_promoted_retraining_reloads_the_panels_of_the_version(service: Service, tab: Tab) -> None:
    promoted = a_retraining(1, "succeeded", report={"promoted": True, "reason": "better", "version": "9"})
    follow_lists(tab, [a_retraining(1, "running", stage="folds")], [promoted])
    tab.open(service, "predictor")
    with tab.page.expect_response("**/v1/predictor"):
        tab.page.get_by_role("cell", name="promoted, better").wait_for()


def test_a_list_that_cannot_be_read_hides_no_success(service: Service, tab: Tab) -> None:
    tab.page.route("**/v1/retrainings", lambda route: route.fulfill(json=a_retraining(7, "queued")))
    tab.open(service, "predictor")
    view = tab.page.locator("#predictor")
    view.get_by_role("button", name="Retrain").wait_for()
    tab.page.route("**/v1/retrainings?*", lambda route: route.fulfill(status=500, json={"detail": "damaged"}))
    view.get_by_role("button", name="Retrain").click()
    view.get_by_text("The list could not be read again:").wait_for()
    assert view.get_by_text("Retraining r7 is queued").count() == 1


def test_a_schedule_that_cannot_be_read_leaves_the_list(service: Service, tab: Tab) -> None:
    tab.page.route("**/v1/retraining-schedule", lambda route: route.fulfill(status=500, json={"detail": "damaged"}))
    follow_lists(tab, [a_retraining(1, "failed", error="no rows")])
    tab.open(service, "predictor")
    tab.page.get_by_role("cell", name="no rows").wait_for()
    assert tab.page.get_by_text("The schedule could not be read: damaged.").count() == 1


def test_a_schedule_is_shown_with_its_next_time(service: Service, tab: Tab) -> None:
    schedule = {"retrain_at": "30 2 * * *", "next_at": "2026-12-24T02:30:00Z"}
    tab.page.route("**/v1/retraining-schedule", lambda route: route.fulfill(json=schedule))
    tab.open(service, "predictor")
    tab.page.locator("#predictor", has_text="by itself at 30 2 * * * (cron, UTC)").wait_for()
    assert "next 24 Dec 2026" in tab.page.locator("#predictor").inner_text()


def test_a_registered_model_is_removed_once_no_measurement_refers_to_it(service: Service, tab: Tab) -> None:
    row, models = a_measurement(model="lab/small", campaign="config"), [{"name": "lab/small", "config": CONFIG}]
    key = service.key("admin")
    service.post("/v1/measurements", {"rows": [row], "models": models}, key)
    tab.open(service, "measurements")
    enter_key(tab, key)
    view, dialog = tab.page.locator("#registered"), tab.page.locator("#dialog")
    view.get_by_role("button", name="Remove lab/small").click()
    dialog.get_by_role("button", name="Remove it").click()
    dialog.locator(".problem", has_text="withdraw").wait_for()
    assert focused(tab) == "Remove it"
    service.post("/v1/measurements/withdrawals", {"campaign": "config"}, key)
    dialog.get_by_role("button", name="Remove it").click()
    view.get_by_text("lab/small is removed.").wait_for()
    assert focused(tab) == "lab/small is removed."
    view.get_by_text("None. A benchmark file").wait_for()


def focused(tab: Tab) -> str:
    return str(tab.page.evaluate("document.activeElement.textContent"))


def list_models(tab: Tab, *names: str) -> None:
    one = {"source": "config.json", "n_param": 8e9, "n_param_active": 8e9, "weight_precision": "bf16"}
    models = [{**one, "id": name, "max_context_token": 8192} for name in names]
    tab.page.route("**/v1/models", lambda route: route.fulfill(json=models))


def test_a_removal_asks_once_and_a_double_click_is_no_answer(service: Service, tab: Tab) -> None:
    list_models(tab, "lab/one", "lab/two")
    sent: list[Route] = []
    tab.page.route("**/v1/models/*", lambda route: sent.append(route))  # noqa: PLW0108 - Playwright marks the function
    tab.open(service, "measurements")
    button = tab.page.get_by_role("button", name="Remove lab/one")
    sure = tab.page.get_by_role("button", name="Remove it")
    button.click()
    # The second click of a double click on the list, wherever the dialog places its own button.
    sure.dispatch_event("click", {"detail": 2})
    tab.page.keyboard.press("Escape")
    assert focused(tab) == "Remove"
    button.click()
    with tab.page.expect_request("**/v1/models/*"):
        sure.dblclick()
    list_models(tab, "lab/two")
    (removal,) = sent
    assert removal.request.url.endswith("/lab%2Fone")
    removal.fulfill(status=204 if removal.request.method == "DELETE" else 500, json={})
    tab.page.get_by_text("lab/one is removed.").wait_for()
    assert tab.page.get_by_role("button", name="Remove lab/").count() == 1


def test_a_list_of_models_that_cannot_be_read_hides_no_removal(service: Service, tab: Tab) -> None:
    list_models(tab, "lab/one")
    tab.page.route("**/v1/models/*", lambda route: route.fulfill(json={}))
    tab.open(service, "measurements")
    tab.page.get_by_role("button", name="Remove lab/one").click()
    tab.page.route("**/v1/models", lambda route: route.fulfill(status=500, json={"detail": "damaged"}))
    tab.page.get_by_role("button", name="Remove it").click()
    tab.page.locator("#registered .problem", has_text="damaged").wait_for()
    assert tab.page.get_by_text("lab/one is removed.").is_visible()


def test_rows_of_a_key_are_not_claimed_and_the_page_says_so(service: Service, tab: Tab, tmp_path: Path) -> None:
    row = a_measurement(campaign="claims", concurrency=3)
    service.post("/v1/measurements", {"rows": [row]}, service.key("write"))
    file = tmp_path / "claims.csv"
    write_rows(file, row)
    tab.open(service, "measurements")
    enter_key(tab, service.key("admin"))
    tab.page.get_by_label("Campaign", exact=True).fill("claims")
    tab.page.get_by_label("Benchmark files").set_input_files([file])
    tab.page.locator("#measurements .warning", has_text="not claimed by this import").wait_for()
    tab.page.get_by_label("Claim rows that another key imported").check()
    tab.page.get_by_label("Benchmark files").set_input_files([file])
    tab.page.get_by_role("button", name="Claim 1 row stored before").click()
    tab.page.locator("#measurements caption", has_text="Stored").wait_for()
    assert tab.page.locator("#measurements .warning", has_text="not claimed").count() == 0
