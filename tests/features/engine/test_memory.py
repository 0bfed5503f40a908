from __future__ import annotations

import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.memory import (
    ENGINE_MEMORY,
    GIB,
    Memory,
    estimate_memory,
    kv_replication,
    kv_token,
    n_slot,
    weight_byte,
)
from tests.builders import an_example
from tests.features.engine.ideal import free_coefficients

EXPERTS = {"model__n_param": 7e9, "model__n_param_expert": 5e9, "model__n_expert": 8}


def memory(**changes: float) -> Memory:
    return estimate_memory(an_example(**changes), free_coefficients())


def test_the_example_by_hand() -> None:
    found = memory()
    assert found.usable_byte[0] == pytest.approx(0.9 * 80e9 - 3 * GIB)
    assert found.weight_byte[0] == 14e9
    assert found.kv_byte_per_sequence[0] == 32 * 8192 * 1100 * 2
    assert found.capacity[0] == pytest.approx((72e9 - 3 * GIB - 14e9) / 576_716_800)
    assert found.needed_byte[0] == 14e9 + 576_716_800
    assert found.fits.tolist() == [True]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_takes_its_share(engine: str) -> None:
    share, reserve, cache_share = ENGINE_MEMORY.get(engine, ENGINE_MEMORY["other"])
    found = memory(config__engine=ENGINES.index(engine))
    assert found.usable_byte[0] == pytest.approx(share * 80e9 - reserve)
    assert found.capacity[0] == pytest.approx(cache_share * (found.usable_byte[0] - 14e9) / 576_716_800)


def test_a_sliding_window_caps_the_cache_of_its_layers() -> None:
    shape = {"model__kv_width": 1000, "model__kv_width_sliding": 500, "model__sliding_window": 128}
    full, window = kv_token(an_example(**shape))
    assert (full[0], window[0]) == (1100.0, 128.0)
    assert memory(**shape).kv_byte_per_sequence[0] == 2 * (1000 * 1100 + 500 * 128)


def test_a_window_longer_than_the_context_changes_nothing() -> None:
    full, window = kv_token(an_example(model__sliding_window=8192))
    assert full == window


@pytest.mark.parametrize(("tp", "n_kv_head", "copies"), [(1, 8, 1), (8, 8, 1), (16, 8, 2), (4, 1, 4)])
def test_ranks_beyond_the_key_value_heads_copy_the_cache(tp: float, n_kv_head: float, copies: float) -> None:
    assert kv_replication(an_example(config__tp=tp, model__n_kv_head=n_kv_head))[0] == copies


def test_every_rank_of_latent_attention_holds_the_whole_cache() -> None:
    latent = {"model__n_kv_head": 1, "model__n_mla_layer": 32, "model__kv_width": 32 * 576}
    alone, shared = (memory(config__tp=tp, config__n_accelerator=tp, **latent) for tp in (1.0, 8.0))
    assert shared.kv_byte_per_sequence[0] == 8 * alone.kv_byte_per_sequence[0]
    data_parallel = memory(config__dp=8, config__n_accelerator=8, **latent)
    assert data_parallel.kv_byte_per_sequence[0] == alone.kv_byte_per_sequence[0]


def test_attention_data_parallelism_copies_what_is_outside_the_experts() -> None:
    split = {"config__n_accelerator": 8, "config__dp": 8}
    own = an_example(**EXPERTS, **split)
    shared = an_example(**EXPERTS, **split, config__expert_rank=8, config__ep=8)
    assert weight_byte(own)[0] == 8 * 14e9
    assert weight_byte(shared)[0] == 8 * 2e9 * 2 + 5e9 * 2


def test_context_parallelism_copies_what_is_outside_the_experts() -> None:
    d = an_example(**EXPERTS, config__n_accelerator=4, config__cp=2, config__tp=2, config__expert_rank=4)
    assert weight_byte(d)[0] == 2 * 2e9 * 2 + 5e9 * 2


@pytest.mark.parametrize(("tp", "pp"), [(8, 1), (4, 2), (1, 8)])
def test_tensor_and_pipeline_parallelism_copy_no_weights(tp: float, pp: float) -> None:
    d = an_example(**EXPERTS, config__n_accelerator=8, config__tp=tp, config__pp=pp, config__expert_rank=tp)
    assert weight_byte(d)[0] == 14e9


def test_experts_have_a_precision_of_their_own() -> None:
    d = an_example(**EXPERTS, config__weight_byte_per_element=0.5)
    assert weight_byte(d)[0] == 5e9 * 0.5 + 2e9 * 2


def test_what_does_not_fit_has_no_capacity() -> None:
    found = memory(model__n_param=70e9)
    assert found.fits.tolist() == [False]
    assert found.capacity.tolist() == [0.0]


def test_an_accelerator_smaller_than_the_reserve_has_nothing_to_use() -> None:
    assert memory(hardware__memory_byte=1e9).usable_byte.tolist() == [0.0]


def test_padding_and_encoders_waste_in_their_own_measure() -> None:
    wasteful = free_coefficients(kv_waste=1.5, kv_waste_padded=4.0, kv_waste_encoder_decoder=0.5)
    plain, padded, encoder = (
        estimate_memory(an_example(config__dense_byte_per_element=1, **changes), wasteful).capacity[0]
        for changes in ({}, {"config__flash_attention": 0}, {"model__n_encoder_layer": 4})
    )
    assert memory(config__dense_byte_per_element=1).capacity[0] / plain == pytest.approx(1.5)
    assert plain / padded == pytest.approx(4.0)
    assert plain / encoder == pytest.approx(0.5)


def test_a_model_without_cache_is_bounded_all_the_same() -> None:
    assert np.isfinite(memory(model__kv_width=0).capacity).all()


def test_each_rank_of_data_parallelism_has_the_slots_that_the_engine_allows() -> None:
    few, many, no_bound = (
        an_example(config__dp=dp, config__ep=4.0, config__n_accelerator=4.0, config__max_num_seqs=n)
        for dp, n in ((1.0, 8.0), (4.0, 8.0), (4.0, np.inf))
    )
    slots = [n_slot(d, estimate_memory(d, free_coefficients()))[0] for d in (few, many, no_bound)]
    assert slots[:2] == [8.0, 32.0]
    assert slots[2] > 32.0
