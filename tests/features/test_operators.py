from __future__ import annotations

import numpy as np
import pytest

from roofcast.features.coefficients import DEFAULT_COEFFICIENTS as C
from roofcast.features.operators import allreduce_s, estimate_prefill_s, estimate_step, touched_expert_ratio
from tests.builders import an_example

ONE = np.ones(1)
MOE = {
    "model__n_param_dense": 1e9,
    "model__n_param_expert": 6e9,
    "model__n_expert": 8,
    "model__n_expert_per_token": 2,
}


def test_a_decode_step_by_hand() -> None:
    step = estimate_step(an_example(), C, 8 * ONE)
    assert step.weight_s[0] == pytest.approx(14e9 / (0.8 * 2e12))
    assert step.kv_s[0] == pytest.approx(8 * 576_716_800 / (0.4 * 2e12))
    assert step.link_s[0] == 0.0
    assert step.overhead_s[0] == pytest.approx(2e-3 + 8 * 200e-6 + 32 * 60e-6)
    assert step.total_s[0] == pytest.approx(0.00875 + 0.005767168 + 0.00552)


def test_a_large_batch_is_bound_by_compute() -> None:
    step = estimate_step(an_example(), C, 512 * ONE)
    assert step.weight_s[0] == pytest.approx(2 * 7e9 * 512 / (0.5 * 300e12))


def test_tensor_parallelism_shares_the_reads_and_adds_all_reduces() -> None:
    alone, shared = estimate_step(an_example(), C, ONE), estimate_step(an_example(config__tp=4), C, ONE)
    assert shared.weight_s[0] == pytest.approx(alone.weight_s[0] / 4)
    assert shared.kv_s[0] == pytest.approx(alone.kv_s[0] / 4)
    assert shared.link_s[0] == pytest.approx(64 * allreduce_s(an_example(config__tp=4), C, ONE)[0])


def test_an_all_reduce_by_hand() -> None:
    time = allreduce_s(an_example(config__tp=4), C, 100 * ONE)
    message = 100 * 4096 * 2
    assert time[0] == pytest.approx(2 * 20e-6 + 2 * 3 / 4 * message / (300e9 * 0.35))


def test_pipeline_stages_do_not_shorten_a_step() -> None:
    alone, staged = estimate_step(an_example(), C, ONE), estimate_step(an_example(config__pp=4), C, ONE)
    assert staged.total_s[0] == alone.total_s[0]


def test_data_parallel_ranks_step_side_by_side() -> None:
    alone, ranks = (
        estimate_step(an_example(**MOE), C, ONE),
        estimate_step(an_example(**MOE, config__dp=4), C, 4 * ONE),
    )
    assert ranks.total_s[0] == pytest.approx(alone.total_s[0])


def test_unfused_attention_pays_more_per_layer() -> None:
    fused, padded = (estimate_step(an_example(config__flash_attention=f), C, ONE).overhead_s[0] for f in (1.0, 0.0))
    assert padded - fused == pytest.approx(32 * (250e-6 - 60e-6))


def test_a_batch_reads_the_experts_that_its_tokens_choose() -> None:
    step = estimate_step(an_example(**MOE), C, 2 * ONE)
    assert step.weight_s[0] == pytest.approx(2 * (1e9 + 0.4375 * 6e9) / (0.8 * 2e12))


@pytest.mark.parametrize(("n_expert", "per_token", "share"), [(0.0, 0.0, 0.0), (8.0, 8.0, 1.0), (8.0, 1.0, 1 / 8)])
def test_touched_experts_at_the_ends(n_expert: float, per_token: float, share: float) -> None:
    assert touched_expert_ratio(n_expert * ONE, per_token * ONE, ONE)[0] == pytest.approx(share)


def test_a_prefill_by_hand() -> None:
    flop = 2 * 7e9 * 1000 + 2 * 32 * 4096 * 1000**2
    wanted = flop / (0.55 * 300e12) + 14e9 / (0.8 * 2e12) + 32 * 60e-6
    assert estimate_prefill_s(an_example(), C)[0] == pytest.approx(wanted)


def test_a_prefill_of_an_encoder_runs_the_encoder_on_the_input() -> None:
    d = an_example(model__n_encoder_layer=24, model__n_param_encoder=3e9)
    flop = 2 * 3e9 * 1000 + 4 * 32 * 4096 * 1000**2
    wanted = flop / (0.55 * 300e12) + 20e9 / (0.8 * 2e12) + 56 * 60e-6
    assert estimate_prefill_s(d, C)[0] == pytest.approx(wanted)


def test_a_prefill_of_experts_computes_the_chosen_and_reads_the_touched() -> None:
    d = an_example(**MOE, model__attention_width=0.0, workload__n_input_token=2.0)
    wanted = 2 * 2 * (1e9 + 1.5e9) / (0.55 * 300e12) + 2 * (1e9 + 0.4375 * 6e9) / (0.8 * 2e12) + 32 * 60e-6
    assert estimate_prefill_s(d, C)[0] == pytest.approx(wanted)
