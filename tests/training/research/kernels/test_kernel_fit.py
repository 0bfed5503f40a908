"""The fit on made-up tables: parameters come back, what is set aside is counted, what ships can be read."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from research.kernels import fit
from research.kernels.kernel_fit import document, fit_kind
from research.kernels.kind import Kind
from research.kernels.kinds import COMPUTE_KINDS
from research.kernels.link_kinds import LINK_KINDS
from research.kernels.offsets import fit_offsets, gather_logs, log_error
from research.kernels.report import ape, report
from research.kernels.tables import KernelRows, read_table
from roofcast.data.errors import InputError
from roofcast.features.engine.kernel_times import gemm_s
from roofcast.features.engine.kernels.efficiency import GemmEfficiency
from roofcast.features.engine.kernels.kernel_coefficients import KINDS, parse_coefficients

TRUE = (6e-6, 0.8, 0.7, 0.3, 300.0, 1e-9)
SLOWER = 1.5
BY_NAME = {kind.name: kind for kind in (*COMPUTE_KINDS, *LINK_KINDS)}


@pytest.fixture(autouse=True)
def _tables_are_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd, "read_parquet", pd.read_csv)


def save(table: pd.DataFrame, folder: Path, name: str, system: str, version: str) -> None:
    engine = "nccl" if name == "nccl_perf" else "vllm"
    path = folder / "data" / system / "family" / engine / version / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)


def gemm_rows(n_row: int = 1200, noise: float = 0.0) -> KernelRows:
    random = np.random.default_rng(0)
    factors = pd.DataFrame(
        {
            "architecture": random.choice(["a", "b"], n_row),
            "precision": random.choice(["bf16", "fp8"], n_row),
            "engine": random.choice(["x", "y"], n_row),
        }
    )
    factors["accelerator"] = factors["architecture"] + random.choice(["1", "2", "3"], n_row)
    arguments = {name: 2.0 ** random.uniform(low, 14, n_row) for name, low in {"m": 0, "n": 8, "k": 8}.items()}
    arguments |= {name: np.full(n_row, 2.0) for name in ("weight_byte", "activation_byte")}
    arguments |= {"flop_per_s": np.full(n_row, 1e15), "bandwidth_byte_per_s": np.full(n_row, 3e12)}
    slow = np.where(factors["architecture"] == "b", SLOWER, 1.0)
    true = GemmEfficiency(TRUE[0] * slow, TRUE[1], TRUE[2] / slow, *TRUE[3:])
    latency = gemm_s(**arguments, efficiency=true) * np.exp(noise * random.standard_t(3, n_row))
    return KernelRows(arguments, factors, latency)


def test_parameters_come_back_for_each_architecture() -> None:
    rows, form = gemm_rows(noise=0.05), BY_NAME["gemm"].form()
    found = np.exp(gather_logs(fit_offsets(form, rows), rows.factors))
    is_slow = (rows.factors["architecture"] == "b").to_numpy()
    assert found[is_slow, 0] / TRUE[0] == pytest.approx(SLOWER, rel=0.15)
    assert found[~is_slow, 0] / TRUE[0] == pytest.approx(1.0, rel=0.15)
    assert found[is_slow, 2] / TRUE[2] * SLOWER == pytest.approx(1.0, rel=0.1)
    assert found[~is_slow, 2] / TRUE[2] == pytest.approx(1.0, rel=0.1)
    assert found[:, 1] / TRUE[1] == pytest.approx(1.0, rel=0.1)


def test_a_wild_row_in_ten_does_not_matter() -> None:
    rows, form = gemm_rows(), BY_NAME["gemm"].form()
    latency = rows.latency_s.copy()
    latency[::10] *= 20.0
    wild = KernelRows(rows.arguments, rows.factors, latency)
    error = log_error(form, rows, gather_logs(fit_offsets(form, wild), rows.factors))
    assert np.median(np.abs(error)) < 0.05


def test_a_held_out_accelerator_is_said_by_its_architecture() -> None:
    fitted = fit_kind(BY_NAME["gemm"], gemm_rows(noise=0.02), {})
    error = ape(fitted.errors).median()
    assert error["fitted"] <= error["held_out"] < 0.05 < error["roofline"]


def test_what_ships_is_what_was_fitted() -> None:
    rows = gemm_rows(400)
    fitted = fit_kind(BY_NAME["gemm"], rows, {"older_version": 3})
    whole = {kind: document([fitted], "2026-01-01")["kernels"]["gemm"] for kind in KINDS}
    gemm = parse_coefficients({"kernels": {**_empty(), "gemm": whole["gemm"]}})["gemm"]
    form = BY_NAME["gemm"].form()
    shipped, exact = (log_error(form, rows, gather_logs(c, rows.factors)) for c in (gemm, fitted.coefficients))
    assert shipped == pytest.approx(exact, abs=0.02)
    text = report([fitted], 300)
    assert "older version 3" in text
    assert "| a1 |" in text


def _empty() -> dict[str, object]:
    typical = {kind: dict.fromkeys(BY_NAME[kind].form().names, 1.0) for kind in KINDS}
    return {kind: {"typical": typical[kind], "log_offset": {}} for kind in KINDS}


GEMM = pd.DataFrame({"gemm_dtype": "nvfp4", "m": [1, 8, 64, 8], "n": [1, 4096, 4096, 4096], "k": 4096,
                     "kernel_source": "x", "latency": [0.1, 0.01, 0.02, 0.03]})  # fmt: skip


def test_the_newest_version_is_read_and_the_rest_counted(tmp_path: Path) -> None:
    save(GEMM, tmp_path, "gemm_perf", "h200_sxm", "0.9.2")
    save(GEMM.head(3), tmp_path, "gemm_perf", "h200_sxm", "0.24.0")
    save(GEMM.head(1), tmp_path, "gemm_perf", "h200_sxm", "0.25.0")
    save(GEMM, tmp_path, "gemm_perf", "elsewhere", "1.0")
    table, n_rejected = read_table(tmp_path, "gemm_perf")
    assert len(table) == 3
    assert n_rejected == {"unknown_system": 4, "older_version": 5}


def test_arguments_are_in_this_project_s_units(tmp_path: Path) -> None:
    save(GEMM, tmp_path, "gemm_perf", "h200_sxm", "0.24.0")
    rows, n_rejected = BY_NAME["gemm"].rows(tmp_path)
    assert rows.latency_s.tolist() == pytest.approx([1e-5, 2e-5])
    assert n_rejected["thinner_than_a_layer"] == 1
    assert n_rejected["slower_kernel"] == 1
    assert rows.factors["precision"].tolist() == ["fp4", "fp4"]
    assert rows.factors["architecture"].tolist() == ["Hopper", "Hopper"]
    assert rows.arguments["weight_byte"].tolist() == [0.5625, 0.5625]
    assert rows.arguments["flop_per_s"][0] == pytest.approx(1979e12, rel=0.01)


def test_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gemm_perf"):
        read_table(tmp_path, "gemm_perf")


TABLES = {
    "gemm_perf": GEMM,
    "context_attention_perf": pd.DataFrame(
        {"batch_size": 1, "isl": [64, 512], "num_heads": 8, "num_key_value_heads": 2, "head_dim": 128, "step": 0,
         "attn_dtype": "bfloat16", "kv_cache_dtype": "fp8", "kernel_source": "x", "latency": [0.01, 0.02]}
    ),
    "generation_attention_perf": pd.DataFrame(
        {"batch_size": 1, "step": [63, 65535], "num_heads": 8, "num_key_value_heads": 8, "head_dim": 128,
         "window_size": 0, "attn_dtype": "bfloat16", "kv_cache_dtype": "bfloat16", "kernel_source": "x",
         "latency": [0.01, 0.08]}
    ),
    "context_mla_perf": pd.DataFrame(
        {"batch_size": 1, "isl": [64, 512], "num_heads": 8, "step": 0, "mla_dtype": "bfloat16",
         "kv_cache_dtype": "fp8", "kernel_source": "x", "latency": [0.01, 0.02]}
    ),
    "generation_mla_perf": pd.DataFrame(
        {"batch_size": [1, 32], "step": [63, 65535], "num_heads": 8, "mla_dtype": "bfloat16",
         "kv_cache_dtype": "bfloat16", "kernel_source": "x", "latency": [0.01, 0.6]}
    ),
    "moe_perf": pd.DataFrame(
        {"num_tokens": [1, 64], "hidden_size": 4096, "inter_size": 1024, "num_experts": 64, "topk": 4,
         "moe_tp_size": 1, "moe_ep_size": 2, "moe_dtype": "fp8_block", "distribution": "power_law_1.2",
         "kernel_source": "x", "latency": [0.04, 0.2]}
    ),
    "custom_allreduce_perf": pd.DataFrame(
        {"num_gpus": 8, "message_size": [1024, 10**8], "allreduce_dtype": "bfloat16",
         "kernel_source": ["graph", "x_eager"], "latency": [0.005, 1.0]}
    ),
    "nccl_perf": pd.DataFrame(
        {"op_name": ["all_reduce", "all_gather", "reduce_scatter", "alltoall"], "num_gpus": 8, "message_size": 2048,
         "nccl_dtype": "half", "kernel_source": "NCCL", "latency": 0.01}
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BY_NAME.values(), ids=lambda kind: kind.name)
def test_every_kind_reads_its_table(kind: Kind, tmp_path: Path) -> None:
    save(TABLES[kind.table], tmp_path, kind.table, "b200_sxm", "1.0")
    rows, _ = kind.rows(tmp_path)
    form = kind.form()
    error = log_error(form, rows, np.tile(np.log(form.start), (len(rows.latency_s), 1)))
    assert len(error) >= 1
    assert np.abs(error).max() < np.log(10)


def test_the_command_writes_coefficients_and_report(tmp_path: Path) -> None:
    for system in ("h200_sxm", "b200_sxm"):
        for name, table in TABLES.items():
            save(table, tmp_path, name, system, "1.0")
    out, page = tmp_path / "c.json", tmp_path / "r.md"
    given = ["--tables", str(tmp_path), "--coefficients", str(out), "--report", str(page), "--as-of", "2026-01-01"]
    fit.main(given)
    assert set(parse_coefficients(json.loads(out.read_text()))) == set(KINDS)
    assert json.loads(out.read_text())["source"]["fitted"] == "2026-01-01"
    assert "## gemm" in page.read_text()
