"""Published price lists are dated by their last commit, and failures say what to do."""

import datetime as dt

import httpx
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import NotReadyError
from roofcast.data.prices.price_index import LATEST, fetch_price_index
from roofcast.data.prices.skypilot import fetch_skypilot_list
from roofcast.serving.app_state.catalog.offer_refresh import fetcher
from tests.data.prices.test_price_index import SAMPLE

SHA = "0123456789abcdef0123456789abcdef01234567"
LIST = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
    "gpu_1x_a10,A10,1.0,30.0,200.0,1.29,us-east-1,,\n"
)


def a_repository(request: httpx.Request) -> httpx.Response:
    """Answer as GitHub does for repositories that have the list of one cloud, and observations."""
    if request.url.host == "raw.githubusercontent.com":
        assert f"/{SHA}/" in request.url.path
        return httpx.Response(200, text=SAMPLE.read_text("utf-8") if LATEST in request.url.path else LIST)
    if request.url.params["path"] != LATEST and "lambda" not in request.url.params["path"]:
        return httpx.Response(200, json=[])
    return httpx.Response(200, json=[{"sha": SHA, "commit": {"committer": {"date": "2026-11-20T07:01:02Z"}}}])


def refuse(request: httpx.Request) -> httpx.Response:
    return httpx.Response(403)


def fail(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route", request=request)


def test_a_list_is_dated_by_its_last_commit() -> None:
    with httpx.Client(transport=httpx.MockTransport(a_repository)) as client:
        listing = fetch_skypilot_list("lambda", fetcher(client), load_catalog())
        assert fetch_skypilot_list("nowhere", fetcher(client), load_catalog()) is None
    assert listing is not None
    (offer,) = listing.offers

    assert (offer.id, offer.as_of) == ("lambda/us-east-1/gpu_1x_a10/on_demand", dt.date(2026, 11, 20))
    assert offer.source == f"SkyPilot lambda-{SHA[:12]}.csv"


def test_observations_are_dated_by_themselves() -> None:
    with httpx.Client(transport=httpx.MockTransport(a_repository)) as client:
        listing = fetch_price_index("crusoe", fetcher(client), load_catalog())

    assert listing is not None
    assert [(offer.provider, str(offer.as_of)) for offer in listing.offers] == [("crusoe", "2026-10-10")]


@pytest.mark.parametrize(("handler", "problem"), [(refuse, "answers 403"), (fail, "cannot be reached")])
def test_a_failure_has_a_cure(handler: httpx.MockTransport, problem: str) -> None:
    with (
        httpx.Client(transport=httpx.MockTransport(handler)) as client,  # type: ignore[arg-type]
        pytest.raises(NotReadyError, match=f"{problem}.*--refresh"),
    ):
        fetch_skypilot_list("lambda", fetcher(client), load_catalog())
