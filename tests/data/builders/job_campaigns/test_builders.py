from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from builders.campaigns.build_result import BuildResult
from builders.campaigns.pages import PageRow
from builders.job_campaigns.build import TRAINING_BUILDERS, main
from builders.job_campaigns.mlperf_systems import read_network, read_precision
from builders.job_campaigns.source_rows import SourceRow
from builders.job_campaigns.torch import _titan
from roofcast.data.job_campaigns import TRAINING_CAMPAIGNS, load_job_campaigns
from roofcast.data.measurements.job_validation import training_row_ids
from tests.data.row_builders import SAMPLES

ROOT = SAMPLES / "training"
BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
FOLDER = Path(__file__).parents[4] / "data" / "roofcast" / "data" / "job_campaigns"

BUILT: dict[str, BuildResult] = {}


def built(name: str) -> BuildResult:
    if name not in BUILT:
        BUILT[name] = TRAINING_BUILDERS[name](ROOT)
    return BUILT[name]


def reasons(name: str) -> dict[str, str]:
    rejected = built(name).rejected
    return dict(zip(rejected["reference"], rejected["reason"], strict=True))


def one(table: pd.DataFrame, **cells: object) -> pd.Series:
    chosen = table
    for name, value in cells.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1
    return chosen.iloc[0]


@pytest.mark.parametrize("name", TRAINING_BUILDERS)
def test_builder_reads_its_sample(name: str) -> None:
    result = built(name)
    assert len(result.rows) > 0
    assert set(result.rows["campaign"]) == {name}
    assert result.n_read <= len(result.rows) + len(result.rejected) + 20


def test_llm_foundry_realigns_shifted_cells() -> None:
    row = one(built("mosaic_llm_foundry").rows, accelerator="nvidia-a100-sxm-40gb", model="mosaicml/mpt-70b")
    assert row["throughput_token_per_s"] == 48194
    assert (row["n_micro_batch_sequence"], row["sharding"], row["recomputation"]) == (4, "fsdp", "full")
    assert row["mfu_ratio"] == pytest.approx(0.4891)


def test_megatron_bridge_brackets_are_the_other_scaling_of_fp8() -> None:
    rows = built("nemo_megatron_bridge").rows
    tensor = one(rows, model="meta-llama/Meta-Llama-3-70B", precision_recipe="fp8-tensor")
    blocks = one(rows, model="meta-llama/Meta-Llama-3-70B", precision_recipe="mxfp8")
    assert (tensor["tp"], tensor["pp"], tensor["sharding"], tensor["n_gradient_accumulation"]) == (1, 1, "fsdp", 1)
    assert (blocks["tp"], blocks["pp"], blocks["sharding"]) == (2, 4, "ddp")
    assert blocks[["n_micro_batch_sequence", "n_gradient_accumulation"]].isna().all()
    assert blocks["note"].startswith("printed micro batch 2 and accumulation 16 contradict")
    assert (tensor["throughput_token_per_s"], blocks["throughput_token_per_s"]) == (3986 * 64, 3546 * 64)
    assert tensor["compute_precision"] == blocks["compute_precision"] == "fp8"


def test_megatron_bridge_drafts_and_shifted_rows_are_rejected() -> None:
    assert set(reasons("nemo_megatron_bridge").values()) == {"superseded", "malformed", "unknown_model", "no_outcome"}


def test_megatron_bridge_run_with_corrected_flop_counts_once() -> None:
    row = one(built("nemo_megatron_bridge").rows, model="openai/gpt-oss-120b")
    assert (row["throughput_token_per_s"], row["model_flop_per_s_per_accelerator"]) == (5630 * 64, 153e12)
    assert reasons("nemo_megatron_bridge")["perf_summary_tables.jsonl:7"] == "superseded"


