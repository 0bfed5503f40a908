from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.catalog import load_catalog
from roofcast.features.columns import ENGINES
from roofcast.features.descriptors.descriptor_table import describe
from roofcast.features.engine.cache_pages import SGLANG_STATE_RATIO, admitted_byte, kv_replication, running_byte
from roofcast.features.queries import descriptor_arrays
from tests.builders import a_question, an_example

HYBRID: dict[str, Any] = {
    "model__n_layer": 64, "model__n_full_layer": 16, "model__n_linear_layer": 48, "model__kv_width": 16 * 2048,
    "model__state_byte": 48 * 3_207_168, "model__n_kv_head": 4,
}  # fmt: skip
"""Qwen3.5-27B: a page of attention has 784 tokens, as large as the state of a layer."""

PAGE = 784 * 4096


def request(context: float, /, engine: str = "vllm", **changes: Any) -> float:
    d = an_example(config__engine=ENGINES.index(engine), **changes)
    return float(admitted_byte(d, np.array([context]))[0])


def test_attention_takes_whole_pages() -> None:
    assert request(1.0) == request(16.0) == 16 * 32 * 8192 * 2
    assert request(17.0) == 2 * request(16.0)
    assert request(17.0, "sglang") == 17 * 32 * 8192 * 2


def test_a_page_of_attention_is_as_large_as_a_state() -> None:
    states = 3 * 16 * PAGE
    assert request(784.0, **HYBRID) == 16 * PAGE + states
    assert request(785.0, **HYBRID) == 2 * 16 * PAGE + states
    assert request(1200.0, **HYBRID) / 2**30 == pytest.approx(0.239, abs=0.001)


def test_drafts_and_kept_prefixes_take_states() -> None:
    plain = request(784.0, **HYBRID)
    assert request(784.0, **HYBRID, config__keeps_prefixes=1) == plain + 3 * 16 * PAGE
    assert request(784.0, **HYBRID, config__n_draft_token=2, config__n_draft_layer=1) > plain + 2 * 3 * 16 * PAGE


def test_a_group_that_is_not_full_wastes_its_places() -> None:
    windows: dict[str, Any] = {"model__kv_width": 81_920, "model__kv_width_sliding": 425_984}
    windows["model__sliding_window"] = 1024
    layers: dict[str, Any] = {"model__n_full_layer": 10, "model__n_sliding_layer": 52}
    short = request(160.0, **windows, **layers)
    assert short == pytest.approx(2 * 8192 * (10 * 160 + 60 * 176))


def test_a_window_holds_the_chunk_that_is_computed() -> None:
    windows: dict[str, Any] = {"model__kv_width": 131_072, "model__kv_width_sliding": 131_072}
    windows["model__sliding_window"] = 128
    layers: dict[str, Any] = {
        "model__n_full_layer": 16,
        "model__n_sliding_layer": 16,
        "config__in_flight_token": 2048,
    }
    long = request(64_000.0, **windows, **layers)
    assert long == 2 * 16 * 8192 * (64_000 + 2176 + 16)
    assert request(64_000.0, "other", **windows, **layers) == 2 * 16 * 8192 * (64_000 + 128)
    d = an_example(config__engine=ENGINES.index("vllm"), **windows, **layers)
    assert running_byte(d, np.array([64_000.0]))[0] == 2 * 16 * 8192 * (64_000 + 128 + 16)


def test_sglang_has_pools_of_fixed_proportions() -> None:
    attention, states = 2 * 16 * 2048 * 1e6, 48 * 3_207_168
    assert request(1e6, "sglang", **HYBRID) == attention * (1 + SGLANG_STATE_RATIO)
    assert request(1.0, "sglang", **HYBRID) == pytest.approx(states * (1 + 1 / SGLANG_STATE_RATIO))


@pytest.mark.parametrize(("tp", "n_kv_head", "copies"), [(1, 8, 1), (8, 8, 1), (16, 8, 2), (4, 1, 4)])
def test_ranks_beyond_the_key_value_heads_copy_the_cache(tp: float, n_kv_head: float, copies: float) -> None:
    assert kv_replication(an_example(config__tp=tp, model__n_kv_head=n_kv_head))[0] == copies


@pytest.mark.parametrize("engine", ENGINES)
def test_a_longer_request_never_takes_less(engine: str) -> None:
    sizes = [request(context, engine, **HYBRID) for context in np.geomspace(1, 1e6, 50)]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(("version", "gib"), [("0.25.0", 6.9), ("0.27.1", 10.3)])
def test_windows_and_states_of_compressed_caches_take_blocks_of_their_own(version: str, gib: float) -> None:
    """Logs of servers of 0.25.0 and 0.27.1 with a chunk of 8,192 tokens have so many GiB for the whole context."""
    catalog = load_catalog()
    cells = a_question(
        model="deepseek-ai/DeepSeek-V4-Flash", accelerator="nvidia-b200-sxm-180gb", engine="vllm",
        engine_version=version, kv_precision="fp8", chunk_size_token=8192.0,
    )  # fmt: skip
    d = descriptor_arrays(describe(pd.DataFrame([cells]), catalog.models, catalog.accelerators))
    assert admitted_byte(d, np.array([1_048_576.0]))[0] / 2**30 == pytest.approx(gib, rel=0.05)
