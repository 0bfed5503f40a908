"""Runs of logs of torchtitan and Megatron-LM."""

import pytest

from roofcast.data.errors import SchemaError
from roofcast.data.importers.job_logs import is_job_log, read_job_log
from tests.data.row_builders import SAMPLES

GIB = 2**30
MIB = 2**20

TORCHTITAN, MEGATRON = ((SAMPLES / f"job_logs/{name}.log").read_text() for name in ("torchtitan", "megatron"))

OUT_OF_MEMORY = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
HARDWARE = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "nvidia-h100-sxm-80gb"}


def test_torchtitan_gives_the_median_rate_after_the_first_step_and_the_peak_memory() -> None:
    log = read_job_log(TORCHTITAN, "run.log", {})
    assert log.cells == {
        "framework": "torchtitan", "date": "2026-03-02", "model": "llama3 8B", "accelerator": "NVIDIA H100 80GB HBM3",
        "n_accelerator": 8, "tp": 2, "pp": 1, "cp": 1, "dp": 4, "n_micro_batch_sequence": 2,
        "n_global_batch_sequence": 16, "n_token_per_sequence": 8192, "sharding": "fsdp", "recomputation": "selective",
        "compiled": "on", "throughput_token_per_s": 6100.0 * 8, "memory_byte_per_accelerator": 50.5 * GIB,
        "memory_kind": "reserved",
    }  # fmt: skip
    assert log.shape == {"hidden_size": 4096, "n_layer": 32}
    assert TORCHTITAN.splitlines()[log.line - 1].count("step: 20")


@pytest.mark.parametrize(
    "config",
    [
        "Running with args: {'parallelism': {'data_parallel_shard_degree': -1, 'tensor_parallel_degree': 2, "
        "'pipeline_parallel_degree': 4, 'context_parallel_degree': 1}}",
        'Running with configs: {\n  "parallelism": {\n    "tensor_parallel_degree": 2,\n'
        '    "pipeline_parallel_degree": 4, "context_parallel_degree": 1}\n}',
    ],
)
def test_torchtitan_without_a_mesh_counts_accelerators_by_the_configuration(config: str) -> None:
    text = TORCHTITAN.replace("Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]", config)
    cells = read_job_log(text, "run.log", {}).cells
    assert (cells["tp"], cells["pp"], cells["dp"], cells["n_accelerator"]) == (2, 4, 4, 32)
    assert "n_micro_batch_sequence" not in cells  # a pipeline cuts the local batch up


def test_megatron_gives_the_median_iteration_and_the_arguments() -> None:
    log = read_job_log(MEGATRON, "run.out", HARDWARE)
    assert log.cells == {
        **HARDWARE, "framework": "megatron-lm", "date": "2026-03-02", "n_accelerator": 8, "tp": 2, "pp": 1, "cp": 1,
        "dp": 4, "n_micro_batch_sequence": 2, "n_global_batch_sequence": 128, "n_token_per_sequence": 4096,
        "recomputation": "none", "sequence_parallel": "on", "sharding": "zero1", "compute_precision": "bf16",
        "step_time_s": 8.1, "memory_byte_per_accelerator": 53000.0 * MIB, "memory_kind": "reserved",
    }  # fmt: skip
    assert log.shape == {"hidden_size": 4096, "n_layer": 32}


def test_megatron_takes_the_largest_batch_of_a_ramp() -> None:
    text = MEGATRON.replace("global batch size:   128 | lm loss: 1.1E+01 |", "global batch size:    64 | |", 1)
    cells = read_job_log(text, "run.out", HARDWARE).cells
    assert (cells["n_global_batch_sequence"], cells["step_time_s"]) == (128, 8.2)


@pytest.mark.parametrize("text", [TORCHTITAN, MEGATRON])
def test_a_run_that_exhausts_memory_in_its_first_step_has_that_status(text: str) -> None:
    lines = text.splitlines(keepends=True)
    end = next(i for i, line in enumerate(lines) if "step: 10" in line or "iteration        2/" in line)
    cells = read_job_log("".join(lines[:end]) + OUT_OF_MEMORY, "run.log", HARDWARE).cells
    assert cells["status"] == "out_of_memory"
    assert not {"throughput_token_per_s", "step_time_s", "memory_byte_per_accelerator"} & set(cells)


def test_a_run_of_one_step_names_the_option() -> None:
    text = "\n".join(line for line in TORCHTITAN.splitlines() if "step: 10" not in line and "step: 20" not in line)
    with pytest.raises(SchemaError, match=r"run\.log, line 9: must log 2 steps or more.*metrics\.log_freq"):
        read_job_log(text, "run.log", {})


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        (MEGATRON, {}, r"run\.log, line \d+: model: is not in the log; set it, such as --set model="),
        (MEGATRON, {**HARDWARE, "tp": "4"}, r"tp: is '2' in the file, but is set to '4'"),
        (TORCHTITAN.replace("device mesh", "mesh"), {}, "n_accelerator: is not in the log"),
        (
            TORCHTITAN.replace("[4, 2]", "[8]"),
            {},
            r"line 1: n_accelerator: the device mesh must have a size for each",
        ),
        (TORCHTITAN.replace("'tp']", "8]"), {}, "the device mesh must have a size for each axis"),
        (TORCHTITAN.replace("4, 2]", "4, 1e999]"), {}, "the device mesh must have a size for each axis"),
        (f"{TORCHTITAN}{'x' * 70_000}\n", {}, r"run\.log, line 13: a line must be at most 65536 characters long"),
        (TORCHTITAN, {"n_accelerator": "eight"}, "n_accelerator: is '8' in the file, but is set to 'eight'"),
        (
            TORCHTITAN.replace("device", ""),
            {"n_accelerator": "eight"},
            "n_accelerator: must be a number",
        ),
        ("epoch 1 of 3\n", {}, "is neither CSV nor a log of torchtitan or megatron-lm"),
    ],
)
def test_what_a_log_lacks_or_contradicts_is_named(text: str, overrides: dict[str, str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        read_job_log(text, "run.log", overrides)


def test_a_table_is_no_log() -> None:
    assert [is_job_log(text) for text in (TORCHTITAN, MEGATRON, "campaign,model\nnightly,llama\n")] == [
        True, True, False,
    ]  # fmt: skip
