import numpy as np
import pytest

from roofcast.features.columns import ENGINES
from roofcast.features.engine.engine_budgets import usable_byte
from roofcast.features.engine.memory import Memory, estimate_memory, n_slot, weight_byte
from tests.builders import an_example
from tests.features.engine.ideal import free_coefficients

EXPERTS = {"model__n_param": 7e9, "model__n_param_expert": 5e9, "model__n_expert": 8}


def memory(**changes: float) -> Memory:
    return estimate_memory(an_example(**changes), free_coefficients())


def test_the_example_by_hand() -> None:
    found, usable = memory(), usable_byte(an_example())[0]
    request = 32 * 8192 * 1104 * 2  # 1,100 tokens in pages of 16
    assert found.usable_byte[0] == usable
    assert found.weight_byte[0] == 14e9
    assert found.kv_byte_per_sequence[0] == found.longest_byte[0] == request
    assert found.capacity[0] == pytest.approx((usable - 14e9) / request)
    assert found.needed_byte[0] == 14e9 + request
    assert found.fits.tolist() == [True]


def test_an_engine_that_takes_a_share_of_what_is_free_leaves_the_rest() -> None:
    trtllm = {"config__engine": 2, "config__memory_ratio": 0.5}
    found, usable = memory(**trtllm), usable_byte(an_example(**trtllm))[0]
    assert found.usable_byte[0] - found.weight_byte[0] == pytest.approx(0.5 * (usable - 14e9))


def test_a_server_needs_room_for_its_longest_request() -> None:
    short, long = memory(), memory(config__served_context_token=1e6)
    assert long.capacity == short.capacity
    assert (short.fits[0], long.fits[0]) == (True, False)


def test_weights_in_the_host_take_no_memory_of_the_accelerator() -> None:
    assert memory(config__host_weight_byte=4e9).weight_byte[0] == 10e9
    assert memory(config__host_weight_byte=20e9).weight_byte[0] == 0.0


def test_every_rank_of_latent_attention_holds_the_whole_cache() -> None:
    latent = {"model__n_kv_head": 1, "model__n_mla_layer": 32, "model__kv_width": 32 * 576}
    alone, shared = (memory(config__tp=tp, config__n_accelerator=tp, **latent) for tp in (1.0, 8.0))
    assert shared.kv_byte_per_sequence[0] == 8 * alone.kv_byte_per_sequence[0]
    data_parallel = memory(config__dp=8, config__n_accelerator=8, **latent)
    assert data_parallel.kv_byte_per_sequence[0] == alone.kv_byte_per_sequence[0]


EIGHT = {"config__n_accelerator": 8}
LATENT = EIGHT | {"config__tp": 8, "config__expert_rank": 8, "model__n_param_copied": 1e8}
SGLANG = {"config__engine": ENGINES.index("sglang"), "config__ep": 8}
OTHER_MLP = 32 * 11008 * 3 * 4096


@pytest.mark.parametrize(
    ("split", "byte"),
    [
        ({"config__weight_byte_per_element": 0.5}, 5e9 * 0.5 + 2e9 * 2),
        *((EIGHT | {"config__tp": tp, "config__pp": 8 / tp, "config__expert_rank": tp}, 14e9) for tp in (8, 4, 1)),
        # data and context parallelism copy what is outside the experts
        (EIGHT | {"config__dp": 8}, 8 * 14e9),
        (EIGHT | {"config__dp": 8, "config__expert_rank": 8, "config__ep": 8}, 8 * 2e9 * 2 + 5e9 * 2),
        (
            {"config__n_accelerator": 4, "config__cp": 2, "config__tp": 2, "config__expert_rank": 4},
            2 * 2e9 * 2 + 5e9 * 2,
        ),
        # ranks of tensors copy projections to latents, and other MLPs where experts exchange tokens
        (LATENT, 14e9 + 7 * 2e8),
        (LATENT | SGLANG, 14e9 + 7 * 2 * (1e8 + OTHER_MLP)),
    ],
)
def test_the_weights_of_a_split(split: dict[str, float], byte: float) -> None:
    assert weight_byte(an_example(**EXPERTS, **split))[0] == byte


def test_each_rank_of_sglang_has_the_embedding_where_attention_is_data_parallel() -> None:
    split = {"config__n_accelerator": 8, "config__dp": 2, "config__tp": 4, "config__expert_rank": 8}
    vllm, sglang = (
        weight_byte(an_example(**EXPERTS, **split, config__engine=ENGINES.index(name)))[0]
        for name in ("vllm", "sglang")
    )
    embedding = an_example()["model.n_param_embedding"][0] * 2
    assert sglang - vllm == 2 * 3 * embedding > 0


def test_what_does_not_fit_has_no_capacity() -> None:
    found = memory(model__n_param=70e9)
    assert found.fits.tolist() == [False]
    assert found.capacity.tolist() == [0.0]


def test_an_accelerator_smaller_than_the_reserve_has_nothing_to_use() -> None:
    assert memory(hardware__memory_byte=1e9).usable_byte.tolist() == [0.0]


def test_padding_wastes_cache() -> None:
    wasteful = free_coefficients(kv_waste_padded=4.0)
    plain, padded = (
        estimate_memory(an_example(config__flash_attention=flash), wasteful).capacity[0] for flash in (1, 0)
    )
    assert plain / padded == pytest.approx(4.0)


def test_each_rank_of_data_parallelism_has_the_slots_that_the_engine_allows() -> None:
    few, many, no_bound = (
        an_example(config__dp=dp, config__ep=4.0, config__n_accelerator=4.0, config__max_num_seqs=n)
        for dp, n in ((1.0, 8.0), (4.0, 8.0), (4.0, np.inf))
    )
    slots = [n_slot(d, estimate_memory(d, free_coefficients()))[0] for d in (few, many, no_bound)]
    assert slots[:2] == [8.0, 32.0]
    assert slots[2] > 32.0
