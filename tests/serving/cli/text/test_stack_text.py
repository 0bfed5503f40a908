"""The report of a stack profile says in one sentence whether the profile helps."""

from typing import Any

import pytest

from roofcast.serving.cli.text.stack_text import stack_verdict


def errors_of(metric: str, before: float, after: float | None) -> dict[str, Any]:
    return {"metric": metric, "before": {"median_ape": before}, "after": after and {"median_ape": after}}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ([("ttft_s", 0.23, 0.07), ("tpot_s", 0.2, 0.1)], "the profile helps:"),
        ([("ttft_s", 0.23, 0.07), ("tpot_s", 0.1, 0.2)], "the profile helps in part:"),
        ([("output_throughput_token_per_s", 0.1, 0.2)], "20% instead of 10% in output throughput"),
        ([("tpot_s", 0.1, 0.2)], "the profile does not help:"),
        ([("tpot_s", 0.1, None)], "one run cannot say"),
    ],
)
def test_the_verdict_compares_errors_with_and_without_the_profile(changes: list[Any], verdict: str) -> None:
    assert verdict in stack_verdict({"errors": [errors_of(*change) for change in changes]})
