"""A recommendation is printed in lines of 80 characters, with reasons where they are asked for or all there is."""

import datetime as dt
from typing import Any

import pytest

from roofcast.serving.cli.commands.recommend import recommendation_text
from roofcast.serving.cli.console import WIDTH
from roofcast.serving.recommend.answer.parts import FleetPart


def an_entry(**changes: Any) -> dict[str, Any]:
    limited = {"metric": "ttft_s", "statistic": "p95", "value": 0.2425, "low": 0.1, "high": 1.5, "limit": 2.0}
    return {
        "provider": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "pricing": "on_demand",
        "price_as_of": "2026-10-10", "accelerator": "nvidia-h100-sxm-80gb", "engine": "vllm",
        "weight_precision": "bf16", "weight_bit": None, "checkpoint": None, "tp": 2, "pp": 1, "dp": 1,
        "ep": 1, "speculation": None, "n_instance": 1, "n_replica": 4, "cost_usd_per_h": 98.32,
        "cost_usd_per_month": 71_773.6, "batch_h": None, "batch_usd": None, "cost_usd_per_million_input_token": 0.1,
        "cost_usd_per_million_output_token": 1.0, "load_per_replica": 1.23456, "in_flight_per_replica": 3.0,
        "users_per_replica": 2.0, "request_rate_per_replica": 4.0, "p_limits_met": 0.9, "outside": False,
        "outside_columns": [], "support": "near", "assumed": ["kv_precision=fp16"],
        "bottleneck": "memory bandwidth", "predictions": [limited], "warnings": [], **changes,
    }  # fmt: skip


def a_family(accelerator: str, reason: str, detail: str, **changes: Any) -> dict[str, Any]:
    split = {"engine": "vllm", "tp": 1, "pp": 1, "dp": 1, "ep": 1}
    return split | {"accelerator": accelerator, "reason": reason, "detail": detail} | changes


def a_response(**changes: Any) -> dict[str, Any]:
    family = a_family("google-tpu-v6e", "dearer", "x", tp=8)
    lever = {
        "change": "FP8 weights", "cost_usd_per_h": 49.16, "saving_ratio": 0.5, "needs_quantised_copy": True,
        "warnings": ["24 accelerators are many"],
        "n_instance": 2, "instance_type": "p5.4xlarge", "provider": "aws", "region": "us-east-1",
    }  # fmt: skip
    cost = {"confidence": 0.9, "cost_usd_per_h": 120.0}
    return {
        "model": "owner/a-model-of-a-long-name", "objective": "cost", "confidence": 0.8, "level": 0.8,
        "entries": [an_entry()], "fleet": [],
        "cost_of_confidence": [cost, {"confidence": 0.95, "cost_usd_per_h": None}], "families": [family],
        "n_configuration": 390, "load": {"text": "2 users, 0 s think time = 2 requests in flight"}, "levers": [lever],
        **changes,
    }  # fmt: skip


def text_of(response: dict[str, Any], *, why: bool = False) -> str:
    return recommendation_text(response, dt.date(2026, 11, 20), why=why)


def test_reasons_are_folded_until_they_are_asked_for() -> None:
    folded, unfolded = (text_of(a_response(), why=why) for why in (False, True))

    assert "1. 98.32 USD/h, 71,774 USD a month; price of 2026-10-10" in folded
    assert "TTFT p95 242 ms (100 ms to 1.5 s), limit 2 s" in folded
    assert "2 users, 0 s think time = 2 requests in flight" in folded
    one_line = " ".join(folded.split())
    assert "(aws, us-east-1, on demand): 4 replicas on nvidia-h100-sxm-80gb tp2, vLLM, BF16" in one_line
    assert "FP8 weights: 49.16 USD/h (50% less), 2 x p5.4xlarge (aws, us-east-1), needs a quantised" in one_line
    assert "warning: 24 accelerators are many" in folded
    assert "1 other accelerator of these offers without an entry; --why has the details" in one_line
    assert "   1 not cheaper than the entries (--n-entry shows more)\n" in folded
    for reason in (
        "google-tpu-v6e vLLM tp8: x",
        "up to 2 users within the limits; 1.23 requests in flight on each, of at most 3",
        "120.00 USD/h at 0.9",
        "0.10 USD per million input tokens, 1.00 USD per million output tokens",
    ):
        assert reason in " ".join(unfolded.split())
        assert reason not in folded
    assert max(map(len, (folded + unfolded).splitlines())) <= WIDTH
    assert not [line for line in unfolded.splitlines() if line.startswith(" ") and not line.startswith("   ")]


