"""Offers are listed with their age, and refreshed from files and from SkyPilot's published lists."""

import datetime as dt
from pathlib import Path
from typing import Any

import httpx
import pytest

from roofcast.serving.app_state.catalog import offer_refresh
from roofcast.serving.cli.commands import offers
from tests.data.prices.test_price_list import a_repository
from tests.serving.http_client import Run
from tests.serving.user_files import write_file

HEADER = "provider,region,instance_type,accelerator,n_accelerator,pricing,price_per_h,as_of"
KNOWN = "lambda,unknown,gpu_1x_a10,nvidia-a10-24gb,1,on_demand"


def listed(run: Run, *selection: str) -> list[dict[str, Any]]:
    return list(run.json("offers", *selection))


def refreshed(run: Run, *arguments: str | Path) -> list[dict[str, Any]]:
    return [
        {name: n for name, n in row.items() if name != "path"} for row in run.json("offers", "--refresh", *arguments)
    ]


def test_offers_are_selected_and_have_an_age(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "today", lambda: dt.date(2026, 11, 22))

    rows = listed(run, "--provider", "lambda", "--accelerator", "a10-24gb", "--pricing", "on_demand")

    assert [(row["instance_type"], row["as_of"], row["age_day"]) for row in rows] == [
        ("gpu_1x_a10", "2026-08-23", 91)
    ]


@pytest.mark.parametrize("command", ["offers", "accelerators", "models"])
def test_a_listing_fits_into_80_columns(run: Run, command: str) -> None:
    assert max(map(len, run.ok(command).splitlines())) <= 80


def test_of_a_refreshed_offer_the_newest_price_counts(run: Run, tmp_path: Path) -> None:
    rows = (f"{KNOWN},1.5,2026-11-01", KNOWN.replace("1x", "9x") + ",9,2026-11-01")
    file = write_file(tmp_path, "prices.csv", "\n".join((HEADER, *rows)))

    assert refreshed(run, file) == [{"name": "prices", "n_new": 1, "n_changed": 1, "n_same": 0, "n_older": 0}]
    assert {float(row["price_usd_per_h"]) for row in listed(run, "--provider", "lambda")} >= {1.5, 9}

    write_file(tmp_path, "prices.csv", f"{HEADER}\n{KNOWN},1.4,2020-01-01")
    assert refreshed(run, file) == [{"name": "prices", "n_new": 0, "n_changed": 0, "n_same": 0, "n_older": 1}]
    (row,) = listed(run, "--provider", "lambda", "--accelerator", "a10-24gb")
    assert (float(row["price_usd_per_h"]), row["as_of"]) == (1.29, "2026-08-23")


def test_the_lists_of_skypilot_are_fetched(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        offer_refresh, "open_client", lambda: httpx.Client(transport=httpx.MockTransport(a_repository))
    )

    assert refreshed(run, "skypilot", "--provider", "lambda") == [
        {"name": "skypilot-lambda", "n_new": 1, "n_changed": 0, "n_same": 0, "n_older": 0}
    ]
    (row,) = listed(run, "--provider", "lambda", "--accelerator", "a10-24gb")  # its region in place of `unknown`
    assert (row["region"], row["as_of"], row["licence"]) == ("us-east-1", "2026-11-20", "Apache-2.0")
