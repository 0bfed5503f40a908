import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofcast.data.errors import InputError, UnknownNameError
from roofcast.data.specs import STATISTICS
from roofcast.features.pipeline import METRICS
from roofcast.serving.recommend.demand.slo import FLOORS, METRIC_OF, Limit, loosen_limit, parse_limit


@pytest.mark.parametrize(
    ("text", "metric", "statistic", "value_s"),
    [
        ("ttft:p95<=500ms", "ttft_s", "p95", 0.5),
        (" TPOT : mean <= 0.05 s ", "tpot_s", "mean", 0.05),
        ("itl<40ms", "itl_s", "p95", 0.04),
        ("e2e:p99<=86400s", "e2e_s", "p99", 86_400),
        ("nttft:p50<=0.1ms", "nttft_s_per_token", "p50", 1e-4),
        ("throughput_per_user>=25", "tpot_s", "p95", 0.04),
        ("throughput_per_user:mean>=25 tok/s", "tpot_s", "mean", 0.04),
        ("throughput_per_user>=1000000000", "tpot_s", "p95", 1e-9),
    ],
)
def test_limits_are_parsed(text: str, metric: str, statistic: str, value_s: float) -> None:
    limit = parse_limit(text)
    assert (limit.metric, limit.statistic, limit.is_floor) == (metric, statistic, False)
    assert limit.value == pytest.approx(value_s)
    assert limit.text == text.strip()
    assert limit.unit == ("s/token" if metric == "nttft_s_per_token" else "s")


@pytest.mark.parametrize("text", ["throughput>=2000", "throughput:mean > 2000.0 tokens/s", "THROUGHPUT>=2000token/s"])
def test_a_throughput_limit_is_a_lower_bound(text: str) -> None:
    limit = parse_limit(text)
    assert limit == Limit("output_throughput_token_per_s", "mean", 2000.0, text, is_floor=True)
    assert limit.unit == "token/s"


@pytest.mark.parametrize(
    "text",
    ["", "ttft", "ttft<=", "ttft<=5", "ttft<=5h", "ttft>=5s", "ttft<=-5s", "ttft<=nans", "ttft<=1e3s", "ttft<=0s",
     "ttft<=86401s", "ttft<=\u0665s", "ttft:p95<=5s;", "a" * 10_000, "throughput>=0", "throughput>=5s",
     "throughput=5", "ttft==5s", "ttft=<5s", "throughput>=9999999999"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="limits"):
        parse_limit(text)


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("ttft>=500ms", "ttft needs an upper bound: write ttft<=..."),
        ("throughput<=2000", "throughput needs a lower bound: write throughput>=..."),
        ("throughput_per_user<25", "throughput_per_user needs a lower bound"),
        ("e2e<=20", "needs its time in ms or s"),
        ("throughput>=20ms", "is in tokens per second: write throughput>=20"),
        ("throughput>=1000000001", "must lie between 1.2e-05 and 1e+09 tokens/s"),
        ("throughput:p95>=2000", "throughput has a mean only: write throughput>=2000"),
    ],
)
def test_the_error_of_an_invalid_limit_says_how_to_fix_it(text: str, cure: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_limit(text)
    assert cure in str(refusal.value)


def test_unknown_metrics_and_statistics_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"limits\.metric: no 'tftt' is known; did you mean 'ttft'"):
        parse_limit("tftt<=1s")
    with pytest.raises(UnknownNameError, match=r"limits\.statistic: no 'p94' is known; did you mean 'p9"):
        parse_limit("ttft:p94<=1s")


def test_every_metric_can_be_limited() -> None:
    assert set(METRIC_OF.values()) == set(METRICS)
    assert set(FLOORS) < set(METRIC_OF)


GRAMMAR_LIKE = st.lists(
    st.sampled_from([*METRIC_OF, *STATISTICS, ":", "<=", ">=", "<", "=", "0", "12", ".5", "-", "ms", "s", "tok/s"]),
    max_size=9,
).map("".join)


@given(st.one_of(st.text(max_size=40), GRAMMAR_LIKE))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_limit(text).metric in METRIC_OF.values()


@given(
    st.sampled_from(sorted(METRIC_OF)),
    st.sampled_from(STATISTICS),
    st.decimals("0.0001", 86_400, places=9),
    st.sampled_from(["s", "ms"]),
)
def test_any_number_of_a_limit_is_read_in_its_unit(name: str, statistic: str, number: Decimal, unit: str) -> None:
    if name in FLOORS:
        limit = parse_limit(f"{name}:{'mean' if name == 'throughput' else statistic}>={number:f}")
        read = 1 / limit.value if limit.is_rate_of_user else limit.value
        assert read == pytest.approx(float(number))
    else:
        limit = parse_limit(f"{name}:{statistic}<={number:f}{unit}")
        assert limit.value == pytest.approx(float(number) * (1 if unit == "s" else 1e-3))
        assert limit.statistic == statistic
    assert limit.metric == METRIC_OF[name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ttft:p95<=500ms", "TTFT p95 up to 750 ms instead of 500 ms"),
        ("tpot:p50<=40ms", "TPOT p50 up to 60 ms instead of 40 ms"),
        ("itl:p99<=12345ms", "ITL p99 up to 18.5175 s instead of 12.345 s"),
        ("e2e:mean<=86400s", "E2E mean up to 129,600 s instead of 86,400 s"),
        ("nttft:p50<=0.00001ms", "nTTFT p50 up to 0.000015 ms/token instead of 0.00001 ms/token"),
        (
            "throughput_per_user:p50>=25",
            "throughput per user p50 down to 16.6 tokens/s instead of 25 tokens/s",
        ),
        ("throughput_per_user>=30", "throughput per user p95 down to 20 tokens/s instead of 30 tokens/s"),
    ],
)
def test_a_looser_limit_is_in_the_words_of_its_metric(text: str, words: str) -> None:
    limit = parse_limit(text)
    looser, change = loosen_limit(limit, 1.5)
    assert change == words
    assert looser.value >= 1.5 * limit.value * (1 - 1e-12)
