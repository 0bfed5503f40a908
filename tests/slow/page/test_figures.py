"""Figures that the page shows are those of the question on the screen."""

from __future__ import annotations

import pytest

from tests.slow.page.tabs import Service, Tab

pytestmark = pytest.mark.slow

FRONTS = "() => [...window.Bokeh.documents].flatMap((one) => one.roots())"
STEP = f"{FRONTS.removeprefix('() => ')}.flatMap((fig) => fig.renderers).find((one) => one.glyph.type === 'Step')"
QUESTION = {
    "model": "meta-llama/Llama-3.1-70B", "workload": {"preset": "chat", "users": 300, "think_time_s": 20},
    "limits": ["ttft:p95<=2s", "tpot:p50<=50ms"],
}  # fmt: skip


@pytest.mark.parametrize(("view", "place"), [("recommend", "#pareto"), ("training", "#training-front")])
def test_the_line_of_a_front_is_the_least_cost_of_a_latency(
    service: Service, tab: Tab, view: str, place: str
) -> None:
    """From a slow point to the next, faster one, the line has the cost of the faster one."""
    tab.open(service, view)
    tab.page.locator(f"{place} .canvas[data-drawn]").wait_for()
    step = tab.page.evaluate(
        f"() => {{ const one = {STEP}; const {{ x, y }} = one.data_source.data;"
        " return { mode: one.glyph.mode, x: [...x], y: [...y] }; }"
    )
    assert len(step["x"]) > 1
    assert step["x"] == sorted(step["x"], reverse=True)
    assert step["y"] == sorted(step["y"])
    assert step["mode"] == "before"


@pytest.mark.parametrize("order", [("chat", "long_context"), ("agents", "long_context"), ("agents", "code", "chat")])
def test_a_preset_is_the_same_after_any_other(service: Service, tab: Tab, order: tuple[str, ...]) -> None:
    tab.open(service)
    for name in order:
        tab.page.locator("#preset").select_option(name)
    stated = {"chat": "100", "long_context": "0"}
    assert tab.page.locator("#think_time_s").input_value() == stated[order[-1]]
    says = "no think time" in tab.page.locator("#preset-facts").inner_text()
    assert says is (stated[order[-1]] == "0")


@pytest.mark.parametrize("text", ["", "0"])
def test_a_field_without_a_value_is_marked_and_the_answer_stays(service: Service, tab: Tab, text: str) -> None:
    tab.open(service)
    page = tab.page
    page.locator("#users").fill(text)
    page.locator("#users[aria-invalid=true]").wait_for()
    assert page.locator(".card.first").is_visible()
    assert page.locator("#answer.outdated").count() == 1
    assert "Users: a number above 0" in page.locator("#problem").inner_text()
    page.locator("#users").fill("20")
    page.locator("#load", has_text="20 users").wait_for()
    assert page.locator("#users[aria-invalid]").count() == 0
    assert page.locator("#problem > *").count() == 0


def test_a_cleared_limit_or_none_is_named(service: Service, tab: Tab) -> None:
    tab.open(service)
    page = tab.page
    limit = page.locator("#limits .limit").first
    limit.locator("input[type=number]").fill("")
    page.locator("#problem", has_text="Time to first token (TTFT): a number").wait_for()
    for _ in range(2):
        page.locator("#limits .remove").first.click()
    page.locator("#problem", has_text="Limits: add at least one").wait_for()
    assert page.locator(".card.first").is_visible()


def test_a_missed_budget_names_what_would_do(service: Service, tab: Tab) -> None:
    tab.go(service, request=QUESTION | {"constraints": {"max_usd_per_h": 10}})
    tab.page.locator("#status", has_text="per month) would do").wait_for()
    text = tab.page.locator("#status").inner_text()
    assert "No deployment that meets the limits costs $10.00 per hour or less. $" in text
    assert "confidence" not in text


def test_the_answer_says_which_model_is_meant(service: Service, tab: Tab) -> None:
    tab.go(service, request=QUESTION | {"model": "llama 3.3 70b"})
    tab.page.locator("#load", has_text="llama 3.3 70b is read as meta-llama/Llama-3.3-70B-Instruct").wait_for()
    assert "choose a listed name" not in tab.page.locator("#model-facts").inner_text()


def test_an_excess_beyond_measure_has_a_bound(service: Service, tab: Tab) -> None:
    tab.change_answers("**/v1/recommendations", lambda answer: answer["families"][0].update(excess=1e12))
    tab.go(service, request=QUESTION)
    tab.page.locator("#why-not > summary").click()
    assert "over 1,000" in tab.page.locator("#why-not tbody tr").first.inner_text()


def test_the_fields_of_limits_are_within_the_form(service: Service, tab: Tab) -> None:
    tab.open(service)
    form = tab.page.locator("#question").bounding_box()
    assert form
    for field in tab.page.locator("#limits input").all():
        box = field.bounding_box()
        assert box
        assert box["x"] + box["width"] <= form["x"] + form["width"]
