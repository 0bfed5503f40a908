"""An answer that is held back until a later question is answered does not take its place, in any view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest

from tests.slow.page.tabs import Service, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = pytest.mark.slow

SETTLED = "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done))))"


class Held:
    """The first request to an address, held back; the service, or `answer`, answers the others."""

    def __init__(self, tab: Tab, address: str, answer: object = None) -> None:
        self.tab = tab
        self.first: Route | None = None
        self.answer = answer
        tab.page.route(address, self._take)

    def _take(self, route: Route) -> None:
        if self.first is None:
            self.first = route
        elif self.answer is None:
            route.continue_()
        else:
            route.fulfill(json=self.answer)

    def release(self, answer: object = None) -> None:
        """Let the first answer arrive, and the page show what it shows then."""
        assert self.first is not None
        with self.tab.page.expect_response(self.first.request.url) as response:
            self.first.continue_() if answer is None else self.first.fulfill(json=answer)
        response.value.finished()
        self.tab.page.evaluate(SETTLED)


@pytest.mark.parametrize(
    ("view", "path", "field"),
    [("recommend", "**/v1/recommendations", "users"), ("training", "**/v1/training/recommendations", "n_token")],
)
def test_the_latest_question_is_shown_and_linked(
    service: Service, tab: Tab, view: str, path: str, field: str
) -> None:
    held = Held(tab, path)
    with tab.page.expect_request(path):
        tab.page.goto(f"{service.url}/#/{view}")
    tab.page.locator(f"#{field}").fill("777777" if view == "training" else "777")
    tab.page.locator(f"#{field}").press("Tab")
    held.release()
    tab.page.locator(f"#{view} [aria-busy=false] .answer-foot").wait_for()
    request: dict[str, Any] = json.loads(unquote(tab.page.url.partition("?q=")[2]))
    assert str(request.get("workload", request)[field]).startswith("777")


def test_an_answer_does_not_replace_a_link_that_cannot_be_read(service: Service, tab: Tab) -> None:
    held = Held(tab, "**/v1/recommendations")
    with tab.page.expect_request("**/v1/recommendations"):
        tab.page.goto(service.url)
    tab.page.evaluate("location.hash = '#/recommend?q={cut'")
    held.release()
    tab.page.locator("#problem", has_text="cannot be read").wait_for()
    assert tab.page.locator("#answer > *").count() == 0


def test_an_answer_leaves_the_address_of_another_view(service: Service, tab: Tab) -> None:
    held = Held(tab, "**/v1/recommendations")
    with tab.page.expect_request("**/v1/recommendations"):
        tab.page.goto(service.url)
    tab.page.get_by_role("link", name="Measurements").click()
    held.release()
    assert tab.page.url.endswith("#/measurements")


def test_reasons_of_an_earlier_entry_are_not_shown(service: Service, tab: Tab) -> None:
    tab.open(service)
    held = Held(tab, "**/v1/explanations")
    for i in (0, 1):
        tab.page.locator(".card").nth(i).get_by_role("button", name="Why this?").click()
        if i == 0:
            tab.page.keyboard.press("Escape")
    tab.page.locator("#dialog .reasons > p").nth(0).wait_for()
    tab.page.locator("#dialog .canvas[data-drawn]").nth(1).wait_for()
    before = tab.page.locator("#dialog").inner_text()
    held.release()
    assert tab.page.locator("#dialog").inner_text() == before


def test_an_earlier_choice_of_deployment_is_not_shown(service: Service, tab: Tab) -> None:
    tab.open(service)
    held = Held(tab, "**/v1/recommendations")
    tab.page.locator(".card").nth(0).get_by_role("button", name="Deploy").click()
    tab.page.locator("#dialog select").select_option("kubernetes")
    tab.page.locator("#dialog pre", has_text="apiVersion").wait_for()
    held.release()
    assert "apiVersion" in tab.page.locator("#dialog pre").inner_text()


def campaign(rows: int) -> dict[str, Any]:
    one = {"question": {}, "measured": {"tpot_s": 0.02}, "is_learnt": False}
    return {"rows": [one] * rows, "n_row": rows, "n_learnt": 0}


def give_campaigns(tab: Tab, *, title: str | None) -> None:
    """Let the service have two campaigns, and predictions of four rows, or of two halves of them."""
    predicted = {"tpot_s": 0.02, "tpot_s_low": 0.01, "tpot_s_high": 0.03, "tpot_s_uncalibrated": 0.03}

    def predict(route: Route) -> None:
        rows = json.loads(route.request.post_data or "")["rows"]
        route.fulfill(json={"rows": [predicted] * len(rows)})

    both = [{"name": name, "title": title, "n_row": 9, "n_rejected": 0, "licence": "MIT"} for name in ("one", "two")]
    tab.page.route("**/v1/campaigns", lambda route: route.fulfill(json=both))
    tab.page.route("**/v1/predictions", predict)


def test_predictions_of_an_earlier_campaign_are_not_drawn(service: Service, tab: Tab) -> None:
    give_campaigns(tab, title="A campaign")
    held = Held(tab, "**/v1/campaigns/*/measurements?*", campaign(4))
    tab.page.goto(f"{service.url}/#/predictor")
    tab.page.locator("#predictor select").first.select_option("two")
    tab.page.locator("#predictor", has_text="4 of 4 rows are shown").wait_for()
    held.release(campaign(6))
    assert tab.page.get_by_text("4 of 4 rows are shown").is_visible()


def test_an_earlier_campaign_of_the_own_stack_is_not_shown(service: Service, tab: Tab) -> None:
    give_campaigns(tab, title=None)
    held = Held(tab, "**/v1/campaigns/*/measurements?*", campaign(4))
    tab.page.goto(f"{service.url}/#/measurements")
    tab.page.locator("#stored select").select_option("two")
    caption = tab.page.locator("#measurements caption", has_text="not among the references")
    caption.wait_for()
    held.release(campaign(1))
    assert caption.is_visible()


def test_files_that_were_chosen_earlier_are_not_reported(service: Service, tab: Tab, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("first.json", "second.json")]
    for file in files:
        file.write_text("{")
    held = Held(tab, "**/v1/measurements/files?*")
    tab.page.goto(f"{service.url}/#/measurements")
    for file in files:
        tab.page.get_by_label("Benchmark files").set_input_files([file])
    tab.page.get_by_role("rowheader", name="second.json").wait_for()
    held.release()
    assert tab.page.get_by_role("rowheader", name="first.json").count() == 0


def test_an_earlier_list_of_retrainings_is_not_shown(service: Service, tab: Tab) -> None:
    empty = dict.fromkeys(("stage", "n_step", "n_step_done", "report"))
    record = empty | {"requested_at": "2026-11-01T00:00:00Z", "state": "failed"}
    tab.page.goto(f"{service.url}/#/predictor")
    button = tab.page.get_by_role("button", name="Retrain")
    button.wait_for()
    tab.page.route("**/v1/retrainings", lambda route: route.fulfill(json={"id": "r1", "state": "queued"}))
    held = Held(tab, "**/v1/retrainings?*", [record | {"id": "r1", "error": "the later list"}])
    with tab.page.expect_request("**/v1/retrainings?*"):
        button.click()
    # The button is disabled until the list arrives; enabled again, it asks for a later list.
    button.evaluate("(one) => { one.disabled = false; one.click(); }")
    tab.page.get_by_role("cell", name="the later list").wait_for()
    held.release([record | {"id": "r1", "error": "the earlier list"}])
    assert tab.page.get_by_role("cell", name="the later list").is_visible()


def test_a_link_that_is_followed_takes_the_place_of_the_question_under_way(service: Service, tab: Tab) -> None:
    request = {
        "model": "meta-llama/Llama-3.1-8B", "limits": ["ttft:p95<=2s"], "stack": None,
        "workload": {"preset": "code", "users": 20}, "constraints": {"pricing": ["spot"]},
    }  # fmt: skip
    held = Held(tab, "**/v1/recommendations")
    with tab.page.expect_request("**/v1/recommendations"):
        tab.page.goto(service.url)
    tab.page.evaluate(f"location.hash = '#/recommend?q={quote(json.dumps(request))}'")
    held.release()
    tab.page.locator("#results[aria-busy=false] .card.first", has_text="may be interrupted").wait_for()
    assert "%22spot%22" in tab.page.url
