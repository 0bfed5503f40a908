from __future__ import annotations

import numpy as np
import pytest

from roofcast.features.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.memory import estimate_memory, kv_replication, kv_token
from tests.builders import an_example


def test_the_example_by_hand() -> None:
    memory = estimate_memory(an_example(), C)
    assert memory.usable_byte[0] == pytest.approx(0.92 * 80e9 - 2e9)
    assert memory.weight_byte[0] == 14e9
    assert memory.kv_byte_per_sequence[0] == 32 * 8192 * 1100 * 2
    assert memory.capacity[0] == pytest.approx((71.6e9 - 14e9) / (576_716_800 * 2.0))
    assert memory.needed_byte[0] == 14e9 + 576_716_800
    assert memory.fits.tolist() == [True]


def test_a_sliding_window_caps_the_cache_of_its_layers() -> None:
    d = an_example(model__kv_width=1000, model__kv_width_sliding=500, model__sliding_window=128)
    full, window = kv_token(d)
    assert (full[0], window[0]) == (1100.0, 128.0)
    assert estimate_memory(d, C).kv_byte_per_sequence[0] == 2 * (1000 * 1100 + 500 * 128)


def test_a_window_longer_than_the_context_changes_nothing() -> None:
    full, window = kv_token(an_example(model__sliding_window=8192))
    assert full == window


@pytest.mark.parametrize(("tp", "n_kv_head", "copies"), [(1, 8, 1), (8, 8, 1), (16, 8, 2), (4, 1, 4)])
def test_ranks_beyond_the_key_value_heads_copy_the_cache(tp: float, n_kv_head: float, copies: float) -> None:
    assert kv_replication(an_example(config__tp=tp, model__n_kv_head=n_kv_head))[0] == copies


def test_data_parallel_ranks_copy_the_weights() -> None:
    memory = estimate_memory(an_example(config__n_accelerator=2, config__dp=2), C)
    assert memory.weight_byte[0] == 28e9
    assert memory.capacity[0] == pytest.approx(2 * estimate_memory(an_example(), C).capacity[0])


def test_what_does_not_fit_has_no_capacity() -> None:
    memory = estimate_memory(an_example(model__n_param=70e9), C)
    assert memory.fits.tolist() == [False]
    assert memory.capacity.tolist() == [0.0]


def test_an_accelerator_smaller_than_the_reserve_has_nothing_to_use() -> None:
    assert estimate_memory(an_example(hardware__memory_byte=1e9), C).usable_byte.tolist() == [0.0]


def test_padding_and_encoders_waste_in_their_own_measure() -> None:
    plain = estimate_memory(an_example(), C).capacity[0]
    padded = estimate_memory(an_example(config__flash_attention=0), C).capacity[0]
    encoder = estimate_memory(an_example(model__n_encoder_layer=4), C).capacity[0]
    assert plain / padded == pytest.approx(C.kv_waste_padded / C.kv_waste_flash)
    assert plain / encoder == pytest.approx(C.kv_waste_encoder_decoder)


def test_a_model_without_cache_is_bounded_all_the_same() -> None:
    assert np.isfinite(estimate_memory(an_example(model__kv_width=0), C).capacity).all()
