from typing import Any

import pytest

from roofcast.data.catalog import load_catalog
from roofcast.serving.jobs.job_predictions import ANSWER_COLUMNS, MEMORY_PARTS, answer_jobs
from roofcast.serving.jobs.rows import parse_jobs
from roofcast.serving.predict.question_rows import rows_from_columns
from tests.serving.jobs.builders import EstimatePredictor, a_job


def predict(*rows: dict[str, Any], level: float = 0.8) -> list[dict[str, Any]]:
    return rows_from_columns(answer_jobs(rows, EstimatePredictor(), load_catalog(), level))


def test_a_job_has_time_memory_and_plan() -> None:
    (answer,) = predict(a_job())
    assert tuple(answer) == ANSWER_COLUMNS
    assert answer["status"] == "ok"
    for metric in ("step_time_s", "throughput_token_per_s", "mfu_ratio", "peak_memory_byte"):
        assert 0 < answer[f"{metric}_lo"] < answer[metric] < answer[f"{metric}_hi"]
    assert answer["step_time_s"] * answer["throughput_token_per_s"] == pytest.approx(128 * 4096)
    assert 0.2 < answer["mfu_ratio"] < 0.7
    parts = sum(answer[f"memory_{part}_byte"] for part in MEMORY_PARTS)
    assert parts == pytest.approx(answer["peak_memory_byte"])
    assert parts < answer["memory_capacity_byte"]
    assert answer["plan_dp"] == 8
    batch = answer["plan_n_micro_batch_sequence"] * answer["plan_n_gradient_accumulation"] * answer["plan_dp"]
    assert batch == answer["plan_n_global_batch_sequence"] == 128
    assert 0.4 * 8 * 700 < answer["power_w"] <= 8 * 700


def test_a_gpipe_schedule_needs_the_memory_of_all_micro_batches() -> None:
    staged = {"framework": "megatron-lm", "tp": 1, "pp": 2, "recomputation": "full", "n_micro_batch_sequence": 1}
    one, gpipe = predict(*(a_job(**staged, pipeline_schedule=name) for name in ("1f1b", "gpipe")))
    assert gpipe["plan_n_gradient_accumulation"] == 32
    assert gpipe["memory_activations_byte"] > 4 * one["memory_activations_byte"]


def test_stated_replicas_and_micro_batches_are_those_of_the_plan() -> None:
    split, accumulated = predict(
        a_job(framework="megatron-lm", dp=2), a_job(framework="torchtitan", n_gradient_accumulation=4)
    )
    assert (split["status"], split["plan_dp"], split["plan_tp"] * split["plan_pp"]) == ("ok", 2, 4)
    assert (accumulated["status"], accumulated["plan_n_gradient_accumulation"]) == ("ok", 4)
    assert accumulated["plan_n_micro_batch_sequence"] == 4
    (nodes,) = predict(a_job(n_accelerator=64, n_accelerator_per_node=8))
    assert nodes["status"] == "ok"


def test_a_lack_of_memory_is_that_of_the_predicted_peak() -> None:
    (answer,) = predict(a_job(n_accelerator=1, framework="torchtitan", offload="none"))
    assert f"needs {answer['peak_memory_byte'] / 1e9:.1f} GB" in answer["reason"]


def test_all_weights_of_7b_do_not_fit_on_24_gb_but_quantised_lora_does() -> None:
    small = {
        "model": "llama-2-7b-hf",
        "accelerator": "rtx-4090-24gb",
        "n_accelerator": 1,
        "n_token_per_sequence": 1024,
    }
    full, qlora, lora, high = predict(
        a_job(**small, offload="none"), a_job(**small, method="qlora"), a_job(**small, method="lora"),
        a_job(**small, method="lora", adapter_rank=64),
    )  # fmt: skip
    assert full["status"] == "does_not_fit"
    assert "GB of optimizer" in full["reason"]
    assert full["step_time_s"] is None
    assert full["peak_memory_byte"] > full["memory_capacity_byte"]
    assert qlora["status"] == lora["status"] == "ok"
    assert qlora["memory_weights_byte"] < 0.4 * lora["memory_weights_byte"]
    states = ("memory_weights_byte", "memory_gradients_byte", "memory_optimizer_byte")
    assert 1.0 < sum(high[name] for name in states) / sum(lora[name] for name in states) < 1.1


