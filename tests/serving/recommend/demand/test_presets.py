import contextlib
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.docs_tables import TABLES, main, with_tables
from roofcast.data.campaigns import load_campaigns
from roofcast.data.errors import InputError, UnknownNameError
from roofcast.serving.recommend.demand.presets import (
    MAX_TOKEN,
    PRESETS,
    Lengths,
    find_preset,
    lengths_from_percentiles,
)

DOCUMENT = Path(__file__).parents[4] / "docs" / "WORKLOADS.md"
NAMES = st.sampled_from(["p5", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9"])


def test_every_preset_has_lengths_a_date_and_a_source() -> None:
    assert set(PRESETS) == {"chat", "rag", "code", "summarisation", "agents", "long_context"}
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert 1 <= preset.n_output_token < preset.n_input_token
        assert re.fullmatch(r"20\d\d(-[01]\d)?", preset.observed)
        assert preset.source.startswith("https://")
        assert preset.basis
        assert preset.length_variation is None or 0 < preset.length_variation < 5
        assert preset.prefix_cache_ratio is None or 0 < preset.prefix_cache_ratio < 1


@pytest.mark.parametrize(
    ("preset", "model"), [("summarisation", "meta-llama/Llama-3.1-8B"), ("long_context", "meta-llama/Llama-3.1-405B")]
)
def test_presets_of_mlperf_equal_the_shipped_campaign(preset: str, model: str) -> None:
    rows = load_campaigns(["mlperf_inference"])
    rows = rows[rows["model"] == model]
    assert rows["n_input_token"].unique().round().tolist() == [PRESETS[preset].n_input_token]
    assert rows["length_variation"].unique().round(3).tolist() == [PRESETS[preset].length_variation]


def test_preset_names_ignore_case() -> None:
    assert find_preset(" RAG ").name == "rag"
    assert find_preset("long-context").name == "long_context"
    with pytest.raises(UnknownNameError, match=r"workload\.preset: no 'chatt' is known; did you mean 'chat'"):
        find_preset("chatt", "workload.preset")


@given(st.floats(1, 100_000), st.floats(0, 5), st.sets(NAMES, min_size=2))
def test_lengths_are_recovered_from_their_percentiles(mean: float, variation: float, names: set[str]) -> None:
    lengths = Lengths(mean, variation)
    fitted = lengths_from_percentiles({name: lengths.percentile(name) for name in names})
    assert fitted.mean == pytest.approx(mean, rel=1e-6)
    assert fitted.variation == pytest.approx(variation, rel=1e-5, abs=1e-6)


@given(st.floats(1, 100_000), st.floats(0.01, 5), NAMES)
def test_the_share_above_a_percentile_is_its_complement(mean: float, variation: float, name: str) -> None:
    lengths = Lengths(mean, variation)
    assert lengths.share_above(lengths.percentile(name)) == pytest.approx(1 - float(name[1:]) / 100, abs=1e-9)


@pytest.mark.parametrize("variation", [0.0, 0.4, 1.5])
def test_the_share_above_of_a_sum_equals_a_simulation(variation: float) -> None:
    parts = Lengths(1000, 0.8), Lengths(300, variation)
    rng = np.random.default_rng(1)
    drawn = sum(
        np.exp(rng.normal(math.log(p.percentile("p50")), math.log1p(p.variation**2) ** 0.5, 10**6)) for p in parts
    )
    for n_token in (0, 800, 2000, 5000):
        assert parts[0].share_above_with(parts[1], n_token) == pytest.approx(np.mean(drawn > n_token), abs=2e-3)
        assert parts[1].share_above_with(parts[0], n_token) == pytest.approx(np.mean(drawn > n_token), abs=2e-3)


@pytest.mark.parametrize(
    ("percentiles", "problem"),
    [
        ({"p50": 300}, "needs at least two percentiles"),
        ({"p50": 300, "median": 200}, "median: is not a percentile; write p50"),
        ({"p0": 1, "p50": 300}, "p0: is not a percentile"),
        ({"p\u0665": 1, "p50": 300}, "is not a percentile"),
        ({"p50": 300, "p95": 299}, "p95: must not be less than p50, which is 300, got 299"),
        ({"p50": 300, "p50.0": 300}, "is the same as"),
        ({"p50": 0, "p95": 300}, "p50: must lie between 0 and"),
        ({"p50": 1, "p95": math.nan}, "p95: must lie between 0 and"),
        ({"p50": 1, "p51": MAX_TOKEN}, "imply a mean above"),
        ({"p99": 1, "p99.9": 3}, "a mean of less than one token"),
    ],
)
def test_invalid_percentiles_are_refused(percentiles: dict[str, float], problem: str) -> None:
    with pytest.raises(InputError) as refusal:
        lengths_from_percentiles(percentiles)
    assert problem in str(refusal.value)


@given(st.dictionaries(st.one_of(NAMES, st.text(max_size=5)), st.floats(1, MAX_TOKEN), max_size=4))
def test_any_percentiles_are_fitted_or_refused(percentiles: dict[str, float]) -> None:
    with contextlib.suppress(InputError):
        lengths = lengths_from_percentiles(percentiles)
        assert 0.99 <= lengths.mean <= 1.01 * MAX_TOKEN
        assert 0 <= lengths.variation < math.inf


def test_the_document_is_up_to_date(tmp_path: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == with_tables(text, TABLES), "python -m codegen.docs_tables docs/WORKLOADS.md"
    copy = tmp_path / "copy.md"
    copy.write_text(re.sub("<!-- presets -->.*<!-- end -->", "<!-- presets -->\n<!-- end -->", text, flags=re.DOTALL))
    main([str(copy)])
    assert copy.read_text(encoding="utf-8") == text