def test_warnings_of_an_entry_stand_below_it() -> None:
    text = text_of(a_response(entries=[an_entry(warnings=["96 accelerators are more than a may have"])]))

    assert "   warning: 96 accelerators are more than a may have\n" in text


def test_tpot_stands_beside_a_limited_itl() -> None:
    itl = {"metric": "itl_s", "statistic": "p50", "value": 0.01, "low": 0.005, "high": 0.02, "limit": 0.03}
    tpot = {"metric": "tpot_s", "statistic": "p50", "value": 0.05, "low": 0.04, "high": 0.06, "limit": None}
    text, without = (
        text_of(a_response(entries=[an_entry(predictions=predictions)]))
        for predictions in ([itl, tpot], [tpot, itl | {"statistic": "p90"}])
    )

    assert "limit 30 ms; TPOT p50 50 ms (40 to 60); meets all limits" in " ".join(text.split())
    assert "TPOT" not in without


def test_without_an_entry_the_reasons_are_given() -> None:
    text = text_of(a_response(entries=[]))

    assert text.index("no deployment meets the limits") < text.index("what would meet the limits")
    assert "google-tpu-v6e vLLM tp8: x" in text


def test_what_all_accelerators_of_a_reason_share_is_said_once() -> None:
    missed = "ttft:p95<=1ms is furthest off: probability 0.1, 0.8 is required"
    needed = "weights and one request need 65.9 GB;"
    families = [
        family
        for n in (1, 2)
        for family in (
            a_family(f"a-{n}", "misses_limit", missed, tp=n, ep=4),
            a_family(f"a-{n}", "does_not_fit", f"{needed} {n} GB are usable", tp=n, ep=4),
            a_family(f"b-{n}", "no_engine", f"none runs on B{n}", engine="", tp=0),
        )
    ]
    text = text_of(a_response(entries=[], families=families))

    assert "2 beyond a limit in every configuration searched; ttft:p95<=1ms is" in text
    assert "      a-1 vLLM tp1 ep4, a-2 vLLM tp2 ep4\n" in text
    assert "2 with too little memory; weights and one request need 65.9 GB" in text
    assert "      a-2 vLLM tp2 ep4: 2 GB are usable\n" in text
    assert "      b-1, b-2\n" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_entries_that_cost_little_more_than_the_first_are_near_ties() -> None:
    entries = [an_entry(cost_usd_per_h=usd) for usd in (10.0, 11.0, 11.1)]
    text = " ".join(text_of(a_response(entries=entries)).split())
    assert "near ties with entry 1: 2; each costs at most 10% more, so the prices of the day decide" in text
    assert "near ties" not in text_of(a_response(entries=[entries[0], entries[2]]))


def test_capacities_are_whole_users() -> None:
    text = text_of(a_response(entries=[an_entry(users_per_replica=1425.7)]), why=True)
    assert "each replica serves up to 1,425 users within the limits" in text


@pytest.mark.parametrize("n_entry", [0, 1])
def test_a_mixed_fleet_has_a_total(n_entry: int) -> None:
    parts = [an_entry(cost_usd_per_h=usd) for usd in (1.5, 2.0)]
    fleet = [{name: part[name] for name in FleetPart.model_fields if name in part} for part in parts]
    text = text_of(a_response(entries=[an_entry()] * n_entry, fleet=fleet))

    reason = "cheaper than the first entry" if n_entry else "no single instance type meets the demand"
    assert f"mixed fleet for 3.50 USD/h: {reason}" in text
    assert " ".join(text.split()).count("1.23 requests in flight on each, of at most 3") == 2


def test_an_extrapolation_names_its_columns() -> None:
    entry = an_entry(outside=True, outside_columns=["model.n_layer"], speculation={"kind": "eagle", "n_token": 3})
    text = text_of(a_response(entries=[entry]))

    assert "extrapolates in model.n_layer" in text
    assert "eagle x 3" in text