def test_what_the_host_cannot_hold_is_refused_with_the_memory_it_needs() -> None:
    """AdamW of 7B parameters with a copy in 32 bits, and gradients: 14 bytes each, with 5 % to spare."""
    job = {"model": "llama-2-7b-hf", "accelerator": "rtx-4090-24gb", "n_accelerator": 1, "method": "full",
           "framework": "transformers", "n_token_per_sequence": 1024, "sharding": "zero3"}  # fmt: skip
    (small,) = predict(job)
    assert (small["status"], small["p_fits"] < 0.1) == ("does_not_fit", True)
    assert "host_memory_byte: the leanest plan with optimizer " in small["reason"]
    assert "on the host needs 99.3 GB of its memory, of 51.5 GB" in small["reason"]
    (blank,) = predict(job | {"host_memory_byte": " "})
    assert "host_memory_byte=51.5 GB" in small["assumed"]
    assert blank["assumed"] == small["assumed"], "a blank is no value"
    (large,) = predict(job | {"host_memory_byte": 114e9})
    assert large["status"] == "ok"
    assert 0.9 * 114e9 > large["memory_host_byte"] > 51.5e9
    assert "host_memory_byte" not in large["assumed"]


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"model": "no-such-model"}, "unknown_name", "model"),
        ({"accelerator": ""}, "invalid", "accelerator"),
        ({"accelerator": "intel-xeon-6-granite-rapids"}, "invalid", "accelerator"),
        ({"n_accelerator": 2.5}, "invalid", "n_accelerator"),
        ({"n_token_per_sequence": "many"}, "invalid", "n_token_per_sequence"),
        ({"adapter_targets": "q z"}, "invalid", "adapter_targets"),
        ({"framework": "x" * 401}, "invalid", "framework"),
        ({"tp": [1]}, "invalid", "tp"),
        ({"tp": 3}, "invalid", "tp"),
        ({"tp": 8, "n_accelerator": 8, "model": "Qwen/Qwen2.5-7B"}, "invalid", "tp"),
        ({"pp": 64, "n_accelerator": 64}, "invalid", "pp"),
        ({"ep": 2}, "invalid", "ep"),
        ({"dp": 3}, "invalid", "dp"),
        ({"dp": 2, "framework": "torchtitan"}, "invalid", "dp"),
        ({"n_micro_batch_sequence": 1, "n_gradient_accumulation": 4}, "invalid", "n_gradient_accumulation"),
        ({"n_node": 16}, "invalid", "n_node"),
        ({"n_node": 1, "n_accelerator_per_node": 4}, "invalid", "n_accelerator_per_node"),
        ({"n_global_batch_sequence": 3}, "invalid", "n_global_batch_sequence"),
        ({"power_limit_w": 5}, "invalid", "power_limit_w"),
        ({"compute_precision": "int8"}, "invalid", "compute_precision"),
        ({"offload": "parameters", "sharding": "zero2"}, "invalid", "offload"),
        ({"offload": "parameters", "sharding": "ddp", "framework": "trl"}, "invalid", "offload"),
        ({"offload": "activations", "framework": "nanogpt"}, "invalid", "offload"),
        ({"compute_precision": "fp8", "accelerator": "a100-sxm-80gb"}, "invalid", "compute_precision"),
    ],
)
def test_an_invalid_row_names_its_field(changes: dict[str, Any], status: str, field: str) -> None:
    bad, good = predict(a_job(**changes), a_job())
    assert (bad["status"], bad["reason"].partition(":")[0]) == (status, field)
    assert bad["step_time_s"] is None
    assert good["status"] == "ok"


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"tp": "x", "dp": 3, "method": "magic", "model": "no-such-model"}, ["method", "tp", "model"]),
        ({"model": "", "accelerator": "h1", "n_node": 16, "ep": 0}, ["model", "ep", "accelerator", "n_node"]),
        ({"tp": 3, "ep": 2, "compute_precision": "int8", "n_node": 9}, ["compute_precision", "n_node", "tp", "ep"]),
    ],
)
def test_an_invalid_row_has_all_its_problems(changes: dict[str, Any], fields: list[str]) -> None:
    (answer,) = predict(a_job(**changes))
    for field in fields:
        assert f"{field}: " in answer["reason"]
    _, (problem,) = parse_jobs([a_job(**changes)], load_catalog())
    assert problem is not None
    assert [*problem.fields] == fields