def test_automodel_local_batches_of_a_pipeline_are_several_micro_batches() -> None:
    row = one(built("nemo_automodel").rows, n_accelerator=1024)
    assert (row["n_micro_batch_sequence"], row["n_gradient_accumulation"]) == (1, 4 * 8)
    assert row["n_global_batch_sequence"] == 1 * 4 * 8 * 1024 / row["pp"]


def test_nemo_reads_lengths_in_thousands() -> None:
    row = one(built("nemo").rows, accelerator="nvidia-b200-sxm-180gb")
    assert (row["n_token_per_sequence"], row["n_global_batch_sequence"]) == (8192, 512)
    assert row["model_flop_per_s_per_accelerator"] == 1671e12


def test_nemo_long_inputs_are_llama_2_in_fp8() -> None:
    row = one(built("nemo").rows, n_token_per_sequence=8192, accelerator="nvidia-h100-sxm-80gb", pp=2)
    assert (row["model"], row["compute_precision"]) == ("meta-llama/Llama-2-7b-hf", "fp8")


def test_nemo_rejects_runs_of_the_launcher() -> None:
    assert reasons("nemo")["perf_tables.jsonl:6"] == "duplicate"


def test_llm_foundry_separates_two_runs_of_one_table() -> None:
    rows = built("mosaic_llm_foundry").rows
    twice = rows[(rows["model"] == "mosaicml/mpt-7b") & (rows["n_token_per_sequence"] == 512)]
    assert sorted(twice["throughput_token_per_s"]) == [81676, 81679]


def test_llm_foundry_separates_mixed_precision_modes() -> None:
    rows = built("mosaic_llm_foundry").rows
    small = rows[rows["model"] == "mosaicml/mpt-125m"]
    assert set(small["precision_recipe"]) >= {"plain-pure", "amp-default"}


def test_dgxc_runs_on_few_accelerators_use_truncated_models() -> None:
    rows = built("dgxc_benchmarking").rows
    grok = rows[rows["model"].str.startswith("xai-org")].set_index("n_accelerator")["model"]
    assert grok[8.0] == "xai-org/grok-1-cut-to-2-layers"
    assert grok[256.0] == "xai-org/grok-1-cut-to-32-layers"
    assert grok[512.0] == "xai-org/grok-1"
    llama = rows[rows["model"].str.contains("405B")]
    assert set(llama[llama["n_accelerator"] == 96]["model"]) == {"meta-llama/Llama-3.1-405B-cut-to-21-layers"}
    assert set(llama[llama["n_accelerator"] >= 576]["model"]) == {"meta-llama/Llama-3.1-405B"}


def test_dgxc_joins_the_measures_of_one_run() -> None:
    row = one(built("dgxc_benchmarking").rows, model="meta-llama/Meta-Llama-3-70B")
    assert (row["method"], row["n_accelerator"], row["step_time_s"]) == ("full", 32, 3.36)
    assert (row["throughput_token_per_s"], row["mfu_ratio"]) == (39009, 0.511)


def test_dgxc_separates_full_from_hybrid_sharding() -> None:
    rows = built("dgxc_benchmarking").rows
    sharding = rows[rows["framework"] == "maxtext"].set_index("n_accelerator")["sharding"]
    assert (sharding[256.0], sharding[512.0]) == ("fsdp", "hsdp")


def test_mlperf_converts_samples_to_tokens() -> None:
    rows = built("mlperf_training").rows
    lora = rows[rows["method"] == "lora"]
    assert (lora["n_token_per_sequence"] == 8192).all()
    assert (lora["adapter_rank"] == 16).all()
    assert set(reasons("mlperf_training").values()) == {"unknown_model", "no_outcome"}
    assert set(rows[rows["n_token_per_sequence"] == 512]["packing"]) == {"padded"}


