"""What a question says changes its description."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from roofcast.data.campaigns import FIRST_CAMPAIGNS, load_campaigns
from roofcast.data.catalog import load_catalog
from roofcast.data.measurements.schema import INPUT_COLUMNS
from roofcast.features.descriptors.descriptor_table import TYPICAL_DRAFT, describe

CATALOG = load_catalog()
PLAIN: dict[str, Any] = {
    "model": "deepseek-ai/DeepSeek-V3", "accelerator": "nvidia-h200-sxm-141gb", "n_accelerator": 16, "engine": "vllm",
    "weight_precision": "fp8", "n_input_token": 1000.0, "n_output_token": 100.0, "concurrency": 16.0,
    "statistic": "mean", "speculation": "mtp", "n_speculative_token": 1.0,
}  # fmt: skip
OTHER: dict[str, Any] = {
    "model": "Qwen/Qwen3-32B", "accelerator": "nvidia-h100-sxm-80gb", "n_accelerator": 8, "engine": "sglang",
    "weight_precision": "int4", "kv_precision": "fp8", "tp": 16.0, "pp": 2.0, "dp": 2.0, "ep": 4.0,
    "n_input_token": 2000.0, "n_output_token": 200.0, "concurrency": 32.0, "request_rate": 2.0, "statistic": "p99",
    "flash_attention": 0.0, "load": "static_batch", "n_node": 4.0, "cp": 2.0, "moe_tp": 4.0,
    "n_prefill_accelerator": 8.0, "n_decode_accelerator": 8.0, "speculation": "none", "n_speculative_token": 4.0,
    "chain_acceptance_ratio": 0.3, "draft_acceptance_ratio": 0.3, "acceptance_length": 1.3,
    "prefix_cache_ratio": 0.5, "max_num_seqs": 8.0, "poll_interval_step": 10.0,
    "attention_dp_wait_step": 10.0, "batch_wait_step": 10.0, "lora_rank": 16.0, "length_variation": 0.0,
    "n_request": 64.0, "chunk_size_token": 512.0, "graphs": "off", "peer_to_peer": "off",
    "weight_bit": 5.5, "gpu_memory_utilization": 0.5, "n_gpu_layer": 10.0, "n_cpu_moe": 10.0, "cpu_offload_gib": 4.0,
    "engine_version": "0.11.0", "prefix_caching": "on", "max_context_token": 4096.0,
    "link_bandwidth_byte_per_s": 1e9, "power_limit_w": 100.0, "date": "2024-03",
}  # fmt: skip
"""Another value of each column that the estimate reads."""

NEEDS: dict[str, dict[str, Any]] = {
    "n_decode_accelerator": {"n_prefill_accelerator": 4.0},
    "moe_tp": {"ep": 1.0},
    "weight_bit": {"weight_precision": "int4"},
}

UNREAD = {
    "activation_precision": "the kernels follow from the precision of the weights",
    "chunked_prefill": "no shipped campaign varies it alone",
    "stream_interval_token": "moves the tokens a client sees, not those that are computed",
}  # fmt: skip
"""Why a column changes no descriptor."""


def described(**cells: Any) -> pd.DataFrame:
    """Return the descriptors of a question."""
    return describe(pd.DataFrame([PLAIN | cells]), CATALOG.models, CATALOG.accelerators)


def test_every_column_has_another_value_or_a_reason() -> None:
    assert OTHER.keys() ^ UNREAD.keys() == INPUT_COLUMNS.keys()


def test_a_column_that_is_not_read_is_listed_as_such() -> None:
    cells: dict[str, Any] = {
        "activation_precision": "fp8", "chunked_prefill": "on", "stream_interval_token": 10.0,
    }  # fmt: skip
    assert cells.keys() == UNREAD.keys()
    assert described(**cells).equals(described())


@pytest.mark.parametrize("name", [name for name in INPUT_COLUMNS if name not in UNREAD])
def test_a_column_that_is_read_changes_the_description(name: str) -> None:
    needed = NEEDS.get(name, {})
    other = described(**needed | {name: OTHER[name]})
    assert not described(**needed).equals(other)


def test_hosts_bound_the_accelerators_that_communicate_without_a_network() -> None:
    sizes = [described(n_accelerator=8, n_node=n)["hardware.host_size"].item() for n in (np.nan, 1.0, 2.0, 8.0)]
    assert sizes == [8.0, 8.0, 4.0, 1.0]
    rack = described(accelerator="nvidia-gb200", n_accelerator=72, n_node=18.0)
    assert rack["hardware.host_size"].item() == CATALOG.accelerators["nvidia-gb200"].link_domain_size


def test_the_usual_number_of_drafts_is_that_of_measured_rows() -> None:
    rows = load_campaigns(FIRST_CAMPAIGNS)
    stacks = rows.dropna(subset=["n_speculative_token"]).groupby(["stack", "speculation"])["n_speculative_token"]
    assert stacks.median().median() == TYPICAL_DRAFT
    assert described(n_speculative_token=np.nan)["config.n_draft_token"].item() == TYPICAL_DRAFT
    assert described(speculation="none")["config.n_draft_token"].item() == 0
