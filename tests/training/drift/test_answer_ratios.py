"""Quantiles of ratios, from bins of counts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.training.drift.answer_ratios import ANSWERED, BIN_RATIO, bin_ratios, summarize

RATIOS = st.lists(st.floats(0.4, 2.6), min_size=1, max_size=50)


@given(RATIOS)
def test_quantiles_are_known_to_one_percent(ratios: list[float]) -> None:
    counts = Counter(("all", "", "ttft_s", int(one)) for one in bin_ratios(ratios, 1.0))
    (summary,) = summarize(counts)
    exact = np.quantile(ratios, [0.05, 0.5, 0.95], method="inverted_cdf")
    found = [summary.low_ratio, summary.median_ratio, summary.high_ratio]
    np.testing.assert_allclose(found, exact, rtol=np.sqrt(BIN_RATIO) - 1 + 1e-9)


@given(RATIOS, RATIOS)
def test_counts_of_processes_add_up(first: list[float], second: list[float]) -> None:
    parts = [Counter(("all", "", "ttft_s", int(one)) for one in bin_ratios(part, 1.0)) for part in (first, second)]
    together = Counter(("all", "", "ttft_s", int(one)) for one in bin_ratios(first + second, 1.0))
    assert summarize(parts[0] + parts[1]) == summarize(together)


def test_ratios_out_of_range_are_in_the_outermost_bins() -> None:
    assert bin_ratios([1e300, 1e-300], 1.0).tolist() == [50, -50]
    (one,) = summarize({("all", "", "ttft_s", 50): 1})
    assert one.median_ratio == pytest.approx(2.69, abs=0.01)


def test_groups_and_metrics_are_apart() -> None:
    key = ("all", "", "ttft_s", 0), ("engine", "vllm", "ttft_s", 3), ("all", "", ANSWERED, 1)
    assert [(one.kind, one.name, one.n_row) for one in summarize(dict.fromkeys(key, 2))] == [
        ("all", "", 2),
        ("engine", "vllm", 2),
    ]
