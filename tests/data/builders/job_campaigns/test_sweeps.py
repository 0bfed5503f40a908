from __future__ import annotations

import pandas as pd
import pytest

from builders.job_campaigns.build import TRAINING_BUILDERS
from builders.job_campaigns.html_tables import read_html_rows
from tests.data.row_builders import SAMPLES

ROOT = SAMPLES / "training"


def rows(name: str) -> pd.DataFrame:
    return TRAINING_BUILDERS[name](ROOT).rows


def reasons(name: str) -> set[str]:
    return set(TRAINING_BUILDERS[name](ROOT).rejected["reason"])


def test_nanotron_keeps_runs_that_did_not_fit_and_rejects_the_old_pipeline() -> None:
    runs = rows("nanotron_ultrascale")
    assert set(runs["status"]) == {"ok", "out_of_memory"}
    fitting = runs[runs["status"] == "ok"]
    assert set(fitting["memory_kind"]) == {"reserved"}
    assert fitting["all_reduce_bandwidth_byte_per_s"].notna().all()
    assert "nanotron/llama-70.6b-gqa" in set(runs["model"])
    assert reasons("nanotron_ultrascale") == {
        "superseded_release", "no_outcome", "inconsistent", "unknown_model",
    }  # fmt: skip


def test_nanotron_batch_is_that_of_all_replicas() -> None:
    runs = rows("nanotron_ultrascale")
    batch = runs["dp"] * runs["n_micro_batch_sequence"] * runs["n_gradient_accumulation"]
    assert (batch == runs["n_global_batch_sequence"]).all()
    assert (runs["n_node"] * 8 == runs["n_accelerator"]).all()


def test_vtrain_stacks_are_one_node_and_many() -> None:
    runs = rows("vtrain")
    assert set(runs["stack"]) == {"via-research/single", "via-research/multi"}
    assert set(runs["recomputation"]) == {"full"}


def test_sailor_reads_plans_of_one_kind_of_accelerator() -> None:
    runs = rows("sailor").sort_values("n_accelerator")
    assert runs[["tp", "n_accelerator", "pp", "dp"]].to_numpy().tolist() == [[4, 4, 1, 1], [4, 16, 2, 2]]
    assert reasons("sailor") == {"unknown_accelerator"}


def test_alpa_takes_latencies_and_runs_that_did_not_fit() -> None:
    runs = rows("alpa_osdi22")
    assert set(runs["status"]) == {"ok", "out_of_memory"}
    assert runs.loc[runs["sharding"] == "zero2", "dp"].tolist() == [1, 8]
    assert reasons("alpa_osdi22") == {"no_outcome", "unknown_model"}


def test_ms_swift_reads_memory_of_the_longest_sample() -> None:
    runs = rows("ms_swift")
    assert runs["throughput_token_per_s"].isna().all()
    divided = runs[runs["n_accelerator"] == 2].iloc[0]
    assert divided["memory_byte_per_accelerator"] == pytest.approx(78.54 * 2**30)
    assert set(runs["flash_attention"]) == {"on", "off"}
    assert set(runs["recomputation"]) == {"full", "none"}


def test_qwen_divides_the_memory_of_several_accelerators() -> None:
    runs = rows("qwen_finetune")
    full = runs[(runs["method"] == "full") & (runs["n_accelerator"] == 2)]
    assert (full["memory_byte_per_accelerator"] < 82e9).all()
    with_embedding = runs[runs["note"] == "LoRA (emb)"].iloc[0]
    assert with_embedding["adapter_targets"] == "q k v o gate up down embedding head"


def test_internevo_marks_hardware_flop() -> None:
    runs = rows("internevo")
    packed = runs[runs["packing"] == "packed"]
    recomputed = packed[(packed["recomputation"] == "full") & packed["memory_byte_per_accelerator"].isna()]
    assert recomputed["hardware_flop_per_s_per_accelerator"].notna().all()
    assert set(runs["sharding"]) == {"zero1", "fsdp"}


def test_optimum_benchmark_reads_quantisation_from_the_name() -> None:
    runs = rows("optimum_benchmark")
    assert set(runs["method"]) == {"lora", "qlora"}
    assert set(runs["accelerator"]) == {"nvidia-a100-sxm-80gb", "nvidia-rtx-4090-24gb"}


def test_dlperf_and_libai_hold_two_trainers() -> None:
    assert set(rows("dlperf_gpt")["framework"]) == {"oneflow", "megatron-lm"}
    libai = rows("libai")
    assert set(libai["framework"]) == {"libai", "megatron-lm"}
    assert libai.loc[libai["n_accelerator"] == 1, "throughput_token_per_s"].iloc[0] == pytest.approx(46.91 * 512)


def test_fsdp_qlora_times_1024_samples() -> None:
    runs = rows("fsdp_qlora")
    first = runs[(runs["method"] == "qlora") & (runs["n_token_per_sequence"] == 512)].iloc[0]
    assert first["throughput_token_per_s"] == pytest.approx(1024 * 512 / 1082)
    assert (first["power_limit_w"], first["stack"]) == (280, "answerdotai/3090")
    assert set(runs.loc[runs["n_token_per_sequence"] == 24576, "model"]) == {"mistralai/Mistral-7B-v0.1"}


def test_kempner_expert_ranks_share_a_batch() -> None:
    runs = rows("kempner_forge")
    mixtures = runs[runs["ep"] > 1]
    assert mixtures["dp"].isna().all()
    assert "kempner/llama3-moe-64x-2048" in set(mixtures["model"])


def test_torchao_states_the_precision_of_the_optimizer() -> None:
    runs = rows("torchao")
    assert set(runs["state_precision"]) == {"", "bf16", "int8", "int4"}
    assert reasons("torchao") == {"duplicate", "unknown_model"}


def test_small_pages() -> None:
    assert set(rows("paddlenlp")["memory_kind"]) == {"allocated"}
    ring = rows("readme_tables")
    assert ring.loc[ring["n_token_per_sequence"] == 700_000, "cp"].tolist() == [8]
    assert set(rows("a10_oke")["n_accelerator_per_node"]) == {1}


def test_the_judge_holds_megatrons_times() -> None:
    runs = rows("megatron_papers")
    assert len(runs) == 18
    assert set(runs["recomputation"]) == {"full", "selective"}


def test_html_cells_span_rows() -> None:
    file = ROOT / "training_2026_11" / "raw" / "ms_swift" / "Benchmark.md"
    first = [row.cells for row in read_html_rows(file) if row.table == 0]
    assert [cells[0] for cells in first[1:5]] == ["qwen-7b-chat"] * 4
    assert {len(cells) for cells in first} == {4}
