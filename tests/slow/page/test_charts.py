"""Charts in Chromium with the keyboard: Tab reaches each, arrows move among its points, Enter chooses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.slow.page.tabs import Service, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.slow

MAX_TAB = 120


def tab_to(tab: Tab, chart: str) -> Locator:
    """Press Tab until the points of a chart have the focus, and return them."""
    tab.page.locator(f"{chart} .canvas[data-drawn]").first.wait_for()
    points = tab.page.locator(f"{chart} .points").first
    for _ in range(MAX_TAB):
        tab.page.keyboard.press("Tab")
        if points.evaluate("one => one === document.activeElement"):
            return points
    pytest.fail(f"Tab does not reach {chart}")


def active(points: Locator) -> str:
    """Return what a screen reader speaks: the text of the active option."""
    option = points.locator(f"#{points.get_attribute('aria-activedescendant')}")
    assert option.get_attribute("aria-selected") == "true"
    assert option.is_visible()
    return option.inner_text()


def walk(tab: Tab, points: Locator) -> list[str]:
    """Return the texts of all points, as the arrow keys reach them."""
    tab.page.keyboard.press("Home")
    texts = [active(points)]
    for _ in range(points.locator("[role=option]").count() - 1):
        tab.page.keyboard.press("ArrowRight")
        texts.append(active(points))
    tab.page.keyboard.press("ArrowRight")
    assert active(points) == texts[-1]
    return texts


def is_marked(tab: Tab) -> bool:
    """Return whether a chart marks one point, with the glyph that only the keyboard moves."""
    documents = "[...window.Bokeh.documents].flatMap((one) => one.roots())"
    sizes = f"{documents}.flatMap((fig) => fig.renderers.at(-1).data_source.data.x)"
    return bool(tab.page.evaluate(f"() => {sizes}.length === 1"))


def test_points_of_the_answer_s_charts_are_reached_and_chosen(service: Service, tab: Tab) -> None:
    tab.page.goto(service.url)
    points = tab_to(tab, "#pareto")
    texts = walk(tab, points)
    assert len({*texts}) == len(texts) > 1
    assert all("per month" in text and "end to end" in text for text in texts)
    assert is_marked(tab)
    tab.page.keyboard.press("Home")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("document.activeElement.closest('.card, dialog')")
    tab.page.keyboard.press("Escape")
    costs = walk(tab, tab_to(tab, "#confidence-chart"))
    assert all("confidence costs $" in text for text in costs)


def test_points_of_the_reasons_are_reached(service: Service, tab: Tab) -> None:
    tab.page.goto(service.url)
    tab.page.locator(".card.first").get_by_role("button", name="Why this?").click()
    tab.page.locator("#dialog .canvas[data-drawn]").nth(1).wait_for()
    lists = tab.page.locator("#dialog .points")
    assert lists.count() == 2
    for i in range(2):
        lists.nth(i).focus()
        assert all("bound by" in text for text in walk(tab, lists.nth(i)))


@pytest.mark.parametrize(
    ("view", "chart", "words"),
    [("predictor", "#predictor", "predicted"), ("training", "#training-front", " in ")],
)
def test_points_of_other_views_are_reached(service: Service, tab: Tab, view: str, chart: str, words: str) -> None:
    tab.page.goto(f"{service.url}/#/{view}")
    points = tab_to(tab, chart)
    first = active(points)
    tab.page.keyboard.press("End")
    last = active(points)
    assert words in first
    assert words in last
    assert first != last
    tab.page.keyboard.press("Tab")
    assert points.locator("[aria-selected=true]").count() == 0
