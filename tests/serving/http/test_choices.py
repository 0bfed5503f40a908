"""``GET /v1/choices``."""

from roofcast.serving.recommend.demand.presets import PRESETS
from tests.serving.http_client import Client


def test_the_choices_are_names_that_a_request_may_have(shared: Client) -> None:
    choices = shared.get("/v1/choices").json()
    assert [preset["name"] for preset in choices["presets"]] == list(PRESETS)
    assert {"NVIDIA", "AMD"} <= set(choices["vendors"])
    assert "vllm" in choices["engines"]
    assert "on_demand" in choices["pricing"]
    assert {one["id"] for one in choices["accelerators"]} <= set(shared.service.catalog.accelerators)
    fields = ("engines", "weight_precisions", "pricing", "providers", "objectives", "operators")
    assert set(choices["names"]) == {code for field in fields for code in choices[field]} | {"unknown"}
    assert choices["names"]["gcp"] == "Google Cloud"
    assert choices["names"]["vllm"] == "vLLM"
    assert choices["names"]["on_demand"] == "on demand"
