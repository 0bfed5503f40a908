"""The view of training in Chromium: form, cards, launch commands, near misses, link."""

import pytest

from tests.slow.page.tabs import Service, Tab

pytestmark = pytest.mark.slow

LARGE = {"model": "meta-llama/Llama-3.1-70B", "method": "full", "n_token": 1e9, "n_token_per_sequence": 4096}


def test_the_first_job_has_cards_and_a_front(service: Service, tab: Tab) -> None:
    tab.open(service, "training")
    first = tab.page.locator("#training .card.first")
    assert "likely to fit" in first.inner_text()
    assert first.locator("[aria-label^='Memory of an accelerator: weights']").count() == 1
    tab.page.locator("#training-front .canvas[data-drawn]").wait_for()
    first.get_by_role("button", name="Launch").click()
    assert "--load_in_4bit" in tab.page.get_by_label("Launch command").inner_text()


def test_a_job_of_the_address_has_its_limits(service: Service, tab: Tab) -> None:
    tab.open(
        service, "training", LARGE | {"deadline_h": 48, "budget_usd": 3000, "constraints": {"vendors": ["NVIDIA"]}}
    )
    assert tab.page.locator("#deadline_h").input_value() == "48"
    assert "Llama-3.1-70B · all weights · 1B tokens · 48 h" in tab.page.locator("#job-summary").inner_text()
    text = tab.page.locator("#training .card.first").inner_text()
    assert "likely in time" in text
    assert "limit 48 h" in text


def test_a_job_that_does_not_fit_says_why(service: Service, tab: Tab) -> None:
    small = LARGE | {"model": "meta-llama/Llama-3.1-405B", "constraints": {"accelerators": ["nvidia-rtx-4090-24gb"]}}
    tab.open(service, "training", small)
    tab.page.locator("#training-misses", has_text="the leanest plan of").wait_for()


def test_an_unknown_model_is_named(service: Service, tab: Tab) -> None:
    tab.open(service, "training")
    tab.page.locator("#job-model").fill("no-such-model")
    tab.page.locator("#job-model").press("Tab")
    tab.page.locator("#training-problem", has_text="no-such-model").wait_for()


def test_a_phone_scrolls_in_one_direction(service: Service, phone: Tab) -> None:
    phone.open(service, "training")
    assert phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_kind_of_adapter_is_asked_for(service: Service, tab: Tab) -> None:
    tab.open(service, "training")
    tab.page.locator("#method").select_option("adapter")
    tab.page.get_by_label("Kind of adapter").select_option("prompt-tuning")
    tab.page.locator("#training-answer:not(.outdated)", has_text="100 virtual tokens").wait_for()
    assert "prompt tuning" in tab.page.locator("#job-summary").inner_text()
    tab.page.get_by_label("Virtual tokens").fill("20")
    tab.page.locator("#training-answer:not(.outdated)", has_not_text="100 virtual tokens").locator(
        ".card.first"
    ).wait_for()
    tab.page.locator("#method").select_option("full")
    tab.page.get_by_label("Kind of adapter").wait_for(state="hidden")


def test_the_size_of_an_adapter_is_cleared_where_it_counts_something_else(service: Service, tab: Tab) -> None:
    tab.open(service, "training", {"model": "meta-llama/Llama-3.1-8B", "method": "lora", "adapter_rank": 32})
    assert tab.page.get_by_label("Rank").input_value() == "32"
    tab.page.locator("#method").select_option("qlora")
    assert tab.page.get_by_label("Rank").input_value() == "32"
    tab.page.locator("#method").select_option("adapter")
    assert tab.page.get_by_label("Width").input_value() == ""


def test_a_link_restores_the_kind_of_adapter(service: Service, tab: Tab) -> None:
    job = {"model": "meta-llama/Llama-3.1-8B", "method": "lora", "adapter": "lora-fa", "n_token": 1e7}
    tab.open(service, "training", job)
    assert tab.page.get_by_label("Kind of adapter").input_value() == "lora-fa"
    assert "LoRA (lora-fa)" in tab.page.locator("#job-summary").inner_text()
