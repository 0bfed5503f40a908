from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.slo import METRIC_OF, parse_limit


@pytest.mark.parametrize(
    ("text", "metric", "statistic", "value_s"),
    [
        ("ttft:p95<=500ms", "ttft_s", "p95", 0.5),
        (" TPOT : mean <= 0.05 s ", "tpot_s", "mean", 0.05),
        ("itl<40ms", "itl_s", "p95", 0.04),
        ("e2e:p99<=86400s", "e2e_s", "p99", 86_400),
        ("nttft:p50<=0.1ms", "nttft_s_per_token", "p50", 1e-4),
    ],
)
def test_limits_are_read(text: str, metric: str, statistic: str, value_s: float) -> None:
    limit = parse_limit(text)
    assert (limit.metric, limit.statistic) == (metric, statistic)
    assert limit.value_s == pytest.approx(value_s)
    assert limit.text == text.strip()
    assert limit.unit == ("s/token" if metric == "nttft_s_per_token" else "s")
    assert limit.excess(np.array([2 * value_s]))[0] == pytest.approx(2)


@pytest.mark.parametrize(
    "text",
    ["", "ttft", "ttft<=", "ttft<=5", "ttft<=5h", "ttft>=5s", "ttft<=-5s", "ttft<=nans", "ttft<=1e3s", "ttft<=0s",
     "ttft<=86401s", "ttft<=\u0665s", "ttft:p95<=5s;", "a" * 10_000],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="limits"):
        parse_limit(text)


def test_unknown_names_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"limits\.metric: no 'tftt' is known; did you mean 'ttft'"):
        parse_limit("tftt<=1s")
    with pytest.raises(UnknownNameError, match=r"limits\.statistic: no 'p94' is known; did you mean 'p9"):
        parse_limit("ttft:p94<=1s")


@given(st.text(max_size=40))
def test_no_text_is_a_bug(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_limit(text).metric in METRIC_OF.values()