def test_mlperf_takes_parallel_sizes_from_the_run_then_from_its_own_configuration() -> None:
    rows = built("mlperf_training").rows
    logged = one(rows, note="Verda b200_8x8_ngc25.09 (closed)")
    named = one(rows, note="IBM+CoreWeave+NVIDIA carina_ngpu512_ngc25.04_nemo (closed)")
    another = one(rows, note="NVIDIA tyche_ngpu512_ngc25.09_nemo (closed)")
    assert (logged["tp"], logged["pp"], logged["cp"]) == (1, 1, 2)
    assert (named["tp"], named["pp"], named["cp"]) == (4, 8, 2)
    assert another[["tp", "pp", "cp"]].isna().all()


def test_bigscience_shapes_come_from_section_and_heads() -> None:
    rows = built("bigscience").rows
    assert "bigscience/gpt-h14336-l72-a64" in set(rows["model"])
    assert one(rows, model="bigscience/gpt-h14336-l72-a64", step_time_s=143.31)["sharding"] == "zero1"
    assert set(rows[rows["status"] == "out_of_memory"]["model"]) >= {"bigscience/gpt-h2048-l24-a16-gpt2"}
    assert one(rows, model="bigscience/gpt-h2048-l24-a16-gpt2", status="ok")["n_accelerator"] == 8
    assert (rows["model_flop_per_s_per_accelerator"].isna()).all()


def test_bigscience_misprints_are_identified_by_cells() -> None:
    found = reasons("bigscience")
    assert (found["tables.jsonl:14"], found["tables.jsonl:15"]) == ("superseded", "superseded")


def test_torchtitan_local_batch_is_that_of_a_replica() -> None:
    pages = [
        PageRow(
            "t:1", "docs/performance.md", "", "512 GPUs (FSDP 8, TP 8, PP8). Local batch size 32.", "", "",
            {"Schedule": "1F1B", "TPS/GPU": "100"},
        ),
        PageRow(
            "t:2", "docs/mxfp8.md", "MXFP8 on B200 GPUs", "8x power limited B200 GPUs, batch size 1", "", "",
            {"Scaling Method": "None (bfloat16)", "Median tokens/s": "8307.5"},
        ),
    ]  # fmt: skip
    piped, dense = (row.cells for page in pages for row in _titan(page) if isinstance(row, SourceRow))
    assert (piped["n_global_batch_sequence"], piped["pipeline_schedule"]) == (32 * 8, "1f1b")
    assert "n_micro_batch_sequence" not in piped
    assert (dense["n_accelerator"], dense["compute_precision"], dense["precision_recipe"]) == (8, "bf16", "")
    assert (dense["n_micro_batch_sequence"], dense["n_global_batch_sequence"]) == (1, 8)


def test_mlperf_reads_precision_and_network() -> None:
    row = {"benchmark": "llama31_8b", "round": "v5.1", "accel": "NVIDIA Blackwell GPU (GB200)", "configs": ""}
    assert read_precision(row) == ("fp4", "nvfp4")
    assert read_precision(row | {"round": "v5.0"}) == ("fp8", "")
    assert read_precision(row | {"configs": "x/config_GB200_fp8.sh"}) == ("fp8", "")
    assert read_precision(row | {"accel": "TPU-v5p"}) == ("", "")
    assert read_precision(row | {"benchmark": "bert"}) == ("", "")
    assert read_network("4x ConnectX-8 IB XDR 800 Gb/s") == {
        "network": "infiniband", "node_bandwidth_byte_per_s": 4e11,
    }  # fmt: skip


def test_torchtune_adds_technique_to_technique() -> None:
    rows = built("torchtune").rows
    assert one(rows, note="Packed Dataset")["packing"] == "packed"
    qlora = one(rows, method="qlora")
    assert (qlora["optimizer"], qlora["recomputation"], qlora["weight_precision"]) == ("adamw8bit", "full", "int4")


def test_fms_fsdp_splits_a_row_over_its_parts() -> None:
    rows = built("fms_fsdp").rows
    h100 = one(rows, accelerator="nvidia-h100-sxm-80gb", throughput_token_per_s=7500.0 * 96)
    assert (h100["model"], h100["n_accelerator"]) == ("meta-llama/Llama-2-7b-hf", 96)


