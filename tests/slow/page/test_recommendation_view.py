"""The view of a recommendation in Chromium."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.serving.http_client import CONFIG
from tests.slow.page.tabs import PHONE, Service, Tab

pytestmark = pytest.mark.slow


OWNED = {"accelerator": "nvidia-h100-sxm-80gb", "count": 8, "n_per_node": 8, "usd_per_h": 0.0}


def question_of(tab: Tab) -> dict[str, Any]:
    return dict(json.loads(unquote(tab.page.url.partition("?q=")[2])))


def test_a_question_is_answered_with_cards_and_charts(service: Service, tab: Tab) -> None:
    tab.open(service)
    page = tab.page
    assert "per month" in page.locator("#status").inner_text()
    first = page.locator(".card.first")
    assert "/ month" in first.inner_text()
    assert first.get_by_role("img", name="TTFT p95").count() == 1
    assert first.get_by_role("img", name="Memory of a replica").count() == 1
    for name in ("#pareto", "#confidence-chart"):
        page.locator(f"{name} .canvas[data-drawn]").wait_for()
    page.locator("#why-not > summary").click()
    page.get_by_label("Search what is not recommended").fill("does not fit")
    assert page.locator("#why-not tbody tr").count() > 0


def test_a_moved_slider_gives_a_new_ranking_and_address(service: Service, tab: Tab) -> None:
    tab.open(service)
    before = tab.page.locator(".answer-foot").inner_text()
    tab.page.locator("#users-range").focus()
    tab.page.keyboard.press("PageUp")
    tab.page.locator(".answer-foot", has_not_text=before.splitlines()[-1]).wait_for()
    workload = question_of(tab)["workload"]
    assert isinstance(workload, dict)
    assert workload["users"] > 300


@pytest.mark.parametrize(
    ("objective", "budget", "has_load"),
    [("accelerators", "", True), ("tokens", "", False), ("throughput", "40", False)],
)
def test_the_objective_is_chosen_and_kept_by_the_link(
    service: Service, tab: Tab, objective: str, budget: str, has_load: bool
) -> None:
    tab.open(service)
    page = tab.page
    page.locator("#constraints-fold > summary").click()
    page.locator("#max_usd_per_h").fill(budget)
    page.locator("#objective").select_option(objective)
    page.wait_for_function('name => decodeURIComponent(location.href).includes(`objective":"${name}`)', arg=objective)
    asked = question_of(tab)
    assert ("users" in asked["workload"]) is has_load
    page.locator(".card.first").wait_for()
    page.goto("about:blank")
    tab.open(service, request=asked)
    assert page.locator("#objective").input_value() == objective
    assert question_of(tab) == asked


def test_an_error_removes_the_answer_and_a_correction_brings_one(service: Service, tab: Tab) -> None:
    tab.open(service)
    page = tab.page
    page.locator("#model").fill("meta-llama/Llama-3.1-70X")
    page.locator("#model").press("Tab")
    page.locator("#problem .box").wait_for()
    assert page.locator("#answer > *").count() == 0
    assert page.locator("#status").inner_text() == ""
    assert "did you mean" in page.locator("#problem").inner_text()
    page.locator("#model").fill("meta-llama/Llama-3.1-70B")
    page.locator(".card.first").wait_for()
    assert page.locator("#problem > *").count() == 0


def test_a_pasted_configuration_is_used_and_a_broken_one_reported(service: Service, tab: Tab) -> None:
    tab.open(service)
    page = tab.page
    page.locator("#config-fold > summary").click()
    page.locator("#config").fill("{not json")
    page.locator("#config").press("Tab")
    page.locator("#problem .box", has_text="no JSON").wait_for()
    page.locator("#config").fill(json.dumps(CONFIG))
    page.locator("#config").press("Tab")
    page.locator(".card.first").wait_for()
    model = question_of(tab)["model"]
    assert isinstance(model, dict)
    assert model["config"] == CONFIG


def test_limits_that_nothing_meets_have_no_cards(service: Service, tab: Tab) -> None:
    request = {
        "model": "meta-llama/Llama-3.1-70B", "workload": {"preset": "chat", "users": 10},
        "limits": ["tpot:p50<=0.002ms"],
    }  # fmt: skip
    tab.go(service, request=request)
    tab.page.locator("#status", has_text="None of").wait_for()
    assert tab.page.locator(".card").count() == 0
    assert tab.page.locator("#why-not table").is_visible()


def test_reasons_deployment_and_comparison_open(service: Service, tab: Tab) -> None:
    tab.open(service)
    page = tab.page
    page.locator(".card").nth(0).get_by_role("button", name="Why this?").click()
    page.locator("#dialog .canvas[data-drawn]").nth(1).wait_for()
    assert "analytic estimate" in page.locator("#dialog").inner_text()
    page.keyboard.press("Escape")
    page.locator(".card").nth(0).get_by_role("button", name="Deploy").click()
    page.locator("#dialog select").select_option("kubernetes")
    page.locator("#dialog pre", has_text="apiVersion").wait_for()
    page.keyboard.press("Escape")
    for i in (0, 1):
        page.locator(".card").nth(i).get_by_role("checkbox", name="Compare").check()
    page.locator(".compare-bar button").click()
    assert page.locator("#dialog table thead th").count() == 2


def test_a_measurement_of_the_same_stands_in_the_reasons_and_its_stack_is_chosen(service: Service, tab: Tab) -> None:
    request = {
        "model": "openai/gpt-oss-120b", "limits": ["tpot:p50<=100ms", "ttft:p50<=20s"], "operator": "any",
        "workload": {"n_input_token": 1024, "n_output_token": 1024, "users": 64, "think_time_s": 0},
        "constraints": {"accelerators": ["amd-mi300x-192gb"], "engines": ["vllm"]},
    }  # fmt: skip
    tab.open(service, request=request)
    page = tab.page
    first = page.locator(".card.first")
    assert "measured at these lengths and this load" in first.locator(".tags").inner_text()
    first.get_by_role("button", name="Why this?").click()
    line = page.locator("#dialog .support")
    line.wait_for()
    told = re.search(r"measured: Throughput [\d,]+ tokens/s \((.+), .+, 20\d\d-\d\d-\d\d\)", line.inner_text())
    assert told is not None
    line.get_by_role("button", name="As they run it").click()
    page.wait_for_function('name => decodeURIComponent(location.href).includes(`stack":"${name}`)', arg=told[1])
    assert (page.locator("#stack").input_value(), page.locator("#operator").input_value()) == (told[1], "any")
    assert question_of(tab)["operator"] == "any"


def test_the_answer_is_saved_as_csv_and_json(service: Service, tab: Tab) -> None:
    tab.open(service)
    saved: dict[str, Path] = {}
    for kind in ("CSV", "JSON"):
        with tab.page.expect_download() as download:
            tab.page.get_by_role("button", name=f"Save {kind}").click()
        saved[kind] = download.value.path()
    rows = list(csv.DictReader(saved["CSV"].read_text().splitlines()))
    answer = json.loads(saved["JSON"].read_text())["answer"]
    assert [row["instance_type"] for row in rows] == [entry["instance_type"] for entry in answer["entries"]]


def test_a_service_that_does_not_answer_is_reported(service: Service, tab: Tab) -> None:
    tab.open(service)
    tab.page.route("**/v1/recommendations", lambda route: route.abort())
    tab.page.get_by_role("button", name="Recommend", exact=True).click()
    tab.page.locator("#problem .box", has_text="does not answer").wait_for()
    assert tab.page.locator(".card").count() == 0


def test_an_answer_takes_three_screens_of_a_phone(service: Service, phone: Tab) -> None:
    phone.open(service)
    phone.page.locator("#pareto .canvas[data-drawn]").wait_for()
    height, width = phone.page.evaluate(
        "[document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
    )
    assert height <= 3 * PHONE["height"]
    assert width == PHONE["width"]


def test_quotas_are_warned_of_at_levers_and_fleets(service: Service, tab: Tab) -> None:
    request = {
        "model": "meta-llama/Llama-3.1-8B", "limits": ["ttft:p95<=2s", "tpot:p95<=60ms"],
        "workload": {"n_input_token": 1000, "n_output_token": 200, "users": 30_000, "think_time_s": 0},
        "constraints": {"inventory": [OWNED], "providers": ["aws"]},
    }  # fmt: skip
    tab.open(service, request=request)
    assert "ask for the quota first" in tab.page.locator(".fleet").inner_text()
    assert "ask for the quota first" in tab.page.locator("#levers").inner_text()


def test_owned_hardware_of_sunk_cost_is_drawn(service: Service, tab: Tab) -> None:
    request = {
        "model": "meta-llama/Llama-3.1-8B", "limits": ["ttft:p95<=2s"],
        "workload": {"n_input_token": 1000, "n_output_token": 200, "users": 20, "think_time_s": 10},
        "constraints": {"inventory": [OWNED]},
    }  # fmt: skip
    tab.open(service, request=request)
    tab.page.locator("#pareto .canvas[data-drawn]").wait_for()
    assert "H100" in tab.page.locator(".card.first").inner_text()


def test_a_warning_of_an_entry_is_on_its_card(service: Service, tab: Tab) -> None:
    text = "the predicted p90 of ITL is 50 ms and that of TPOT 200 ms, 4.0 times the ITL; TPOT is what users feel"

    tab.change_answers("**/v1/recommendations", lambda answer: answer["entries"][0].update(warnings=[text]))
    tab.open(service)
    assert text in tab.page.locator(".card.first .tags").inner_text()


def test_a_deployment_fits_a_phone(service: Service, phone: Tab) -> None:
    phone.open(service)
    phone.page.locator(".card.first").get_by_role("button", name="Deploy").click()
    phone.page.locator("#dialog pre").wait_for()
    assert phone.page.locator("#dialog").evaluate("one => one.scrollWidth <= one.clientWidth")