def test_a_power_limit_beyond_the_accelerators_says_which_it_takes() -> None:
    job = a_job(accelerator="nvidia-h100-sxm-80gb")
    (bad,) = predict(job | {"power_limit_w": 5})
    assert "takes limits from 175 to 1050 W, got 5" in bad["reason"]
    slow, fast = predict(job | {"power_limit_w": 350}, job)
    assert slow["throughput_token_per_s"] < fast["throughput_token_per_s"]


def test_padding_halves_the_rate_and_leaves_the_step() -> None:
    padded, packed = predict(a_job(packing="padded"), a_job())
    assert padded["step_time_s"] == pytest.approx(packed["step_time_s"])
    assert padded["throughput_token_per_s"] == pytest.approx(packed["throughput_token_per_s"] / 2)
    assert padded["mfu_ratio"] == pytest.approx(packed["mfu_ratio"])


def test_the_level_widens_the_intervals() -> None:
    (narrow,), (wide,) = predict(a_job(), level=0.5), predict(a_job(), level=0.95)
    assert wide["step_time_s_hi"] > narrow["step_time_s_hi"]
    assert wide["step_time_s"] == narrow["step_time_s"]


@pytest.mark.parametrize(
    ("job", "plan"),
    [
        ({"model": "meta-llama/Llama-3.1-70B", "method": "lora"}, {"sharding": "fsdp", "offload": "none"}),
        (
            {"model": "Qwen/Qwen2.5-72B", "method": "qlora", "framework": "unsloth", "n_token_per_sequence": 24576,
             "accelerator": "nvidia-a800-sxm-80gb", "n_accelerator": 1},
            {"loss": "chunked", "offload": "activations", "recomputation": "full"},
        ),
        ({"model": "meta-llama/Llama-3.1-405B", "method": "pretrain", "framework": "megatron-lm",
          "n_accelerator": 8192, "n_token_per_sequence": 8192, "n_global_batch_sequence": 2048}, {"tp": 8}),
        ({"model": "deepseek-ai/DeepSeek-V3", "method": "pretrain", "accelerator": "nvidia-h800-sxm-80gb",
          "n_accelerator": 2048, "n_global_batch_sequence": 8192}, {"sharding": "fsdp"}),
    ],
)  # fmt: skip
def test_blanks_of_large_jobs_are_answered(job: dict[str, Any], plan: dict[str, Any]) -> None:
    (answer,) = predict({"accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8} | job)
    assert answer["status"] == "ok"
    assert {name: answer[f"plan_{name}"] for name in plan} == plan
    assert all(f"{name}={value}" in answer["assumed"] for name, value in plan.items() if name != "tp")
    assert (answer["memory_host_byte"] > 0) == (answer["plan_offload"] != "none")


@pytest.mark.parametrize(("precision", "least", "greatest"), [("fp32", 6.0, 20.0), ("tf32", 1.5, 4.0)])
def test_products_of_32_bits_take_longer_and_more_memory(precision: str, least: float, greatest: float) -> None:
    fixed = {"accelerator": "a100-sxm-80gb", "framework": "my-trainer", "sharding": "fsdp", "recomputation": "full",
             "n_micro_batch_sequence": 1}  # fmt: skip
    half, wide = predict(a_job(**fixed), a_job(**fixed, compute_precision=precision))
    assert least < wide["step_time_s"] / half["step_time_s"] < greatest
    assert wide["memory_weights_byte"] > 1.9 * half["memory_weights_byte"]


def test_what_the_host_holds_costs_its_bus_and_processors() -> None:
    fixed = {"framework": "transformers", "sharding": "zero3", "recomputation": "full", "n_micro_batch_sequence": 1,
             "n_global_batch_sequence": 8, "model": "tiiuae/falcon-7b", "accelerator": "a100-sxm-40gb"}  # fmt: skip
    names = ("none", "parameters", "optimizer+parameters")
    plain, weights, both = predict(*(a_job(**fixed, offload=name) for name in names))
    assert 1.1 < weights["step_time_s"] / plain["step_time_s"] < 1.7 < both["step_time_s"] / plain["step_time_s"]
    assert 0.0 == plain["memory_host_byte"] < weights["memory_host_byte"] < both["memory_host_byte"]
    assert both["peak_memory_byte"] < plain["peak_memory_byte"]