def test_fms_fsdp_utilisation_repeats_the_runs_of_the_rates() -> None:
    assert built("fms_fsdp").rows["throughput_token_per_s"].notna().all()


def test_vectorlm_nan_is_out_of_memory_if_the_page_states_it() -> None:
    rows = built("vectorlm").rows
    assert one(rows, status="out_of_memory")["model"] == "mistralai/Mixtral-8x7B-v0.1"
    assert reasons("vectorlm") == {"tables.jsonl:1:gemma-2b": "no_outcome"}
    assert one(rows, n_token_per_sequence=8192)["n_micro_batch_sequence"] == 2


def test_litgpt_separates_qlora_from_out_of_memory() -> None:
    rows = built("litgpt").rows
    assert one(rows, status="out_of_memory")["weight_precision"] == "fp32"
    assert one(rows, method="qlora")["model"] == "stabilityai/stablelm-base-alpha-3b"


def test_peft_methods() -> None:
    assert set(built("hf_peft_method_comparison").rows["method"]) == {"full", "lora", "adapter"}


def test_tpu_slices_count_chips() -> None:
    rows = built("maxtext").rows
    assert one(rows, accelerator="google-tpu-v5p", model="maxtext/default-32b")["n_accelerator"] == 64
    assert set(rows[rows["accelerator"] == "google-tpu-v5e"]["n_accelerator"]) == {256}


def test_tpu_recipes_with_swapped_cells_contradict_themselves() -> None:
    found = reasons("tpu_recipes")
    assert found["tables.jsonl:2"] == "inconsistent"
    assert found["maxtext_log_lines.csv:3"] == "above_peak"
    row = one(built("tpu_recipes").rows, n_token_per_sequence=131072)
    assert row["throughput_token_per_s"] == pytest.approx(957.16 * 256)


def test_jax_toolbox_copied_row_is_above_the_peak_of_its_part() -> None:
    assert reasons("jax_toolbox")["tables.jsonl:4"] == "above_peak"


def test_jax_toolbox_replicas_are_dp_times_fsdp() -> None:
    rows = built("jax_toolbox").rows
    sharded = rows[rows["sharding"] == "fsdp"]
    assert len(sharded) > 0
    assert (sharded["dp"] == sharded["n_accelerator"]).all()


def test_xtuner_parses_sizes_from_text() -> None:
    row = one(built("xtuner").rows, step_time_s=22.42)
    assert (row["tp"], row["pp"], row["vp"], row["ep"]) == (2, 32, 3, 8)
    assert (row["recomputation"], row["accelerator"]) == ("selective", "nvidia-h800-sxm-80gb")


def test_colossalai_multiplies_batch_and_replicas() -> None:
    row = built("colossalai").rows.iloc[0]
    assert (row["n_global_batch_sequence"], row["sharding"], row["dp"]) == (288, "zero2", 8)


def test_command_line_builds_a_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(FOLDER / "torchtune", tmp_path / "torchtune")
    main(["torchtune", "--raw", str(ROOT), "--out", str(tmp_path), "--rejected", str(tmp_path)])
    assert capsys.readouterr().out == "torchtune: 5 read, 2 rejected, 3 rows written\n"
    assert "n_row = 3" in (tmp_path / "torchtune" / "campaign.toml").read_text(encoding="utf-8")


@pytest.mark.skipif(not (BESIDE / "raw").is_dir(), reason="the published files are missing next to the checkout")
def test_shipped_rows_match_published_files() -> None:
    tables = [TRAINING_BUILDERS[name](BESIDE).rows for name in TRAINING_CAMPAIGNS]
    rows = pd.concat(tables, ignore_index=True)
    assert sorted(training_row_ids(rows)) == sorted(training_row_ids(load_job_campaigns()))
