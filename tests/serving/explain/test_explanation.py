import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from roofcast.data.catalog import load_catalog
from roofcast.data.errors import InputError
from roofcast.data.measurements.schema import QUESTION_COLUMNS
from roofcast.data.units import FLOP_PER_TFLOP
from roofcast.serving.explain.explanation import (
    Explanation,
    explain,
    parse_option,
    scale_accelerator,
    sweep_accelerator,
)
from roofcast.serving.explain.explanation_plots import plot_explanation, plot_sweep
from roofcast.serving.predict.row_answers import LOAD_REMARK
from tests.serving.http_client import ACCELERATOR, MODEL

CATALOG = load_catalog()
ROW = {
    "model": MODEL, "accelerator": ACCELERATOR, "n_input_token": 1000, "n_output_token": 200, "concurrency": 16,
}  # fmt: skip
PART = CATALOG.accelerators[ACCELERATOR]


def an_explanation(**changes: Any) -> Explanation:
    return explain(pd.DataFrame([ROW | changes], dtype=object), CATALOG)


def labels(axes: Axes) -> set[str]:
    legend = axes.get_legend()
    assert legend is not None
    return {text.get_text() for text in legend.get_texts()}


def test_the_shares_by_bound_sum_to_one() -> None:
    for shares in an_explanation().bounds(0).values():
        assert sum(shares.values()) == pytest.approx(1)


def test_the_operators_sum_to_the_estimate() -> None:
    document = an_explanation().to_json()
    rows = pd.DataFrame(document["operators"]).groupby("phase")["seconds"].sum()
    assert rows["prefill"] + rows["queue"] == pytest.approx(document["estimate"]["ttft_s"])
    assert rows["decode"] == pytest.approx(document["estimate"]["tpot_s"])


def test_memory_has_spare_bytes_and_the_greatest_concurrency() -> None:
    fits, too_large = an_explanation().memory(0), an_explanation(model="meta-llama/Llama-2-70b-hf").memory(0)
    assert fits["fits"]
    assert fits["spare_byte"] > 0
    assert fits["greatest_concurrency"] > 16
    assert not too_large["fits"]
    assert too_large["spare_byte"] < 0
    assert too_large["greatest_concurrency"] == 0


def test_an_explanation_is_json() -> None:
    json.dumps(an_explanation(request_rate=1.0, concurrency="").to_json(), allow_nan=False)


def test_an_invalid_question_is_refused() -> None:
    with pytest.raises(InputError, match="n_input_token: must be given"):
        an_explanation(n_input_token="")
    with pytest.raises(InputError, match="tp x pp x dp must equal n_accelerator"):
        an_explanation(tp=2)


def test_each_factor_is_an_option_of_its_own() -> None:
    assert scale_accelerator(PART, []) is PART
    assert scale_accelerator(PART, ["bandwidth=2", "link=0.5"]).id == f"{ACCELERATOR}~bandwidth=2,link=0.5"
    for text in ("bandwidth", "bandwidth=", "bandwidth=1,2", "node=N5", "=2", "speed=2", "bandwidth=fast"):
        with pytest.raises(InputError):
            scale_accelerator(PART, [text])


def test_a_sweep_has_an_accelerator_for_each_value() -> None:
    assert len(sweep_accelerator(PART, "memory = 1, 2")) == 2
    with pytest.raises(InputError, match="at most 200 steps"):
        sweep_accelerator(PART, "memory=" + ",".join(["1"] * 201))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"concurrency": "", "request_rate": 2},
        {"model": "deepseek-ai/DeepSeek-R1", "accelerator": "nvidia-b200-sxm-180gb", "n_accelerator": 8},
    ],
)
def test_the_plot_names_every_operator_that_takes_time(changes: dict[str, Any]) -> None:
    explanation = an_explanation(**changes)
    roofline, bars = plot_explanation(explanation).axes
    assert (roofline.get_xscale(), roofline.get_yscale()) == ("log", "log")
    names = labels(bars)
    assert "projections and MLP" in names
    assert ("experts" in names) == bool(changes.get("n_accelerator"))
    heights = [patch.get_height() for patch in bars.patches if isinstance(patch, Rectangle)]
    assert sum(heights) == pytest.approx(2, abs=0.01)


def test_no_operator_is_above_the_roofline() -> None:
    roofline, _ = plot_explanation(an_explanation()).axes
    (roof,) = roofline.get_lines()
    highest = np.asarray(roof.get_ydata(), dtype=float).max()
    offsets = [np.asarray(points.get_offsets(), dtype=float)[0] for points in roofline.collections]
    assert len(offsets) == 6
    bandwidth = PART.bandwidth_byte_per_s / FLOP_PER_TFLOP
    assert all(achieved <= min(highest, intensity * bandwidth) for intensity, achieved in offsets)


def test_the_plot_of_a_sweep_has_a_line_for_each_metric() -> None:
    explanation = explain(
        pd.DataFrame([ROW] * 3, dtype=object), CATALOG, parts=sweep_accelerator(PART, "bandwidth=1,2,4")
    )
    (axes,) = plot_sweep(explanation, "bandwidth", ["1", "2", "4"]).axes
    assert len(labels(axes)) == 4
    assert axes.get_xlabel() == "factor on bandwidth"


@pytest.mark.parametrize(
    ("sweep", "scale", "positions"),
    [
        ("bandwidth=1,2,5", "linear", [1, 2, 5]),
        ("memory=2,1,0.5", "linear", [0.5, 1, 2]),
        ("link=1,100,3", "log", [1, 3, 100]),
        ("node=N7,N5,N3", "linear", [0, 1, 2]),
    ],
)
def test_numeric_factors_are_plotted_at_their_values(sweep: str, scale: str, positions: list[float]) -> None:
    explanation = explain(pd.DataFrame([ROW] * 3, dtype=object), CATALOG, parts=sweep_accelerator(PART, sweep))
    (axes,) = plot_sweep(explanation, *parse_option(sweep)).axes
    assert axes.get_xscale() == scale
    first = axes.get_lines()[0]
    assert np.asarray(first.get_xdata()).tolist() == positions
    if sweep.startswith("node"):
        assert [text.get_text() for text in axes.get_xticklabels()] == ["N7", "N5", "N3"]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ("clock=1,2", "sweep: must name one of bandwidth, flops, memory, link, power, node, dram, got 'clock'"),
        ("node=N4,N5", "node: must be of N16, N7, N5, N3, N2, A14, got 'N4'"),
        ("dram=HBM3,SRAM", "dram: must be of HBM2, HBM2E, HBM3, HBM3E, HBM4, got 'SRAM'"),
        ("bandwidth", "sweep: must be written as"),
    ],
)
def test_an_invalid_sweep_is_refused_with_the_known_values(sweep: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sweep_accelerator(PART, sweep)


def test_a_blank_load_is_a_remark() -> None:
    assert an_explanation().remarks == [[]]
    assumed = an_explanation(concurrency="").to_json()
    assert assumed["remarks"] == [LOAD_REMARK]
    assert set(assumed["question"]) == set(QUESTION_COLUMNS)
    assert "concurrency=1" in assumed["assumed"]
